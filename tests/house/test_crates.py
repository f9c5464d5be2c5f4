"""What the crates' manifests say of their tests holds: cargo runs all there are, and builds no more than those."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from sources import ROOT, files, read

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib

FENCE = re.compile(r"^\s*//[/!] ```(\w*)$", re.M)
SHARED = {"common"}


def manifests() -> dict[Path, dict[str, dict[str, object]]]:
    found = {path.parent: tomllib.loads(read(path)) for path in files() if path.match("crates/*/Cargo.toml")}
    assert len(found) > 10
    return found


def test_a_folder_with_one_program_of_tests_names_all_its_files_there() -> None:
    """Such a crate finds no tests by itself: what is not named is not run."""
    one_program = [crate for crate, told in manifests().items() if "autotests" in told["package"]]
    assert len(one_program) >= 3
    for crate in one_program:
        told = manifests()[crate]
        programs = {entry["name"] for entry in told["test"]}  # type: ignore[attr-defined]
        there = {
            path.relative_to(crate / "tests").parts[0].removesuffix(".rs")
            for path in files()
            if path.is_relative_to(crate / "tests")
        }
        named = set(re.findall(r"^mod (\w+);$", read(crate / "tests/all.rs"), re.M))
        assert named | programs == there | SHARED, crate


def test_crates_with_examples_in_their_documentation_are_those_whose_examples_are_run() -> None:
    """To look for them takes a second of each crate."""
    for crate, told in manifests().items():
        texts = [read(path) for path in files() if path.is_relative_to(crate / "src") and path.suffix == ".rs"]
        # Fences open and close in turn; those of a language are no examples of Rust.
        opened = [kind for text in texts for kind in FENCE.findall(text)[::2]]
        # A program alone has none.
        assert ("" in opened) == told.get("lib", {}).get("doctest", "bin" not in told), crate


def built(*words: str) -> set[str]:
    """Crates with their versions and features."""
    tree = ["cargo", "tree", "--locked", "--offline", "--prefix", "none", "--format", "{p} {f}", *words]
    told = subprocess.run(tree, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {line.removesuffix(" (*)").removesuffix(" (proc-macro)") for line in told.splitlines()}


def test_the_tests_ask_the_crates_of_the_module_for_no_other_features() -> None:
    """Else these are compiled a second time, and with them all that depend on them."""
    module = built("-p", "knee-py", "-e", "normal")
    tests = built("--workspace", "-e", "normal,dev")
    names = {crate.rpartition(" ")[0] for crate in module}
    assert len(names) > 100
    assert {crate for crate in tests - module if crate.rpartition(" ")[0] in names} == set()

"""What every file of the repository keeps to (CONTRIBUTING.md, "House rules")."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sources import ROOT, code, files, read, texts

LINES_MAX = 600
# Files that may be longer, each with its reason.
LONG: dict[str, str] = {}

THIS = Path("tests/house/test_sources.py")


def lines_without_tests(path: Path) -> int:
    """Lines before the unit tests, which Rust keeps at the end of the file."""
    return len(re.split(r"^#\[cfg\(test\)\]\nmod tests", read(path), maxsplit=1, flags=re.M)[0].splitlines())


def test_no_file_is_longer_than_600_lines() -> None:
    programs = [path for path in code() if "tests" not in path.parts and path.suffix not in {".css", ".html"}]
    long = {str(path): lines_without_tests(path) for path in programs}
    long = {path: count for path, count in long.items() if count > LINES_MAX}
    assert long.keys() == LONG.keys(), "look for the noun hiding in the file, or list it with a reason"


def matching(pattern: str) -> list[str]:
    """`FILE:LINE: text` of each line of ours that matches."""
    return [
        f"{path}:{number}: {line.strip()[:100]}"
        for path in texts()
        if path != THIS
        for number, line in enumerate(read(path).splitlines(), 1)
        if re.search(pattern, line)
    ]


def test_nothing_is_left_to_do() -> None:
    assert not matching(r"\b(TODO|FIXME|XXX|HACK)\b")


def test_no_path_of_a_machine_is_written_down() -> None:
    assert not matching(r"(?<![\w.])/(work|root|home/\w+|Users/\w+)/|/tmp/(?!\$|\{|\.)\w+/")


def test_no_word_is_left_of_an_unfinished_merge() -> None:
    assert not matching(r"^(<{7}|>{7}) ")


@pytest.mark.parametrize("folder", ["cc", "bpf"])
def test_what_the_kernel_loads_is_under_a_licence_that_it_takes(folder: str) -> None:
    unmarked = [
        str(path)
        for path in files()
        if path.parts[0] == folder
        and path.suffix in {".c", ".h"}
        and "SPDX-License-Identifier: MIT OR GPL-2.0" not in read(path)[:200]
    ]
    assert not unmarked


def test_links_between_our_pages_lead_somewhere() -> None:
    broken = []
    for page in files():
        if page.suffix != ".md":
            continue
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", read(page)):
            if not target.startswith(("http://", "https://", "mailto:")) and not (ROOT / page.parent / target).exists():
                broken.append(f"{page}: {target}")
    assert not broken


def test_every_version_is_the_same() -> None:
    cargo = re.search(r'^version = "(.+)"', read(Path("Cargo.toml")), re.M)
    python = re.search(r'^version = "(.+)"', read(Path("pyproject.toml")), re.M)
    assert cargo is not None
    assert python is not None
    assert cargo[1] == python[1]

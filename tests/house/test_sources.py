"""What every file of the repository keeps to (CONTRIBUTING.md, "House rules")."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from sources import ROOT, files, read, texts

THIS = Path("tests/house/test_sources.py")


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
        # Pages of the site lead to built ones: test_docs.py builds them, and walks their links.
        if page.suffix != ".md" or page.parts[0] == "site":
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


WRITERS = {
    "say.py": "it is how the command line writes",
    "algorithms/prototype.py": "a prototype prints to where its process tells its error, and sees no other stdout",
    "doctor/changes/worker.py": "as runs/labworker.py",
    "doctor/measure/ends.py": "a program of a lab, whose stdout is read when it has ended",
    "doctor/snapshot/elsewhere.py": "as runs/labworker.py",
    "runs/host_settings.py": "as labworker.py",
    "runs/guest.py": "its protocol, through a guest",
    "remote/transport.py": "it tells a helper, through a pipe",
    "runs/labworker.py": "its stdout is a pipe to the front, with lines of JSON",
    "live/watch/ending.py": "it gives a terminal back with bytes of its own",
}
"""Files of the front that may write to stdout and stderr, each with its reason."""


def writes(node: ast.AST) -> bool:
    """Whether it names a way to the terminal."""
    match node:
        case ast.Name(id="print" | "breakpoint"):
            return True
        case ast.Attribute(value=ast.Name(id="sys"), attr=name):
            return name in {"stdout", "stderr", "__stdout__", "__stderr__", "displayhook"}
        case ast.Attribute(value=ast.Name(id="os"), attr="write" | "writev" | "system"):
            return True
        case ast.Attribute(value=ast.Name(id="click"), attr=name):
            return name in {"echo", "secho", "echo_via_pager", "style", "prompt", "confirm", "progressbar"}
        case ast.ImportFrom(module="sys" | "click" | "os", names=names):
            return bool({name.name for name in names} & {"stdout", "stderr", "write", "echo", "secho", "system"})
        case ast.Call(func=ast.Name(id="Console"), keywords=given):
            return [ast.unparse(one) for one in given] != ["file=say.drawing()"]
        case ast.Constant(value=str(text)):
            return text.startswith(("/dev/tty", "/dev/std", "/dev/fd"))
    return False


def test_the_command_line_writes_through_say_alone() -> None:
    """Else foreign text could drive a terminal, and a full stdout would be a traceback."""
    front = Path("python/tcpknee")
    modules = [path for path in files() if path.is_relative_to(front) and path.suffix == ".py"]
    found: dict[str, list[int]] = {}
    for path in modules:
        if lines := [node.lineno for node in ast.walk(ast.parse(read(path))) if writes(node)]:  # type: ignore[attr-defined]
            found[str(path.relative_to(front))] = lines
    assert found.keys() == WRITERS.keys(), f"use tcpknee.say: {found}"

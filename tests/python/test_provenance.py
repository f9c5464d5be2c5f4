"""What made a result."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tcpknee import provenance


def test_to_say_the_version_changes_nothing_of_a_working_tree(tmp_path: Path) -> None:
    """`git status` writes the index anew where a file has another time."""
    package, header = tmp_path / "python" / "tcpknee", tmp_path / "cc" / "cc.h"
    for folder in (package, header.parent):
        folder.mkdir(parents=True)
    header.touch()
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@b.invalid"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *words], check=True)
    os.utime(header, (1, 1))
    before = (tmp_path / ".git" / "index").read_bytes()
    assert provenance._git(package, "status", "--porcelain") == ""
    assert (tmp_path / ".git" / "index").read_bytes() == before
    subprocess.run([*git, "status"], check=True, capture_output=True)
    assert (tmp_path / ".git" / "index").read_bytes() != before, "else this test shows nothing"

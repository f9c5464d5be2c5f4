"""The files of the repository, for the tests of the house."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

CODE_SUFFIXES = {".c", ".h", ".def", ".mk", ".py", ".pyi", ".rs", ".sh", ".toml", ".js", ".css", ".html", ".mjs"}
TEXT_SUFFIXES = CODE_SUFFIXES | {".md"}


@cache
def files() -> list[Path]:
    """Every file that is or would be part of the repository, relative to its root.

    Without git (an unpacked source archive) it is every file outside of what set-up and builds make.
    """
    asked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode == 0:
        found = [Path(line) for line in asked.stdout.splitlines()]
    else:
        built = {"target", ".venv", "build", "dist", "runs", "__pycache__"}
        found = [path.relative_to(ROOT) for path in ROOT.rglob("*")]
        found = [path for path in found if not built & set(path.parts)]
    return sorted(path for path in found if (ROOT / path).is_file())


def code() -> list[Path]:
    """The source files among them."""
    return [path for path in files() if path.suffix in CODE_SUFFIXES or path.name == "Makefile"]


def texts() -> list[Path]:
    """The source files and the prose."""
    return [path for path in files() if path.suffix in TEXT_SUFFIXES or path.name in {"Makefile", "run"}]


def read(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def program(path: Path) -> list[str]:
    """The lines before the unit tests, which Rust keeps at the end of the file."""
    return re.split(r"^#\[cfg\(test\)\]\nmod tests", read(path), maxsplit=1, flags=re.M)[0].splitlines()

"""Runs a command that packs the tree, with a note of which commit it packs: stamp.py BUILD COMMAND... BUILD says how it
is built, as in "trained". The note is python/tcpknee/build.json, of which `knee --version` speaks; it is there only
meanwhile, since a working tree asks git."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTE = ROOT / "python" / "tcpknee" / "build.json"


def commit() -> str:
    """Of the tree, and whether it has changes."""

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=True).stdout.strip()

    changed = " with changes" if git("status", "--porcelain", "--untracked-files=no") else ""
    return git("rev-parse", "--short=12", "HEAD") + changed


def main() -> int:
    built, *command = sys.argv[1:]
    NOTE.write_text(json.dumps({"commit": commit(), "build": built}) + "\n", encoding="utf-8")
    try:
        return subprocess.run(command, check=False).returncode
    finally:
        NOTE.unlink()


if __name__ == "__main__":
    sys.exit(main())

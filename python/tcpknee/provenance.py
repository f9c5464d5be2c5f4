"""What made a result: the version of tcpknee and of its libraries, the host, and the command."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any


def engine_version() -> str:
    """Version of the native module."""
    from . import _core

    return _core.version()


def build() -> str:
    """Which build this is: the commit, and how it came here. What was packed says so itself (tools/stamp.py); of a
    working tree git is asked."""
    package = Path(__file__).resolve().parent
    with suppress(OSError, ValueError, KeyError):
        stamp = json.loads((package / "build.json").read_text(encoding="utf-8"))
        return f"commit {stamp['commit']}, {stamp['build']}"
    commit = _git(package, "rev-parse", "--short=12", "HEAD")
    if commit is None:
        return "of a commit that nobody noted"
    changed = " with changes" if _git(package, "status", "--porcelain", "--untracked-files=no") else ""
    return f"commit {commit}{changed}, a working tree"


def _git(folder: Path, *words: str) -> str | None:
    """What git says of the tree that a folder of the package lies in, if that is ours."""
    tree = folder.parents[1]
    if not (tree / ".git").exists() or not (tree / "cc" / "cc.h").exists():
        return None
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(
            ["git", "--no-optional-locks", "-C", tree, *words],
            capture_output=True,
            text=True,
            check=True,
            timeout=GIT_SEC,
        ).stdout.strip()
    return None


GIT_SEC = 10


def command_line(*words: str) -> str:
    """What a user types, quoted."""
    return shlex.join(words)


def host() -> dict[str, Any]:
    """Its name and boot, kernel, processor, number of processors."""
    system = os.uname()
    return {
        "name": system.nodename,
        "boot_id": _boot_id(),
        "kernel": f"{system.sysname} {system.release}",
        "machine": system.machine,
        "cpu": _cpu_model(),
        "cpus": os.cpu_count(),
    }


def _boot_id() -> str | None:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return None


def _cpu_model() -> str:
    # Not all of it: the kernel takes a while to tell of hundreds of processors.
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith(("model name", "Model")):
                return line.split(":", 1)[1].strip()
    return os.uname().machine


def versions() -> dict[str, str]:
    """Of tcpknee, and of what computes and writes tables."""
    import numpy
    import pyarrow

    return {
        "tcpknee": engine_version(),
        "python": ".".join(map(str, sys.version_info[:3])),
        "pyarrow": pyarrow.__version__,
        "numpy": numpy.__version__,
    }

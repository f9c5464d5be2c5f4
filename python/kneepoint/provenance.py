"""What made a result: the version of Kneepoint and of its libraries, the host, and the command."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


def engine_version() -> str:
    """Version of the native module."""
    from . import _core

    return _core.version()


def command_line(*words: str) -> str:
    """What a user types, quoted."""
    return shlex.join(words)


def host() -> dict[str, Any]:
    """Its name and boot, kernel, processor, number of processors."""
    return {
        "name": platform.node(),
        "boot_id": _boot_id(),
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cpus": os.cpu_count(),
    }


def _boot_id() -> str | None:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return None


def _cpu_model() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(("model name", "Model")):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    found = {"kneepoint": engine_version(), "python": ".".join(map(str, sys.version_info[:3]))}
    for package in ("pyarrow", "numpy", "scipy"):
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found

"""This host's own cost profile: where `knee calibrate` keeps it, and whether it is of the kernel that runs now."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

from tcpknee import reading
from tcpknee.errors import RunFolderError

MACHINE = Path("/var/lib/tcpknee/this-host.toml")
"""Where the profile is kept that root measured."""

SHIPPED = "linux-6.18-vm"
"""The profile among those that come with tcpknee which was measured on a machine."""


@dataclass(frozen=True)
class Costs:
    """`key`: what a scenario says after `costs`; `told`: whose costs they are, for a person."""

    key: str
    told: str


NONE = Costs("none", "")


def place() -> Path:
    """Where a new profile of this host goes: root's, or this user's (XDG Base Directory Specification)."""
    return MACHINE if os.geteuid() == 0 else _of_user()


def _of_user() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "tcpknee/this-host.toml"


def machine() -> str:
    """The processor's name."""
    for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def best() -> Costs:
    """This host's own costs. Where it has none, or they are of another kernel or machine, those that ship."""
    stale = ""
    for path in (_of_user(), MACHINE):
        known = _known(path)
        if known is None:
            continue
        if known == (platform.release(), machine()):
            return Costs(f"file {path}", f"this host, {path}")
        stale = f"; {path} is of Linux {known[0]} on {known[1]}: run knee calibrate again"
    return Costs(SHIPPED, SHIPPED + stale)


def _known(path: Path) -> tuple[str, str] | None:
    """Kernel and machine of a profile; None: it cannot be read."""
    try:
        found = reading.toml(reading.content(path, most_bytes=1 << 20).decode())
    except (OSError, ValueError, RunFolderError):
        return None
    kernel, machine = found.get("kernel"), found.get("machine")
    return (kernel, machine) if isinstance(kernel, str) and isinstance(machine, str) else None

"""A `labworker` within a guest kernel, which is all the repetition's: settings of the whole machine are set, and the
kernel's random numbers begin anew, so that they do not depend on what was drawn before."""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
import struct
import sys
from pathlib import Path

from tcpknee import _core
from tcpknee.errors import KernelUnsupported

from . import labworker

_RESEED, _ADD = 0x5207, 0x40085203
"""RNDRESEEDCRNG and RNDADDENTROPY of include/uapi/linux/random.h."""

_CPUINFO, _GUEST = Path("/proc/cpuinfo"), "User Mode Linux"


def main() -> int:
    """As `labworker.main`."""
    text = sys.stdin.read()
    request = json.loads(text)
    try:
        for path, words, file in request["modules"]:
            _load(path, words, file)
    except KernelUnsupported as error:
        labworker.say({"error": "KernelUnsupported", "message": str(error)})
        return 1
    scenario = labworker.parsed(request)
    for name, value in scenario.check_lab().items():
        Path("/proc/sys", *name.split(".")).write_text(f"{value}\n", encoding="utf-8")
    chance = os.open("/dev/random", os.O_RDWR)
    try:
        fcntl.ioctl(chance, _RESEED)
    except OSError as error:
        # A kernel that has gathered no chance yet, as 5.10 at that time. What it is given decides nothing.
        if error.errno != errno.ENODATA:
            raise
        fcntl.ioctl(chance, _ADD, struct.pack("ii32s", 256, 32, bytes(32)))
        fcntl.ioctl(chance, _RESEED)
    os.close(chance)
    sys.stdin = io.StringIO(text)
    return labworker.main()


def _load(path: str, words: str, file: str) -> None:
    """Loads a module, the algorithm of a user's file; into a guest's kernel alone. Raises `KernelUnsupported`."""
    if _GUEST not in _CPUINFO.read_text(encoding="utf-8", errors="replace"):
        raise KernelUnsupported(f"{file}: this kernel is no guest's (user-mode Linux), and gets no module of a file.")
    try:
        _core.load_module(path, words)
    except OSError as error:
        raise KernelUnsupported(
            f"{file}: the guest kernel {os.uname().release} does not take its module with {words}: {error}. "
            "Expected a module_init() that registers it and returns 0, and parameters that are its own."
        ) from None


if __name__ == "__main__":
    sys.exit(main())

"""A `labworker` within a guest kernel, which is all the repetition's: settings of the whole machine are set, and the
kernel's random numbers begin anew, so that they do not depend on what was drawn before."""

from __future__ import annotations

import fcntl
import io
import json
import os
import sys
from pathlib import Path

from tcpknee import _core

from . import labworker

_RESEED = 0x5207
"""RNDRESEEDCRNG of include/uapi/linux/random.h."""


def main() -> int:
    """As `labworker.main`."""
    text = sys.stdin.read()
    request = json.loads(text)
    scenario = _core.parse(request["scenario"], request["file"], request["files"], kernels=request["kernels"])
    for name, value in scenario.check_lab().items():
        Path("/proc/sys", *name.split(".")).write_text(f"{value}\n", encoding="utf-8")
    chance = os.open("/dev/random", os.O_RDWR)
    fcntl.ioctl(chance, _RESEED)
    os.close(chance)
    sys.stdin = io.StringIO(text)
    return labworker.main()


if __name__ == "__main__":
    sys.exit(main())

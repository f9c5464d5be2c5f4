"""The processes that this test process started, and those that they started, wherever these went.

Every one of them has the mark in its environment. Tests that run side by side do not see each other's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_NAME = "TCPKNEE_TESTED_BY"
_MARK = f"{_NAME}={os.getpid()}".encode()
os.environ[_NAME] = str(os.getpid())


def processes() -> Iterator[Path]:
    """Their folders of /proc. Our own is none of them: the mark was not there when we began."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if _MARK in (process / "environ").read_bytes().split(b"\0"):
                yield process
        except OSError:
            continue

"""Tests side by side, and some that nothing may run beside: their figures are those of the whole machine."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


@contextmanager
def taken(folder: Path, *, alone: bool) -> Iterator[None]:
    """A turn among all processes that use this folder: together with others, or `alone`.

    Who wants to be alone keeps the door until everybody has left: nobody else gets in meanwhile.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as room:
        with _locked(folder / "door", fcntl.LOCK_EX):
            room.enter_context(_locked(folder / "room", fcntl.LOCK_EX if alone else fcntl.LOCK_SH))
        yield


@contextmanager
def _locked(path: Path, kind: int) -> Iterator[None]:
    # For reading, so that a user who may not write the file can lock it too.
    file = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(file, kind)
        yield
    finally:
        os.close(file)

"""Ctrl-C of a command, which no library may lose.

Python raises KeyboardInterrupt wherever the main thread is. Within a lazy import C code may clear it, and DuckDB makes
a RuntimeError of it: the command would go on, or end as if it had a defect. So the handler also notes that Ctrl-C came.
What writes a result asks for it, and the command's exit code tells it.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_came = threading.Event()


def ending() -> list[signal.Signals]:
    """The signals that end a measurement in order; under nohup, which has SIGHUP ignored, that does not."""
    is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if is_ignored else [signal.SIGHUP])]


@contextmanager
def noted() -> Iterator[None]:
    """Notes Ctrl-C meanwhile, and forgets it afterwards. A process that ignores it, as a shell's jobs in the background
    do, still ignores it."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _came.clear()


def _note(number: int, frame: FrameType | None) -> None:
    _came.set()
    raise KeyboardInterrupt


def came() -> bool:
    """Whether Ctrl-C was noted."""
    return _came.is_set()


def check() -> None:
    """Raises KeyboardInterrupt where Ctrl-C came and its own was lost; not while an exception is handled, so that what
    is finished can still be saved."""
    is_lost = came() and sys.exc_info()[1] is None
    if is_lost and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt

"""How long a command measures: for a given time, or until Ctrl-C, SIGTERM or SIGHUP."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tcpknee import interrupts


def seconds(length: str | None) -> float | None:
    """The option --for."""
    from tcpknee import _core

    return None if length is None else _core.duration_ns("--for", length) / 1e9


@contextmanager
def until_ctrl_c() -> Iterator[threading.Event]:
    """Ctrl-C, SIGTERM and a terminal that goes away end the measurement, whose results are what was asked for."""
    stop = threading.Event()
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in interrupts.ending()}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

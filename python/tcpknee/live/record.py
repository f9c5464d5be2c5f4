"""Recordings of this host: the one of `knee record`, and single dumps."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from tcpknee import _core, interrupts

from . import exclusions

if TYPE_CHECKING:
    import pyarrow

Report = dict[str, Any]
"""What a recording says of itself; `docs/observe.md` tells the keys."""


def sockets(
    *,
    ports: Sequence[str | int] = (),
    addresses: Sequence[str] = (),
    algorithms: Sequence[str] = (),
    states: Sequence[str] = (),
    min_bytes: str | None = None,
    mark: str | None = None,
    cgroup: str | None = None,
    netns: str | None = None,
    anonymize: str | None = None,
    processes: bool = False,
    columns: Sequence[str] = (),
) -> pyarrow.Table:
    """The TCP sockets of this host, or of a network namespace, as they are now: a row of the table `sockets` each.

    `ports` and `addresses` hold for either end (`443`, `"8000-8100"`, `"10.0.0.0/8"`, with `!` before: not those);
    several of one kind are alternatives. `states` are those of ss, by default all but listening, closed and
    TIME_WAIT. `min_bytes`, such as `"1MB"`, counts what was acked and received. `processes` adds the name and the
    PID of who holds the socket. `columns` are those of the table, in this order, and by default all: of 100,000 sockets
    all take 90 MB.
    Raises UsageError for an invalid text, EngineError where the kernel refuses.
    Source: sock_diag(7).
    """
    import pyarrow

    wanted = {
        "ports": [str(port) for port in ports],
        "addresses": list(addresses),
        "algorithms": list(algorithms),
        "states": list(states),
        "min_bytes": min_bytes,
        "mark": mark,
        "cgroup": cgroup,
        "netns": netns,
        "anonymize": anonymize,
        "processes": processes,
    }
    # Not `pyarrow.table`, which imports pandas where there is one: half a second, and Ctrl-C meanwhile is lost.
    return pyarrow.RecordBatchReader.from_stream(_core.sockets(json.dumps(wanted), list(columns))).read_all()


def record(asked: dict[str, Any], *, progress: Callable[[int, int], None] | None = None) -> Report:
    """Records until `asked["for"]` is over, or SIGINT, SIGTERM or, but under nohup, SIGHUP comes; files are whole then.

    `asked` has the options of `knee record` as texts.
    Raises UsageError for an invalid text, EngineError where the kernel or the disk refuses.
    """
    with stop_signals() as stop:
        report: Report = json.loads(_core.record(json.dumps(asked), stop, progress))
    report["left_out"] = None if report["rows"] else exclusions.count(asked)
    return report


@contextmanager
def stop_signals() -> Iterator[int]:
    """A descriptor that becomes readable when a signal asks to stop.

    The recorder waits without the interpreter: Python's handlers would only run when it has ended. The descriptor
    is written by C's handler, whatever thread the signal goes to.
    """
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if threading.current_thread() is not threading.main_thread():
            # Signals are the main thread's affair; this recording ends by its duration.
            yield reading
            return
        # The descriptor first and last: a signal with our handler and without it would be lost.
        woken = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        before = {number: signal.signal(number, _noted) for number in interrupts.ending()}
        try:
            yield reading
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(woken)
    finally:
        os.close(reading)
        os.close(writing)


def _noted(number: int, frame: FrameType | None) -> None:
    """Python has no more to do: the descriptor has been written."""

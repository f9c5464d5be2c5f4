"""Who does the work: this host's processors, or a cluster's."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tcpknee import _core, children
from tcpknee.errors import AlgorithmFailed, TcpkneeError, WorkerLost

from . import isolated

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

OnAll = Callable[[str, Callable[[Any], Any], Sequence[Any]], list[Any]]
"""What a function makes of each item, in their order. Before: what that is called, for who waits. The function is of a
module, because workers import it."""


@contextmanager
def on_processes(
    workers: int, progress: Callable[[str], None] = lambda _: None, *, guarded: str = ""
) -> Iterator[OnAll]:
    """This host's. Of a fit two thirds of the time are Python's, and its lock would leave one processor to threads.
    `progress` is told how many items are done. `guarded`: an algorithm of a file may end a worker, which raises
    `AlgorithmFailed`; this says where."""
    found = _Workers(workers, guarded)

    def on_all(title: str, make: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        made: dict[int, Any] = {}
        for place, one in enumerate(map(make, items)) if workers == 1 and not guarded else found.made(make, items):
            made[place] = one
            progress(f"{title}: {len(made)} of {len(items)} done")
        return [made[place] for place in range(len(items))]

    try:
        yield on_all
    finally:
        found.end()


class _Workers:
    """Processes with a pipe each, and nothing else: no thread that could wait for one that is gone, and no semaphore
    that an interrupted process would leave behind. Python's own pools have both (CPython gh-94777)."""

    def __init__(self, most: int, guarded: str) -> None:
        self._most, self._guarded = most, guarded
        self._reports = tempfile.TemporaryDirectory(prefix="tcpknee-") if guarded else None
        self._held: dict[Connection, BaseProcess] = {}

    def made(self, make: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Each item's place and what was made of it, as they come."""
        from multiprocessing import connection

        while len(self._held) < min(self._most, len(items)):
            self._start()
        left = iter(enumerate(items))
        busy: dict[Any, int] = {}

        def give(pipe: Any) -> None:
            if (following := next(left, None)) is not None:
                busy[pipe], item = following
                pipe.send((make, item))

        try:
            for pipe in self._held:
                give(pipe)
            while busy:
                for ready in connection.wait(list(busy)):
                    one, error, there = cast("Connection", ready).recv()
                    if error is not None:
                        raise error from RuntimeError(f"in a worker process:\n{there}")
                    place = busy.pop(ready)
                    give(ready)
                    yield place, one
        except (EOFError, ConnectionError):
            raise self._lost() from None

    def _lost(self) -> TcpkneeError:
        """Why a worker is gone."""
        for report in Path(self._reports.name).iterdir() if self._reports else ():
            if call := _core.read_call(report.read_bytes()):
                found = json.loads(call)
                return AlgorithmFailed(f"{isolated.words(found)}, {self._guarded}", found)
        return WorkerLost("a worker process ended before its work was done; was it killed?")

    def _start(self) -> None:
        from multiprocessing import get_context

        # Not forked: a fork takes locks that threads of this process hold.
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        report = f"{self._reports.name}/{len(self._held)}" if self._reports else None
        process = context.Process(target=_work, args=(theirs, report), daemon=True)
        with children.safe():
            process.start()
        theirs.close()
        self._held[ours] = process

    def end(self) -> None:
        """What they are at may take a minute, and nobody waits for it."""
        for process in self._held.values():
            process.kill()
        for pipe, process in self._held.items():
            process.join()
            pipe.close()
        if self._reports is not None:
            self._reports.cleanup()


def _work(pipe: Connection, report: str | None) -> None:
    """A worker: it ends without a word on Ctrl-C, and with the process that started it however that ends. `report`:
    where it puts down the call of an algorithm that ends it."""
    from multiprocessing import connection, parent_process

    parent = parent_process()
    assert parent is not None

    def follow() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    if report is not None:
        _core.guard_process(os.open(report, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=follow, daemon=True).start()
    while True:
        make, item = pipe.recv()
        try:
            pipe.send((make(item), None, ""))
        except Exception as error:
            pipe.send((None, error, traceback.format_exc()))


@contextmanager
def on_cluster(address: str) -> Iterator[OnAll]:
    """Workers of a Dask scheduler. Raises UsageError, ClusterError."""
    from . import cluster
    from .progress import watcher

    with cluster.connected(address, watcher(quiet=True)) as found:
        yield lambda _, make, items: found.map(make, items)

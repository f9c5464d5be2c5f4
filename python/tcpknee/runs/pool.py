"""Runs repetitions on a pool of threads: each simulates without the GIL, or waits for a lab of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from tcpknee.errors import AlgorithmFailed, Cancelled

Key = tuple[int, int]
"""(cell, repetition)."""

_TICK_SEC = 0.1
"""How often the main thread looks at signals and draws progress."""


class Watcher:
    """Hears of progress; this one keeps it to itself. `running` comes from the working threads."""

    def start(self, title: str, asked: int, done: int, expectation: str = "") -> None:
        """A run of `asked` repetitions begins, `done` of which were kept from earlier; `expectation` says how long."""

    def running(self, key: Key, share: float) -> None:
        """A repetition has reached that share of its time, virtual or real."""

    def finished(self, key: Key) -> None:
        """A repetition is complete."""

    def tick(self) -> None:
        """Time to draw."""

    def stop(self) -> None:
        """The run has ended, one way or another."""

    def caution(self, words: str) -> None:
        """What the user has to know, however little is shown."""

    def phase(self, title: str) -> AbstractContextManager[object]:
        """Something before or after the repetitions, for as long as it takes."""
        return nullcontext()


class Engine(Protocol):
    """What is asked of an engine here: one of `engines`, or a stand-in of the tests."""

    @property
    def cells(self) -> Sequence[Mapping[str, Any]]: ...

    def run_cell(
        self,
        index: int,
        rep: int,
        *,
        cancel: Any = None,
        progress: Callable[[int], object] | None = None,
    ) -> Any: ...


def order(cells: int, repeat: int, kept: Iterable[Key] = (), *, seed: int | None = None) -> list[Key]:
    """What is still to run. All cells of a repetition come before the next repetition, so that an interrupted run
    holds pairs. `seed`: a repetition is a block of `evidence.blocks`, in whose order its cells come."""
    from tcpknee.evidence import blocks

    done = set(kept)
    every = (
        (cell, rep)
        for rep in range(repeat)
        for cell in (range(cells) if seed is None else blocks.order(cells, rep, seed))
    )
    return [key for key in every if key not in done]


def execute(
    engine: Engine,
    keys: Sequence[Key],
    keep: Callable[[Key, Any], None],
    *,
    cancel: Any,
    workers: int,
    watcher: Watcher | None = None,
) -> dict[Key, AlgorithmFailed]:
    """Runs every repetition of `keys` and hands each output to `keep`, from the thread that made it. Returns those that
    an algorithm from a file ended, with how.

    Ctrl-C or the first error stops the rest; what was under way is dropped, what was kept stays, and the exception
    goes on after every thread has ended.
    """
    watcher = watcher or Watcher()
    failures: dict[Key, AlgorithmFailed] = {}
    pending, lock, stopped = iter(keys), threading.Lock(), threading.Event()

    def work() -> None:
        while not stopped.is_set():
            with lock:
                key = next(pending, None)
            if key is None:
                return
            try:
                run_one(key)
            except Cancelled:
                return
            except BaseException:
                stop()
                raise

    def run_one(key: Key) -> None:
        cell, rep = key
        watcher.running(key, 0.0)
        length_ns = max(int(engine.cells[cell]["duration_ns"]), 1)

        def progress(now_ns: int) -> None:
            watcher.running(key, min(now_ns / length_ns, 1.0))

        try:
            keep(key, engine.run_cell(cell, rep, cancel=cancel, progress=progress))
        except AlgorithmFailed as failure:
            failures[key] = failure
        with lock:
            watcher.finished(key)

    def stop() -> None:
        stopped.set()
        cancel.cancel()

    count = max(1, min(workers, len(keys)))
    with ThreadPoolExecutor(count, thread_name_prefix="tcpknee") as pool:
        try:
            waiting = {pool.submit(work) for _ in range(count)}
            while waiting:
                done, waiting = wait(waiting, timeout=_TICK_SEC)
                for future in done:
                    future.result()
                if waiting:
                    watcher.tick()
        except BaseException:
            stop()
            raise
    return failures

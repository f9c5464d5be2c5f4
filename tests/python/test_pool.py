"""The pool of threads, against a stand-in for an pool."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from tcpknee.errors import Cancelled, EngineError
from tcpknee.runs import pool


class Stop:
    """Stands in for `_core.Cancel`."""

    def __init__(self) -> None:
        self.set = False

    def cancel(self) -> None:
        self.set = True


class Fake:
    """Stands in for a scenario: sleeps, tells its progress, obeys its Cancel."""

    def __init__(self, cells: int = 3, fail: tuple[int, int] | None = None, forever: bool = False) -> None:
        self.cells = [{"index": i, "duration_ns": 100} for i in range(cells)]
        self.fail, self.forever = fail, forever
        self.started: list[tuple[int, int]] = []
        self.most, self.now, self.lock = 0, 0, threading.Lock()

    def run_cell(
        self,
        index: int,
        rep: int,
        *,
        cancel: Any = None,
        progress: Callable[[int], object] | None = None,
    ) -> Any:
        with self.lock:
            self.started.append((index, rep))
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            for step in range(5):
                time.sleep(0.002)
                if progress:
                    progress(step * 25)
            if (index, rep) == self.fail:
                raise EngineError("the cell cannot be run")
            while self.forever and not cancel.set:
                time.sleep(0.002)
            if cancel.set:
                raise Cancelled("stopped")
            return index, rep
        finally:
            with self.lock:
                self.now -= 1


def test_repetitions_come_before_cells_so_that_pairs_are_kept() -> None:
    assert pool.order(2, 2) == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert pool.order(2, 2, kept=[(1, 0), (0, 1)]) == [(0, 0), (1, 1)]


class Cells(list[dict[str, int]]):
    """Cells that remember which of them were asked for; all at once they are not given."""

    def __init__(self, cells: list[dict[str, int]]) -> None:
        super().__init__(cells)
        self.asked: list[Any] = []

    def __getitem__(self, index: Any) -> Any:
        self.asked.append(index)
        return super().__getitem__(index)

    def __iter__(self) -> Any:
        raise AssertionError("every cell was asked for")


def test_a_cell_is_asked_for_when_it_is_run_and_no_other_is() -> None:
    fake = Fake()
    fake.cells = cells = Cells(fake.cells)
    pool.execute(fake, [(2, 0), (0, 0)], lambda *_: None, cancel=Stop(), workers=1)
    assert cells.asked == [2, 0]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_every_repetition_is_run_once_by_no_more_threads_than_asked(workers: int) -> None:
    fake, kept = Fake(), {}
    pool.execute(fake, pool.order(3, 4), kept.__setitem__, cancel=Stop(), workers=workers)
    assert sorted(kept) == [(cell, rep) for cell in range(3) for rep in range(4)]
    assert all(output == key for key, output in kept.items())
    assert fake.most <= workers


def test_nothing_to_run_is_no_error() -> None:
    pool.execute(Fake(), [], lambda key, output: None, cancel=Stop(), workers=1)


def test_an_error_stops_the_rest_and_is_raised() -> None:
    fake, kept = Fake(fail=(1, 0)), {}
    with pytest.raises(EngineError, match="cannot be run"):
        pool.execute(fake, pool.order(3, 50), kept.__setitem__, cancel=Stop(), workers=2)
    assert len(fake.started) < 20
    assert fake.now == 0
    assert (1, 0) not in kept


def test_ctrl_c_waits_for_the_threads_and_goes_on() -> None:
    """The interrupt comes where Python delivers it: in the main thread, between two ticks."""

    class Impatient(pool.Watcher):
        def tick(self) -> None:
            raise KeyboardInterrupt

    fake, stop = Fake(forever=True), Stop()
    with pytest.raises(KeyboardInterrupt):
        pool.execute(fake, pool.order(3, 5), lambda key, output: None, cancel=stop, workers=2, watcher=Impatient())
    assert stop.set
    assert fake.now == 0
    assert len(fake.started) == 2


def test_what_is_over_at_once_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_TICK_SEC", 60.0)  # at once, however busy the machine is

    class Drawing(pool.Watcher):
        def tick(self) -> None:
            raise AssertionError("a tick after the end")

    pool.execute(Fake(), [(0, 0)], lambda key, output: None, cancel=Stop(), workers=1, watcher=Drawing())


def test_progress_reaches_the_watcher_as_shares() -> None:
    class Listening(pool.Watcher):
        def __init__(self) -> None:
            self.shares: list[float] = []
            self.done: list[pool.Key] = []

        def running(self, key: pool.Key, share: float) -> None:
            self.shares.append(share)

        def finished(self, key: pool.Key) -> None:
            self.done.append(key)

    watcher = Listening()
    pool.execute(Fake(), [(0, 0)], lambda key, output: None, cancel=Stop(), workers=1, watcher=watcher)
    assert watcher.shares == [0.0, 0.0, 0.25, 0.5, 0.75, 1.0]
    assert watcher.done == [(0, 0)]

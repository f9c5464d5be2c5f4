"""Progress on stderr. Of repetitions: a bar in a terminal, now and then a line elsewhere. Of all else: one line that is
written over, in a terminal only."""

from __future__ import annotations

import threading
import time
from contextlib import AbstractContextManager
from typing import Any

from tcpknee import human, say

from .pool import Key, Watcher

_LINE_EVERY_SEC = 5.0

_SILENCE_SEC = 2.0
"""What takes longer says so."""

_REFRESH_SEC = 0.5


def watcher(*, quiet: bool = False) -> Watcher:
    """What fits where stderr goes."""
    if quiet:
        return _Quiet()
    return _Bar() if say.shows_progress() else _Lines()


class Line:
    """A line that is written over, where stderr is a terminal. Elsewhere nothing, or one now and then (`lines`)."""

    def __init__(self, *, quiet: bool = False, lines: bool = False) -> None:
        self._is_written_over = say.shows_progress(quiet=quiet)
        self.is_shown = self._is_written_over or (lines and not quiet)
        self.every_sec = _REFRESH_SEC if self._is_written_over else _LINE_EVERY_SEC
        self._said = 0.0

    def __call__(self, words: str) -> None:
        now = time.monotonic()
        if self.is_shown and now - self._said >= self.every_sec:
            self._said = now
            (say.progress if self._is_written_over else say.warn)(words)

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Leaves nothing of it."""
        if self._is_written_over and self._said:
            self._said = 0.0
            say.progress_ends()


class Phase:
    """Something under way, which says so when it takes longer than two seconds: `with Phase("Drawing the report"):`.

    One with `begin` and `end` may be shorter than the block. It begins with the block unless `later`.
    """

    def __init__(self, title: str, *, quiet: bool = False, later: bool = False, lines: bool = False) -> None:
        self._title, self._later = title, later
        self._line, self._over = Line(quiet=quiet, lines=lines), threading.Event()
        self._thread = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> Phase:
        if not self._later:
            self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def begin(self) -> None:
        """Only the first time."""
        if self._line.is_shown and self._thread.ident is None:
            self._thread.start()

    def end(self) -> None:
        """Also before the block's end, and more than once."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _tell(self) -> None:
        began = time.monotonic()
        is_over = self._over.wait(_SILENCE_SEC)
        while not is_over:
            self._line(f"{self._title}, {time.monotonic() - began:.0f} s")
            is_over = self._over.wait(self._line.every_sec)
        self._line.end()


class _Quiet(Watcher):
    """Nothing but what the user has to know."""

    def caution(self, words: str) -> None:
        say.warn(words)


class _Lines(_Quiet):
    """A line when a run begins and ends, and one every few seconds between."""

    def start(self, title: str, asked: int, done: int, expectation: str = "") -> None:
        self.asked, self.done = asked, done
        self.began = self.said = time.monotonic()
        kept = f", {done} kept from before" if done else ""
        say.warn(f"{title}: {human.counted(asked, 'repetition')}{kept}" + (f", {expectation}" if expectation else ""))

    def finished(self, key: Key) -> None:
        self.done += 1

    def phase(self, title: str) -> AbstractContextManager[object]:
        return Phase(title, lines=True)

    def tick(self) -> None:
        now = time.monotonic()
        if now - self.said >= _LINE_EVERY_SEC and self.done < self.asked:
            self.said = now
            say.warn(f"{self.done} of {human.counted(self.asked, 'repetition')}, {now - self.began:.0f} s")

    def stop(self) -> None:
        asked = human.counted(self.asked, "repetition")
        say.warn(f"{self.done} of {asked} done in {time.monotonic() - self.began:.1f} s")


class _Bar(_Quiet):
    """A bar with the time left, drawn by the main thread only, and not of a run that is over before."""

    def start(self, title: str, asked: int, done: int, expectation: str = "") -> None:
        self.done, self.asked = done, asked
        self.shares: dict[Key, float] = {}
        self.what = "Running" if expectation else "Simulating"
        self.bar: Any = None
        say.warn(f"{title}: {expectation}" if expectation else title)

    def _begin(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        console = Console(file=say.drawing())
        self.bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[done]}/{task.total:.0f} repetitions"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=console,
            transient=True,
            auto_refresh=False,
        )
        self.task = self.bar.add_task(self.what, total=self.asked, completed=self.done, done=self.done)
        self.bar.start()

    def running(self, key: Key, share: float) -> None:
        self.shares[key] = share

    def finished(self, key: Key) -> None:
        self.shares.pop(key, None)
        self.done += 1

    def phase(self, title: str) -> AbstractContextManager[object]:
        return Phase(title, lines=True)

    def tick(self) -> None:
        if self.bar is None:
            self._begin()
        under_way = sum(list(self.shares.values()))
        self.bar.update(self.task, completed=self.done + under_way, done=self.done)
        self.bar.refresh()

    def stop(self) -> None:
        if self.bar is not None:
            self.bar.stop()

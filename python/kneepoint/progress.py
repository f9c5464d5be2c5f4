"""Progress on stderr: a bar in a terminal, now and then a line elsewhere."""

from __future__ import annotations

import time
from typing import Any

from . import human, say
from .pool import Key, Watcher

_LINE_EVERY_SEC = 5.0


def watcher(*, quiet: bool = False) -> Watcher:
    """What fits where stderr goes."""
    if quiet:
        return Watcher()
    return _Bar() if say.shows_progress() else _Lines()


class _Lines(Watcher):
    """A line when a run begins and ends, and one every few seconds between."""

    def start(self, title: str, asked: int, done: int, expectation: str = "") -> None:
        self.asked, self.done = asked, done
        self.began = self.said = time.monotonic()
        kept = f", {done} kept from before" if done else ""
        say.warn(f"{title}: {human.counted(asked, 'repetition')}{kept}" + (f", {expectation}" if expectation else ""))

    def finished(self, key: Key) -> None:
        self.done += 1

    def tick(self) -> None:
        now = time.monotonic()
        if now - self.said >= _LINE_EVERY_SEC and self.done < self.asked:
            self.said = now
            say.warn(f"{self.done} of {human.counted(self.asked, 'repetition')}, {now - self.began:.0f} s")

    def stop(self) -> None:
        asked = human.counted(self.asked, "repetition")
        say.warn(f"{self.done} of {asked} done in {time.monotonic() - self.began:.1f} s")


class _Bar(Watcher):
    """A bar with the time left, drawn by the main thread only."""

    def start(self, title: str, asked: int, done: int, expectation: str = "") -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self.done, self.asked = done, asked
        self.shares: dict[Key, float] = {}
        say.warn(f"{title}: {expectation}" if expectation else title)
        console = Console(file=say.drawing())
        self.bar: Any = Progress(
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
        self.task = self.bar.add_task(
            "Running" if expectation else "Simulating", total=asked, completed=done, done=done
        )
        self.bar.start()

    def running(self, key: Key, share: float) -> None:
        self.shares[key] = share

    def finished(self, key: Key) -> None:
        self.shares.pop(key, None)
        self.done += 1

    def tick(self) -> None:
        under_way = sum(list(self.shares.values()))
        self.bar.update(self.task, completed=self.done + under_way, done=self.done)
        self.bar.refresh()

    def stop(self) -> None:
        self.bar.stop()

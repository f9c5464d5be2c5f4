"""Tests that must be alone are, and wait for others no longer than those take."""

from __future__ import annotations

import threading
from pathlib import Path

import turns

SOON_SEC = 0.2
LATE_SEC = 30


class Guest:
    """Takes a turn in a thread of its own, and keeps it until `leave` is set."""

    def __init__(self, folder: Path, *, alone: bool) -> None:
        self.inside, self.leave = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._stay, args=(folder, alone))
        self.thread.start()

    def _stay(self, folder: Path, alone: bool) -> None:
        with turns.taken(folder, alone=alone):
            self.inside.set()
            assert self.leave.wait(LATE_SEC)

    def left(self) -> None:
        self.leave.set()
        self.thread.join()


def test_others_come_in_together_and_who_is_alone_waits_for_them_and_keeps_later_ones_out(tmp_path: Path) -> None:
    first, second = Guest(tmp_path, alone=False), Guest(tmp_path, alone=False)
    assert first.inside.wait(LATE_SEC)
    assert second.inside.wait(LATE_SEC)
    alone = Guest(tmp_path, alone=True)
    assert not alone.inside.wait(SOON_SEC)
    later = Guest(tmp_path, alone=False)
    first.left()
    assert not alone.inside.wait(SOON_SEC)
    second.left()
    assert alone.inside.wait(LATE_SEC)
    assert not later.inside.wait(SOON_SEC)
    alone.left()
    assert later.inside.wait(LATE_SEC)
    later.left()

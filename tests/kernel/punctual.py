"""How late this machine wakes a process, measured beside a lab: tells a link that is late from a machine that is.

Run as a program it asks to be woken every millisecond until its stdin closes, and prints how late 1 % of the wake-ups
were at least, and how late the latest was, in microseconds. A wake-up that was missed altogether counts as late as it
was, as a packet would.
"""

from __future__ import annotations

import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

PERIOD_NS = 1_000_000

ATTEMPTS = 3
"""Of a test whose machine was late. What is late by its own fault is so each time."""

LATE_US = 1_000
"""A machine that nothing keeps busy wakes 99 % of its processes in a tenth of that."""

STALL_US = 10_000
"""A machine that stood still for longer has disturbed whatever was measured then."""

EXCUSED = 3
"""A packet of a lab waits for the link, the kernel and the receiver in turn, each of which the machine may hold up."""


class Punctuality:
    """Known when the measurement has ended."""

    late_us: float
    """1 % of the wake-ups were as late."""
    worst_us: float
    """The latest: a stall of the machine, or a program's absence from a processor."""

    @property
    def is_late(self) -> bool:
        """Was the machine late enough to disturb what happens within milliseconds?"""
        return self.late_us > LATE_US or self.worst_us > STALL_US

    def excuses(self, late_us: float) -> bool:
        """Was the machine late enough to explain that a lab was this late?"""
        return EXCUSED * self.late_us >= late_us


@contextmanager
def beside() -> Iterator[Punctuality]:
    """Measures for as long as the body takes."""
    found = Punctuality()
    words = [sys.executable, __file__]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as probe:
        try:
            yield found
        finally:
            found.late_us, found.worst_us = map(float, probe.communicate()[0].split())


def main() -> None:
    late_ns: list[int] = []
    due_ns = time.monotonic_ns()
    while True:
        due_ns += PERIOD_NS
        left_ns = max(0, due_ns - time.monotonic_ns())
        if select.select([sys.stdin], [], [], left_ns / 1e9)[0]:
            break
        late_ns.append(time.monotonic_ns() - due_ns)
    late_ns.sort()
    late_ns = late_ns or [0]
    print(late_ns[len(late_ns) * 99 // 100] / 1e3, late_ns[-1] / 1e3)


if __name__ == "__main__":
    main()

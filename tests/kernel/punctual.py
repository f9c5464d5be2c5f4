"""How late this machine wakes a process, measured beside a lab: tells a link that is late from a machine that is.

Run as a program it asks to be woken every millisecond until its stdin closes, and prints how late 1 % of the wake-ups
were at least, and how late the latest was, in microseconds, and for what share of the time a task had no processor. A
wake-up that was missed altogether counts as late as it was, as a packet would.
"""

from __future__ import annotations

import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PERIOD_NS = 1_000_000

ATTEMPTS = 3
"""Of a test whose machine was late. What is late by its own fault is so each time."""

LATE_US = 1_000
"""A machine that nothing keeps busy wakes 99 % of its processes in a tenth of that."""

STALL_US = 10_000
"""A machine that stood still for longer has disturbed whatever was measured then."""

EXCUSED = 3
"""A packet of a lab waits for the link, the kernel and the receiver in turn, each of which the machine may hold up."""

CONTENDED = 0.5
"""For half of the time more wanted to run than the machine has processors. The scheduler lets a process that hardly
runs, as this one, go first, and not one that works, as the link of an ordinary user, who has no real-time class."""

PRESSURE = Path("/proc/pressure/cpu")


class Punctuality:
    """Known when the measurement has ended."""

    late_us: float
    """1 % of the wake-ups were as late."""
    worst_us: float
    """The latest: a stall of the machine, or a program's absence from a processor."""
    waited_share: float
    """Of the time, when a task waited for a processor; 0 where the kernel does not tell."""

    @property
    def is_late(self) -> bool:
        """Was the machine late enough to disturb what happens within milliseconds?"""
        return self.late_us > LATE_US or self.worst_us > STALL_US

    @property
    def is_contended(self) -> bool:
        """Did what works have to wait for its turn?"""
        return self.waited_share > CONTENDED

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
            found.late_us, found.worst_us, found.waited_share = map(float, probe.communicate()[0].split())


def waited_us() -> int:
    """Time since the machine began in which a task waited for a processor (PSI's "some")."""
    try:
        return int(PRESSURE.read_text().splitlines()[0].rpartition("total=")[2])
    except OSError:
        return 0


def main() -> None:
    late_ns: list[int] = []
    began_ns = due_ns = time.monotonic_ns()
    waited_before_us = waited_us()
    while True:
        due_ns += PERIOD_NS
        left_ns = max(0, due_ns - time.monotonic_ns())
        if select.select([sys.stdin], [], [], left_ns / 1e9)[0]:
            break
        late_ns.append(time.monotonic_ns() - due_ns)
    late_ns.sort()
    late_ns = late_ns or [0]
    waited_share = (waited_us() - waited_before_us) / max(1, (time.monotonic_ns() - began_ns) / 1e3)
    print(late_ns[len(late_ns) * 99 // 100] / 1e3, late_ns[-1] / 1e3, waited_share)


if __name__ == "__main__":
    main()

"""Counts of BPF programs that are to equal what the kernel counts itself.

Some kernels run no program of a tracepoint while a thread of process 1 is interrupted: seen in a Firecracker guest with
Linux 6.18, where `net:netif_receive_skb` fired for 8 packets on top of such a thread and an attached program, which had
missed nothing by its own statistics, ran for none of them. What arrives then is not in any count, so a count may be
short of the truth by chance, and never above it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

TRIES = 8
"""With two processors under a load of 10, one measurement in five was short."""


def whole(take: Callable[[], T], missed: Callable[[T], int]) -> T:
    """The first measurement in which nothing fell on process 1; `missed` is how many events the programs did not see.

    A program that never counts right fails all of them, and one that counts too much fails the first.
    """
    shortfalls = []
    for _ in range(TRIES):
        found = take()
        shortfalls.append(missed(found))
        assert shortfalls[-1] >= 0, f"{-shortfalls[-1]} events more than there were"
        if not shortfalls[-1]:
            return found
    raise AssertionError(f"the programs missed some events in each of {TRIES} measurements: {shortfalls}")

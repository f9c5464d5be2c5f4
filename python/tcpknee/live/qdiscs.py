"""How long packets wait in the root qdisc of each device."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpknee import _core

from . import which

QUANTILES = (0.5, 0.95, 0.99)
LOOK_EVERY_SEC = 1.0
"""How often it is looked whether the device is still there."""


@dataclass(frozen=True)
class Latency:
    """What was seen of one qdisc at one device."""

    netns: int
    """Inode of the device's network namespace."""
    ifindex: int
    handle: int
    device: str
    kind: str
    taken_in: int
    """Packets that the qdisc took in."""
    measured: int
    """Of those: that left, and whose wait is known."""
    unknown: int
    """Packets that left without having been seen to arrive."""
    sum_ns: int
    max_ns: int
    buckets: Sequence[tuple[int, int, int]]
    """(begin, end, packets) of the buckets that hold any, in ns; at most 12.5 % wide."""

    @property
    def name(self) -> str:
        return f"{self.device} {self.kind} {self.handle >> 16:x}:"

    @property
    def mean_ns(self) -> float | None:
        return self.sum_ns / self.measured if self.measured else None

    def quantile_ns(self, share: float) -> float | None:
        """A quantile of the waits, even within a bucket: at most 12.5 % off. None: nothing was measured."""
        wanted = share * self.measured
        below = 0
        for begin, end, count in self.buckets:
            if below + count >= wanted and count:
                return min(begin + (end - begin) * (wanted - below) / count, float(self.max_ns))
            below += count
        return None

    def octaves(self) -> Iterator[tuple[int, int, int]]:
        """(begin, end, packets) by powers of two of nanoseconds, from the first to the last that hold any."""
        counts: dict[int, int] = {}
        for begin, _, count in self.buckets:
            exponent = max(begin.bit_length() - 1, 0)
            counts[exponent] = counts.get(exponent, 0) + count
        for exponent in range(min(counts, default=0), max(counts, default=-1) + 1):
            yield (1 << exponent if exponent else 0), 1 << (exponent + 1), counts.get(exponent, 0)

    def json(self) -> dict[str, Any]:
        return {
            "device": self.device,
            "netns": self.netns,
            "ifindex": self.ifindex,
            "qdisc": self.kind,
            "handle": f"{self.handle >> 16:x}:",
            "taken_in_pkts": self.taken_in,
            "measured_pkts": self.measured,
            "unknown_pkts": self.unknown,
            "wait_ns_mean": self.mean_ns,
            **{f"wait_ns_p{share * 100:.0f}": self.quantile_ns(share) for share in QUANTILES},
            "wait_ns_max": self.max_ns if self.measured else None,
            "buckets": [{"begin_ns": begin, "end_ns": end, "pkts": count} for begin, end, count in self.buckets],
        }


@dataclass(frozen=True)
class QdiscTrace:
    """What a trace of qdiscs came to."""

    latencies: list[Latency]
    lost: int
    """Packets that could not be looked at."""
    cost: dict[str, Any]
    seconds: float
    gone_after: float | None = None
    """Seconds after which the device that was asked for was no longer there, nor at the end."""


def qdiscs(
    *,
    device: str | None = None,
    netns: str | None = None,
    seconds: float | None = None,
    stop: threading.Event | None = None,
    progress: Callable[[float], object] | None = None,
    gone: Callable[[float], object] | None = None,
) -> QdiscTrace:
    """Measures how long packets wait in qdiscs, for `seconds` or until `stop` is set.

    `device` is a name, `netns` a network namespace: a name, a process or a path; without them all devices of the host.
    A packet that a qdisc lets pass because it is empty does not wait, and is not seen. `progress` is called about
    twenty times a second, at first as soon as the kernel measures, with the seconds since then; `gone` with those after
    which the device is no longer there.

    Raises UsageError (also where there is no such device), KernelUnsupported (no privilege, no BTF, no tracepoint).
    """
    with which.held(netns) as file:
        return _measured(device, netns, file, seconds, stop, progress, gone)


def _measured(
    device: str | None,
    netns: str | None,
    file: Path | None,
    seconds: float | None,
    stop: threading.Event | None,
    progress: Callable[[float], object] | None,
    gone: Callable[[float], object] | None,
) -> QdiscTrace:
    """The same, of a namespace whose `file` stays."""
    inode = None if file is None else file.stat().st_ino
    if device is not None:
        which.check_device(device, netns, file)
    begun = looked = 0.0
    gone_after: float | None = None

    def look(so_far: float) -> None:
        """Is the device still there?"""
        nonlocal gone_after
        if device is None or which.has_device(device, file):
            gone_after = None
        elif gone_after is None:
            gone_after = so_far
            if gone is not None:
                gone(so_far)

    def is_over() -> bool:
        nonlocal begun, looked
        begun = begun or time.monotonic()
        so_far = time.monotonic() - begun
        if so_far - looked >= LOOK_EVERY_SEC:
            looked = so_far
            look(so_far)
        if progress is not None:
            progress(so_far)
        return (stop is not None and stop.is_set()) or (seconds is not None and so_far >= seconds)

    found = _core.trace_qdisc(is_over, device=device, netns=inode)
    took = time.monotonic() - begun
    look(took)
    latencies = [Latency(**one) for one in found["qdiscs"]]
    return QdiscTrace(latencies, found["lost"], found["cost"], took, gone_after)

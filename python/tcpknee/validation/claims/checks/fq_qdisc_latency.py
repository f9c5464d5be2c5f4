"""`fq-qdisc-latency`: on the host's kernel, the histogram of how long packets wait in a qdisc, where nothing holds them
back and where their waits are known beforehand; on the simulator, how much the RTT varies with each kind of stamp.

Nothing of the host is set: each qdisc is in a network namespace of `unshare`, in which `qdisc_waits.py` sends, and gone
with its process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from tcpknee import children
from tcpknee.errors import EngineError, KernelUnsupported
from tcpknee.evidence.expect import Outcome
from tcpknee.live.qdiscs import Latency, qdiscs

from . import steps
from .check import Found, Request, fact, text_of
from .qdisc_waits import BURST_PKTS, KINDS, RATE_BITS_PER_SEC, WIRE_BYTES

_TIMEOUT_SEC = 60
"""A second on an idle host."""

_KNOWN_LEAST = 0.95
"""Of the packets; a few of a busy host leave under another address than they came by (docs/trace.md)."""

_NEAR = 0.2
"""How far the median of known waits may be off: a bucket of the histogram is 12.5 % wide, and timers are late."""


def check(request: Request) -> Found:
    """The RTT's variation in the simulator; the two histograms on the kernel."""
    return _variation(request) if request.run is not None else _waits()


def _variation(request: Request) -> Found:
    """The mean of its variation, to stand beside its P99, which the scenario compares."""
    begin_ns = float(request.of_scenario.meta["cells"][0]["warmup_ns"])
    means: dict[tuple[str, str], list[float]] = {}
    for found in steps.of(request.of_scenario, "rttvar_us"):
        cell = found.axes["path.rate"], found.axes["sender.send_stamps"]
        means.setdefault(cell, []).append(float(found.values[found.t_ns >= begin_ns].mean()))
    ours = []
    for rate in dict.fromkeys(rate for rate, _ in means):
        old, new = (text_of(np.array(means[rate, stamps]), "us") for stamps in ("handover", "departure"))
        ours.append((f"variation at {rate}", f"{old} with handovers, {new} with departures"))
    return Found([], ours)


def _waits() -> Found:
    """Where nothing holds packets back, and of a burst that a known rate drains."""
    outcomes: list[Outcome] = []
    ours: list[tuple[str, str]] = []
    seen = {kind: _measured(kind) for kind in KINDS}
    for kind, found in seen.items():
        share = found.measured / max(found.taken_in, 1)
        outcomes.append(
            fact(
                f"{kind}: the wait of {_KNOWN_LEAST:.0%} of the packets is known",
                share >= _KNOWN_LEAST,
                f"{found.measured} of {found.taken_in} packets",
            )
        )
        ours += [(f"{kind}, {found.kind}", _quantiles(found)), (f"{kind}, histogram", _histogram(found))]
    half_ns = BURST_PKTS * WIRE_BYTES * 8e9 / RATE_BITS_PER_SEC / 2
    median_ns = seen["burst"].quantile_ns(0.5) or 0.0
    outcomes += [
        fact(
            f"half of the burst waits as long as half of it takes to drain, within {_NEAR:.0%}",
            abs(median_ns / half_ns - 1) <= _NEAR,
            f"{median_ns / 1e6:.1f} ms, {half_ns / 1e6:.1f} ms to drain",
        ),
        fact(
            "the median of what nothing holds back is below a hundredth of that",
            0 < (seen["free"].quantile_ns(0.5) or 0.0) < half_ns / 100,
            _quantiles(seen["free"]),
        ),
    ]
    return Found(outcomes, ours)


def _quantiles(found: Latency) -> str:
    told = ", ".join(f"p{100 * share:.0f} {_time(found.quantile_ns(share))}" for share in (0.5, 0.95, 0.99))
    return f"{told} of {found.measured} packets"


def _histogram(found: Latency) -> str:
    parts = [
        f"{_time(begin)} to {_time(end)} {100 * count / max(found.measured, 1):.0f} %"
        for begin, end, count in found.octaves()
        if count >= found.measured / 100
    ]
    return "; ".join(parts)


def _time(ns: float | None) -> str:
    if ns is None:
        return "-"
    return f"{ns / 1e6:.3g} ms" if ns >= 1e6 else f"{ns / 1e3:.3g} us"


@dataclass
class _Sender:
    """A namespace that is ready to send."""

    process: subprocess.Popen[str]

    def sends(self) -> None:
        """Sends, and waits until all of it has left."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        if self.process.stdout.readline().strip() != '"sent"':
            raise EngineError(f"fq-qdisc-latency: the sender ended early: {self._said()}")

    def _said(self) -> str:
        self.process.kill()
        said = self.process.communicate()[1].strip()
        return said.splitlines()[-1] if said else "it said nothing"

    def awaits_ready(self) -> None:
        """Raises KernelUnsupported where the namespace cannot be set up."""
        assert self.process.stdout is not None
        if self.process.stdout.readline().strip() != '"ready"':
            raise KernelUnsupported(f"fq-qdisc-latency: {self._said()}")


def _measured(kind: str) -> Latency:
    """What `knee trace --qdisc` says of the namespace's loopback interface while it sends."""
    attached, stop = threading.Event(), threading.Event()
    with _sender(kind) as sender:
        sender.awaits_ready()

        def send() -> None:
            attached.wait(_TIMEOUT_SEC)
            try:
                sender.sends()
            finally:
                stop.set()

        sending = threading.Thread(target=send, daemon=True)
        sending.start()
        found = qdiscs(
            device="lo",
            netns=str(sender.process.pid),
            seconds=_TIMEOUT_SEC,
            stop=stop,
            progress=lambda _: attached.set(),
        )
        sending.join(_TIMEOUT_SEC)
    if len(found.latencies) != 1:
        raise EngineError(
            f"fq-qdisc-latency: {kind}: {len(found.latencies)} qdiscs were seen; expected one. Try again."
        )
    return found.latencies[0]


@contextmanager
def _sender(kind: str) -> Iterator[_Sender]:
    """A process in a network namespace of its own. Raises KernelUnsupported where there is no unshare."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
    missing = [program for program in ("unshare", "ip", "tc") if shutil.which(program, path=path) is None]
    if missing:
        raise KernelUnsupported(f"fq-qdisc-latency: needs {', '.join(missing)}, of util-linux and iproute2.")
    process = subprocess.Popen(
        ["unshare", "--net", *children.command(f"{__package__}.qdisc_waits", kind)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**children.environment(), "PATH": path},
    )
    try:
        yield _Sender(process)
    finally:
        process.kill()
        process.communicate()

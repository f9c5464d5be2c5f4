"""`probe-rtt-dip`: how deep the throughput dips in PROBE_RTT and for how long, from the samples."""

from __future__ import annotations

import numpy as np

from tcpknee.evidence.stats import Floats

from . import steps
from .check import Found, Request, smaller, text_of

_BIN_NS = 50e6
"""A fourth of the 200 ms that PROBE_RTT takes, more than the round trip of 40 ms."""

_DIP = 0.9
"""Of the median rate; below is a dip."""


def check(request: Request) -> Found:
    """Depth (of the lowest bin, as a share of the median) and duration (of the longest dip) by algorithm."""
    run = request.of_scenario
    begin = float(run.meta["cells"][0]["warmup_ns"])
    dips: dict[str, list[tuple[float, float]]] = {"bbr1": [], "bbr2": []}
    for found in steps.of(run, "bytes_acked"):
        dips[found.axes["flow.0.algorithm"]].append(_dip(found, begin))
    depth, length = ({name: np.array([dip[part] for dip in of]) for name, of in dips.items()} for part in (0, 1))
    outcomes = [
        smaller("depth of the dip: bbr2 < bbr1", depth["bbr2"], depth["bbr1"]),
        smaller("duration of the dip: bbr2 < bbr1", length["bbr2"], length["bbr1"]),
    ]
    ours = [
        (name, f"{text_of(100 * depth[name], '%')} deep, {text_of(length[name] / 1e6, 'ms')}")
        for name in ("bbr1", "bbr2")
    ]
    return Found(outcomes, ours)


def _dip(found: steps.Steps, begin_ns: float) -> tuple[float, float]:
    """(share of the median that is missing in the lowest bin, ns of the longest run of bins in a dip)."""
    times = np.arange(begin_ns, found.t_ns[-1], _BIN_NS)
    rates: Floats = np.diff(found.at(times))
    median = float(np.median(rates))
    longest = now = 0
    for is_low in rates < _DIP * median:
        now = now + 1 if is_low else 0
        longest = max(longest, now)
    return 1 - float(rates.min()) / median, longest * _BIN_NS

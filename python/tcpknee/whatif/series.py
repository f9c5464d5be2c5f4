"""A connection over time, recorded or simulated, and what is measured of it.

Both are measured by the same functions here, so a prediction and a recording differ by what happened alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

WIRE_OVERHEAD_BYTES = 52
"""IP and TCP headers with timestamps: what a link carries beside each segment's payload."""

METRICS = ("goodput_bits_per_sec", "srtt_us_p50", "srtt_us_p95", "queue_delay_us_p95", "retransmit_pct")
"""What is predicted of a connection."""

LEAST_DELAY_US = 100.0
"""A queueing delay of nothing has no logarithm; below this it makes no difference."""


@dataclass(frozen=True)
class Series:
    """One connection. Arrays have an entry per sample, the first one of its begin where that was seen.

    `t_us` counts from the begin of its path's recording. Counters are as `tcp_info` has them.
    """

    key: str
    algorithm: str
    t_us: Numbers
    bytes_acked: Numbers
    delivered: Numbers
    data_segs_out: Numbers
    total_retrans: Numbers
    srtt_us: Numbers
    rttvar_us: Numbers
    min_rtt_us: Numbers
    snd_cwnd: Numbers
    busy_us: Numbers
    app_limited: Numbers
    mss_bytes: float = 1448.0
    fresh: bool = True
    """Was its begin seen? Else what came before the first sample is unknown."""
    final: bool = False
    """Was its end seen?"""
    rwnd_limited_pct: float = 0.0
    """Of the busy time: how long the receiver's window held it back."""

    def until(self, end_us: float) -> Series:
        """The same as far as it was recorded by that time."""
        count = int(np.searchsorted(self.t_us, end_us, side="right"))
        if count == len(self.t_us):
            return self
        every = {field.name: getattr(self, field.name) for field in fields(self)}
        cut: dict[str, Any] = {name: values[:count] for name, values in every.items() if isinstance(values, np.ndarray)}
        return replace(self, **cut, final=False)

    @property
    def elapsed_us(self) -> float:
        return float(self.t_us[-1] - self.t_us[0])

    @property
    def acked(self) -> float:
        """Payload bytes acknowledged meanwhile."""
        return float(self.bytes_acked[-1] - self.bytes_acked[0])

    @property
    def segments(self) -> float:
        return float(self.data_segs_out[-1] - self.data_segs_out[0])

    @property
    def retransmitted(self) -> float:
        return float(self.total_retrans[-1] - self.total_retrans[0])

    @property
    def only_its_end(self) -> bool:
        """Had it sent the greater part before it was seen, and ended then?"""
        return not self.fresh and self.final and self.segments < 0.5 * float(self.data_segs_out[-1])

    @property
    def busy_share(self) -> float:
        """Share of its time with data outstanding."""
        if self.elapsed_us <= 0:
            return 0.0
        return min(float(self.busy_us[-1] - self.busy_us[0]) / self.elapsed_us, 1.0)

    @property
    def app_limited_share(self) -> float:
        """Share of the samples in which the application had too little to send: of those in which there was something,
        if there were any."""
        busy = np.diff(self.busy_us) >= np.diff(self.t_us) / 2
        return float(np.mean(self.app_limited[1:][busy] if busy.any() else self.app_limited))

    @property
    def steady_rtt_us(self) -> Numbers:
        """Smoothed RTTs that were measured at all."""
        return self.srtt_us[self.srtt_us > 0]

    @cached_property
    def least_rtt_us(self) -> float:
        known = self.min_rtt_us[self.min_rtt_us > 0]
        return float(known.min()) if len(known) else float(self.steady_rtt_us.min())


@dataclass(frozen=True)
class Starved:
    """A simulated connection that sent too little, or was over too early, to say more: a recording leaves it out."""

    goodput_bits_per_sec: float
    """From its begin on."""


def percentiles(values: Numbers, pcts: Sequence[float]) -> Numbers:
    """As `np.percentile` has them, of a few numbers in a tenth of its time: a fit asks for them of every connection of
    every simulation."""
    ordered = np.sort(values)
    places = np.array(pcts) / 100 * (len(ordered) - 1)
    below = places.astype(int)
    low, high, between = ordered[below], ordered[np.minimum(below + 1, len(ordered) - 1)], places - below
    found: Numbers = np.where(between < 0.5, low + (high - low) * between, high - (high - low) * (1 - between))
    return found


def measured(series: Series) -> dict[str, float]:
    """The metrics of a connection."""
    p50, p95 = (float(value) for value in percentiles(series.steady_rtt_us, (50, 95)))
    return {
        "goodput_bits_per_sec": goodput_bits_per_sec(series),
        "srtt_us_p50": p50,
        "srtt_us_p95": p95,
        "queue_delay_us_p95": max(p95 - series.least_rtt_us, 0.0),
        "retransmit_pct": 100 * series.retransmitted / max(series.segments, 1.0),
    }


def goodput_bits_per_sec(series: Series) -> float:
    """Of the time in which it had data outstanding."""
    busy = float(series.busy_us[-1] - series.busy_us[0])
    return series.acked * 8e6 / (busy if busy > 0 else series.elapsed_us)


def whole_goodput_bits_per_sec(series: Series) -> float:
    """The same from the connection's begin on, also where that was not seen: its counters tell."""
    return float(series.bytes_acked[-1]) * 8e6 / max(float(series.busy_us[-1]), 1.0)


def carried_bytes(connections: Sequence[Series], at_us: Numbers) -> Numbers:
    """What the link had carried of all connections together at these times. Segments count when they arrive, also out
    of order."""
    total = np.zeros(len(at_us))
    for series in connections:
        total += np.interp(at_us, series.t_us, series.delivered) * (series.mss_bytes + WIRE_OVERHEAD_BYTES)
    return total


def delivered_rates(connections: list[Series], window_us: float) -> tuple[Numbers, Numbers]:
    """Wire rate of all connections of a path together, in bit/s, over windows of that length: (middle of the window in
    us, rate)."""
    begin = min(float(series.t_us[0]) for series in connections)
    end = max(float(series.t_us[-1]) for series in connections)
    edges = np.arange(begin, end + window_us, window_us)
    total = 8 * carried_bytes(connections, edges)
    # The last window may reach past the end, and be the only one.
    lengths = np.minimum(edges[1:], end) - edges[:-1]
    kept = lengths > min(window_us, end - begin) / 2
    return ((edges[1:] + edges[:-1]) / 2)[kept], (np.diff(total)[kept] / lengths[kept] * 1e6)


def window_us(connections: list[Series], interval_us: float) -> float:
    """How long a window a rate is measured over: several samples, and several round trips."""
    rtt = min(series.least_rtt_us for series in connections)
    return max(4 * interval_us, 4 * rtt, 200_000.0)

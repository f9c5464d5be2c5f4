"""What cohorts are compared by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Table = Literal["connections", "hosts"]


@dataclass(frozen=True)
class Metric:
    """A column of `connections` or `hosts`.

    `better`: +1 where more is better, -1 where less is, 0 where neither. `middle`: which statistic a verdict is about;
    the mean where the median is often 0.
    """

    name: str
    label: str
    kind: str
    """As `human.quantity` knows it."""
    better: int
    middle: Literal["mean", "P50"]
    table: Table = "connections"

    @property
    def p(self) -> float | None:
        """The share below the statistic; None: the mean."""
        return 0.5 if self.middle == "P50" else None


METRICS = (
    Metric("retransmit_pct", "retransmitted", "pct", -1, "mean"),
    Metric("loss_pct", "lost", "pct", -1, "mean"),
    Metric("delivery_rate_bits_per_sec", "delivery rate", "rate", 1, "P50"),
    Metric("goodput_bits_per_sec", "goodput while busy", "rate", 1, "P50"),
    Metric("app_throughput_bits_per_sec", "request throughput", "rate", 1, "P50"),
    Metric("srtt_us", "smoothed RTT", "time", -1, "P50"),
    Metric("min_rtt_us", "least RTT", "time", 0, "P50"),
    Metric("queue_delay_us", "queueing delay", "time", -1, "P50"),
    Metric("inflight_pkts", "in flight", "packets", 0, "P50"),
    Metric("busy_pct", "busy", "pct", 0, "mean"),
    Metric("rwnd_limited_pct", "rwnd-limited", "pct", 0, "mean"),
    Metric("sndbuf_limited_pct", "sndbuf-limited", "pct", 0, "mean"),
    Metric("reord_seen", "reordering events", "", -1, "mean"),
    Metric("ce_pct", "CE marked", "pct", 0, "mean"),
    Metric("retrans_segs_pct", "host RetransSegs", "pct", -1, "mean", "hosts"),
    Metric("cpu_us_per_gb", "CPU per GB", "time", -1, "mean", "hosts"),
)

QUANTILES = {"P25": 0.25, "P50": 0.5, "P75": 0.75, "P95": 0.95, "P99": 0.99}

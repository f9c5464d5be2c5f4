"""The metrics of a group of flows: how members of one repetition are combined, their unit and their bounds.

A group is one `[[flow]]` table in one cell. Its members within a repetition share the path and the seed, so they
are combined to one value per repetition and never counted as repetitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tcpknee import workloads

Kind = Literal["rate", "time", "pct", "share", "per_sec", "segments", "count", "index", "factor", "ns"]
How = Literal["sum", "mean", "min", "percentile", "pooled", "count"]

LIMITS = ("cwnd", "rwnd", "sndbuf", "pacing", "app", "cpu")
"""What `flows` keeps a `*_limited_us` column for."""

LIMITED_BY = (*LIMITS, "other")
"""Parts of a flow's steady part. The rest, of which nothing tells what held data back, is `other`."""

MEASURED = ("requests_per_sec", "latency_us_p50", "latency_us_p95", "latency_us_p99")
"""Metrics that external programs tell of themselves, and that no flow of theirs has."""


@dataclass(frozen=True)
class Sizes:
    """Transfers of `low` bytes and more, but less than `high`; `name` ends the names of metrics over them."""

    name: str
    label: str
    low: float
    high: float


SIZES = (
    Sizes("below_10kB", "< 10 kB", 0, 1e4),
    Sizes("10kB_to_100kB", "10 to 100 kB", 1e4, 1e5),
    Sizes("100kB_to_1MB", "100 kB to 1 MB", 1e5, 1e6),
    Sizes("1MB_to_10MB", "1 to 10 MB", 1e6, 1e7),
    Sizes("from_10MB", "≥ 10 MB", 1e7, float("inf")),
)
"""Decades within the bounds that data-center studies use (100 kB and 10 MB; pFabric, SIGCOMM 2013, section 5)."""


@dataclass(frozen=True)
class Metric:
    """One value per group and repetition.

    `column` is the column of `flows` it comes from; `how` combines the members, `sizes` leaves out transfers of other
    sizes; `better` is +1 when more is better, -1 when less is, 0 when neither; `label` heads a table's column.
    """

    name: str
    label: str
    kind: Kind
    how: How
    column: str
    better: int = 0
    percentile: float = 0.0
    sizes: Sizes | None = None
    needs: str = ""
    """What a cell must have for it to have a value, where that is not plain."""

    @property
    def is_time_taken(self) -> bool:
        """Is it how long something took, from asking to having?"""
        return self.kind == "time" and self.column.startswith(("completion", "latency"))

    @property
    def bounds(self) -> tuple[float, float]:
        """What the quantity itself can be."""
        return 0.0, {"pct": 100.0, "share": 1.0, "index": 1.0}.get(self.kind, float("inf"))


def _spread(prefix: str, label: str, better: int = -1) -> list[Metric]:
    return [
        Metric(f"{prefix}_{part}", f"{label} {part}", "time", "mean", f"{prefix}_{part}", better)
        for part in ("mean", "p50", "p95", "p99")
    ]


def of_sizes(name: str, sizes: Sizes | None) -> str:
    """The metric over transfers of those sizes; None: over all."""
    return f"{name}_{sizes.name}" if sizes else name


_TIMES: tuple[tuple[str, str, Kind], ...] = (
    ("completion_us", "completion", "time"),
    ("slowdown", "slowdown", "factor"),
)


def _of_transfers() -> list[Metric]:
    """How many transfers, how long they took, and how much longer than the path would let them; of each size too."""
    found = []
    for sizes in (None, *SIZES):
        of = f" of transfers {sizes.label}" if sizes else ""
        label = f"number{of or ' of transfers'}"
        found.append(Metric(of_sizes("transfers", sizes), label, "count", "count", "transfer_bytes", sizes=sizes))
        found += [
            Metric(of_sizes(f"{column}_p{p}", sizes), f"{label} p{p}{of}", kind, "percentile", column, -1, p, sizes)
            for column, label, kind in _TIMES
            for p in (50, 95, 99)
        ]
    return found


METRICS: tuple[Metric, ...] = (
    Metric("goodput_bits_per_sec", "goodput", "rate", "sum", "goodput_bits_per_sec", 1),
    Metric("throughput_bits_per_sec", "throughput", "rate", "sum", "throughput_bits_per_sec"),
    Metric("retransmit_pct", "retransmitted", "pct", "pooled", "total_retrans/data_segs_out", -1),
    *_spread("srtt_us", "srtt"),
    Metric("min_rtt_us", "min rtt", "time", "min", "min_rtt_us"),
    *_spread("queue_delay_us", "queue delay"),
    Metric("snd_cwnd_mean", "cwnd", "segments", "mean", "snd_cwnd_mean"),
    Metric("inflight_mean", "inflight", "segments", "mean", "inflight_mean"),
    *_of_transfers(),
    Metric("requests_per_sec", "requests", "per_sec", "sum", "requests_per_sec", 1),
    *(m for m in _spread("latency_us", "latency") if not m.name.endswith("mean")),
    *(
        Metric(name, name.rsplit("_", 1)[0], "count", "sum", name)
        for name in (
            "rto_count",
            "recovery_count",
            "undo_count",
            "tlp_count",
            "path_lost_pkts",
            "queue_dropped_pkts",
            "writes",
            "reads",
        )
    ),
)
"""Every metric of a group, in the order of tables and JSON."""

TOTALS: tuple[Metric, ...] = (
    METRICS[0],
    Metric("utilisation", "link used", "share", "pooled", "sent_bytes", 1),
    Metric(
        "jain",
        "Jain index",
        "index",
        "pooled",
        "goodput_bits_per_sec",
        1,
        needs="two flows or more that last, and transfers that come and go are none of these",
    ),
    Metric("softirq_share_of_busiest_cpu", "softirq on one cpu", "share", "pooled", "softirq_us"),
    Metric("cpu_ns_per_byte", "CPU per byte", "ns", "pooled", "cpu.run_us", -1),
    Metric("cpu_ns_per_request", "CPU per request", "ns", "pooled", "cpu.run_us", -1),
    Metric("cpu_user_share", "CPU in programs", "share", "pooled", "cpu.user_us"),
    Metric("cpu_system_share", "CPU in the kernel", "share", "pooled", "cpu.system_us"),
    Metric("cpu_softirq_share", "CPU in interrupts", "share", "pooled", "cpu.softirq_us"),
    Metric("timer_fires_per_data_skb", "timers per data skb", "factor", "pooled", "pacing_timer_fires", -1),
    Metric("cross_cpu_reads_per_skb", "read on another cpu", "share", "pooled", "cross_cpu_reads", -1),
    Metric("ring_drops", "ring drops", "count", "pooled", "ring_drops", -1),
    Metric("data_skbs", "data skbs sent", "count", "pooled", "data_skbs_sent"),
    Metric("acks_sent", "ACKs sent", "count", "pooled", "acks_sent"),
)
"""Metrics of a whole cell: all flows' goodput, the share of the link's capacity used, fairness between flows; of the
kernel engine also what its hosts spent (`runs/hosts.py`)."""

BY_NAME = {metric.name: metric for metric in (*METRICS, *TOTALS)}

ALIASES = {
    "goodput": "goodput_bits_per_sec",
    "throughput": "throughput_bits_per_sec",
    "completion_us": "completion_us_p50",
    "utilization": "utilisation",
}
"""Short names that expectations may use."""


def compared(workload: str) -> tuple[str, ...]:
    """Metrics that verdicts compare for a workload, those of `primary` first."""
    kind = workloads.of(workload)
    # The slowdown is held against the least that a transfer of its size could take.
    further = ("slowdown_p99",) if kind["counts"] == "completion" and kind["draws"] else ()
    return (*primary(workload), *further, *_FURTHER[kind["counts"]])


def primary(workload: str) -> tuple[str, ...]:
    """Of those the ones that matter most: of transfers also the slow ones."""
    return _PRIMARY[workloads.of(workload)["counts"]]


_PRIMARY: dict[workloads.Counts, tuple[str, ...]] = {
    "goodput": ("goodput_bits_per_sec",),
    "completion": ("completion_us_p50", "completion_us_p95", "completion_us_p99"),
    "requests": ("latency_us_p95",),
    "programs": ("requests_per_sec",),
}

_FURTHER: dict[workloads.Counts, tuple[str, ...]] = {
    "goodput": ("srtt_us_p95", "queue_delay_us_p95"),
    "completion": ("srtt_us_p95", "queue_delay_us_p95"),
    "requests": ("requests_per_sec", "queue_delay_us_p95"),
    "programs": ("latency_us_p95", "goodput_bits_per_sec", "queue_delay_us_p95"),
}

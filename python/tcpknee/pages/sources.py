"""Where series over time stand: the table of each kind of dataset, and its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcpknee.datasets.dataset import Dataset


@dataclass(frozen=True)
class Panel:
    """One time series: where it comes from and how it is written."""

    name: str
    title: str
    table: str
    column: str
    scale: float
    unit: str
    is_counter: bool = False
    """The column counts; its increase per second is drawn."""
    units: str = ""
    """Where the column `units` of each row says what its value is in: this, or the row is of another panel."""
    since: str = ""
    """When the value begins to hold, in SQL of the row's columns; by default at the row's own time."""


@dataclass(frozen=True)
class Source:
    """A table with series of connections."""

    table: str
    time: str
    """Column with the time in ns."""
    key: tuple[str, ...]
    """Rows in which all of these are equal are of one connection."""
    panels: tuple[Panel, ...]
    sent: str = ""
    """Column with the bytes that arrived: the connections with most are shown. Without one, those with most rows."""
    sent_is_counter: bool = True
    """It counts all bytes so far; otherwise those of its row alone."""
    of: str = "connection"
    """What its series are of."""
    named_in: str = ""
    """Table with the ends of each connection."""
    ends: tuple[str, ...] = ("local_addr", "local_port", "remote_addr", "remote_port")

    @property
    def is_wall_time(self) -> bool:
        return self.time == "t_unix_ns"


def _tcp(table: str) -> tuple[Panel, ...]:
    """What tables in the words of `tcp_info` have."""
    return (
        Panel("cwnd", "Congestion window", table, "snd_cwnd", 1.0, "segments"),
        Panel("inflight", "In flight", table, "inflight", 1.0, "segments"),
        Panel("pacing", "Pacing rate", table, "pacing_rate_bits_per_sec", 1e-6, "Mbit/s"),
        Panel("delivery", "Delivery rate", table, "delivery_rate_bits_per_sec", 1e-6, "Mbit/s"),
        Panel("srtt", "Smoothed RTT", table, "srtt_us", 1e-3, "ms"),
    )


QUEUE = Panel("queue", "Queue at the bottleneck", "queue", "queue_bytes", 1e-3, "kB")
SAMPLES = Source("samples", "t_ns", ("cell", "rep", "flow"), _tcp("samples"), "bytes_acked")
SOCKETS = Source(
    "sockets",
    "t_unix_ns",
    ("host", "boot_id", "netns", "cookie", "local_addr", "local_port", "remote_addr", "remote_port"),
    _tcp("sockets"),
    "bytes_acked",
    named_in="sockets",
)
ACKS = Source(
    "acks",
    "t_ns",
    ("cookie",),
    (*_tcp("acks"), Panel("acked", "Acknowledged so far", "acks", "bytes_acked", 1e-6, "MB")),
    "bytes_acked",
    named_in="connections",
    ends=("source", "source_port", "destination", "destination_port"),
)
CAPTURE = Source(
    "capture_acks",
    "t_unix_ns",
    ("connection", "local_addr", "local_port", "remote_addr", "remote_port"),
    (
        Panel("inflight", "In flight", "capture_acks", "inflight_bytes", 1e-3, "kB"),
        Panel("delivery", "Acknowledged", "capture_acks", "delivered_bytes", 8e-6, "Mbit/s", is_counter=True),
        Panel("acked", "Acknowledged so far", "capture_acks", "bytes_acked", 1e-6, "MB"),
        Panel("rtt", "Round-trip time", "capture_acks", "rtt_us", 1e-3, "ms"),
    ),
    "bytes_acked",
    of="direction",
    named_in="capture_acks",
)
IPERF3 = Source(
    "iperf3_intervals",
    "end_ns",
    ("file", "test", "stream"),
    (
        Panel("goodput", "Goodput", "iperf3_intervals", "goodput_bits_per_sec", 1e-6, "Mbit/s", since="start_ns"),
        Panel("written", "Written", "iperf3_intervals", "written_bits_per_sec", 1e-6, "Mbit/s", since="start_ns"),
        Panel("cwnd", "Congestion window", "iperf3_intervals", "snd_cwnd_bytes", 1e-3, "kB"),
        Panel("srtt", "Smoothed RTT", "iperf3_intervals", "srtt_us", 1e-3, "ms"),
    ),
    "bytes",
    sent_is_counter=False,
)
FLENT = Source(
    "flent_samples",
    "t_ns",
    ("file", "series"),
    (
        Panel(
            "goodput",
            "Goodput",
            "flent_samples",
            "value",
            1.0,
            "Mbit/s",
            units="Mbits/s",
            since="greatest(t_ns - coalesce(duration_us, 0) * 1000, 0)",
        ),
        Panel("rtt", "Latency", "flent_samples", "value", 1.0, "ms", units="ms"),
        *_tcp("flent_samples"),
    ),
)
SOURCES = (SAMPLES, SOCKETS, ACKS, CAPTURE, IPERF3, FLENT)


def of(dataset: Dataset) -> Source | None:
    """The first table of the list that the dataset has, with columns that make a series; None: it has none."""
    return next((source for source in SOURCES if source.table in dataset.tables and _has_series(dataset, source)), None)


def _has_series(dataset: Dataset, source: Source) -> bool:
    """Whether its rows have a time, a connection and something to draw."""
    held = set(dataset.table(source.table).columns)
    return source.time in held and not held.isdisjoint(source.key) and any(p.column in held for p in source.panels)

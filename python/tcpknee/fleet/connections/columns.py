"""Columns of the tables that a fleet has: what each means, its unit, and how it follows from samples.

An expression is DuckDB's SQL over one row per connection (`samples.py`): `begin_X` and `last_X` are a counter at the
connection's beginning, as far as it was recorded, and at its end; `least_busy_us` is the first that a sample told.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcpknee import _core


@dataclass(frozen=True)
class Column:
    """A column of `connections`, `assignments` or `hosts`."""

    name: str
    type: str
    """As DuckDB calls it."""
    unit: str
    doc: str
    value: str = ""
    """How `connections` computes it."""


def _counted(name: str, unit: str, doc: str) -> Column:
    return Column(name, "BIGINT", unit, doc, f"last_{name} - begin_{name}")


def _share(part: str, whole: str) -> str:
    return f"1e2 * ({part}) / nullif({whole}, 0)"


def _at_least_0(value: str) -> str:
    """Not `greatest`, which passes over null."""
    return f"case when {value} < 0 then 0 else {value} end"


def _at_most_100(value: str) -> str:
    return f"case when {value} > 100 then 100 else {value} end"


def _of(name: str) -> str:
    return f"(last_{name} - begin_{name})"


INITIAL_WINDOW = 10
"""RFC 6928: segments that a connection may send before the first ACK."""

_LEFT = f"(last_data_segs_out > {INITIAL_WINDOW} and (snd_cwnd_max > {INITIAL_WINDOW} or last_total_retrans > 0))"

COLUMNS = (
    Column(
        "host_id",
        "VARCHAR",
        "",
        "installation of the host (machine-id); its name, or that of its folder, where "
        "no table tells; of a run its folder, cell and repetition",
        "host_id",
    ),
    Column("host", "VARCHAR", "", "name of the host", "host"),
    Column("boot_id", "VARCHAR", "", "boot of the host, within which a cookie is unique", "boot_id"),
    Column("cookie", "UBIGINT", "", "tells connections of a boot apart; of a run the flow's number", "cookie"),
    Column("netns", "VARCHAR", "", "network namespace", "netns"),
    Column("algorithm", "VARCHAR", "", "congestion control, as the last sample that tells it says", "algorithm"),
    Column("kernel", "VARCHAR", "", "release of the host's kernel", "kernel"),
    Column("arm", "VARCHAR", "", "arm of the experiment that it was assigned to; null: not assigned", "arm"),
    Column("design", "VARCHAR", "", "design of that experiment", "design"),
    Column("allocation_pct", "DOUBLE", "%", "share that the experiment intended for that arm then", "allocation_pct"),
    Column("period", "BIGINT", "", "period of a switchback", "period"),
    Column("link", "VARCHAR", "", "link of a paired-link experiment", "link"),
    Column(
        "unit",
        "VARCHAR",
        "",
        "what the experiment drew that arm for as a whole: a prefix of clients of any length, or a host (host_id); "
        "null: not assigned, or each connection was drawn by itself",
        "unit",
    ),
    Column("tags", "VARCHAR", "", "further words about it as a JSON object: --tag, axes of a run", "tags"),
    Column("process", "VARCHAR", "", "a process that held the socket", "process"),
    Column("cgroup", "VARCHAR", "", "path of its cgroup v2", "cgroup"),
    Column("mark", "BIGINT", "", "SO_MARK", "mark"),
    Column("local_port", "INTEGER", "", "port of this end", "local_port"),
    Column(
        "remote_prefix",
        "VARCHAR",
        "",
        "network of the client, /24 or /48; the hash of its address where the recorder hashed it",
        "remote_prefix",
    ),
    Column(
        "begin_unix_ns",
        "BIGINT",
        "ns",
        "wall time of its first sample, since 1970-01-01 UTC; of a run from its beginning",
        "begin_unix_ns",
    ),
    Column("end_unix_ns", "BIGINT", "ns", "wall time of its last sample", "end_unix_ns"),
    Column("duration_us", "BIGINT", "us", "between those two", "(end_t_ns - begin_t_ns) // 1000"),
    Column("samples", "BIGINT", "", "samples of it; 0: only its end was seen", "samples"),
    Column("final", "BOOLEAN", "", "was its end seen?", "final"),
    _counted(
        "bytes_acked",
        "bytes",
        "payload acknowledged while it was recorded: since its beginning, or since the "
        "first sample where the recording began later",
    ),
    _counted("bytes_sent", "bytes", "payload sent, with retransmissions, likewise"),
    _counted("bytes_retrans", "bytes", "of those: retransmitted"),
    _counted("data_segs_out", "segments", "data segments sent, with retransmissions, likewise"),
    _counted("total_retrans", "segments", "of those: retransmissions"),
    Column(
        "retransmit_pct",
        "DOUBLE",
        "%",
        "total_retrans / data_segs_out; at most 100, since retransmissions of SYN and FIN are no data segments",
        _at_most_100(_share(_of("total_retrans"), _of("data_segs_out"))),
    ),
    Column(
        "loss_pct",
        "DOUBLE",
        "%",
        "data segments lost / data_segs_out: of a simulated run those that path and "
        "queue lost, else retransmissions less those that the receiver called needless (DSACK)",
        f"coalesce({_share('path_lost', _of('data_segs_out'))}, "
        + _at_most_100(_share(_at_least_0(f"{_of('total_retrans')} - {_of('dsack_dups')}"), _of("data_segs_out")))
        + ")",
    ),
    _counted("delivered", "segments", "segments delivered, likewise"),
    _counted("delivered_ce", "segments", "of those: echoed as CE marked"),
    Column("ce_pct", "DOUBLE", "%", "delivered_ce / delivered", _share(_of("delivered_ce"), _of("delivered"))),
    Column(
        "delivery_rate_bits_per_sec",
        "DOUBLE",
        "bit/s",
        "median of the delivery rates that the application did not limit; null: there is none",
        "delivery_rate_bits_per_sec",
    ),
    Column(
        "goodput_bits_per_sec",
        "DOUBLE",
        "bit/s",
        "bytes_acked over the time in which data was outstanding",
        f"8e6 * {_of('bytes_acked')} / nullif({_of('busy_us')}, 0)",
    ),
    Column(
        "app_throughput_bits_per_sec",
        "DOUBLE",
        "bit/s",
        "bytes of its requests over their times, as nginx logged them; null: no request was matched to it",
        "app_throughput_bits_per_sec",
    ),
    Column("srtt_us", "DOUBLE", "us", "median of the smoothed round-trip times", "srtt_us"),
    Column("min_rtt_us", "DOUBLE", "us", "least round-trip time that a sample told", "min_rtt_us"),
    Column("queue_delay_us", "DOUBLE", "us", "srtt_us - min_rtt_us", _at_least_0("(srtt_us - min_rtt_us)")),
    Column("rttvar_us", "DOUBLE", "us", "mean of the variations of the round-trip time", "rttvar_us"),
    Column(
        "inflight_pkts",
        "DOUBLE",
        "packets",
        "median of the packets in flight, over samples with data outstanding",
        "inflight_pkts",
    ),
    Column("snd_mss_bytes", "BIGINT", "bytes", "payload of a full segment", "snd_mss_bytes"),
    _counted("busy_us", "us", "time with data outstanding"),
    Column(
        "rwnd_limited_pct",
        "DOUBLE",
        "%",
        "share of busy_us limited by the receive window",
        _share(_of("rwnd_limited_us"), _of("busy_us")),
    ),
    Column(
        "sndbuf_limited_pct",
        "DOUBLE",
        "%",
        "share of busy_us limited by the send buffer",
        _share(_of("sndbuf_limited_us"), _of("busy_us")),
    ),
    Column(
        "busy_pct",
        "DOUBLE",
        "%",
        "share of its duration with data outstanding",
        _at_most_100(_share("last_busy_us - least_busy_us", "(end_t_ns - begin_t_ns) / 1000")),
    ),
    _counted("reord_seen", "", "reordering events"),
    Column(
        "app_limited_pct",
        "DOUBLE",
        "%",
        "share of the samples whose delivery rate the application limited",
        "app_limited_pct",
    ),
    Column(
        "left_initial_window",
        "BOOLEAN",
        "",
        f"had more than {INITIAL_WINDOW} segments to deliver, and a larger "
        "window or a loss: before that every algorithm does the same",
        _LEFT,
    ),
    Column(
        "triggered",
        "BOOLEAN",
        "",
        "left_initial_window, and the application limited fewer than half of the samples: the algorithm could matter",
        f"{_LEFT} and coalesce(app_limited_pct, 0) < 50",
    ),
)
"""`connections`: one row per connection."""

HOSTS = (
    Column("host_id", "VARCHAR", "", "as in `connections`"),
    Column("boot_id", "VARCHAR", "", "as in `connections`"),
    Column("begin_unix_ns", "BIGINT", "ns", "beginning of the hour, or of what was recorded of it"),
    Column("end_unix_ns", "BIGINT", "ns", "its end"),
    Column("retrans_segs_pct", "DOUBLE", "%", "Tcp.RetransSegs / Tcp.OutSegs of the host"),
    Column("cpu_us_per_gb", "DOUBLE", "us", "processor time that was not idle, per 10^9 bytes_sent"),
    Column("idle_cpu_pct", "DOUBLE", "%", "processor time that was idle"),
    Column("bytes_sent", "BIGINT", "bytes", "IpExt.OutOctets: bytes of IP packets sent"),
)
"""`hosts`: one row per host and hour."""

_TYPES = {"int32": "INTEGER", "int64": "BIGINT", "uint64": "UBIGINT", "float64": "DOUBLE", "text": "VARCHAR"}
"""Types of the core by DuckDB's names."""

ASSIGNMENTS = tuple(
    Column(column["name"], _TYPES[column["type"]], column["unit"], column["doc"])
    for column in _core.record_tables()["assignments"]
)
"""`assignments`, as `knee assign` logs them."""

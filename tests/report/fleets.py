"""Fleets made of numbers that look like congestion control, for tests and for looking at reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from tcpknee.pages.cohorts import Cohorts, Verdict

#: Delivery rate and queue as shares of the path's, retransmitted segments in percent.
CHARACTER = {"cubic": (0.6, 0.5, 0.4), "bbr1": (0.95, 0.9, 2.4), "bbr2": (0.85, 0.4, 0.8)}
BEGIN_NS = 1_790_000_000_000_000_000
HOUR_NS = 3_600_000_000_000


def connections(
    rows: int, *, algorithms: Sequence[str] = ("cubic", "bbr1", "bbr2"), hosts: int = 6, seed: int = 1
) -> pa.Table:
    """A table `connections`: clients of three access rates, at four distances, in prefixes of unequal sizes."""
    draw = np.random.default_rng(seed)
    host = draw.integers(0, hosts, rows)
    algorithm = np.array(algorithms, dtype=object)[host % len(algorithms)]
    character = {name: CHARACTER.get(name, (0.7, 0.6, 1.0)) for name in algorithms}
    share, queue, lost = (
        (np.array([character[name][k] for name in algorithm]) for k in range(3)) if rows else [np.zeros(0)] * 3
    )
    min_rtt_us = draw.choice([3e3, 18e3, 45e3, 150e3], rows) * draw.lognormal(0, 0.12, rows)
    access = draw.choice([8e6, 50e6, 300e6], rows) * draw.lognormal(0, 0.1, rows)
    rate = access * share * draw.beta(6, 2, rows)
    srtt_us = min_rtt_us * (1 + queue * draw.gamma(2, 0.5, rows))
    retransmit_pct = np.where(draw.random(rows) < 0.4, 0.0, lost * draw.gamma(0.5, 2, rows))
    begin = BEGIN_NS + draw.integers(0, HOUR_NS, rows)
    app_limited = draw.random(rows) < 0.1
    columns: dict[str, Any] = {
        "host_id": [f"id{one}" for one in host],
        "host": [f"edge{one}" for one in host],
        "boot_id": [f"boot{one}" for one in host],
        "cookie": np.arange(rows, dtype=np.uint64),
        "algorithm": list(algorithm),
        "kernel": ["6.12.0"] * rows,
        "arm": pa.nulls(rows, pa.string()),
        "remote_prefix": [f"192.0.{one}.0/24" for one in draw.zipf(1.4, rows) % 400],
        "begin_unix_ns": begin,
        "end_unix_ns": begin + 10_000_000_000,
        "bytes_acked": (1e6 * draw.pareto(1.5, rows) + 1e6).astype(np.int64),
        "retransmit_pct": retransmit_pct,
        "delivery_rate_bits_per_sec": pa.array(rate, mask=app_limited),
        "app_throughput_bits_per_sec": rate * 0.8,
        "srtt_us": srtt_us,
        "min_rtt_us": min_rtt_us,
        "queue_delay_us": srtt_us - min_rtt_us,
        "inflight_pkts": np.maximum(np.rint(rate * srtt_us / 1e6 / 11_584), 1.0),
        "rwnd_limited_pct": np.where(draw.random(rows) < 0.7, 0.0, 100 * draw.beta(1, 4, rows)),
        "reord_seen": draw.poisson(0.3, rows),
        "triggered": ~app_limited,
    }
    return pa.table(columns)


def counters(hosts: int, *, moments: int = 60, seed: int = 1) -> pa.Table:
    """A table `counters` of an hour."""
    draw = np.random.default_rng(seed)
    rows = []
    for host in range(hosts):
        sent = np.cumsum(draw.poisson(100_000, moments)) + 10**9
        again = np.cumsum(draw.poisson(100 * (1 + host % 3), moments)) + 10**6
        for name, values in (("Tcp.OutSegs", sent), ("Tcp.RetransSegs", again), ("Tcp.InSegs", sent)):
            rows += [
                {"t_unix_ns": BEGIN_NS + k * HOUR_NS // moments, "host": f"edge{host}", "boot_id": f"boot{host}",
                 "netns": "4026531840", "source": "snmp", "name": name, "cpu": None, "value": int(values[k])}
                for k in range(moments)
            ]  # fmt: skip
    texts = dict.fromkeys(("host", "boot_id", "netns", "source", "name"), pa.string())
    schema = pa.schema({"t_unix_ns": pa.int64(), **texts, "cpu": pa.int32(), "value": pa.int64()})
    return pa.Table.from_pylist(rows, schema=schema)


def cpu(hosts: int, *, moments: int = 60, idle_pct: int = 75) -> pa.Table:
    """A table `cpu` of two processors per host, which are idle for that part of the time."""
    used = ("user_us", "nice_us", "system_us", "irq_us", "softirq_us", "steal_us")
    rows = []
    for host in range(hosts):
        for processor in range(2):
            for k in range(moments):
                rows.append(
                    {"t_unix_ns": BEGIN_NS + k * HOUR_NS // moments, "host": f"edge{host}", "boot_id": f"boot{host}",
                     "cpu": processor, **dict.fromkeys(used, 0), "user_us": (100 - idle_pct) * k * 1000,
                     "idle_us": idle_pct * k * 900, "iowait_us": idle_pct * k * 100}
                )  # fmt: skip
    return pa.Table.from_pylist(rows)


def asker(tables: dict[str, pa.Table]) -> Callable[[str], pa.Table]:
    """Answers SQL over tables."""
    database = duckdb.connect()
    for name, table in tables.items():
        database.register(f"in_{name}", table)
        database.execute(f"create view {name} as from in_{name}")
    if "connections" in tables:
        database.execute(
            "create view cohorts as select *, algorithm as cohort, "
            "('0x' || left(md5(remote_prefix), 16))::ubigint as cluster from connections"
        )
    return lambda query: database.sql(query).to_arrow_table()


def fleet(rows: int, *, hosts: int = 6, verdicts: Sequence[Verdict] = (), **given: Any) -> Cohorts:
    """A fleet with all its tables."""
    tables = {"connections": connections(rows, hosts=hosts, **given), "counters": counters(hosts), "cpu": cpu(hosts)}
    return Cohorts(
        asker(tables), "algorithm", connections="cohorts", tables=frozenset(tables), verdicts=verdicts, title="The edge"
    )


VERDICTS = (
    Verdict("delivery rate P50", "bbr1", "cubic", (1.41, 1.32, 1.52), True, "bbr1 has a higher delivery rate."),
    Verdict("delivery rate P50", "bbr2", "cubic", (1.3, 1.2, 1.4), True, "bbr2 has a higher delivery rate."),
    Verdict("retransmitted", "bbr1", "cubic", (5.9, 4.8, 7.0), True, "bbr1 retransmits more."),
    Verdict("srtt P50", "bbr2", "cubic", (0.99, 0.9, 1.1), False, "No difference in round-trip times is shown."),
    Verdict("idle", "bbr2", "cubic", None, False, "Too few hosts to compare idle processors."),
)

"""Fleets made of numbers that look like congestion control, for tests and for looking at reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tcpknee.fleet.cohorts import comparing
from tcpknee.fleet.cohorts.metrics import METRICS
from tcpknee.fleet.cohorts.verdicts import spread
from tcpknee.fleet.statistics import cluster_hashes, tally
from tcpknee.pages.cohorts import Cohorts, of_comparison

#: Delivery rate and queue as shares of the path's, retransmitted segments in percent.
CHARACTER = {"cubic": (0.6, 0.5, 0.4), "bbr1": (0.95, 0.9, 2.4), "bbr2": (0.85, 0.4, 0.8)}
COUNTERS = {
    **dict.fromkeys(("t_unix_ns", "value"), pa.int64()),
    **dict.fromkeys(("host", "boot_id", "netns", "source", "name"), pa.string()),
    "cpu": pa.int32(),
}
BEGIN_NS = 1_790_000_000_000_000_000
HOUR_NS = 3_600_000_000_000


def connections(
    rows: int, *, algorithms: Sequence[str] = ("cubic", "bbr1", "bbr2"), hosts: int = 6, seed: int = 1
) -> pa.Table:
    """A table `connections`: clients of three access rates, at four distances, in prefixes of unequal sizes."""
    draw = np.random.default_rng(seed)
    host = draw.integers(0, hosts, rows)
    of_host = host % len(algorithms)
    ecn = np.arange(rows) % 4 == 0
    share, queue, lost = np.array([CHARACTER.get(name, (0.7, 0.6, 1.0)) for name in algorithms])[of_host].T
    min_rtt_us = draw.choice([3e3, 18e3, 45e3, 150e3], rows) * draw.lognormal(0, 0.12, rows)
    access = draw.choice([8e6, 50e6, 300e6], rows) * draw.lognormal(0, 0.1, rows)
    rate = access * share * draw.beta(6, 2, rows)
    srtt_us = min_rtt_us * (1 + queue * draw.gamma(2, 0.5, rows))
    begin = BEGIN_NS + draw.integers(0, HOUR_NS, rows)
    app_limited = draw.random(rows) < 0.1

    def words(prefix: str, numbers: Any) -> pa.Array:
        known = np.unique(numbers)
        return pa.array([f"{prefix}{one}" for one in known]).take(pa.array(np.searchsorted(known, numbers)))

    columns: dict[str, Any] = {
        "host_id": words("id", host),
        "host": words("edge", host),
        "boot_id": words("boot", host),
        "cookie": np.arange(rows, dtype=np.uint64),
        "algorithm": pa.array(list(algorithms)).take(pa.array(of_host)),
        "remote_prefix": words("192.0.2.0/24 ", draw.integers(0, 300, rows)),
        "begin_unix_ns": begin,
        "end_unix_ns": begin + 10_000_000_000,
        "bytes_acked": (1e6 * draw.lognormal(0, 1, rows) + 1e6).astype(np.int64),
        "retransmit_pct": np.where(draw.random(rows) < 0.4, 0.0, lost * draw.gamma(0.5, 2, rows)),
        "delivery_rate_bits_per_sec": pa.array(rate, mask=app_limited),
        "app_throughput_bits_per_sec": rate * 0.8,
        "srtt_us": srtt_us,
        "min_rtt_us": min_rtt_us,
        "queue_delay_us": srtt_us - min_rtt_us,
        "inflight_pkts": np.maximum(np.rint(rate * srtt_us / 1e6 / 11_584), 1.0),
        "rwnd_limited_pct": np.where(draw.random(rows) < 0.7, 0.0, 100 * draw.beta(1, 4, rows)),
        "reord_seen": draw.poisson(0.3, rows),
        "triggered": ~app_limited,
        "ecn": ecn,
        "ecn_seen": ecn & (np.arange(rows) % 8 == 0),
        "ce_pct": np.where(np.arange(rows) % 16 == 0, 1.5, 0.0),
        "bbr_bw_bits_per_sec": rate * 1.1,
        "bbr_min_rtt_us": min_rtt_us,
    }
    return pa.table(columns)


def counters(hosts: int, *, moments: int = 60, seed: int = 1) -> pa.Table:
    """A table `counters` of an hour: host 0 sends 1 in 1,000 segments again, host 1 twice as many, host 2 thrice."""
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
    return pa.Table.from_pylist(rows, schema=pa.schema(COUNTERS))


def cpu(hosts: int, *, moments: int = 60, idle_pct: int = 75) -> pa.Table:
    """A table `cpu` of two processors per host, which are idle for that part of the time."""
    used = ("user_us", "nice_us", "system_us", "irq_us", "softirq_us", "steal_us", "guest_us", "guest_nice_us")
    rows = [
        {"t_unix_ns": BEGIN_NS + k * HOUR_NS // moments, "host": f"edge{host}", "boot_id": f"boot{host}",
         "cpu": processor, **dict.fromkeys(used, 0), "user_us": (100 - idle_pct) * k * 1000,
         "idle_us": idle_pct * k * 900, "iowait_us": idle_pct * k * 100}
        for host in range(hosts) for processor in range(2) for k in range(moments)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows)


def write(folder: Path, rows: int, *, hosts: int = 6, **given: Any) -> Path:
    """A folder with these tables."""
    folder.mkdir(parents=True)
    tables = {"connections": connections(rows, hosts=hosts, **given), "counters": counters(hosts), "cpu": cpu(hosts)}
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")
    return folder


@contextmanager
def compared(folder: Path, **options: Any) -> Iterator[Cohorts]:
    """What figures see of such a folder."""
    with comparing(folder, **options) as (observed, found):
        yield of_comparison(observed, found)


def alone(table: pa.Table) -> Cohorts:
    """What figures would see of connections that are too few to compare."""
    database = duckdb.connect()
    database.register("given", table)
    database.execute("create view connections as select *, algorithm as cohort from given")
    clusters = cluster_hashes(table["remote_prefix"].to_pylist())
    names = np.array(table["algorithm"].to_pylist(), dtype=object)
    numbers = [metric.name for metric in METRICS if metric.name in table.column_names]
    tallies = {
        str(name): {
            column: tally(table[column].to_numpy().astype(np.float64)[names == name], clusters[names == name])
            for column in numbers
        }
        for name in np.unique(names)
    }
    values = {
        name: {metric.name: spread(metric, of[metric.name], seed=1) for metric in METRICS if metric.name in of}
        for name, of in tallies.items()
    }
    counts = {name: int((names == name).sum()) for name in tallies}
    return Cohorts(lambda query: database.sql(query).to_arrow_table(), tallies, values, counts, "algorithm")

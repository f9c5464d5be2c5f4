"""A lake's tables through Ibis: the same numbers from a local Spark as from DuckDB."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tcpknee import fleet
from tcpknee.errors import RunFolderError, UsageError
from tcpknee.fleet.connections import Lake, opened, read
from test_fleet_compare import counted
from test_fleet_connections import recording
from test_fleet_connections import sample as row_of

ibis = pytest.importorskip("ibis")
pytest.importorskip("pyspark")
if shutil.which("java") is None:
    pytest.skip("not installed: java", allow_module_level=True)

NOON = 1_787_313_600_000_000_000
SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings of three hosts, whose first dump has connections that are older."""
    folder = tmp_path_factory.mktemp("recorded")
    draw = np.random.default_rng(1)
    for host in range(3):
        rows = [row for cookie in range(60) for row in samples(host, cookie, draw)]
        types = {"cookie": pa.uint64(), "netns": pa.string(), "algorithm": pa.string()}
        schema = pa.schema([(name, types.get(name, pa.scalar(value).type)) for name, value in rows[0].items()])
        (folder / f"edge{host}").mkdir()
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / f"edge{host}" / "sockets-000001.parquet")
    return folder


def samples(host: int, cookie: int, draw: np.random.Generator) -> Iterator[dict[str, Any]]:
    begin, least = int(draw.integers(0, 5)), int(draw.integers(5_000, 90_000))
    for k in range(1, 8):
        at = begin + k - 1
        yield {
            "cookie": cookie,
            "t_unix_ns": NOON + at * SECOND,
            "t_mono_ns": (host + 1) * 1000 * SECOND + at * SECOND,
            "sample": at,
            "host": f"edge{host}",
            "boot_id": f"boot{host}",
            "netns": None if host else "net:[1]",
            "final": k == 7,
            "state": "ESTAB",
            "algorithm": None if k == 7 else ("cubic", "bbr1")[cookie % 2],
            "remote_addr": f"192.0.{cookie % 20}.7" if cookie % 3 else f"2001:db8:{cookie % 20:x}::1",
            "bytes_acked": 100_000 * k + cookie,
            "data_segs_out": 70 * k,
            "total_retrans": k * (cookie % 4),
            "dsack_dups": k // 3,
            "busy_us": 600_000 * k,
            "rwnd_limited_us": 1_000 * k,
            "srtt_us": least + int(draw.integers(0, 9_000)),
            "min_rtt_us": least,
            "inflight": int(draw.integers(0, 40)),
            "unacked": int(draw.integers(0, 2)),
            "snd_cwnd": 20,
            "delivery_rate_bits_per_sec": int(draw.integers(1, 9_000_000)),
            "delivery_rate_app_limited": k % 4 == 0,
        }


@pytest.fixture(scope="module")
def connection(recorded: Path) -> Iterator[Any]:
    """A connection of Ibis to a Spark of this process, with the table `sockets`."""
    from pyspark.sql import SparkSession

    # Spark's own messages are none of ours.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    session.read.parquet(f"{recorded}/*/*.parquet").createOrReplaceTempView("sockets")
    yield ibis.pyspark.connect(session)
    session.stop()


def test_spark_makes_the_connections_that_duckdb_makes(connection: Any, recorded: Path) -> None:
    ours, theirs = (
        sorted(read([data]).to_pylist(), key=lambda row: (row["boot_id"], row["cookie"]))
        for data in (recorded, Lake(connection))
    )
    assert len(ours) == 180 and any(row["total_retrans"] for row in ours)
    for own, other in zip(ours, theirs, strict=True):
        for name, value in own.items():
            assert other[name] == (pytest.approx(value, rel=1e-6) if isinstance(value, float) else value), name


def test_a_comparison_on_spark_says_the_same(connection: Any, recorded: Path) -> None:
    ours, theirs = fleet.compare(recorded), fleet.compare(Lake(connection))
    assert [one.told for one in theirs.verdicts] == [one.told for one in ours.verdicts]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, connection: Any) -> tuple[Path, Lake]:
    """Recordings of four hosts with logs of nginx, counters and processor times, and the same as tables of the lake."""
    folder = tmp_path_factory.mktemp("served")
    for host, algorithm in enumerate(("cubic", "bbr1") * 2):
        words = {"boot_id": f"boot{host}", "host": f"edge{host}", "algorithm": algorithm}
        ends = [{"remote_addr": f"192.0.{20 * host + k}.7", "remote_port": 5000 + k} for k in range(20)]
        rows = [row_of(at, k, **words, **ends[k]) for at in range(3) for k in range(20)]
        counted(recording(folder / f"edge{host}", rows), host)
        requests = [
            {
                **ends[k],
                "t_unix_ns": NOON + at * SECOND,
                "bytes_sent": 50_000 + k * at,
                "request_time_us": 90_000 + host,
            }
            # The last is of no connection: it came an hour later.
            for k, at in (*((k, at) for k in range(0, 20, 2) for at in (0, 1)), (1, 3600))
        ]
        pq.write_table(pa.Table.from_pylist(requests), folder / f"edge{host}" / "requests-000001.parquet")
    tables = ("sockets", "requests", "counters", "cpu")
    spark = connection._session
    for name in tables:
        spark.read.parquet(f"{folder}/*/{name}-*.parquet").createOrReplaceTempView(f"served_{name}")
    return folder, Lake(connection, **{name: f"served_{name}" for name in tables})


def test_logs_of_nginx_and_what_hosts_count_are_the_same_on_spark(served: tuple[Path, Lake]) -> None:
    folder, lake = served
    ours, theirs = fleet.compare(folder), fleet.compare(lake)
    names = {verdict.metric.name for verdict in ours.verdicts}
    assert {"app_throughput_bits_per_sec", "retrans_segs_pct", "cpu_us_per_gb"} <= names
    assert [one.told for one in theirs.verdicts] == [one.told for one in ours.verdicts]
    told = [
        {(row["boot_id"], row["cookie"]): row["app_throughput_bits_per_sec"] for row in read([data]).to_pylist()}
        for data in served
    ]
    assert sum(value is not None for value in told[0].values()) == 40
    assert told[1] == pytest.approx(told[0])


def test_a_log_in_the_lake_that_cannot_be_matched_is_noted(served: tuple[Path, Lake]) -> None:
    with opened([replace(served[1], requests="served_cpu")]) as made:
        assert [note for note in made.notes if note.startswith("requests: 1 of 1 logs say nothing")]


def test_what_the_lake_refuses_is_one_line_and_lakes_are_asked_alone(connection: Any, recorded: Path) -> None:
    with pytest.raises(RunFolderError, match="nowhere: the lake refused a query"):
        read([Lake(connection, sockets="nowhere")])
    with pytest.raises(UsageError, match="expected folders, or one lake"):
        read([Lake(connection), recorded])


def test_the_units_that_were_drawn_are_those_of_the_lakes_log(connection: Any, recorded: Path) -> None:
    """A log of /20 and /32 without cookies, which the addresses of the lake's sockets are joined with."""
    plain = {"t_unix_ns": NOON - SECOND, "boot_id": "boot1", "cookie": None, "design": "cluster", "period": None}
    units = [("192.0.0.0/20", "a"), ("192.0.16.7/32", "b"), ("2001:db8::/44", "c")]
    log = [
        {**plain, "host_id": "edge1", "unit": unit, "arm": arm, "algorithm": "x", "allocation_pct": 50.0}
        for unit, arm in units
    ]
    schema = {"cookie": pa.uint64(), "period": pa.int64(), "link": pa.string(), "seed": pa.uint64()}
    table = pa.Table.from_pylist([{**row, "link": None, "seed": None} for row in log])
    for name, kind in schema.items():
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(kind))
    (recorded.parent / "log").mkdir(exist_ok=True)
    pq.write_table(table, recorded.parent / "log" / "assignments.parquet")
    session = connection._session
    session.read.parquet(str(recorded.parent / "log")).createOrReplaceTempView("assignments")
    ours, theirs = (
        sorted(
            (row["boot_id"], row["cookie"], row["arm"], row["unit"]) for row in read(data).to_pylist() if row["unit"]
        )
        for data in ([recorded, recorded.parent / "log"], [Lake(connection, assignments="assignments")])
    )
    assert theirs == ours and {row[2:] for row in ours} == {(arm, unit) for unit, arm in units}

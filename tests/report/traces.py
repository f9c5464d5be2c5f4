"""Folders of traces made by hand: numbers that look like connections, for tests and for looking at the page.

python tests/report/traces.py FOLDER writes the pages of traces of 1, 2 and 50 connections.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

RTT_US = 40_000
INTERVAL_NS = 4_000_000
NO_THRESHOLD = 0x7FFFFFFF


def write(
    folder: Path,
    *,
    source: str = "192.0.2.7",
    algorithm: str = "cubic",
    connections: int = 1,
    length_sec: float = 2.0,
    constant: bool = False,
    **about: Any,
) -> Path:
    """A trace, with what `about` says otherwise of it; `constant`: windows and times never change."""
    folder.mkdir(parents=True)
    acks: list[pa.Table] = []
    events: dict[str, list[Any]] = {"t_ns": [], "cookie": [], "event": []}
    rows = []
    for number in range(connections):
        acks.append(_acks(number, length_sec, constant))
        for position, t_ns in enumerate(acks[-1]["t_ns"].to_pylist()[::100]):
            events["t_ns"].append(t_ns)
            events["cookie"].append(7 + number)
            events["event"].append(("retransmit", "recovery", "cwr", "loss")[position % 4])
        rows.append(
            {
                "cookie": 7 + number,
                "source": source,
                "source_port": 40_000 + number,
                "destination": "2001:db8::1" if number % 2 else "192.0.2.1",
                "destination_port": 443,
                "algorithm": algorithm,
                "acks": len(acks[-1]),
            }
        )
    written = {
        "acks": pa.concat_tables(acks or [_acks(0, 0.0, constant)]),
        "events": pa.table(events, schema=_EVENTS),
        "connections": pa.Table.from_pylist(rows, schema=_CONNECTIONS),
    }
    for name, table in written.items():
        pq.write_table(table, folder / f"{name}.parquet")
    told = {
        "schema": 1,
        "began": "2026-05-04T03:02:01.000+00:00",
        "seconds": length_sec,
        "asked": {"connection": None, "port": 443, "address": None, "netns": None},
        "command": "knee trace --port 443",
        "engine_version": "0.1.0",
        "host": {"kernel": "Linux 6.12"},
        "rows": {name: len(table) for name, table in written.items()},
        "lost": 3,
        "gaps": 2,
        "qdisc_drops": [{"netns": None, "device": "eth0", "kind": "tbf", "handle": "8001:", "packets": 6253}],
        "cost": {
            "not_measured": None,
            "programs": [{"tracepoint": "tcp_probe", "runs": 400, "run_time_ns": 100_000, "missed": 4}],
            "writing_cpu_sec": 0.004,
        },
    }
    (folder / "trace.json").write_text(json.dumps(told | about))
    return folder


def _acks(number: int, seconds: float, constant: bool) -> pa.Table:
    """Of one connection: a window in teeth that begins in slow start."""
    rng = np.random.default_rng(number)
    t_ns = np.arange(number * 1_000_000, int(seconds * 1e9), INTERVAL_NS, dtype=np.int64)
    count = len(t_ns)
    tooth_sec = (2 + number % 5) * max(seconds, 1.0) / 10
    phase = (t_ns * 1e-9 / tooth_sec) % 1.0
    cwnd = np.full(count, 40) if constant else np.rint(20 + 60 * phase + number % 7).astype(np.int64)
    srtt = np.full(count, RTT_US) if constant else RTT_US + 20_000 * phase + 900 * rng.random(count)
    columns = {
        "t_ns": t_ns,
        "cookie": np.full(count, 7 + number, np.uint64),
        "snd_cwnd": cwnd,
        "snd_ssthresh": np.where(t_ns * 1e-9 < tooth_sec, NO_THRESHOLD, 20 + number % 7),
        "inflight": np.maximum(cwnd - (0 if constant else rng.integers(0, 5, count)), 0),
        "srtt_us": srtt.astype(np.int64),
        "min_rtt_us": np.full(count, RTT_US),
        "bytes_acked": np.arange(count) * 2896 // (1 + number),
        "total_retrans": np.arange(count) // 100,
    }
    return pa.table(columns)


_EVENTS = pa.schema({"t_ns": pa.int64(), "cookie": pa.uint64(), "event": pa.string()})
_CONNECTIONS = pa.schema(
    {
        "cookie": pa.uint64(),
        "source": pa.string(),
        "source_port": pa.int32(),
        "destination": pa.string(),
        "destination_port": pa.int32(),
        "algorithm": pa.string(),
        "acks": pa.int64(),
    }
)


if __name__ == "__main__":
    from tcpknee.live import trace
    from tcpknee.pages import trace_page

    into = Path(sys.argv[1])
    for count in (1, 2, 50):
        written_to = write(into / f"trace-{count}", connections=count, length_sec=10.0)
        print(trace_page.save(trace.read(written_to), into / f"trace-{count}.html"))

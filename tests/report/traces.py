"""Folders of traces made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SECONDS = 2.0
ROWS = 400


def write(folder: Path, *, source: str = "192.0.2.7", algorithm: str = "cubic", **about: Any) -> Path:
    """A trace of one connection, with what `about` says otherwise of it."""
    folder.mkdir(parents=True)
    t_ns = np.linspace(0, SECONDS * 1e9, ROWS).astype(np.int64)
    cookie = np.full(ROWS, 7, np.uint64)
    acks = {
        "t_ns": t_ns,
        "cookie": cookie,
        "snd_cwnd": 10 + np.arange(ROWS) // 4,
        "snd_ssthresh": np.full(ROWS, 64),
        "inflight": 5 + np.arange(ROWS) // 5,
        "srtt_us": 20_000 + 10 * np.arange(ROWS),
        "min_rtt_us": np.full(ROWS, 20_000),
        "bytes_acked": 1448 * np.arange(ROWS),
        "total_retrans": np.arange(ROWS) // 100,
    }
    events = {"t_ns": t_ns[::100], "cookie": cookie[::100], "event": ["retransmit", "recovery", "cwr", "loss"]}
    connections = {
        "cookie": cookie[:1],
        "source": [source],
        "source_port": [40_000],
        "destination": ["192.0.2.1"],
        "destination_port": [443],
        "algorithm": [algorithm],
        "acks": [ROWS],
    }
    for name, columns in (("acks", acks), ("events", events), ("connections", connections)):
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    told = {
        "schema": 1,
        "began": "2026-05-04T03:02:01.000+00:00",
        "seconds": SECONDS,
        "asked": {"connection": None, "port": 443, "address": None, "netns": None},
        "command": "knee trace --port 443",
        "engine_version": "0.1.0",
        "host": {"kernel": "Linux 6.12"},
        "rows": {"acks": ROWS, "events": 4, "connections": 1},
        "lost": 3,
        "gaps": 2,
        "cost": {
            "not_measured": None,
            "programs": [{"tracepoint": "tcp_probe", "runs": ROWS, "run_time_ns": 250 * ROWS}],
            "writing_cpu_sec": 0.004,
        },
    }
    (folder / "trace.json").write_text(json.dumps(told | about))
    return folder

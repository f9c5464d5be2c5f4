"""Run folders made of numbers that look like congestion control, for tests and for looking at reports.

The columns, units and docs are read from the tables' declarations, so that a report is tested against the
tables as they are.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

RECORD = Path(__file__).resolve().parents[2] / "crates" / "tables" / "src"
COLUMN = re.compile(r'^\s{8}(\w+): ([^,]+), "([^"]*)", "([^"]*)", "([^"]*)";', re.MULTILINE)
#: A table that stands in another one's file.
IN_FILE = {"stacks": "host_costs"}
TABLES = ("flows", "samples", "queue", "events", "cpu_time", "host_costs")
TYPES = {"i32": pa.int32(), "i64": pa.int64(), "f64": pa.float64(), "bool": pa.bool_(), "String": pa.string()}

RATE_BITS_PER_SEC = 50e6
RTT_US = 100_000.0
MSS_BITS = 1448 * 8
#: goodput share, window swing (share of the BDP), standing queue (ms), what limits it
CHARACTER: dict[str, tuple[float, float, float, str]] = {
    "cubic": (0.55, 0.4, 38.0, "cwnd"),
    "bbr1": (0.93, 0.25, 12.0, "pacing"),
    "reno": (0.35, 0.5, 30.0, "cwnd"),
}


@cache
def schema(table: str) -> pa.Schema:
    text = (RECORD / f"{IN_FILE.get(table, table)}.rs").read_text(encoding="utf-8")
    text = text[text.index(f'    "{table}" ') :].partition("\n    }\n")[0]
    fields = []
    for name, kind, unit, source, doc in COLUMN.findall(text):
        inner = re.sub(r"Option<(\w+)>", r"\1", kind.strip())
        metadata = {"unit": unit, "doc": doc, "source": source}
        fields.append(pa.field(name, TYPES.get(inner, pa.string()), metadata=metadata))
    assert len(fields) >= 5, table
    return pa.schema(fields)


def table_of(name: str, columns: Mapping[str, Any], rows: int) -> pa.Table:
    """A table with every declared column; those not given are zero, or null where they are text."""
    declared = schema(name)
    arrays = []
    for field in declared:
        given = columns.get(field.name)
        if given is None:
            given = [""] * rows if pa.types.is_string(field.type) else np.zeros(rows)
            arrays.append(pa.array(given).cast(field.type))
        else:
            arrays.append(pa.array(given, from_pandas=True).cast(field.type))
    return pa.Table.from_arrays(arrays, schema=declared)


def write_run(
    folder: Path,
    *,
    algorithms: Sequence[str] = ("cubic", "bbr1"),
    axes: Mapping[str, Sequence[str]] | None = None,
    flows: int = 1,
    shared: bool = False,
    reps: int = 5,
    seconds: float = 20.0,
    interval_ms: float = 10.0,
    workload: str = "bulk",
    title: str = "Trans-Pacific transfer, 1.5 % loss",
    sampled: bool = True,
    constant: bool = False,
    processors: int = 0,
    engine: str = "sim",
) -> Path:
    """Writes `run.json` and the tables; `shared`: all algorithms in one cell, else one cell each; `constant`:
    windows, rates, times and the queue never change; `processors`: of the sender, whose work `cpu` and the tables of
    costs have."""
    folder.mkdir(parents=True, exist_ok=True)
    axes = dict(axes or {})
    grid = list(itertools.product(*axes.values()))
    variants: list[Sequence[str]] = [tuple(algorithms)] if shared else [(name,) for name in algorithms]
    expects = ["bbr1.goodput / cubic.goodput >= 1.2"] if {"bbr1", "cubic"} <= set(algorithms) else []
    tables = TABLES if engine == "sim" else (*TABLES, "stacks", "programs")
    cells, parts = [], {name: [] for name in tables}
    for index, (point, variant) in enumerate(itertools.product(grid, variants)):
        labels = list(zip(axes, point, strict=True))
        if not shared:
            labels.append(("flow.0.algorithm", variant[0]))
        groups = [{"group": g, "name": name, "algorithm": name, "workload": workload, "count": flows}
                  for g, name in enumerate(variant)]  # fmt: skip
        cells.append(
            {
                "index": index,
                "hash": str(index),
                "axes": labels,
                "describe": [
                    ("path.rate", "50 Mbit/s", "rate of the bottleneck"),
                    ("bdp", "625,000 B = 417 packets", "rate x base RTT"),
                    ("buffer", "625,000 B = 417 packets = 1.00 x BDP", "what the queue holds"),
                    *((f"flow.{group['group']}.rtt", "100ms", "base round-trip time") for group in groups),
                ],
                "duration_ns": int(seconds * 1e9),
                "warmup_ns": int(seconds * 1e9 / 6),
                "rate_bits_per_sec": int(RATE_BITS_PER_SEC),
                "rtt_ns": int(RTT_US * 1000),
                "bdp_bytes": 625_000,
                "buffer_bytes": 625_000,
                "buffer_pkts": None,
                "flows": groups,
            }
        )
        hardship = 1 - 0.12 * sum(values.index(at) for values, at in zip(axes.values(), point, strict=True))
        for rep in range(reps):
            _cell(
                parts, index, rep, variant, flows, seconds, interval_ms, workload, max(hardship, 0.1), sampled, constant
            )
            _hosts(parts, index, rep, seconds, processors, engine)
    for name, found in parts.items():
        table = pa.concat_tables(found) if found else table_of(name, {}, 0)
        pq.write_table(table, folder / f"{name}.parquet", compression="zstd")
    pq.write_table(pa.table({"cell": [c["index"] for c in cells]}), folder / "runs.parquet")
    meta = {
        "schema": 1,
        "title": title,
        "scenario": f'title = "{title}"\nduration = "{seconds}s"\n',
        "scenario_sha256": "0",
        "file": "gallery/demo.toml",
        "seed": 1,
        "repeat": reps,
        "engine": engine,
        "versions": {"tcpknee": "0.1.0", "python": "3.11"},
        "host": {"kernel": "Linux 6.1.0", "machine": "x86_64", "cpu": "Some CPU", "cpus": 2},
        "command": "knee run gallery/demo.toml --out runs/demo",
        "engine_version": "0.1.0",
        "status": "complete",
        "expects": [{"assert": assertion, "line": 30} for assertion in expects],
        "sessions": [{"started": "2026-05-04T03:02:01+00:00"}],
        "published": [
            {"value": value, "figure": "98.20Mbit/s", "source": "article D, 10 Gbit/s VMs", "line": 33}
            for value in (["cubic.goodput"] if "cubic" in algorithms and not axes else [])
        ],
        "cells": cells,
        "repetitions": [
            {
                "cell": cell["index"],
                "rep": rep,
                "measured": {"instruments": {"seconds": seconds * 5 / 6, "stacks_hz": 499}},
                "warnings": [],
                "failures": [],
            }
            for cell in cells
            for rep in range(reps if engine == "kernel" else 0)
        ],
    }
    (folder / "run.json").write_text(json.dumps(meta), encoding="utf-8")
    return folder


def _cell(
    parts: dict[str, list[pa.Table]], cell: int, rep: int, variant: Sequence[str], flows: int,
    seconds: float, interval_ms: float, workload: str, hardship: float, sampled: bool, constant: bool,
) -> None:  # fmt: skip
    rng = np.random.default_rng((cell, rep, flows))
    ids = [(flow, name) for flow, name in enumerate(name for name in variant for _ in range(flows))]
    rows: dict[str, list[Any]] = {field.name: [] for field in schema("flows")}
    samples: list[dict[str, np.ndarray]] = []
    queue_ms: np.ndarray | None = None
    for flow, name in ids:
        share, swing, standing_ms, limit = CHARACTER.get(name, (0.5, 0.3, 20.0, "cwnd"))
        goodput = RATE_BITS_PER_SEC * share * hardship / len(ids) * rng.normal(1, 0.05)
        start_ns = int(flow * min(0.1, 0.5 * seconds / len(ids)) * 1e9)
        done = workload in ("transfer", "web") and rng.random() < 0.97
        end_ns = int(start_ns + (0.4 + 0.4 * rng.random()) * (seconds * 1e9 - start_ns)) if done else int(seconds * 1e9)
        t_ns = np.arange(start_ns, end_ns, int(interval_ms * 1e6), dtype=np.int64)
        t = t_ns * 1e-9
        phase = (t / rng.uniform(2.5, 4.0)) % 1.0
        saw = np.cbrt(phase * 2 - 1) * 0.5 + 0.5 if name != "bbr1" else 0.5 + 0.5 * np.sin(t * 7 + flow)
        bdp = goodput * RTT_US * 1e-6 / MSS_BITS
        cwnd = np.maximum(np.rint(bdp * (1 + swing * saw) * rng.normal(1, 0.02, len(t))), 2).astype(np.int64)
        spikes = rng.random(len(t)) < 0.001
        waiting = standing_ms * saw + 2 * rng.random(len(t)) + 25 * spikes
        srtt = (RTT_US + waiting * 1e3).astype(np.int64)
        if constant:
            cwnd, waiting, srtt = cwnd * 0 + 40, waiting * 0 + 10, srtt * 0 + 100_000
        if sampled:
            samples.append(
                {
                    "cell": np.full(len(t), cell), "rep": np.full(len(t), rep), "t_ns": t_ns,
                    "flow": np.full(len(t), flow), "snd_cwnd": cwnd,
                    "inflight": np.maximum(cwnd - rng.integers(0, 1 if constant else 4, len(t)), 0),
                    "pacing_rate_bits_per_sec": np.full(len(t), 50_000_000) if constant
                    else (goodput * (1 + 0.25 * (rng.random(len(t)) < 0.1))).astype(int),
                    "delivery_rate_bits_per_sec": np.where(
                        t_ns - start_ns < 1e8, 0, goodput * rng.normal(1, 0.08, len(t))
                    ).astype(np.int64),
                    "srtt_us": np.where(t_ns - start_ns < 1e8, 0, srtt),
                }
            )  # fmt: skip
            queue_ms = waiting if queue_ms is None or len(queue_ms) < len(waiting) else queue_ms
        begin_ns = max(start_ns, int(seconds * 1e9 / 6))
        life_us = (end_ns - (begin_ns if begin_ns < end_ns else start_ns)) / 1e3
        spent = {"cwnd": 0.1, "rwnd": 0.02, "sndbuf": 0.05, "pacing": 0.08, "app": 0.0, limit: 0.7}
        latency = RTT_US * 1.1 + standing_ms * 1e3
        asks = workload == "request-response"
        values: dict[str, Any] = {
            "cell": cell, "rep": rep, "flow": flow, "group": variant.index(name), "name": name, "algorithm": name,
            "workload": workload, "start_ns": start_ns,
            "end_ns": end_ns if done else None,
            "completion_us": int(rng.lognormal(math.log(400_000 / share), 0.3)) if done else None,
            "transfer_bytes": 5_000 * 10 ** (flow % 4) if workload in ("transfer", "web") else None,
            "slowdown": float(rng.lognormal(1.0, 0.3)) if done else None,
            "goodput_bits_per_sec": goodput, "throughput_bits_per_sec": goodput * 1.02,
            "data_segs_out": 10_000, "total_retrans": int(150 * rng.normal(1, 0.1)), "retransmit_pct": 1.5,
            "srtt_us_mean": float(srtt.mean()), "srtt_us_p50": float(np.median(srtt)),
            "srtt_us_p95": float(np.quantile(srtt, 0.95)), "srtt_us_p99": float(np.quantile(srtt, 0.99)),
            "min_rtt_us": int(RTT_US),
            **{f"queue_delay_us_{p}": float(np.quantile(waiting, q) * 1e3)
               for p, q in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))},
            "queue_delay_us_mean": float(waiting.mean() * 1e3),
            "snd_cwnd_mean": float(cwnd.mean()), "inflight_mean": float(cwnd.mean()),
            **{f"{key}_limited_us": int(part * life_us) for key, part in spent.items()},
            "requests": 833 if asks else None, "requests_per_sec": 50.0 if asks else None,
            **{f"latency_us_{p}": latency * f * rng.normal(1, 0.03) if asks else None
               for p, f in (("p50", 1.0), ("p95", 1.4), ("p99", 2.2))},
        }  # fmt: skip
        for field in rows:
            rows[field].append(values.get(field, 0))
    parts["flows"].append(table_of("flows", rows, len(ids)))
    if samples:
        joined = {name: np.concatenate([one[name] for one in samples]) for name in samples[0]}
        parts["samples"].append(table_of("samples", joined, len(joined["t_ns"])))
    if sampled and queue_ms is not None:
        t_ns = (np.arange(1, len(queue_ms) + 1) * interval_ms * 1e6).astype(np.int64)
        queued = (queue_ms * 1e-3 * RATE_BITS_PER_SEC / 8).astype(np.int64)
        parts["queue"].append(
            table_of(
                "queue",
                {
                    "cell": np.full(len(t_ns), cell), "rep": np.full(len(t_ns), rep), "t_ns": t_ns,
                    "queue_bytes": queued, "queue_bytes_max": queued + 3000, "queue_pkts": queued // 1500,
                    "sent_bytes": (t_ns * 1e-9 * RATE_BITS_PER_SEC * 0.8 / 8).astype(np.int64),
                    "offered_bytes": (t_ns * 1e-9 * RATE_BITS_PER_SEC / 8).astype(np.int64),
                },
                len(t_ns),
            )
        )  # fmt: skip


def _hosts(parts: dict[str, list[pa.Table]], cell: int, rep: int, seconds: float, processors: int, engine: str) -> None:
    """Processors that are busy by turns, the first most; costs of 1, 2, … ns for each byte of the link's rate."""
    if not processors:
        return
    rows: list[dict[str, Any]] = []
    for number in range(processors):
        for t_us in range(100_000, int(seconds * 1e6) + 1, 100_000):
            part = t_us // (number + 2)
            spent = {"run_us": part, "user_us": part // 2, "system_us": part // 4, "softirq_us": part - 3 * part // 4}
            name = f"sender/cpu{number}" if engine == "sim" else f"cpu{number}"
            rows.append({"t_ns": t_us * 1000, "name": name, "steal_us": t_us // 10, **spent})
    if engine == "kernel":
        for name in ("sender/main", "link/main", "link/data"):
            rows += [{"t_ns": int(t * 1e9), "name": name, "run_us": int(t * 2e5)} for t in (0.1, seconds)]
    parts["cpu_time"].append(_of_rows("cpu_time", cell, rep, rows))
    if engine == "sim":
        classes = ("data_copy", "tcp_ip", "netdev", "skb", "scheduler")
        costs = [
            {
                "host": "sender",
                "counter": f"class_{name}_ns",
                "value": int(k * RATE_BITS_PER_SEC / 8 * seconds),
                "unit": "ns",
            }
            for k, name in enumerate(classes, 1)
        ]
        parts["host_costs"].append(_of_rows("host_costs", cell, rep, costs))
    else:
        stacks = [
            ("sender;tcp_ack_[k]", "TCP/IP", 60), ("sender;syscall_[k]", "entry", 20), ("other;main", "user", 20),
            ("swapper/1;handle_softirqs_[k];tcp_ack_[k]", "TCP/IP", 40),
            ("swapper/1;schedule_idle_[k]", "scheduler", 9),
            ("link;loop", "user", 500), ("data;tun_[k]", "netdev", 700),
        ]  # fmt: skip
        found = [dict(zip(("stack", "class", "samples"), one, strict=True)) for one in stacks]
        parts["stacks"].append(_of_rows("stacks", cell, rep, found))


def _of_rows(table: str, cell: int, rep: int, rows: list[dict[str, Any]]) -> pa.Table:
    declared = schema(table)
    return pa.Table.from_pylist([{"cell": cell, "rep": rep, **row} for row in rows], schema=declared)


CASES: dict[str, dict[str, Any]] = {
    "one": {"algorithms": ("cubic",), "reps": 1},
    "two": {},
    "many": {"algorithms": ("cubic", "bbr1"), "flows": 25, "shared": True, "reps": 2, "seconds": 60.0},
    "matrix": {"axes": {"path.rtt": ("20ms", "100ms", "200ms"), "path.loss": ("0%", "0.5%", "1.5%")}},
    "empty": {"sampled": False, "reps": 1},
    "transfer": {"workload": "transfer", "flows": 4},
    "web": {"workload": "web", "flows": 12},
    "asked": {
        "workload": "request-response",
        "axes": {"flow.0.connections": ("1", "8", "50"), "flow.0.client_threads": ("1", "4")},
        "reps": 3,
    },
    "request": {"workload": "request-response", "algorithms": ("cubic", "bbr1", "reno")},
    "shared": {"shared": True, "seconds": 30.0, "flows": 2},
    "hosts": {"processors": 3, "reps": 2},
    "measured": {"processors": 20, "reps": 2, "engine": "kernel", "axes": {"path.rtt": ("20ms", "100ms")}},
}


if __name__ == "__main__":
    from tcpknee import pages

    into = Path(sys.argv[1])
    for case in sys.argv[2:] or CASES:
        run = write_run(into / case, **CASES[case])
        print(pages.write(run, into / f"{case}.html"))

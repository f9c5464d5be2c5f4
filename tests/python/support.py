"""Tables and scenarios made by hand, and the command line called in this process or in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tcpknee import _core
from tcpknee.datasets.table import Table
from tcpknee.runs.tables import of_engine

SMALL = """\
title = "Small"
duration = "2s"
warmup = "500ms"
repeat = 3
seed = 7
[path]
rate = "10Mbit/s"
rtt = "20ms"
loss = "1%"
[[flow]]
algorithm = ["cubic", "bbr1"]
"""
"""Two cells of three repetitions, over in a moment."""

SUITE = """
[suite]
name   = "mine"
title  = "Two rows"
source = "a test"
date   = "2026-11-27"

[[row]]
name     = "one"
question = "Does it carry data?"
measure  = "new.goodput"
better   = "more"
limits   = ["new.goodput >= 1Mbit/s"]
why      = "A tenth of the link."
scenario = '''
duration = "1s"
repeat   = 2
[path]
rate = "10Mbit/s"
rtt  = "10ms"
[[flow]]
name      = "old"
algorithm = "BASE"
[[flow]]
name      = "new"
algorithm = "NEW"
'''

[[row.published]]
value     = "new.goodput"
figure    = "9Mbit/s"
tolerance = "10%"
source    = "a test"

[[row]]
name     = "two"
question = "Is it explained?"
prose    = "A machine reads no text."
"""
"""A suite of one row that is run, and one that is not."""

TYPES = {"i32": pa.int32(), "i64": pa.int64(), "f64": pa.float64(), "bool": pa.bool_()}


def flows(rows: Iterable[Mapping[str, Any]]) -> Table:
    """A `flows` table; columns that a row leaves out are null, or 0 where the statistics need a number."""
    names = [column["name"] for column in _core.tables("run")["flows"]]
    texts = {"name", "algorithm", "workload"}
    optional = {"end_ns", "completion_us", "transfer_bytes", "slowdown", "requests", "requests_per_sec"}
    optional |= {"min_rtt_us", "cpu_limited_us"}

    def default(name: str) -> Any:
        if name in optional or name.startswith(("srtt_", "queue_delay_", "latency_")):
            return None
        return "" if name in texts else 0

    full = [{name: row.get(name, default(name)) for name in names} for row in rows]
    types = {name: pa.string() if name in texts else pa.float64() for name in names}
    types |= {name: pa.int32() for name in ("cell", "rep", "flow", "group")}
    return Table(pa.Table.from_pylist(full, schema=pa.schema(list(types.items()))))


def flow(cell: int, rep: int, goodput: float, algorithm: str = "cubic", group: int = 0, **more: Any) -> dict[str, Any]:
    """A row of `flows`."""
    return {
        "cell": cell,
        "rep": rep,
        "group": group,
        "name": algorithm,
        "algorithm": algorithm,
        "workload": "bulk",
        "goodput_bits_per_sec": goodput,
        **more,
    }


def cell(index: int, axes: Sequence[tuple[str, str]], *algorithms: str, **more: Any) -> dict[str, Any]:
    """A cell as `_core` describes it."""
    return {
        "index": index,
        "hash": str(index),
        "axes": list(axes),
        "describe": [],
        "duration_ns": 10_000_000_000,
        "warmup_ns": 1_000_000_000,
        "rate_bits_per_sec": 100_000_000,
        "rtt_ns": 20_000_000,
        "bdp_bytes": 250_000,
        "buffer_bytes": 250_000,
        "buffer_pkts": None,
        "flows": [
            {"group": group, "name": name, "algorithm": name, "workload": "bulk", "count": 1}
            for group, name in enumerate(algorithms)
        ],
        **more,
    }


def compared(values: Mapping[str, Sequence[float]]) -> tuple[Table, list[dict[str, Any]]]:
    """A comparison: goodput of each algorithm by repetition, each algorithm in a cell of its own."""
    rows = [
        flow(index, rep, goodput, algorithm)
        for index, (algorithm, series) in enumerate(values.items())
        for rep, goodput in enumerate(series)
    ]
    cells = [cell(i, [("flow.0.algorithm", name)], name) for i, name in enumerate(values)]
    return flows(rows), cells


@dataclass
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str


def spawn(*words: str | Path, cwd: Path) -> subprocess.Popen[str]:
    """`knee` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "tcpknee", *map(str, words)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "100"},
    )


def knee(*words: str | Path, cwd: Path) -> Ended:
    """`knee` in a process of its own, to its end."""
    process = spawn(*words, cwd=cwd)
    out, err = process.communicate(timeout=300)
    return Ended(process.returncode, out, err)


def tables_of(folder: Path) -> dict[str, bytes]:
    """The bytes of a simulated run's tables."""
    return {name: (folder / f"{name}.parquet").read_bytes() for name in of_engine("sim")}


def run_by_one_process(scenario: str, folder: Path) -> None:
    """A run of that text, in the folder `run` of this new one, which nothing interrupts."""
    folder.mkdir()
    (folder / "scenario.toml").write_text(scenario)
    ended = knee("run", "scenario.toml", "--out", "run", "-q", cwd=folder)
    assert ended.code == 0, ended.err


def refused(ended: Ended, *parts: str) -> None:
    """Exit 2, nothing on stdout, one paragraph on stderr that says these things."""
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("\n") == 1 and ended.err.endswith("\n") and "Traceback" not in ended.err
    for part in parts:
        assert part in ended.err


def keep_kernel(cache: Path, name: str) -> None:
    """Writes a guest kernel that was built, but for its program, below what $XDG_CACHE_HOME names."""
    folder = cache / "tcpknee/kernels" / name
    folder.mkdir(parents=True)
    names = ("name", "origin", "digest", "config", "compiler", "built")
    facts = {"release": "6.12.1", "schema": 1, "is_repeatable": True, "algorithms": []}
    (folder / "kernel.json").write_text(json.dumps(facts | dict.fromkeys(names, name)))

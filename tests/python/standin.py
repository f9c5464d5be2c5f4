"""Stands in for a lab's worker: `python standin.py MODE < REQUEST`. It simulates what the request asks for and gives it
out as a kernel would, without the figures that a kernel does not tell. MODE says what else it does."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from tcpknee import _core
from tcpknee.runs import folder, programs, tables

UNTOLD = (
    "cwnd_limited_us",
    "pacing_limited_us",
    "rto_count",
    "recovery_count",
    "undo_count",
    "tlp_count",
)
"""Columns of `flows` that are null on a kernel."""

TYPES = {
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "text": pa.string(),
    "bytes": pa.binary(),
}


def say(**said: Any) -> None:
    print(json.dumps(said), flush=True)


def rows_of(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    """A table of the kernel engine."""
    schema = pa.schema((column["name"], TYPES[column["type"]]) for column in _core.tables("run")[name])
    full = [{column: row.get(column) for column in schema.names} for row in rows]
    return pa.Table.from_pylist(full, schema=schema)


def measured(request: dict[str, Any], exit_code: int) -> tuple[dict[str, pa.Table], list[str]]:
    """The tables of a lab, and what failed in it."""
    cell, rep = request["cell"], request["rep"]
    output = _core.parse(request["scenario"], request["file"], request["files"]).run_cell(cell, rep)
    found = tables.of_simulator(output)
    for name in UNTOLD:
        at = found["flows"].schema.get_field_index(name)
        nulls = pa.nulls(found["flows"].num_rows, pa.int64())
        found["flows"] = found["flows"].set_column(at, found["flows"].schema.field(name), nulls)
    link = {"cell": cell, "rep": rep, "direction": "data", "backend": "user", "kept_up": True}
    found["links"] = rows_of("links", [link])
    found |= {name: rows_of(name, []) for name in ("host_costs", "stacks", "packets")}
    found["cpu_time"] = rows_of("cpu_time", [{"cell": cell, "rep": rep, "t_ns": 0, "name": "cpu0", "run_us": 0}])
    here = Path(request["output"])
    here.mkdir(parents=True, exist_ok=True)
    name = f"c{cell:06d}-r{rep:04d}-client.0.txt"
    (here / name).write_text("Summary:\n  throughput summary: 1000.00 requests per second\nlast words\n")
    client = {"cell": cell, "rep": rep, "group": 0, "role": "client", "command": "redis-benchmark", "start_ns": 0}
    rows = [{**client, "exit_code": exit_code, "output": name}]
    found["programs"], failures = programs.read(rows_of("programs", rows), here)
    return found, failures


def main(mode: str) -> Iterator[int]:
    request = json.load(sys.stdin)
    if log := os.environ.get("STANDIN_LOG"):
        with Path(log).open("a") as file:
            file.write(f"{os.getpid()} {request['cell']} {request['rep']} {json.dumps(request['algorithms'])}\n")
    say(t_ns=1_000_000_000)
    if mode == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if mode == "refused":
        say(error="KernelUnsupported", message="no such thing here; try another")
        yield 1
    if mode == "broken":
        print("Traceback: it fell over", file=sys.stderr)
        yield 3
    if mode == "babbling":
        print("hello", flush=True)
    if mode == "hanging" and (request["cell"], request["rep"]) == (0, 1):
        time.sleep(600)
    found, failures = measured(request, 3 if mode == "failing" and request["rep"] == 1 else 0)
    doubtful = mode == "doubtful" and request["cell"] == 1
    note = {
        "data_packets": 7,
        "lab": {"kernel": "6.18", "mtu": 1500 + request["cell"]},
        "warnings": ["the link reached 4.10 of 10 Gbit/s"] if doubtful else [],
        "failures": failures,
    }
    with pa.PythonFile(os.fdopen(request["part"], "wb"), mode="w") as sink:
        folder.write_streams(sink, tables.with_note(found, note))
    say(done=True)
    yield 0


if __name__ == "__main__":
    sys.exit(next(main(sys.argv[1])))

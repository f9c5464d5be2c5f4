"""The tables of a run as pyarrow sees them, and the `runs` table, which the front fills itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

FROM_ENGINE = ("flows", "samples", "queue", "events")
"""Tables that an engine fills, in the order in which parts hold them."""

NAMES = ("runs", *FROM_ENGINE)
"""Every table of a run."""

_RUNS: tuple[tuple[str, pa.DataType, str, str], ...] = (
    ("cell", pa.int32(), "", "cell of the matrix"),
    ("rep", pa.int32(), "", "repetition, from 0"),
    ("title", pa.string(), "", "title of the scenario"),
    ("claim", pa.string(), "", "published claim that the scenario reproduces; null: none"),
    ("scenario_sha256", pa.string(), "", "SHA-256 of the scenario's text"),
    ("seed", pa.uint64(), "", "seed of the scenario; with the repetition it settles every random draw"),
    ("engine", pa.string(), "", "what ran the cell"),
    ("engine_version", pa.string(), "", "version of kneepoint"),
    ("axes", pa.string(), "", "what tells this cell from the others, as a JSON object"),
    ("algorithms", pa.string(), "", "algorithms of the cell's flows with their counts, as in cubic:1,bbr1:2"),
    ("duration_ns", pa.int64(), "ns", "length of the run"),
    ("warmup_ns", pa.int64(), "ns", "left out of steady-state metrics"),
    ("rate_bits_per_sec", pa.int64(), "bit/s", "rate of the bottleneck; null: unlimited"),
    ("rtt_ns", pa.int64(), "ns", "base round-trip time of the path"),
    ("bdp_bytes", pa.int64(), "bytes", "rate x base RTT, rounded down; null: unlimited rate"),
    ("buffer_bytes", pa.int64(), "bytes", "bytes the bottleneck's queue holds; null: not limited in bytes"),
    ("buffer_pkts", pa.int64(), "packets", "packets the bottleneck's queue holds; null: not limited in packets"),
    ("data_packets", pa.int64(), "packets", "data packets that entered the path: the work done"),
)


def as_table(found: Any) -> pa.Table:
    """A pyarrow table over the engine's memory, without a copy."""
    if hasattr(found, "__arrow_c_stream__"):
        return pa.table(found)
    return pa.Table.from_batches([pa.record_batch(found)])


def of_output(output: Any) -> dict[str, pa.Table]:
    """The four tables of one repetition; `data_packets` rides in the schema of `flows`."""
    found = {name: as_table(getattr(output, name)) for name in FROM_ENGINE}
    count = {b"data_packets": str(output.data_packets).encode()}
    found["flows"] = found["flows"].replace_schema_metadata({**(found["flows"].schema.metadata or {}), **count})
    return found


def take_data_packets(flows: pa.Table) -> tuple[pa.Table, int]:
    """The table without the note of `of_output`, and the note."""
    metadata = dict(flows.schema.metadata or {})
    count = int(metadata.pop(b"data_packets", b"0"))
    return flows.replace_schema_metadata(metadata or None), count


def runs_schema() -> pa.Schema:
    """Columns of `runs` with their unit, doc and source."""
    return pa.schema(
        pa.field(name, type_, metadata={"unit": unit, "doc": doc, "source": "kneepoint"}) for name, type_, unit, doc in _RUNS
    )


def runs_columns() -> list[dict[str, str]]:
    """Columns of `runs` in the form of `_core.tables()`."""
    return [{"name": n, "unit": u, "doc": d, "source": "kneepoint", "type": str(t)} for n, t, u, d in _RUNS]


def runs_table(run: Mapping[str, Any], done: Sequence[tuple[tuple[int, int], int]]) -> pa.Table:
    """One row per repetition done: ((cell, rep), data packets), in the order given."""
    cells = {int(cell["index"]): cell for cell in run["cells"]}
    same = {name: run[name] for name in ("title", "claim", "scenario_sha256", "seed", "engine", "engine_version")}
    constant = {
        index: {
            **same,
            "axes": json.dumps(dict(cell["axes"]), ensure_ascii=False),
            "algorithms": ",".join(f"{flow['algorithm']}:{flow['count']}" for flow in cell["flows"]),
            **{name: cell.get(name) for name, _, _, _ in _RUNS if name.endswith(("_ns", "_sec", "_bytes", "_pkts"))},
        }
        for index, cell in cells.items()
    }
    rows = [{"cell": cell, "rep": rep, **constant[cell], "data_packets": count} for (cell, rep), count in done]
    return pa.Table.from_pylist(rows, schema=runs_schema())

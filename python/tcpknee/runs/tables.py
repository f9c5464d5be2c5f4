"""The tables of a run as pyarrow sees them, and the `runs` table, which the front fills itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tcpknee import _core
from tcpknee.datasets import columns
from tcpknee.datasets.manifest import OF_EVERY_SAMPLE

from . import manifest

_OF_LAB = ("flows", "samples", "queue", "events", "cpu_time", "links", "programs", "host_costs", "stacks", "packets")
FROM_ENGINE: dict[str, tuple[str, ...]] = {
    "sim": ("flows", "samples", "queue", "events", "cpu_time", "host_costs"),
    "kernel": _OF_LAB,
    "guest": _OF_LAB,
    "hosts": _OF_LAB,
}
"""Tables that each engine fills, in the order in which parts hold them."""

NAMES = ("runs", *dict.fromkeys(name for names in FROM_ENGINE.values() for name in names))
"""Every table that a run may have."""

PARTS = "parts"
"""Folder of a run that holds its finished repetitions, as parts."""

_NOTE = b"repetition"
"""Key of the schema of `flows` under which a part carries what is no table."""


def of_engine(engine: str) -> tuple[str, ...]:
    """Tables of a run by that engine."""
    return ("runs", *FROM_ENGINE[engine])


def as_table(found: Any) -> pa.Table:
    """A pyarrow table over the engine's memory, without a copy. (`pa.table` would import pandas, where that is.)"""
    return pa.RecordBatchReader.from_stream(found).read_all()


def of_simulator(output: Any) -> dict[str, pa.Table]:
    """The tables of one repetition, `_core.Output`, with its note."""
    found = {name: as_table(getattr(output, name)) for name in FROM_ENGINE["sim"]}
    return with_note(found, {"data_packets": output.data_packets})


def of_lab(output: Any, kept: Sequence[str] | None) -> dict[str, pa.Table]:
    """The tables of one repetition, `_core.LabOutput`; the kernel's further columns stand beside those of `samples`, of
    which `kept` are kept; None: all."""
    found = {name: as_table(getattr(output, name)) for name in FROM_ENGINE["kernel"]}
    further = as_table(output.tcp_info)
    for field in further.schema:
        found["samples"] = found["samples"].append_column(field, further[field.name])
    if kept is not None:
        chosen = (*OF_EVERY_SAMPLE, *kept)
        samples = found["samples"].select([name for name in found["samples"].column_names if name in chosen])
        found["samples"] = samples if kept else samples.slice(0, 0)
    return found


def with_note(found: dict[str, pa.Table], note: Mapping[str, Any]) -> dict[str, pa.Table]:
    """The tables with a note that rides in the schema of `flows`: `data_packets`, and of the kernel engine `lab`,
    `warnings` and `failures` (see `manifest.repetitions`)."""
    metadata = {**(found["flows"].schema.metadata or {}), _NOTE: json.dumps(note, ensure_ascii=False).encode()}
    return {**found, "flows": found["flows"].replace_schema_metadata(metadata)}


def take_note(flows: pa.Table) -> tuple[pa.Table, dict[str, Any]]:
    """The table without its note, and the note."""
    metadata = dict(flows.schema.metadata or {})
    note = json.loads(metadata.pop(_NOTE, b'{"data_packets": 0}'))
    return flows.replace_schema_metadata(metadata or None), note


def as_kept(flows: pa.Table, metadata: Mapping[bytes, bytes]) -> pa.Table:
    """The table of a part with the note that the metadata of its file has. Raises ValueError where that is none."""
    note = json.loads(metadata.get(_NOTE, b"{}"))
    return with_note({"flows": flows}, note)["flows"]


def runs_schema() -> pa.Schema:
    """Columns of `runs` with their unit, doc and source."""
    return columns.schema(_core.tables("run")["runs"])


def runs_table(run: Mapping[str, Any], done: Mapping[tuple[int, int], Mapping[str, Any]]) -> pa.Table:
    """One row per repetition done, in the order given: (cell, rep) and its note."""
    cells = {int(cell["index"]): cell for cell in run["cells"]}
    names = runs_schema().names
    same = {name: run[name] for name in ("title", "claim", "scenario_sha256", "engine", "engine_version")}
    constant = {
        index: {
            **same,
            "seed": manifest.seed_of(run, cell),
            "axes": json.dumps(dict(cell["axes"]), ensure_ascii=False),
            "algorithms": ",".join(f"{flow['algorithm']}:{flow['count']}" for flow in cell["flows"]),
            **{name: cell.get(name) for name in names if name.endswith(("_ns", "_sec", "_bytes", "_pkts"))},
        }
        for index, cell in cells.items()
    }
    rows = [
        {"cell": cell, "rep": rep, **constant[cell], "data_packets": note["data_packets"]}
        for (cell, rep), note in done.items()
    ]
    # Of JSON, as what makes arrays of Python's objects would import pandas, where that is.
    from pyarrow import json as arrow_json

    schema = runs_schema()
    lines = pa.py_buffer("".join(f"{json.dumps(row)}\n" for row in rows).encode())
    options = arrow_json.ParseOptions(explicit_schema=schema.remove_metadata())
    alone = arrow_json.ReadOptions(use_threads=False)
    read = arrow_json.read_json(pa.BufferReader(lines), read_options=alone, parse_options=options)
    return pa.Table.from_arrays(read.columns, schema=schema)

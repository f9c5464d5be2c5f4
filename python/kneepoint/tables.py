"""The tables of a run as pyarrow sees them, and the `runs` table, which the front fills itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from . import columns

FROM_ENGINE = ("flows", "samples", "queue", "events")
"""Tables that an engine fills, in the order in which parts hold them."""

NAMES = ("runs", *FROM_ENGINE)
"""Every table of a run."""


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
        pa.field(
            column["name"],
            pa.type_for_alias(column["type"]),
            metadata={key: column[key] for key in ("unit", "doc", "source")},
        )
        for column in columns.of_runs()
    )


def runs_table(run: Mapping[str, Any], done: Sequence[tuple[tuple[int, int], int]]) -> pa.Table:
    """One row per repetition done: ((cell, rep), data packets), in the order given."""
    cells = {int(cell["index"]): cell for cell in run["cells"]}
    same = {name: run[name] for name in ("title", "claim", "scenario_sha256", "seed", "engine", "engine_version")}
    constant = {
        index: {
            **same,
            "axes": json.dumps(dict(cell["axes"]), ensure_ascii=False),
            "algorithms": ",".join(f"{flow['algorithm']}:{flow['count']}" for flow in cell["flows"]),
            **{name: cell.get(name) for name, *_ in columns.RUNS if name.endswith(("_ns", "_sec", "_bytes", "_pkts"))},
        }
        for index, cell in cells.items()
    }
    rows = [{"cell": cell, "rep": rep, **constant[cell], "data_packets": count} for (cell, rep), count in done]
    return pa.Table.from_pylist(rows, schema=runs_schema())

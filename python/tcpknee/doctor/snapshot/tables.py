"""The tables of a snapshot and their columns, as `crates/tables/src/snapshot.rs` declares them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tcpknee import _core

Kind = Literal["integer", "count", "number", "text", "bool", "integers", "texts", "object", "counts"]
"""A count grows from boot on, or since the device was reset; counts are several by name."""


@dataclass(frozen=True)
class Column:
    name: str
    kind: Kind
    unit: str
    doc: str


@dataclass(frozen=True)
class Table:
    name: str
    doc: str
    source: str
    columns: Mapping[str, Column]


def _tables() -> dict[str, Table]:
    docs = _core.table_docs("snapshot")
    found = {}
    for name, listed in _core.tables("snapshot").items():
        columns = {one["name"]: Column(one["name"], one["type"], one["unit"], one["doc"]) for one in listed}  # type: ignore[arg-type]
        # All columns of a table come from the same place.
        found[name] = Table(name, docs[name], listed[0]["source"], columns)
    return found


TABLES: Mapping[str, Table] = _tables()

"""Columns of tables, as `_core.tables` declares them, in Arrow's schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def field(column: Mapping[str, str]) -> pa.Field:
    """The column's field, with unit, meaning and source."""
    import pyarrow as pa

    kind = pa.string() if column["type"] == "text" else pa.type_for_alias(column["type"])
    return pa.field(column["name"], kind, metadata={key: column[key] for key in ("unit", "doc", "source")})


def schema(columns: Iterable[Mapping[str, str]]) -> pa.Schema:
    """The schema of a table."""
    import pyarrow as pa

    return pa.schema(map(field, columns))

"""A table as Python sees it, and its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from tcpknee.errors import MissingColumn
from tcpknee.say import printable

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

    from .partitions import Partitions


_ROWS_SHOWN = 20
"""In a notebook."""

_READ_WHOLE = 1 << 15
"""Rows up to which all columns are read at once: one by one takes longer."""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    type: str
    """As Arrow calls it."""
    unit: str
    doc: str
    source: str


class Table:
    """A table. `arrow()` is a `pyarrow.Table`; pandas and polars are given the same memory, without copies.

    It offers the Arrow PyCapsule interface, so DuckDB, Ibis and others read it as it is. Every column's metadata has
    `unit`, `doc` and `source`. Of files the rows are read when they are first asked for.
    """

    def __init__(self, source: pa.Table | Partitions, why: Callable[[str], str | None] | None = None) -> None:
        self._source = source
        self._schema = source.schema
        self._why = why
        """Why a column is missing, where that is known."""

    def arrow(self) -> pa.Table:
        """The `pyarrow.Table`."""
        import pyarrow as pa

        if not isinstance(self._source, pa.Table):
            self._source = self._source.read()
        return self._source

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame whose columns are the Arrow arrays (`pandas.ArrowDtype`)."""
        import pandas

        frame: pandas.DataFrame = self.arrow().to_pandas(types_mapper=pandas.ArrowDtype)
        return frame

    def to_polars(self) -> polars.DataFrame:
        """A polars DataFrame over the Arrow arrays."""
        import polars

        frame = polars.from_arrow(self.arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._schema.names)

    def describe(self) -> dict[str, dict[str, str]]:
        """`unit`, `doc` and `source` of each column."""
        return {
            field.name: {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
            for field in self._schema
        }

    def __len__(self) -> int:
        return int(self._source.num_rows)

    def __getitem__(self, column: str) -> pa.ChunkedArray:
        """A column; of large files no other is read. Raises MissingColumn."""
        import pyarrow as pa

        check_columns([column], self.columns, why=self._why)
        if isinstance(self._source, pa.Table) or len(self) <= _READ_WHOLE:
            return self.arrow()[column]
        return self._source.read([column])[column]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        """The first rows, with each column's unit below its name."""
        shown = self.arrow().slice(0, _ROWS_SHOWN)
        units = [field.metadata.get(b"unit", b"").decode() if field.metadata else "" for field in self._schema]
        heads = "".join(
            f"<th>{escape(name)}<br><small>{escape(unit)}</small></th>"
            for name, unit in zip(self.columns, units, strict=True)
        )
        rows = zip(*(column.to_pylist() for column in shown.columns), strict=True)
        cells = (
            "".join(f"<td>{'' if value is None else escape(printable(value))}</td>" for value in row) for row in rows
        )
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        more = len(self) - len(shown)
        note = f"<p><small>and {more:,} more rows</small></p>" if more > 0 else ""
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{note}"

    def __repr__(self) -> str:
        return f"<tcpknee table: {len(self)} rows of {', '.join(self.columns)}>"


def check_columns(
    asked: Iterable[str], there: Sequence[str], where: str = "", why: Callable[[str], str | None] | None = None
) -> None:
    """Raises MissingColumn: one of the columns asked is not among those of the table. `where` begins the message, such
    as "r: flows: "; `why` says why a column is missing, where that is known."""
    for column in asked:
        if column not in there:
            expected = f"{where}got the column {column!r}; expected one of {', '.join(there)}."
            raise MissingColumn((why and why(column)) or expected)


def columns_of(schema: pa.Schema, known: Mapping[str, Mapping[str, Any]]) -> tuple[Column, ...]:
    """Columns as their file describes them; else as in `known`, by name."""
    found = []
    for field in schema:
        told = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
        about = {**known.get(field.name, {}), **told}
        words = {name: str(about.get(name, "")) for name in ("unit", "doc", "source")}
        found.append(Column(field.name, str(field.type), **words))
    return tuple(found)


def misfit(schema: pa.Schema, known: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The first column that there is twice, or that holds another kind of values than in `known`; None: all fit."""
    names: list[str] = schema.names
    for field in schema:
        if names.count(field.name) > 1:
            return f"got the column {field.name} {names.count(field.name)} times; expected it once"
        about = known.get(field.name)
        if about and not _fits(about["type"], field.type):
            return f"got the column {field.name} as {field.type}; expected {about['type']}"
    return None


def _fits(kind: str, found: pa.DataType) -> bool:
    """Whether a column of the registry may be of that type: other programs write whole numbers as floats, too."""
    from pyarrow import types

    held = found.value_type if types.is_dictionary(found) else found
    kinds = {"text": [types.is_string, types.is_large_string], "bool": [types.is_boolean], "bytes": [types.is_binary]}
    may = kinds.get(kind, [types.is_integer, types.is_floating])
    return any(is_so(held) for is_so in (types.is_null, *may))

"""A run as Python sees it: what was asked, its tables, and what the statistics say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kneepoint.errors import MissingTable

from . import tables
from .folder import RunFolder

if TYPE_CHECKING:
    import pandas
    import polars

    from kneepoint.evidence.expect import Outcome
    from kneepoint.evidence.published import Beside

    from .doubts import Doubt
    from .pool import Key
    from .summary import Summary


class Table:
    """A table of a run. `arrow()` is a `pyarrow.Table`; pandas and polars are given the same memory, without copies.

    It offers the Arrow PyCapsule interface, so DuckDB, Ibis and others read it as it is. Every column's metadata has
    `unit`, `doc` and `source`.
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def arrow(self) -> pa.Table:
        """The `pyarrow.Table`."""
        return self._table

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame whose columns are the Arrow arrays (`pandas.ArrowDtype`)."""
        import pandas

        frame: pandas.DataFrame = self._table.to_pandas(types_mapper=pandas.ArrowDtype)
        return frame

    def to_polars(self) -> polars.DataFrame:
        """A polars DataFrame over the Arrow arrays."""
        import polars

        frame = polars.from_arrow(self._table)
        assert isinstance(frame, polars.DataFrame)
        return frame

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._table.column_names)

    def describe(self) -> dict[str, dict[str, str]]:
        """`unit`, `doc` and `source` of each column."""
        return {
            field.name: {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
            for field in self._table.schema
        }

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __getitem__(self, column: str) -> pa.ChunkedArray:
        return self._table[column]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<kneepoint table: {self._table.num_rows} rows of {', '.join(self._table.column_names)}>"


class Run:
    """A run, in memory or in a folder; its tables are read when first asked for.

    `meta` is the content of `run.json` (see `kneepoint.runs.manifest`); `folder` is where the run lies, None for one in
    memory only.
    """

    def __init__(
        self,
        meta: Mapping[str, Any],
        folder: Path | None = None,
        parts: Mapping[Key, Mapping[str, pa.Table]] | None = None,
    ) -> None:
        self.meta = meta
        self.folder = folder
        self._parts = dict(sorted(parts.items())) if parts is not None else None
        self._tables: dict[str, Table] = {}

    @property
    def runs(self) -> Table:
        """One row per repetition: scenario, seed, engine, path."""
        return self.table("runs")

    @property
    def flows(self) -> Table:
        """One row per flow: goodput, retransmissions, delay, what limited it."""
        return self.table("flows")

    @property
    def samples(self) -> Table:
        """Each flow's sender over time, in the words of `tcp_info`."""
        return self.table("samples")

    @property
    def queue(self) -> Table:
        """The bottleneck over time."""
        return self.table("queue")

    @property
    def events(self) -> Table:
        """Openings, recoveries, timeouts, undos, ends."""
        return self.table("events")

    @property
    def cpu(self) -> Table:
        """Who used the processors; of the kernel engine."""
        return self.table("cpu")

    @property
    def links(self) -> Table:
        """What the emulated link asked of itself and achieved; of the kernel engine."""
        return self.table("links")

    @property
    def programs(self) -> Table:
        """External programs that ran, and what they measured; of the kernel engine."""
        return self.table("programs")

    def table(self, name: str) -> Table:
        """A table by name. Raises `MissingTable`."""
        if name not in self._tables:
            self._tables[name] = Table(self._load(name))
        return self._tables[name]

    def rows(self, name: str, columns: Sequence[str] | None = None, **equals: int) -> pa.Table:
        """A table, or those of its `columns` and rows where each column in `equals` has that value.

        Of a folder only what is asked for is read. Raises `MissingTable`.
        """
        if self.folder is not None:
            return RunFolder(self.folder).read_table(name, columns, equals)
        import pyarrow.compute as pc

        table = self.table(name).arrow()
        for key, value in equals.items():
            table = table.filter(pc.equal(table[key], value))
        return table.select(list(columns)) if columns else table

    @property
    def complete(self) -> bool:
        """Is every repetition there?"""
        return self.meta.get("status") == "complete"

    @cached_property
    def summary(self) -> Summary:
        """Metrics with intervals, and verdicts."""
        from . import summary

        programs = self.programs.arrow() if "programs" in tables.of_engine(self.meta["engine"]) else None
        return summary.summarise(self.flows.arrow(), self.queue.arrow(), self.meta["cells"], programs)

    @cached_property
    def doubts(self) -> list[Doubt]:
        """What makes repetitions of the kernel engine doubtful, or failed, in the order of the matrix."""
        from .doubts import of_run

        return of_run(self.meta)

    @cached_property
    def expectations(self) -> list[Outcome]:
        """What became of each `[[expect]]`."""
        from kneepoint.evidence import expect

        from .terms import OfCells

        expects = [(entry["assert"], entry["line"]) for entry in self.meta.get("expects", [])]
        return expect.evaluate(expects, OfCells(self.meta["cells"], self.summary))

    @cached_property
    def published(self) -> list[Beside]:
        """Each `[[published]]` figure beside ours."""
        from kneepoint.evidence import published

        from .terms import OfCells

        entries = [published.Published(**entry) for entry in self.meta.get("published", [])]
        return published.beside(entries, OfCells(self.meta["cells"], self.summary))

    def json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        from .output import as_json

        return as_json([self])

    def __repr__(self) -> str:
        where = str(self.folder) if self.folder else "in memory"
        return f"<kneepoint run {self.meta.get('title')!r}, {self.meta.get('status')}, {where}>"

    def _load(self, name: str) -> pa.Table:
        if self._parts is None:
            assert self.folder is not None
            return RunFolder(self.folder).read_table(name)
        known = tables.of_engine(self.meta["engine"])
        if name not in known:
            raise MissingTable(f"got the table {name!r}; expected one of {', '.join(known)}.")
        bare = {key: tables.take_note(part["flows"]) for key, part in self._parts.items()}
        if name == "runs":
            return tables.runs_table(self.meta, {key: note for key, (_, note) in bare.items()})
        chosen = [bare[key][0] if name == "flows" else part[name] for key, part in self._parts.items()]
        if not chosen:
            raise MissingTable(f"the table {name!r}: no repetition was finished, so there is none.")
        return pa.concat_tables(chosen).unify_dictionaries()

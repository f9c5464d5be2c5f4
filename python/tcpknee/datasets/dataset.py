"""A folder of tables, whatever wrote them: a run, a recording, an import, a trace or a profile.

    rec = tcpknee.Dataset("rec")
    rec.kind, rec.tables, rec.provenance.host
    rec.table("sockets").to_pandas()
    rec.sql("select algorithm, median(srtt_us) from sockets group by all")

Figures, SQL and exports read folders through this alone. Nothing is changed, and rows are read when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpknee import _core
from tcpknee.arguments import PATH, checked
from tcpknee.errors import MissingTable, RunFolderError
from tcpknee.shapes import Kind

from . import manifest, partitions
from .provenance import Provenance, of_import, of_manifest, of_rows
from .table import Column, Table, check_columns, columns_of, misfit

if TYPE_CHECKING:
    import pyarrow as pa

    from .partitions import Partitions

KINDS = ("run", "recording", "import", "trace", "profile", "tables")
"""What a folder may be; `tables`: Parquet files of somebody else."""

OF_TRACES = {"acks": "acks", "events": "trace_events", "connections": "connections"}
"""Tables of a trace, and what the registry calls them."""


class Dataset:
    """A folder of tables, which is only read.

    Opening it finds its files; raises RunFolderError where there is no folder, no table, or a manifest that is damaged
    or of another version.
    """

    @checked(path=PATH)
    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            what = "is no folder" if self.path.exists() else "is not there"
            raise RunFolderError(
                f"{self.path}: {what}; expected a folder with tables, as `knee record` and `knee run` write it."
            )
        self.partitions, self.damaged, self.remains = partitions.find(self.path)
        """Tables that can be read, why others cannot, and of those the files without damage."""
        if not self.partitions and not self.damaged:
            raise MissingTable(f"{self.path}: {self._why_empty()}")
        self.manifest: dict[str, Any] | None = None
        """`run.json`, `trace.json` or `profile.json`."""
        for name in (manifest.RUN, manifest.TRACE, manifest.PROFILE):
            if self.manifest is None and (self.path / name).is_file():
                self.manifest = manifest.read(self.path / name)
        self.imports = list(manifest.imports(self.path))
        """What each import into the folder says of itself."""
        self._checked: set[str] = set()
        """Tables whose columns are known to fit."""

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables, also of those with a damaged file."""
        return tuple(sorted({*self.partitions, *self.damaged}))

    @cached_property
    def kind(self) -> str:
        """One of `KINDS`."""
        if (self.path / manifest.RUN).is_file():
            return "run"
        # A trace that was killed has its tables and no description.
        if (self.path / manifest.TRACE).is_file() or set(self.tables) == set(OF_TRACES):
            return "trace"
        if (self.path / manifest.PROFILE).is_file():
            return "profile"
        if self._are_all_imported:
            return "import"
        if set(self.tables) & set(_core.tables("recording")):
            return "recording"
        return "import" if set(self.tables) & set(_of_importers()) else "tables"

    def table(self, name: str) -> Table:
        """A table, whose rows are read when they are first asked for. Raises MissingTable, RunFolderError (damaged)."""
        return Table(self.files(name))

    def rows(self, name: str, columns: Sequence[str] | None = None, **equals: int) -> pa.Table:
        """The rows of a table, or of those its `columns`, and only where each column in `equals` has that value.

        Nothing else is read. Raises as `table`, and MissingColumn.
        """
        return self._holding(name, [*(columns or ()), *equals]).read(columns, equals)

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Those columns of a table, a few rows at a time. Raises as `rows`."""
        return self._holding(name, columns).batches(columns)

    def schema(self, name: str) -> tuple[Column, ...]:
        """Columns of a table with unit and meaning, as its files tell, or else the registry. Raises as `table`."""
        return columns_of(self.files(name).schema, self._known(name))

    def sql(self, query: str, *, external: bool = False) -> pa.Table:
        """What DuckDB answers to a query over the tables, as `tcpknee.sql` does; raises as it does."""
        from .sql import ask

        return ask(self, query, external=external)

    @cached_property
    def provenance(self) -> Provenance:
        """Where the rows come from, and what wrote them."""
        if self.manifest is not None:
            return of_manifest(self.manifest)
        found = of_rows({name: self.files(name) for name in self.partitions})
        return of_import(found, self.imports) if self.kind == "import" else found

    def __repr__(self) -> str:
        return f"<tcpknee {self.kind} {self.path}: {', '.join(self.tables)}>"

    def files(self, name: str) -> Partitions:
        """The files of a table, whose columns are those of such a table. Raises as `table`."""
        if name in self.damaged:
            raise RunFolderError(self.damaged[name])
        if name not in self.partitions:
            raise MissingTable(f"{self.path}: got the table {name!r}; expected one of {', '.join(self.tables)}.")
        found = self.partitions[name]
        if name not in self._checked:
            if why := misfit(found.schema, self._known(name) if self.kind != "tables" else {}):
                raise RunFolderError(
                    f"{self.path}: {name}: {why}, as tcpknee writes it. Bring the file back as it was; `knee sql` "
                    "asks it as it is."
                )
            self._checked.add(name)
        return found

    def _holding(self, name: str, columns: Sequence[str]) -> Partitions:
        """The files of a table that has these columns. Raises as `rows`."""
        found = self.files(name)
        check_columns(columns, found.schema.names, f"{self.path}: {name}: ")
        return found

    def _known(self, name: str) -> Mapping[str, Mapping[str, Any]]:
        """Columns that the registry has of a table of this kind of folder, by name."""
        known = _core.tables(self.kind) if self.kind in ("run", "trace", "profile") else _of_importers()
        columns = known.get(OF_TRACES.get(name, name) if self.kind == "trace" else name, ())
        return {column["name"]: column for column in columns}

    @property
    def _are_all_imported(self) -> bool:
        imported = {str(file) for told in self.imports for file in told["files"]}
        here = {path.name for table in self.partitions.values() for path in table.whole}
        unfinished = any(table.unfinished for table in self.partitions.values())
        return bool(imported) and here <= imported and not unfinished

    def _why_empty(self) -> str:
        if (self.path / manifest.RUN).is_file():
            return (
                "holds no table: the run was interrupted or is under way. `knee run --resume --out "
                f"{self.path}` finishes it."
            )
        return "holds no table; expected Parquet files such as sockets-000001.parquet."


def _of_importers() -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Columns of the tables that a recording and imports have, by table."""
    imported = {table["name"]: table["columns"] for kind in _core.importers() for table in kind["tables"]}
    return {**imported, **_core.tables("recording")}


_FOLDER = Kind("the path of a folder; of a run in one `run.dataset.sql` asks its tables", PATH.holds)


@checked(folder=_FOLDER)
def sql(query: str, folder: Path | str, *, external: bool = False) -> pa.Table:
    """What DuckDB answers to `query`, in which each table of the folder is a view of that name.

    The query reads these tables and nothing else of this machine, unless `external`. Of segments under way the rows
    that are safe from a kill are there. Raises UsageError (the query), RunFolderError (no tables in the folder; a table
    that the query asks has a damaged segment).
    """
    return Dataset(folder).sql(query, external=external)

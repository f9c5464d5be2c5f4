"""DATA to the table `connections`, through DuckDB on the Parquet files where they lie.

Connections are made part by part, a part being a folder, so that memory holds one part's at most; of a large folder
those with one remainder of their cookie at a time. What does not fit is spilled to a temporary folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpknee import _core
from tcpknee.datasets import sql
from tcpknee.errors import RunFolderError, UsageError
from tcpknee.writing import cannot_write, replacing, spill_folder

from . import condition, hosts, opening
from .assignment import Log
from .boots import Boot
from .columns import COLUMNS
from .folders import Folder, find
from .lake import Lake, open_lake
from .plan import Plan, Step
from .sizes import size_bytes

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from tcpknee.datasets.partitions import Damage

MEMORY = "5GiB"
"""What DuckDB may take; the statistics come on top."""


@dataclass
class Fleet:
    """Opened DATA: a database, and what it is made of."""

    database: duckdb.DuckDBPyConnection
    folders: list[Folder]
    lake: Lake | None
    notes: list[str]
    """What is doubtful or left out, in words."""
    is_partial: bool
    """Damaged files are left out."""
    plan: Plan

    @property
    def boots(self) -> list[Boot]:
        """Of all folders, or of the lake."""
        return self.plan.boots

    @property
    def log(self) -> Log | None:
        """The assignment log, which is the table `assignments` of the database."""
        return self.plan.log

    def gather(self, table: str, select: str = "*", where: str = "", *, besides: str = "") -> None:
        """Makes a table of the database: `select` over the connections for which `where` and `besides` hold.

        `where` may come from anybody, and is checked. Raises UsageError (`where`), RunFolderError (a damaged file).
        """
        conditions = [condition.checked(self.database, where)] if where else []
        conditions += [besides] if besides else []
        only = f" where {' and '.join(conditions)}" if conditions else ""
        is_made = False
        for part in self.plan.parts:
            with self.telling(where):
                self._gather_part(part, table, select, only, is_made=is_made)
            is_made = True

    def _gather_part(self, part: Sequence[Step], table: str, select: str, where: str, *, is_made: bool) -> None:
        """One part, whole or not at all; without its damaged files, where that was asked for."""
        import duckdb

        self.database.begin()
        try:
            for at, step in enumerate(part):
                to = f"insert into {table}" if is_made or at > 0 else f"create table {table} as"
                self.database.execute(f"{to} select {select} from ({self._prepared(step)}) as connections{where}")
            self.database.commit()
        except duckdb.Error as error:
            self.database.rollback()
            if not self._left_out(error):
                raise
            self._gather_part(part, table, select, where, is_made=is_made)

    def _prepared(self, step: Step) -> str:
        """Makes the relations that a query reads; returns the query."""
        for relation in step.relations:
            if self.lake is not None:
                self.database.register(relation.name, self.lake.arrow(relation.query))
            else:
                self.database.execute(f"create or replace temp table {relation.name} as {relation.query}")
        return step.query

    def _left_out(self, error: Exception) -> bool:
        """Whether the error is about a damaged file that could be left out; its folder's views are made anew then."""
        damage = self._damage(error) if self.is_partial else None
        if damage is None:
            return False
        for folder in self.folders:
            if folder.leave_out(damage, self.notes):
                for table in folder.read:
                    opening.make_view(self.database, folder, table, partial=True, notes=self.notes)
                return True
        return False

    def _damage(self, error: Exception) -> Damage | None:
        return sql.damaged_file(error, [table for folder in self.folders for table in folder.read])

    def make_hosts(self) -> bool:
        """Makes the table `hosts` for the hosts in `observed`; False: DATA has neither `counters` nor `cpu`."""
        hours = [self._prepared(step) for step in self.plan.hours]
        if hours:
            self.database.execute(f"create table hosts as {hosts.of_hours(hours)}")
        return bool(hours)

    def arrow(self, columns: Sequence[str] | None = None, where: str = "") -> pa.Table:
        """Those columns of the connections that `where` holds for. Raises as `gather`."""
        known = [column.name for column in COLUMNS]
        unknown = [name for name in columns or () if name not in known]
        if unknown:
            raise UsageError(f'columns: got "{unknown[0]}"; expected some of {", ".join(known)}.')
        self.gather("asked", ", ".join(columns or known), where)
        found = self.database.sql("from asked").to_arrow_table()
        self.database.execute("drop table asked")
        return found

    @contextmanager
    def telling(self, where: str = "") -> Iterator[None]:
        """DuckDB's errors become ours."""
        import duckdb

        try:
            yield
        except duckdb.Error as error:
            if damage := self._damage(error):
                raise RunFolderError(f"{damage.why} --partial leaves the file out, and says so.") from None
            said = sql.first_said(error).rstrip(". ")
            if isinstance(error, duckdb.OutOfMemoryException):
                # What follows are settings of DuckDB's.
                why = said.partition("Possible solutions")[0].rstrip()
                raise RunFolderError(f"--memory: does not do for DATA: {why}. Give it more, or less DATA.") from None
            if where:
                raise condition.refused(where, said) from None
            raise RunFolderError(f"{', '.join(str(folder.path) for folder in self.folders)}: {said}.") from None


@contextmanager
def opened(
    data: Sequence[Path | str | Lake],
    *,
    tags: Sequence[str] = (),
    partial: bool = False,
    memory: str = MEMORY,
    into: Path | None = None,
    units: pa.Table | None = None,
) -> Iterator[Fleet]:
    """DATA, ready to be gathered; nothing of it is changed. It is folders, or one lake. The database can read no other
    file, and write none but below `into`.

    `tags`: DIR:NAME=VALUE, words about a folder. `partial`: what is damaged, or there twice, is left out and noted.
    `units`: columns host_id and unit, of an experiment that began later: connections get those, whatever DATA logs.
    Raises UsageError (`tags`, `memory`), RunFolderError (a folder without connections, a damaged file, a boot that two
    folders have over the same time).
    """
    import duckdb

    notes: list[str] = []
    memory_bytes = size_bytes("memory", memory, example="4GiB", least=1)
    lake, given = _lake(data)
    folders = [] if lake else find(given, tags, partial=partial, notes=notes)
    with spill_folder() as spill, duckdb.connect() as database:
        database.execute(f"set temp_directory = {sql.literal(str(spill))}")
        database.execute("set preserve_insertion_order = false")
        # It would be drawn on stdout.
        database.execute("set enable_progress_bar = false")
        database.execute(f"set memory_limit = '{memory_bytes}B'")
        sql.confine(database, (path for folder in folders for path in folder.files), into=into)
        fleet = Fleet(database, folders, lake, notes, partial, Plan([]))
        with fleet.telling():
            if lake:
                fleet.plan = open_lake(database, lake, notes)
            else:
                fleet.plan = opening.open_folders(database, folders, units, partial=partial, notes=notes)
        yield fleet


def _lake(data: Sequence[Path | str | Lake]) -> tuple[Lake | None, list[Path | str]]:
    """The lake of DATA, or its folders. Raises UsageError."""
    lakes = [one for one in data if isinstance(one, Lake)]
    folders = [one for one in data if not isinstance(one, Lake)]
    if lakes and len(data) > 1:
        raise UsageError("DATA: got a lake with something else; expected folders, or one lake.")
    return (lakes[0] if lakes else None), folders


def read(
    data: Sequence[Path | str | Lake],
    columns: Sequence[str] | None = None,
    *,
    where: str = "",
    tags: Sequence[str] = (),
    partial: bool = False,
) -> pa.Table:
    """The connections of DATA as a `pyarrow.Table`, or those `columns` of it, where `where` holds (SQL).

    Raises as `opened` and `Fleet.gather`.
    """
    with opened(data, tags=tags, partial=partial) as fleet:
        return fleet.arrow(columns, where)


def write(
    data: Sequence[Path | str | Lake],
    out: Path | str,
    *,
    where: str = "",
    tags: Sequence[str] = (),
    partial: bool = False,
    memory: str = MEMORY,
) -> dict[str, Any]:
    """Writes `connections.parquet` of DATA into the folder `out`, and `assignments.parquet` where DATA has a log; where
    it has none, one that is there is removed.

    The folder is DATA in turn. Returns counts and notes. Raises as `opened` and `Fleet.gather`; RunFolderError
    (`out`)."""
    with opened(data, tags=tags, partial=partial, memory=memory, into=Path(out)) as fleet:
        fleet.gather("gathered", "*", where)
        log = Path(out) / "assignments.parquet"
        if fleet.log is None:
            # It would tell the arms of other connections.
            _removed(log)
        files = [_written(fleet, "gathered", Path(out) / "connections.parquet")]
        if fleet.log is not None:
            files.append(_written(fleet, "assignments", log))
        rows, count, prefixes = fleet.database.execute(
            "select count(*), count(distinct host_id), count(distinct remote_prefix) from gathered"
        ).fetchall()[0]
        return {
            "folders": [str(folder.path) for folder in fleet.folders],
            "connections": rows,
            "hosts": count,
            "prefixes": prefixes,
            "files": [str(file) for file in files],
            "notes": fleet.notes,
        }


def _removed(path: Path) -> None:
    try:
        _core.Folder(path.parent).remove(path.name)
    except OSError as error:
        raise cannot_write(path, error) from None


def _written(fleet: Fleet, table: str, path: Path) -> Path:
    import duckdb

    with replacing(path, make=True) as file:
        try:
            fleet.database.execute(
                f"copy {table} to {sql.literal(f'/proc/self/fd/{file.fileno()}')} (format parquet, compression zstd, "
                "use_tmp_file false)"
            )
        except duckdb.IOException as error:
            raise cannot_write(path, OSError(5, sql.first_said(error))) from None
    return path

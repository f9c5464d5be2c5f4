"""SQL over a folder of tables: recordings, imports, traces and runs alike.

table = tcpknee.sql("select algorithm, median(srtt_us) from sockets group by all", "rec")

DuckDB reads whole segments in place, and may open nothing else; unfinished ones it is shown as Arrow.
"""

from __future__ import annotations

import errno
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from tcpknee import say
from tcpknee.arguments import checked
from tcpknee.errors import RunFolderError, UsageError
from tcpknee.human import suggest
from tcpknee.shapes import TEXT
from tcpknee.writing import spill_folder

from .manifest import not_kept
from .partitions import Damage

if TYPE_CHECKING:
    import duckdb
    import pyarrow

    from .dataset import Dataset
    from .partitions import Partitions

_Answer = TypeVar("_Answer")

_READING = frozenset(("SELECT", "EXPLAIN", "MULTI", "SET", "VARIABLE_SET", "CREATE", "DROP", "PRAGMA", "CALL"))
"""Statements that write no file: DuckDB lets COPY write over a file that it may read. CREATE makes things in memory."""
_COMPOSED = frozenset(("EXPLAIN", "MULTI"))
"""Of these, what is within them counts: EXPLAIN ANALYZE runs what it explains."""
_COPY = re.compile(r"\bcopy\b", re.IGNORECASE)
_ERRNO = re.compile(r'"errno":"(\d+)"')
"""Of the system's error, in the text of DuckDB's."""
_MISSING = re.compile(r"Table with name (\S+) does not exist")
_LOOK_EVERY_SEC = 0.1


@checked(query=TEXT)
def ask(dataset: Dataset, query: str, *, external: bool = False) -> pyarrow.Table:
    """What DuckDB answers to `query`, in which each table is a view of that name.

    The query reads these tables and nothing else of this machine, unless `external`. Of segments under way the rows
    that are safe from a kill are there. Raises UsageError (the query), RunFolderError (a table that the query asks has
    a damaged segment).
    """
    import pyarrow

    with opened(dataset, external=external) as database:
        check(database, query, external=external)

        def answer() -> pyarrow.Table:
            found = database.sql(query)
            # A statement may have no answer.
            return pyarrow.table({}) if found is None else found.to_arrow_table()

        return unless_interrupted(database, answer)


def check(database: duckdb.DuckDBPyConnection, query: str, *, external: bool) -> None:
    """Raises UsageError: no statement, or one that may write a file and is not `external`."""
    statements = database.extract_statements(query)
    if not statements:
        raise UsageError(f'"{query.strip()[:60]}": got no statement; expected one, such as "show tables".')
    for statement in statements if not external else ():
        kind = statement.type.name
        if kind not in _READING or (kind in _COMPOSED and _COPY.search(statement.query)):
            raise UsageError(
                f'"{statement.query.strip()[:60]}": got a statement of the kind {kind}; expected one that only reads, '
                "such as SELECT. With --external any statement runs, and may read and write files."
            )


def unless_interrupted(database: duckdb.DuckDBPyConnection, ask: Callable[[], _Answer]) -> _Answer:
    """What `ask` gets of the database. Ctrl-C ends its query, which DuckDB itself looks for between two tasks of a
    query only: one may take hours."""
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(ask)
        try:
            return answer.result()
        except KeyboardInterrupt:
            # A query that has not begun yet cannot be interrupted.
            while not answer.done():
                database.interrupt()
                wait([answer], _LOOK_EVERY_SEC)
            raise


@contextmanager
def opened(dataset: Dataset, *, external: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with a view of each table; meanwhile DuckDB's errors become ours.

    A table with a damaged segment has no view, and a query that asks it is told so; others are as ever.
    """
    import duckdb

    folder, tables, damaged = dataset.path, dataset.partitions, dict(dataset.damaged)
    # What does not fit memory goes to a folder of its own, not to the current one.
    with spill_folder() as spill, duckdb.connect() as database:
        database.execute(f"set temp_directory = {literal(str(spill))}")
        # It would be drawn on stdout, among the answer, when a query takes 2 s.
        database.execute("set enable_progress_bar = false")
        if not external:
            confine(database, (path for table in tables.values() for path in table.whole))
        for name, table in tables.items():
            try:
                _view(database, table)
            except (duckdb.Error, RunFolderError) as error:
                damage = damaged_file(error, [table])
                damaged[name] = damage.why if damage else f"{folder}: {name}: {first_said(error)}"
        try:
            yield database
        except duckdb.Error as error:
            said = first_said(error).rstrip(". ")
            told = [why for name, why in damaged.items() if re.search(rf"\b{name}\b", said)]
            if told:
                raise RunFolderError(told[0]) from None
            if damage := damaged_file(error, tables.values()):
                raise RunFolderError(damage.why) from None
            if why := _not_kept(dataset, said):
                raise UsageError(f"{folder}: {why}") from None
            if isinstance(error, duckdb.PermissionException):
                raise UsageError(
                    f"{folder}: {said}: without --external a query reads the tables of this folder alone."
                ) from None
            # DuckDB suggests its own tables, too, which nobody asks a folder for.
            said = said.split("\nDid you mean")[0]
            if missing := _MISSING.search(said):
                expected = suggest(missing[1], sorted({*tables, *damaged}), "expected one of")
                raise UsageError(f'{folder}: got the table "{missing[1]}"; {expected}') from None
            names = ", ".join(sorted({*tables, *damaged}))
            raise UsageError(
                f"{folder}: {said}. Its tables are {names}; `describe TABLE` lists the columns of one."
            ) from None


def confine(database: duckdb.DuckDBPyConnection, files: Iterable[Path], *, into: Path | None = None) -> None:
    """From now on DuckDB opens these files alone, makes files in the folder `into` alone, loads no extension, and can
    be told nothing else."""
    # It asks for the pattern, and then for the file that it finds.
    asked = dict.fromkeys(name for path in files for name in (str(path.absolute()), _plain_pattern(path)))
    database.execute(f"set allowed_paths = [{', '.join(map(literal, asked))}]")
    if into is not None:
        database.execute(f"set allowed_directories = [{literal(str(into.resolve()))}]")
    for setting in ("autoinstall_known_extensions", "autoload_known_extensions", "enable_external_access"):
        database.execute(f"set {setting} = false")
    database.execute("set lock_configuration = true")


def _not_kept(dataset: Dataset, said: str) -> str | None:
    """What to say where the error is about a column of `samples` that the run was told not to keep."""
    missing = re.search(r'column "?(\w+)"? (?:not found|does not exist)|have a column named "(\w+)"', said)
    if dataset.kind != "run" or missing is None:
        return None
    return not_kept(dataset.manifest or {"cells": []}, missing[1] or missing[2])


def write_csv(database: duckdb.DuckDBPyConnection, table: str, file: BinaryIO) -> None:
    """A view in the order of its rows, of which memory holds a few at a time; its texts go through `say.csv_cell`.
    Raises OSError."""
    import duckdb

    to = literal(f"/proc/self/fd/{file.fileno()}")
    described = database.execute(f'describe "{table}"').fetchall()
    cells = ", ".join(_csv_cell(name, kind) for name, kind, *_ in described)
    with suppress(duckdb.NotImplementedException):
        # Another table of this database has made it.
        text = database.sqltype("VARCHAR")
        database.create_function("csv_cell", say.csv_cell, [text], text)
    copy = f'copy (select {cells} from "{table}") to {to} (format csv, header true, use_tmp_file false)'
    try:
        unless_interrupted(database, lambda: database.execute(copy))
    except duckdb.IOException as error:
        raise os_error(error) from None


_NO_TEXT = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL.*|BOOLEAN|DATE|TIME.*|INTERVAL")
"""Types whose values are no text of anybody's."""


def _csv_cell(name: str, kind: str) -> str:
    """The column of a query for CSV. Few texts need a change, which is made in Python."""
    shown = identifier(say.csv_cell(name))
    if _NO_TEXT.fullmatch(kind):
        return f"{identifier(name)} as {shown}"
    text = f"cast({identifier(name)} as varchar)"
    return f"case when regexp_matches({text}, {literal(_CSV_CHANGES)}) then csv_cell({text}) else {text} end as {shown}"


_CSV_CHANGES = r"^[=+@\t\n-]|[\x00-\x08\x0b-\x1f\x7f-\x{9f}\x{61c}\x{200e}\x{200f}\x{2028}-\x{202e}\x{2066}-\x{2069}]"
"""What `say.csv_cell` changes, as DuckDB has patterns."""


def os_error(error: duckdb.IOException) -> OSError:
    """The system's error that it tells of; else what it says, as an error of input and output."""
    if number := _ERRNO.search(str(error)):
        return OSError(int(number[1]), os.strerror(int(number[1])))
    return OSError(errno.EIO, str(error).splitlines()[0])


def _view(database: duckdb.DuckDBPyConnection, table: Partitions) -> None:
    """Makes the view of its name."""
    database.execute(f'create view "{table.name}" as {reading(database, table)}')


def reading(database: duckdb.DuckDBPyConnection, table: Partitions, prefix: str = "") -> str:
    """The query for the rows of a table's files. `prefix` tells files of one name in several folders apart."""
    sources = []
    if table.whole:
        listed = ", ".join(literal(_plain_pattern(path)) for path in table.whole)
        # Segments of different versions may have different columns.
        sources.append(f"from read_parquet([{listed}], union_by_name = true)")
    for part, _ in table.unfinished:
        database.register(f"{prefix}{part.name}", table.scanned(part))
        sources.append(f'from "{prefix}{part.name}"')
    return " union all by name ".join(sources)


def damaged_file(error: Exception, tables: Iterable[Partitions]) -> Damage | None:
    """The file whose damage caused the error; None: another cause. DuckDB names the file in the error's text alone."""
    import duckdb

    tables = list(tables)
    whole = [path for table in tables for path in table.whole]
    said = first_said(error)
    for path in whole:
        if str(path.absolute()) in said:
            return (
                Damage.of(path, said) if path.exists() else Damage(path, f"{path}: was deleted meanwhile. Ask again.")
            )
    for part in (part for table in tables for part, _ in table.unfinished):
        if part.name in said:
            return Damage.of(part, said)
    # The error names no file: reading them finds it.
    if type(error) is duckdb.Error or isinstance(error, (duckdb.IOException, duckdb.InternalException)):
        return next(filter(None, (table.first_damaged() for table in tables)), None)
    return None


def first_said(error: Exception) -> str:
    """What follows shows the query with a mark below, which one paragraph cannot."""
    return str(error).split("\n\nLINE ")[0]


def _plain_pattern(path: Path) -> str:
    """Characters that make a pattern of a path stand for themselves."""
    return re.sub(r"([*?\[])", r"[\1]", str(path.absolute()))


def literal(text: str) -> str:
    """The text as a string of a query."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """The name of a column or table in a query, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def plain(value: Any) -> Any:
    """A value as JSON has it: dates, intervals and the like as text, and null for NaN and infinity."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)

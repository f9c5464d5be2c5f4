"""SQL over a folder of tables: recordings, imports, traces and runs alike.

table = kneepoint.sql("select algorithm, median(srtt_us) from sockets group by all", "rec")

Nothing is changed: of a segment that its writer has not ended, or never will, the complete row groups are read where
they are (`crates/observe/src/segment/unfinished.rs`). DuckDB reads whole segments in place, and may open nothing else.
"""

from __future__ import annotations

import errno
import io
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from kneepoint import _core
from kneepoint.errors import RunFolderError, UsageError

if TYPE_CHECKING:
    import duckdb
    import pyarrow

_SEGMENT = re.compile(r"(?P<table>[A-Za-z]\w*?)(-\d{6,})?\.parquet")
_READING = frozenset(("SELECT", "EXPLAIN", "MULTI", "SET", "VARIABLE_SET", "CREATE", "DROP", "PRAGMA", "CALL"))
"""Statements that write no file: DuckDB lets COPY write over a file that it may read. CREATE makes things in memory."""
_COMPOSED = frozenset(("EXPLAIN", "MULTI"))
"""Of these, what is within them counts: EXPLAIN ANALYZE runs what it explains."""
_COPY = re.compile(r"\bcopy\b", re.IGNORECASE)


def sql(query: str, folder: Path | str, *, external: bool = False) -> pyarrow.Table:
    """What DuckDB answers to `query`, in which each table of the folder is a view of that name.

    The query reads these tables and nothing else of this machine, unless `external`. Of segments under way the rows
    that are safe from a kill are there. Raises UsageError (the query), RunFolderError (no tables in the folder; a table
    that the query asks has a damaged segment).
    """
    import pyarrow

    with opened(folder, external=external) as database:
        if not external:
            check_reads(database, query)
        answer = database.sql(query)
        # A statement may have no answer.
        return pyarrow.table({}) if answer is None else answer.to_arrow_table()


def check_reads(database: duckdb.DuckDBPyConnection, query: str) -> None:
    """Raises UsageError: a statement that may write a file."""
    for statement in database.extract_statements(query):
        kind = statement.type.name
        if kind not in _READING or (kind in _COMPOSED and _COPY.search(statement.query)):
            raise UsageError(
                f'"{statement.query.strip()[:60]}": got a statement of the kind {kind}; expected one that only reads, '
                "such as SELECT. With --external any statement runs, and may read and write files."
            )


@dataclass
class _Table:
    """Where its rows are."""

    whole: list[Path] = field(default_factory=list)
    unfinished: list[tuple[Path, _core.Unfinished]] = field(default_factory=list)


@contextmanager
def opened(folder: Path | str, *, external: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with a view of each table; meanwhile DuckDB's errors become ours.

    A table with a damaged segment has no view, and a query that asks it is told so; others are as ever.
    """
    import duckdb

    tables, damaged = _tables(Path(folder))
    # What does not fit memory goes to a folder of its own, not to the current one.
    with tempfile.TemporaryDirectory(prefix="kneepoint-") as spill, duckdb.connect() as database:
        database.execute(f"set temp_directory = {_literal(spill)}")
        if not external:
            # DuckDB asks for the pattern, and then for the file that it finds.
            files = [path for table in tables.values() for path in table.whole]
            asked = dict.fromkeys(name for path in files for name in (str(path.absolute()), _plain_pattern(path)))
            listed = ", ".join(map(_literal, asked))
            database.execute(f"set allowed_paths = [{listed}]")
            database.execute("set enable_external_access = false")
        for name, table in tables.items():
            try:
                _view(database, name, table)
            except (duckdb.Error, RunFolderError) as error:
                damaged[name] = _damage(error, [table]) or f"{folder}: {name}: {_said(error)}"
        if not external:
            database.execute("set lock_configuration = true")
        try:
            yield database
        except duckdb.Error as error:
            said = _said(error).rstrip(". ")
            told = [why for name, why in damaged.items() if re.search(rf"\b{name}\b", said)]
            if why := next(iter(told), None) or _damage(error, tables.values()):
                raise RunFolderError(why) from None
            if isinstance(error, duckdb.PermissionException):
                raise UsageError(
                    f"{folder}: {said}: without --external a query reads the tables of this folder alone."
                ) from None
            names = ", ".join(sorted({*tables, *damaged}))
            raise UsageError(
                f"{folder}: {said}. Its tables are {names}; `describe TABLE` lists the columns of one."
            ) from None


def write_csv(database: duckdb.DuckDBPyConnection, table: str, file: BinaryIO) -> None:
    """A view in the order of its rows, of which memory holds a few at a time. Raises OSError."""
    import duckdb

    to = _literal(f"/proc/self/fd/{file.fileno()}")
    try:
        database.execute(f'copy "{table}" to {to} (format csv, header true, use_tmp_file false)')
    except duckdb.IOException as error:
        raise OSError(errno.EIO, str(error).splitlines()[0]) from None


def _tables(folder: Path) -> tuple[dict[str, _Table], dict[str, str]]:
    """The tables, and why some of them cannot be read."""
    if not folder.is_dir():
        what = "is no folder" if folder.exists() else "is not there"
        raise RunFolderError(f"{folder}: {what}; expected one with tables, as `knee record` and `knee run` write it.")
    found: dict[str, _Table] = {}
    damaged: dict[str, str] = {}
    # Before the whole ones: a part that its writer ends meanwhile is found as either.
    parts = _core.unfinished(folder)
    for path in sorted(folder.iterdir()):
        if match := _SEGMENT.fullmatch(path.name):
            try:
                _core.check_readable(path)
            except (OSError, RunFolderError) as error:
                damaged[match["table"]] = str(error)
            else:
                found.setdefault(match["table"], _Table()).whole.append(path)
    whole = {path for table in found.values() for path in table.whole}
    for name, part, content, why in parts:
        if not _SEGMENT.fullmatch(part.with_suffix("").name):
            continue
        if why is not None:
            damaged[name] = why
        elif content is not None and part.with_suffix("") not in whole:
            found.setdefault(name, _Table()).unfinished.append((part, content))
    if not found and not damaged:
        raise RunFolderError(f"{folder}: holds no table; expected Parquet files such as sockets-000001.parquet.")
    return {name: table for name, table in found.items() if name not in damaged}, damaged


def _view(database: duckdb.DuckDBPyConnection, name: str, table: _Table) -> None:
    """Makes the view of that name."""
    sources = []
    if table.whole:
        listed = ", ".join(_literal(_plain_pattern(path)) for path in table.whole)
        # Segments of different versions may have different columns.
        sources.append(f"from read_parquet([{listed}], union_by_name = true)")
    for part, content in table.unfinished:
        database.register(part.name, _dataset(part, content))
        sources.append(f'from "{part.name}"')
    database.execute(f'create view "{name}" as {" union all by name ".join(sources)}')


def _dataset(part: Path, content: _core.Unfinished) -> Any:
    """An unfinished segment as DuckDB scans it: column by column and group by group, as it does files."""
    import pyarrow
    from pyarrow import dataset

    form = dataset.ParquetFileFormat()
    fragment = form.make_fragment(pyarrow.PythonFile(_File(content), mode="r"))
    try:
        return dataset.FileSystemDataset([fragment], fragment.physical_schema, form)
    except (OSError, pyarrow.ArrowException) as error:
        raise RunFolderError(_damaged(part, str(error).splitlines()[0])) from None


class _File(io.RawIOBase):
    """The whole file that an unfinished segment would be."""

    def __init__(self, content: _core.Unfinished) -> None:
        self._content, self._at = content, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._content)}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        rest = max(len(self._content) - self._at, 0)
        found = self._content.read_at(rest if size < 0 else min(size, rest), self._at)
        self._at += len(found)
        return found


def _damage(error: Exception, tables: Iterable[_Table]) -> str | None:
    """What to say where the error is that one of the files cannot be read."""
    import duckdb
    import pyarrow
    from pyarrow import parquet

    tables = list(tables)
    whole = [path for table in tables for path in table.whole]
    said = _said(error)
    for path in whole:
        if str(path.absolute()) in said:
            return _damaged(path, said) if path.exists() else f"{path}: was deleted meanwhile. Ask again."
    for part in (part for table in tables for part, _ in table.unfinished):
        if part.name in said:
            return _damaged(part, said)
    # An error of reading that names no file: which one it is, reading tells.
    if type(error) is duckdb.Error or isinstance(error, (duckdb.IOException, duckdb.InternalException)):
        for path in whole:
            try:
                with parquet.ParquetFile(path) as file:
                    for _ in file.iter_batches():
                        pass
            except (OSError, pyarrow.ArrowException) as refused:
                return _damaged(path, str(refused).splitlines()[0])
    return None


def _damaged(path: Path, why: str) -> str:
    return (
        f"{path}: is damaged: {why.rstrip('. ')}; expected a whole Parquet file. Move it away, and the table has the "
        "rows of its other files; other tables can be asked as it is."
    )


def _said(error: Exception) -> str:
    """What follows shows the query with a mark below, which one paragraph cannot."""
    return str(error).split("\n\nLINE ")[0]


def _plain_pattern(path: Path) -> str:
    """Characters that make a pattern of a path stand for themselves."""
    return re.sub(r"([*?\[])", r"[\1]", str(path.absolute()))


def _literal(text: str) -> str:
    """As SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def plain(value: Any) -> Any:
    """A value as JSON has it: dates, intervals and the like as text."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)

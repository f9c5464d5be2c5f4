"""SQL over a folder of tables: recordings, imports, traces and runs alike.

table = kneepoint.sql("select algorithm, median(srtt_us) from sockets group by all", "rec")
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kneepoint import _core
from kneepoint.errors import RunFolderError, UsageError

if TYPE_CHECKING:
    import duckdb
    import pyarrow

_SEGMENT = re.compile(r"(?P<table>[A-Za-z]\w*?)(-\d{6,})?\.parquet")


def sql(query: str, folder: Path | str) -> pyarrow.Table:
    """What DuckDB answers to `query`, in which each table of the folder is a view of that name.

    Segments that a killed recorder left are made whole before. Raises UsageError (the query), RunFolderError (no
    tables in the folder).
    """
    import pyarrow

    with opened(folder) as database:
        answer = database.sql(query)
        # A statement may have no answer.
        return pyarrow.table({}) if answer is None else answer.to_arrow_table()


@contextmanager
def opened(folder: Path | str) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with a view of each table; meanwhile DuckDB's errors become ours."""
    import duckdb

    tables = _tables(Path(folder))
    with duckdb.connect() as database:
        for name, paths in tables.items():
            listed = ", ".join(_quoted(path) for path in paths)
            # Segments of different versions may have different columns.
            database.execute(f'create view "{name}" as select * from read_parquet([{listed}], union_by_name = true)')
        try:
            yield database
        except duckdb.Error as error:
            # What follows shows the query with a mark below, which one paragraph cannot.
            said = str(error).split("\n\nLINE ")[0]
            there = ", ".join(sorted(tables))
            raise UsageError(
                f"{folder}: {said.rstrip('. ')}. Its tables are {there}; `describe TABLE` lists the columns of one."
            ) from None


def write_csv(database: duckdb.DuckDBPyConnection, table: str, path: Path) -> None:
    """A view in the order of its rows, of which memory holds a few at a time. Raises OSError; nothing is left then."""
    import duckdb

    temporary = path.with_name(f".{path.name}.tmp")
    name = str(temporary.absolute()).replace("'", "''")
    try:
        database.execute(f"copy \"{table}\" to '{name}' (format csv, header true)")
        temporary.replace(path)
    except duckdb.IOException as error:
        raise OSError(errno.EIO, str(error).splitlines()[0]) from None
    finally:
        temporary.unlink(missing_ok=True)


def _tables(folder: Path) -> dict[str, list[Path]]:
    """The Parquet files of each table."""
    if not folder.is_dir():
        what = "is no folder" if folder.exists() else "is not there"
        raise RunFolderError(f"{folder}: {what}; expected one with tables, as `knee record` and `knee run` write it.")
    _core.recover(folder)
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        if match := _SEGMENT.fullmatch(path.name):
            found.setdefault(match["table"], []).append(path)
    if not found:
        more = " A recording under way has its first file after --rotate or its end." if _written(folder) else ""
        raise RunFolderError(f"{folder}: holds no table; expected Parquet files such as sockets-000001.parquet.{more}")
    return found


def _written(folder: Path) -> bool:
    return any(folder.glob("*.parquet.part"))


def _quoted(path: Path) -> str:
    """A literal of SQL; characters that make a pattern of a path stand for themselves."""
    plain = re.sub(r"([*?\[])", r"[\1]", str(path.absolute()))
    return "'" + plain.replace("'", "''") + "'"


def plain(value: Any) -> Any:
    """A value as JSON has it: dates, intervals and the like as text."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)

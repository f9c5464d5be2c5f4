"""`knee sql`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from tcpknee import provenance, say
from tcpknee.errors import UsageError
from tcpknee.say import aligned

from .options import PATH, json_option, quiet_option

_AT_ONCE = 10_000


@click.command("sql", short_help="Ask a folder of tables in SQL.")
@click.argument("query", metavar="QUERY")
@click.argument("folder", metavar="DIR", type=PATH)
@json_option
@click.option("--csv", is_flag=True, help="Print CSV instead of a table.")
@click.option("--external", is_flag=True, help="Let the query read and write other files, and load extensions.")
@quiet_option
def command(query: str, folder: Path, json: bool, csv: bool, external: bool, quiet: bool) -> int:
    """Ask a folder of tables in DuckDB's SQL: what record, import, trace or run wrote.

    Each table is a view of its name: knee sql 'select algorithm, count(*) from sockets group by all' DIR. `show
    tables` lists them, `describe sockets` the columns of one. Nothing in DIR is changed, and nothing else is read.
    """
    if json and csv:
        raise click.UsageError("got --json and --csv; expected one of them.")
    if not folder.exists() and Path(query).is_dir():
        words = provenance.command_line("knee", "sql", str(folder), query)
        raise UsageError(f"knee sql: got the folder {query} before the query; expected it behind: {words}")
    return _ask(query, folder, json=json, csv=csv, external=external, quiet=quiet)


def _ask(text: str, folder: Path, *, json: bool, csv: bool, external: bool, quiet: bool) -> int:
    """Prints the answer: as a table, an object or CSV, of which the last needs no memory for all of it."""
    from tcpknee.datasets import sql
    from tcpknee.datasets.dataset import Dataset
    from tcpknee.runs.progress import Phase

    with sql.opened(Dataset(folder), external=external) as database:
        sql.check(database, text, external=external)
        with Phase("Asking", quiet=quiet):
            answer = sql.unless_interrupted(database, lambda: database.execute(text))
        names = [column[0] for column in answer.description or ()]
        rows = _rows(lambda: sql.unless_interrupted(database, lambda: answer.fetchmany(_AT_ONCE)))
        if csv:
            say.csv(itertools.chain([names], rows))
        elif json:
            listed = [dict(zip(names, map(sql.plain, row), strict=True)) for row in rows]
            say.json({"schema": 1, "columns": names, "rows": listed})
        elif names:
            _show(names, list(rows))
    return 0


def _rows(fetch: Callable[[], list[tuple[Any, ...]]]) -> Iterator[tuple[Any, ...]]:
    while some := fetch():
        yield from some


def _show(names: list[str], rows: list[tuple[Any, ...]]) -> None:
    """Columns of numbers to the right, others to the left."""
    left = [not all(row[i] is None or _is_number(row[i]) for row in rows) for i in range(len(names))]
    text = [["-" if value is None else str(value) for value in row] for row in rows]
    say.lines(aligned([names, *text], left=left))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)

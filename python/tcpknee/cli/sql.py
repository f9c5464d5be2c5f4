"""`knee sql`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
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
@click.option(
    "--format",
    type=click.Choice(("md", "latex")),
    help="Print a table for a document: of Markdown, or a LaTeX tabular.",
)
@click.option("--external", is_flag=True, help="Let the query read and write other files, and load extensions.")
@quiet_option
def command(query: str, folder: Path, json: bool, csv: bool, format: str | None, external: bool, quiet: bool) -> int:
    """Ask a folder of tables in DuckDB's SQL: what record, import, trace or run wrote.

    Each table is a view of its name: knee sql 'select algorithm, count(*) from sockets group by all' DIR. `show
    tables` lists them, `describe sockets` the columns of one. Nothing in DIR is changed, and nothing else is read.
    """
    asked = [name for name, given in (("--json", json), ("--csv", csv), ("--format", format)) if given]
    if len(asked) > 1:
        raise click.UsageError(f"got {' and '.join(asked)}; expected one of them.")
    if not folder.exists() and Path(query).is_dir():
        words = provenance.command_line("knee", "sql", str(folder), query)
        raise UsageError(f"knee sql: got the folder {query} before the query; expected it behind: {words}")
    return _ask(query, folder, json=json, csv=csv, format=format, external=external, quiet=quiet)


def _ask(text: str, folder: Path, *, json: bool, csv: bool, format: str | None, external: bool, quiet: bool) -> int:
    """Prints the answer: as a table, an object or CSV, of which the last needs no memory for all of it."""
    from tcpknee.datasets import sql
    from tcpknee.datasets.dataset import Dataset
    from tcpknee.runs.progress import Phase

    with sql.opened(Dataset(folder), external=external) as database:
        sql.check(database, text, external=external)
        with Phase("Asking", quiet=quiet):
            answer = sql.unless_interrupted(database, lambda: database.execute(text))
        names = [column[0] for column in answer.description or ()]
        if json:
            _check_names(names)
        rows = _rows(lambda: sql.unless_interrupted(database, lambda: answer.fetchmany(_AT_ONCE)))
        if csv:
            say.csv(itertools.chain([names], rows))
        elif json:
            listed = [dict(zip(names, map(sql.plain, row), strict=True)) for row in rows]
            say.json({"schema": 1, "columns": names, "rows": listed}, allow_nan=False)
        elif names:
            _SHOWN[format](names, list(rows))
    return 0


def _check_names(names: list[str]) -> None:
    """Raises UsageError: two columns have the same name, and a JSON object keeps only one of them."""
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f'--json: got {names.count(name)} columns "{say.printable(name)}"; expected a name for each, as `as` '
                "gives it. --csv prints them as they are."
            )


def _rows(fetch: Callable[[], list[tuple[Any, ...]]]) -> Iterator[tuple[Any, ...]]:
    while some := fetch():
        yield from some


def _show(names: list[str], rows: list[tuple[Any, ...]]) -> None:
    """Columns of numbers to the right, others to the left."""
    say.lines(aligned([names, *_text(rows)], left=[not numeric for numeric in _numeric(names, rows)]))


def _show_markdown(names: list[str], rows: list[tuple[Any, ...]]) -> None:
    """A table of GitHub's Markdown, which most others read."""
    rule = ["--:" if numeric else "---" for numeric in _numeric(names, rows)]
    cells = [[_MARKDOWN.sub(r"\\\g<0>", cell) for cell in row] for row in (names, *_text(rows))]
    say.lines(f"| {' | '.join(row)} |" for row in (cells[0], rule, *cells[1:]))


def _show_latex(names: list[str], rows: list[tuple[Any, ...]]) -> None:
    """A tabular, with nothing that takes a package."""
    columns = "".join("r" if numeric else "l" for numeric in _numeric(names, rows))
    cells = [[_LATEX.sub(lambda found: _LATEX_WORDS[found[0]], cell) for cell in row] for row in (names, *_text(rows))]
    head, *body = (f"{' & '.join(row)} \\\\" for row in cells)
    say.lines([rf"\begin{{tabular}}{{{columns}}}", r"\hline", head, r"\hline", *body, r"\hline", r"\end{tabular}"])


_SHOWN = {None: _show, "md": _show_markdown, "latex": _show_latex}

_MARKDOWN = re.compile(r"[\\|`*_<>\[\]]")
_LATEX_WORDS = {letter: f"\\{letter}" for letter in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}
_LATEX = re.compile("[" + re.escape("".join(_LATEX_WORDS)) + "]")


def _text(rows: list[tuple[Any, ...]]) -> list[list[str]]:
    return [["-" if value is None else str(value) for value in row] for row in rows]


def _numeric(names: list[str], rows: list[tuple[Any, ...]]) -> list[bool]:
    return [all(row[i] is None or _is_number(row[i]) for row in rows) for i in range(len(names))]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)

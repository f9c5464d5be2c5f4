"""`knee suite`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from tcpknee import human, say
from tcpknee.errors import UsageError

from . import completion
from .options import Whole, json_option, names_of, quiet_option

if TYPE_CHECKING:
    from tcpknee.gate.suite import Row, Suite
    from tcpknee.gate.values import Value


@click.command("suite", short_help="Run a suite: what others published, beside ours.")
@click.argument(
    "name", metavar="[NAME|FILE]", required=False, shell_complete=completion.of(completion.suites, files=True)
)
@click.option("--row", "only", metavar="ROW[,ROW...]", multiple=True, help="Only these rows.")
@click.option("--workers", type=Whole(min=1), help="Repetitions at once; by default one per processor.")
@json_option
@quiet_option
def command(name: str | None, only: tuple[str, ...], workers: int | None, json: bool, quiet: bool) -> int:
    """Run the rows of a suite that say what others published, and set each value beside ours. Without a name: which
    suites there are.

    The exit code is 0 whether values agree or not: another machine's figures are no test of this one. Rows with an
    algorithm under test are for `knee gate --suite`.

    Example: knee suite landmarks --row ten-gigabit-one-percent
    """
    from tcpknee import provenance
    from tcpknee.gate import suite as suites
    from tcpknee.gate import values
    from tcpknee.runs import progress

    if name is None:
        if only:
            raise UsageError(
                "--row: got it without a suite; expected one before it, as in knee suite landmarks --row ROW."
            )
        found = [suites.find(one) for one in suites.names()]
        if json:
            say.json({"schema": 1, "suites": [_facts(one) for one in found]})
        else:
            say.lines(_listed(found))
        return 0
    suite = suites.find(name)
    rows = _chosen(suite, values.rows_of(suite), only)
    for row in rows:
        values.check(suite, row)
    told: list[tuple[Row, list[Value]]] = []
    for number, row in enumerate(rows, 1):
        if not quiet:
            say.warn(f"Row {number} of {len(rows)}: {row.name}")
        told.append((row, values.run(suite, row, workers=workers, watcher=progress.watcher(quiet=quiet))))
        if not json:
            say.lines(_lines(row, values.repetitions(suite, row), told[-1][1]))
    if json:
        result = {
            "schema": 1,
            **_facts(suite),
            "engine_version": provenance.engine_version(),
            "rows": [_row(suite, row, found) for row, found in told],
        }
        say.json(result)
        return 0
    say.lines(_summary(suite, told))
    return 0


def _facts(suite: Suite) -> dict[str, object]:
    return {
        "suite": suite.name,
        "title": suite.title,
        "source": suite.source,
        "date": suite.date,
        "rows_in_all": len(suite.rows),
    }


def _row(suite: Suite, row: Row, found: Sequence[Value]) -> dict[str, object]:
    from tcpknee.gate import values

    return {
        "row": row.name,
        "sha256": values.digest(row),
        "repetitions": values.repetitions(suite, row),
        "values": [one.json() for one in found],
    }


def _chosen(suite: Suite, rows: Sequence[Row], only: Sequence[str]) -> list[Row]:
    if not rows:
        raise UsageError(
            f"knee suite: {suite.name} has no row with published values; expected `knee gate --suite {suite.name} "
            "ALGORITHM`, which judges an algorithm by its rows."
        )
    names = names_of("--row", only, [row.name for row in rows], "expected a row with published values:")
    return [row for row in rows if row.name in names]


def _listed(found: Sequence[Suite]) -> Iterator[str]:
    from tcpknee.gate import values

    rows = [["suite", "rows", "with published values", ""]]
    rows += [[one.name, str(len(one.rows)), str(len(values.rows_of(one))), one.title] for one in found]
    yield from say.aligned(rows, left=[True, False, False, True], room=say.room())


def _lines(row: Row, repetitions: int, found: Sequence[Value]) -> Iterator[str]:
    """The values of a row; below them the sources and what is to be said of those that differ."""
    from tcpknee.evidence.published import readable

    yield f"{row.name} ({human.counted(repetitions, 'repetition')}): {row.question}"
    rows = [["", "published", "ours", "ours / published"]]
    rows += [[one.verdict, f"{one.figure} {one.tolerance}".rstrip(), one.ours, one.ratio] for one in found]
    # Below each line stand its words, so that it is not folded.
    table = say.aligned(rows, left=[True, False, True, True])
    yield from table[:2]
    for one, line in zip(found, table[2:], strict=True):
        yield line
        yield f"  {readable(one.said.value)}{f' ({one.point})' if one.point else ''}"
    told = [one.said for one in found]
    for source in dict.fromkeys(f"{one.source}{' (second-hand)' if one.second_hand else ''}" for one in told):
        yield from textwrap.wrap(f"Source: {source}", 100, initial_indent="  ", subsequent_indent="    ")
    for one in found:
        if one.verdict != "inside":
            why = one.said.note or "Unexplained."
            yield from textwrap.wrap(f"{one.figure}: {why}", 100, initial_indent="  * ", subsequent_indent="    ")
    yield ""


def _summary(suite: Suite, told: Sequence[tuple[Row, Sequence[Value]]]) -> Iterator[str]:
    verdicts = [one.verdict for _, found in told for one in found]
    counts = ", ".join(f"{verdicts.count(word)} {word}" for word in dict.fromkeys(sorted(verdicts)))
    yield f"{suite.title}: {human.counted(len(verdicts), 'value')}, {counts}."
    yield (
        "Inside: the whole interval is in the published range, or within ± of a single figure, which is our tolerance."
    )

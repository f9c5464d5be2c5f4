"""`knee conform --against`: the simulator beside the results in a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tcpknee import say
from tcpknee.runs import engines, progress
from tcpknee.runs.output import SCHEMA
from tcpknee.say import aligned
from tcpknee.validation.conformance.text import value, verdict_line
from tcpknee.validation.references import beside, reference
from tcpknee.validation.references.beside import Beside
from tcpknee.validation.references.reference import Reference


def compare(file: Path, *, only: Sequence[str], workers: int | None, json: bool, quiet: bool) -> int:
    """`knee conform --against FILE`. Exit code 1 when something is outside its tolerance."""
    measured = reference.read(file)
    count = workers or engines.default_workers("sim")
    cells = beside.chosen(measured, only)
    keys = beside.every_repetition(cells)
    simulated = beside.simulate(measured, cells, keys, workers=count, watcher=progress.watcher(quiet=quiet))
    compared = beside.compare(cells, simulated)
    judged = beside.verdicts(compared)
    if json:
        said = {
            "schema": SCHEMA,
            "file": str(file),
            "facts": measured.facts,
            "compared": [asdict(entry) for entry in compared],
            "verdicts": [{**asdict(verdict), "ok": verdict.ok} for verdict in judged],
        }
        say.json(said)
    else:
        say.lines(_text(measured, compared))
        say.lines(["", "Over all cells"])
        say.lines(verdict_line(verdict) for verdict in judged)
    return 0 if all(verdict.ok for verdict in judged) else 1


def _text(measured: Reference, compared: Sequence[Beside]) -> list[str]:
    """A table for each suite, then what is outside."""
    facts = measured.facts
    lines = [f"{measured.file}: Linux {facts['kernel']}, HZ {facts['hz']}, clock {facts['clock']}"]
    for suite, groups in beside.groups(compared).items():
        rows = beside.table(groups)
        lines += ["", suite, *aligned(rows, left=[True, *[False] * (len(rows[0]) - 1)])]
    if outside := beside.outside(compared):
        lines += ["", "Outside", *_outside(outside)]
    return lines


def _outside(entries: Sequence[Beside]) -> list[str]:
    rows = [["line", "suite", "cell", "metric", "sim", "measured", "difference", "tolerance"]]
    for entry in entries:
        rows.append(
            [
                str(entry.line),
                f"{entry.suite} {entry.group}",
                entry.label,
                entry.metric,
                value(entry.metric, entry.sim),
                value(entry.metric, entry.kernel),
                beside.difference(entry),
                entry.tolerance,
            ]
        )
    return aligned(rows, left=(False, True, True, True, False, False, False, True))

"""`knee conform --against`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from kneepoint import beside, engines, progress, reference, say
from kneepoint.beside import Beside, Simulated
from kneepoint.cli.conforming import value, verdict_line
from kneepoint.output import SCHEMA, aligned


def compare(file: Path, *, only: Sequence[str], workers: int | None, json: bool, quiet: bool) -> int:
    """`knee conform --against FILE`. Exit code 1 when something is outside its tolerance."""
    measured = reference.read(file)
    count = workers or engines.default_workers("sim")
    found = beside.simulate(measured, only=only, workers=count, watcher=progress.watcher(quiet=quiet))
    judged = beside.verdicts(found.compared)
    if json:
        said = {
            "schema": SCHEMA,
            "file": str(file),
            "facts": measured.facts,
            "compared": [asdict(entry) for entry in found.compared],
            "verdicts": [{**asdict(verdict), "ok": verdict.ok} for verdict in judged],
        }
        say.json(said)
    else:
        say.lines(_text(found))
        say.lines(["", "Over all cells"])
        say.lines(verdict_line(verdict) for verdict in judged)
    return 0 if all(verdict.ok for verdict in judged) else 1


def _text(found: Simulated) -> list[str]:
    """A table for each suite, then what is outside."""
    facts = found.reference.facts
    lines = [f"{found.reference.file}: Linux {facts['kernel']}, HZ {facts['hz']}, clock {facts['clock']}"]
    for suite, groups in beside.groups(found.compared).items():
        rows = beside.table(groups)
        lines += ["", suite, *aligned(rows, left=[True, *[False] * (len(rows[0]) - 1)])]
    if outside := found.outside():
        lines += ["", "Outside", *_outside(outside)]
    return lines


def _outside(entries: Sequence[Beside]) -> list[str]:
    rows = [["line", "suite", "cell", "metric", "sim", "measured", "difference", "tolerance"]]
    for entry in entries:
        unit = f" {entry.unit}" if entry.unit else ""
        rows.append(
            [
                str(entry.line),
                f"{entry.suite} {entry.group}",
                entry.label,
                entry.metric,
                value(entry.metric, entry.sim),
                value(entry.metric, entry.kernel),
                "-" if entry.difference is None else f"{entry.difference:+.2f}{unit}",
                entry.tolerance,
            ]
        )
    return aligned(rows, left=(False, True, True, True, False, False, False, True))

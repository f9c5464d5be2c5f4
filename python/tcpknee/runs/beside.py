"""What stands beside a run without being of it: results of other tools, recordings, captures, and the simulator's
answer for a measured path. `run.json` has them as `beside`, so that text, pages and `--json` show the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpknee import human
from tcpknee.evidence.stats import Estimate

from .summary import Group

if TYPE_CHECKING:
    from .results import Run

FIRST_CELL = -1
"""Their rows have numbers of cells from here on downwards."""

SIMULATED = "sim"
"""The kind of what was simulated; all others were measured."""


@dataclass(frozen=True)
class Row:
    """What is compared: its name, its algorithm where that is known, metrics over `unit`, and lines over time."""

    name: str
    algorithm: str
    unit: str
    """What the intervals are over: test, connection, repetition."""
    metrics: Mapping[str, Estimate]
    lines: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    """Column of `samples` -> (seconds since it began, value)."""

    def json(self) -> dict[str, Any]:
        """In `run.json`."""
        metrics = {name: found.json() for name, found in self.metrics.items()}
        lines = {name: [list(point) for point in points] for name, points in self.lines.items()}
        return {"name": self.name, "algorithm": self.algorithm, "unit": self.unit, "metrics": metrics, "lines": lines}


@dataclass(frozen=True)
class Entry:
    """One thing beside a run."""

    label: str
    kind: str
    rows: Sequence[Row]
    path: Mapping[str, Any] | None = None
    """What is known of the path that it saw: `words`, `fitted` (by simulation), and rtt_us, rate_bits_per_sec and
    loss_pct, each with low and high (null: not bounded)."""
    notes: Sequence[str] = ()

    def json(self) -> dict[str, Any]:
        """In `run.json`."""
        rows = [row.json() for row in self.rows]
        return {"label": self.label, "kind": self.kind, "rows": rows, "path": self.path, "notes": list(self.notes)}


def of_run(meta: Mapping[str, Any]) -> list[Entry]:
    """As `run.json` has them."""
    return [
        Entry(
            one["label"],
            one["kind"],
            [
                Row(
                    row["name"],
                    row["algorithm"],
                    row["unit"],
                    {name: _estimate(found) for name, found in row["metrics"].items()},
                    {name: [(t, v) for t, v in points] for name, points in row["lines"].items()},
                )
                for row in one["rows"]
            ],
            one["path"],
            one["notes"],
        )
        for one in meta.get("beside", ())
    ]


def _estimate(found: Mapping[str, Any]) -> Estimate:
    is_one = found["low"] is not None and found["low"] == found["high"]
    return Estimate(found["mean"], found["low"], found["high"], found["n"], identical=is_one)


def groups(meta: Mapping[str, Any]) -> list[Group]:
    """Their rows as those of a run, with the numbers of cells that no run has."""
    every = [row for entry in of_run(meta) for row in entry.rows]
    return [
        Group(
            cell=FIRST_CELL - place,
            group=0,
            name=row.name,
            algorithm=row.algorithm or row.name,
            workload="bulk",
            count=1,
            axes={},
            reps=np.empty(0, dtype=np.int64),
            values={},
            each={},
            metrics=row.metrics,
            limited_by={},
        )
        for place, row in enumerate(every)
    ]


def lines(run: Run) -> Iterator[str]:
    """What text says of them, below the table."""
    for entry in of_run(run.meta):
        how = "simulated for the path that was measured" if entry.kind == SIMULATED else f"measured ({entry.kind})"
        counts = dict.fromkeys(human.counted(found.n, row.unit) for row in entry.rows for found in row.metrics.values())
        over = f", over {' and '.join(counts)}" if counts else ""
        yield f"{entry.label}: {how}{', and not simulated' if entry.kind != SIMULATED else ''}{over}."
        if entry.path:
            yield f"  Path that it saw: {entry.path['words']}"
        yield from (f"  {note}" for note in entry.notes)


def bounds(kind: str, low: float | None, high: float | None) -> str:
    """`40.1 ms`, `48.0 to 52.1 Mbit/s`, `at least 48.0 Mbit/s`, `at most 40.1 ms`."""
    if low is None or high is None:
        known = low if low is not None else high
        return f"at {'least' if high is None else 'most'} {human.quantity(kind, known or 0.0)}"
    one, other = human.quantity(kind, low), human.quantity(kind, high)
    return one if one == other else f"{one} to {other}"

"""What others published, beside ours: the rows of a suite that say what somebody printed, run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tcpknee.errors import ScenarioError
from tcpknee.evidence import expect, published
from tcpknee.evidence.expressions import parse_figure, parse_value, terms_in
from tcpknee.runs import api
from tcpknee.runs.pool import Watcher
from tcpknee.runs.results import Run
from tcpknee.runs.terms import OfCells

from .suite import Published, Row, Suite, put

INSIDE, OUTSIDE, UNDECIDED = "inside", "outside", "undecided"
_VERDICTS = {"holds": INSIDE, "fails": OUTSIDE, "undecided": UNDECIDED}


@dataclass(frozen=True)
class Value:
    """A published value, as the suite says it, beside ours. `verdict` says whether all of our interval is in the
    range, none of it, or a part. `tolerance`: what a single figure may be off by, `±10%`, else "". `point`: why there
    is no interval, "" where there is one."""

    said: Published
    beside: published.Beside
    verdict: str
    point: str

    @property
    def figure(self) -> str:
        return figure_text(self.said)

    @property
    def tolerance(self) -> str:
        return tolerance_text(self.said)

    @property
    def ours(self) -> str:
        return self.beside.ours_text

    @property
    def ratio(self) -> str:
        """Ours over a single figure."""
        return self.beside.ratio_text if len(self.said.figure) == 1 else ""

    def json(self) -> dict[str, Any]:
        """Numbers in `unit`; `published` has two of a range."""
        told = self.beside.json()
        numbers = [float(parse_figure(one).quantity.values[0]) for one in self.said.figure]
        return {
            "value": self.said.value,
            "verdict": self.verdict,
            "unit": told["unit"],
            "published": numbers,
            "tolerance_pct": float(self.said.tolerance.rstrip("% ")) if len(numbers) == 1 else None,
            "ours": told["ours"],
            "ratio": told["ratio"] if len(numbers) == 1 else None,
            "source": self.said.source,
            "second_hand": self.said.second_hand,
            "note": self.said.note or None,
            "point": self.point or None,
        }


def rows_of(suite: Suite) -> list[Row]:
    """Those with published values, which need no algorithm under test."""
    return [row for row in suite.rows if row.published and not row.uses_new]


def digest(row: Row) -> str:
    """Of all that decides its values but the version that runs it."""
    asked = [[one.value, *one.figure, one.tolerance] for one in row.published]
    measured = [row.measure] if row.measure else []
    return hashlib.sha256(json.dumps([row.scenario, asked, *measured]).encode()).hexdigest()


def repetitions(suite: Suite, row: Row) -> int:
    """Of each of its cells."""
    # Whatever stands for the algorithm under test.
    return api.parse(put(row.scenario, '"cubic"', '"cubic"'), _named(suite, row)).repeat


def run(suite: Suite, row: Row, *, workers: int | None = None, watcher: Watcher | None = None) -> list[Value]:
    """Runs the row's scenario in the simulator. Raises `ScenarioError`."""
    check(suite, row)
    found = api.run_text(row.scenario, _named(suite, row), out=None, workers=workers, watcher=watcher)
    return list(_values(row, found))


def measured(suite: Suite, row: Row, algorithm: str, *, workers: int | None = None) -> dict[str, str]:
    """What an algorithm gives of a row's measure, at each place of its axes (`buffer 1bdp, loss 1%`), CUBIC being the
    base."""
    text = put(row.scenario, f'"{algorithm}"', '"cubic"')
    found = api.run_text(text, _named(suite, row), out=None, workers=workers)
    meanings, node = OfCells(found.meta["cells"], found.summary), parse_value(row.measure)
    terms = terms_in(node)
    told = {}
    for place in meanings.places(terms):
        where = ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in place.items())
        told[where] = expect.shown_as_text(node.value({term: meanings.values(term, place) for term in terms}))
    return told


def check(suite: Suite, row: Row) -> None:
    """Raises `ScenarioError` where a value names what the scenario has not."""
    scenario = api.parse(row.scenario, _named(suite, row))
    meanings = OfCells(list(scenario.cells))
    entries = [published.Published(one.value, one.figure[0], one.source, one.line) for one in row.published]
    asked = [(one.assertion, one.line) for one in row.published]
    if mistakes := published.mistakes(entries, meanings) or expect.mistakes(asked, meanings):
        raise ScenarioError.of(str(suite.file), [(line, "value", said) for line, _, said in mistakes])


def _values(row: Row, found: Run) -> Iterator[Value]:
    meanings = OfCells(found.meta["cells"], found.summary)
    outcomes = expect.evaluate([(one.assertion, one.line) for one in row.published], meanings)
    for one, outcome in zip(row.published, outcomes, strict=True):
        entry = published.Published(one.value, one.figure[0], one.source, one.line)
        [beside] = published.beside([entry], meanings)
        yield Value(
            said=one,
            beside=beside,
            verdict=_VERDICTS[outcome.verdict],
            point=_point(one, meanings),
        )


def _point(one: Published, meanings: OfCells) -> str:
    node = parse_value(one.value)
    terms = terms_in(node)
    for place in meanings.places(terms):
        found = node.value({term: meanings.values(term, place) for term in terms}).estimate()
        if found is not None and found.n == 1:
            return "one repetition: no interval"
        if found is not None and found.identical:
            return "the same in each repetition: no interval"
    return ""


def figure_text(one: Published) -> str:
    """`12`, `9100 Mbit/s`, `48 to 49 Mbit/s`."""
    figures = [parse_figure(figure) for figure in one.figure]
    numbers = " to ".join(figure.number for figure in figures)
    return f"{numbers} {figures[-1].unit}".rstrip()


def tolerance_text(one: Published) -> str:
    """`±10%` around a single figure; "" for a range."""
    return f"±{one.tolerance}" if len(one.figure) == 1 else ""


def _named(suite: Suite, row: Row) -> str:
    return f"{suite.file}: {row.name}"

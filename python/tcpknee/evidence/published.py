"""`[[published]]`: figures that others printed, shown beside ours and never checked.

    [[published]]
    value  = "cubic[path.loss=\"1.5%\"].goodput"
    figure = "10.5Mbit/s"
    source = "article D: 10 Gbit/s VMs, Linux 5.8, netem"

`value` is an expression as on one side of an `[[expect]]`; it must mean one value, so it picks a value of every axis.
Another machine's absolute figures are not expected to match ours, so there is no verdict: the reader sees both, and
their ratio.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from . import written
from .expressions import Figure, Meanings, Problem, dimension, parse_figure, parse_value, terms_in
from .stats import Estimate

NOTE = "Figures of other machines are shown, never checked: absolute figures are not expected to match."
"""What every table of them says."""

_UNIT = {"rate": "bit/s", "time": "us", "bytes": "B", "pct": "%", "per_sec": "1/s"}
"""Unit of each kind in JSON, as in the tables; none for a ratio."""

_SELECTED = re.compile(r"(\w+)\[([^\]]*)\]\.([\w.]+)")


@dataclass(frozen=True)
class Published:
    """An entry of the scenario, as `run.json` keeps it; `line` is that of `value` in the file."""

    value: str
    figure: str
    source: str
    line: int


@dataclass(frozen=True)
class Beside:
    """A published figure and ours, both in `unit` ("" for a ratio); `ours` is None when no unit has it.

    `ratio` is ours / published; None also when the published figure is 0.
    """

    entry: Published
    unit: str
    published: float
    ours: Estimate | None
    ratio: Estimate | None
    figure: Figure
    per_unit: float
    is_ratio: bool

    @property
    def published_text(self) -> str:
        """The figure with the digits it was printed with: `10.5 Mbit/s`."""
        return f"{self.figure.number} {self.figure.unit}".rstrip()

    @property
    def ours_text(self) -> str:
        """Ours in the unit of the figure: `11.2 Mbit/s [10.9, 11.5]`; of a ratio `21.0× [19.4, 22.5]`."""
        if self.ours is None:
            return "-"
        if self.is_ratio:
            return " ".join(written.ratio(self.ours)).rstrip()
        number, bracket = written.bracketed(self.ours, self.per_unit)
        return " ".join(filter(None, (number, self.figure.unit, bracket)))

    @property
    def ratio_text(self) -> str:
        """`1.07× [1.04, 1.10]`."""
        return " ".join(written.ratio(self.ratio)).rstrip() if self.ratio else "-"

    def json(self) -> dict[str, Any]:
        """The entry of `--json`: figures in `unit`."""
        return {
            **asdict(self.entry),
            "unit": self.unit,
            "published": self.published,
            "ours": self.ours.json() if self.ours else None,
            "ratio": self.ratio.json() if self.ratio else None,
        }


def mistakes(entries: Sequence[Published], meanings: Meanings) -> list[tuple[int, str, str]]:
    """Values that cannot be read, that there are not, or that are not one value, as in
    `ScenarioError.mistakes`."""
    found = []
    for number, entry in enumerate(entries):
        try:
            _check(entry, meanings)
        except Problem as problem:
            found.append((entry.line, f"published.{number}.value", str(problem)))
    return found


def unread(entries: Sequence[Published]) -> list[tuple[int, str, str]]:
    """Values that cannot be read, whatever there is; those without text have been told of."""
    found = []
    for number, entry in enumerate(entries):
        try:
            if entry.value:
                parse_value(entry.value)
        except Problem as problem:
            found.append((entry.line, f"published.{number}.value", str(problem)))
    return found


def beside(entries: Sequence[Published], meanings: Meanings) -> list[Beside]:
    """Each figure with ours; `mistakes` found none in the entries."""
    return [_beside(entry, meanings) for entry in entries]


def readable(value: str) -> str:
    """An expression for people: `goodput of cubic (loss 1.5%)`, without selectors of cells."""

    def words(one: re.Match[str]) -> str:
        at = [f"{_called(key)} {value}" for key, value in re.findall(r'([\w.]+)="([^"]*)"', one[2])]
        return f"{one[3]} of {one[1]} ({', '.join(at)})"

    return _SELECTED.sub(words, value).replace("*", "×")


def _called(key: str) -> str:
    """A key without its table, but for those that both hosts have."""
    return key if key.startswith(("sender.", "receiver.")) else key.rpartition(".")[2]


def _check(entry: Published, meanings: Meanings) -> None:
    node, figure = parse_value(entry.value), parse_figure(entry.figure)
    used = terms_in(node)
    places = meanings.places(used)
    meant = {tuple(meanings.find(term, place) for term in used) for place in places}
    if len(meant) > 1:
        axis, value = next((key, value) for key, value in places[0].items() if value != places[-1][key])
        raise Problem(
            f'got "{entry.value}", which has a value at each {axis}; expected one value, as a published figure is. '
            f'Pick one, as in {used[0].name}[{axis}="{value}"].{used[0].metric}'
        )
    try:
        dimension(node).minus(figure.quantity)
    except Problem:
        raise Problem(
            f'got {dimension(node).unit()} beside the figure "{entry.figure}", which is {figure.quantity.unit()}; '
            "expected both of one kind. Write the figure with its unit, as it was printed"
        ) from None


def _beside(entry: Published, meanings: Meanings) -> Beside:
    node, figure = parse_value(entry.value), parse_figure(entry.figure)
    used = terms_in(node)
    place = meanings.places(used)[0]
    ours = node.value({term: meanings.values(term, place) for term in used})
    # A share beside a percentage is shown as one.
    ours = replace(ours, percent=ours.percent or figure.one.percent)
    kind, factor = ours.display()
    printed = float(figure.quantity.values[0]) * factor
    found = ours.estimate()
    return Beside(
        entry=entry,
        unit=_UNIT.get(kind, ""),
        published=printed,
        ours=found.map(lambda value: value * factor) if found else None,
        ratio=found.map(lambda value: value * factor / printed) if found and printed else None,
        figure=figure,
        per_unit=float(figure.one.values[0]) * factor,
        is_ratio=ours.is_ratio,
    )

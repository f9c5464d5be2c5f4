"""Two traces, captures or recordings laid over each other: each begins at 0, and their lines have their folders'
names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tcpknee.datasets.dataset import Dataset
from tcpknee.errors import UsageError

from . import palette
from .observed import Observed

if TYPE_CHECKING:
    from .connections import Connection, Connections
    from .encode import Block
    from .run import Condition
    from .sources import Panel, Source

LINES_AT_MOST = 4
"""Connections of each that are shown, those that sent most: more lines hide each other."""


class Beside(Observed):
    """The first dataset, and another of the same kind of series laid over it."""

    def __init__(self, now: Dataset, before: Dataset) -> None:
        super().__init__(now)
        self.other = Observed(before)
        if self.source is not None and self.other.source is not None and self.source != self.other.source:
            raise UsageError(
                f"--against: {before.path} has series of {self.other.source.table}, and {now.path} of "
                f"{self.source.table}; expected two of one kind."
            )

    @property
    def sides(self) -> list[tuple[str, Dataset]]:
        names = [dataset.path.resolve().name for dataset in (self.other.dataset, self.dataset)]
        if names[0] == names[1]:
            names = [str(dataset.path) for dataset in (self.other.dataset, self.dataset)]
        return list(zip(names, (self.other.dataset, self.dataset), strict=True))

    @cached_property
    def series(self) -> Any:
        """As of one dataset, with the lines of both."""
        (before, _), (now, _) = self.sides
        return _Laid([(before, self.other.series), (now, super().series)])

    @property
    def has_series(self) -> bool:
        return super().has_series and self.other.has_series


class _Laid:
    """Series of two, as `Connections` has those of one."""

    as_bands = False

    def __init__(self, sides: list[tuple[str, Connections]]) -> None:
        self._sides = sides

    @property
    def source(self) -> Source:
        return self._sides[0][1].source

    @cached_property
    def panels(self) -> tuple[Panel, ...]:
        return tuple(dict.fromkeys(panel for _, series in self._sides for panel in series.panels))

    @property
    def shown(self) -> list[Connection]:
        return [replace(one, label=f"{name}: {one.label}") for name, series in self._sides for one in _first(series)]

    @property
    def total(self) -> int:
        return sum(series.total for _, series in self._sides)

    @property
    def end_ns(self) -> int:
        return max(series.end_ns for _, series in self._sides)

    def looks(self) -> Iterator[tuple[str, str, int]]:
        """(label, colour, place in the palette) of each line: those of one rank are neighbours in colour."""
        for side, (name, series) in enumerate(self._sides):
            for rank, one in enumerate(_first(series)):
                yield f"{name}: {one.label}", palette.colour(2 * rank + side), side

    def lines(self, condition: Condition | None = None) -> dict[str, list[Block]]:
        found: dict[str, list[Block]] = {panel.name: [] for panel in self.panels}
        for name, series in self._sides:
            shown = {one.label for one in _first(series)}
            for panel, blocks in series.lines(condition).items():
                for block in blocks:
                    if block.constants["series"] in shown:
                        label = f"{name}: {block.constants['series']}"
                        found[panel].append(replace(block, constants={"series": label, "entrant": label}))
        return found


def _first(series: Connections) -> list[Connection]:
    return series.shown[:LINES_AT_MOST]

"""Several runs as one that figures can draw: cells of all under common conditions, each entrant named by its run."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from tcpknee.errors import MissingTable
from tcpknee.runs import engines_text
from tcpknee.runs.results import Run
from tcpknee.runs.summary import Summary

from .run import Entrant, ReportRun

if TYPE_CHECKING:
    import pyarrow as pa

    from tcpknee.datasets.table import Table
    from tcpknee.runs.differences import Diff

Axes = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Part:
    """A run among several, and what it is called. By the numbers of its cells: axes that stand for their own, and what
    an entrant is called by besides its algorithm, where that is not the run's name."""

    run: Run
    name: str
    axes: Mapping[int, Axes] = field(default_factory=dict)
    who: Mapping[int, str] = field(default_factory=dict)


class _Rows(Run):
    """The rows of several runs, those of each with numbers of cells behind those of the one before."""

    def __init__(self, meta: Mapping[str, Any], runs: Sequence[Run], shifts: Sequence[int]) -> None:
        super().__init__(meta)
        self._runs, self._shifts = tuple(runs), tuple(shifts)

    def table(self, name: str) -> Table:
        from tcpknee.datasets.table import Table

        if name not in self._tables:
            self._tables[name] = Table(self.rows(name))
        return self._tables[name]

    def rows(self, name: str, columns: Sequence[str] | None = None, **equals: int) -> pa.Table:
        if "cell" in equals:
            at = bisect_right(self._shifts, equals["cell"]) - 1
            return self._runs[at].rows(name, columns, **{**equals, "cell": equals["cell"] - self._shifts[at]})
        import pyarrow as pa

        found = []
        for run, shift in zip(self._runs, self._shifts, strict=True):
            with suppress(MissingTable):
                found.append(_shifted(run.rows(name, columns, **equals), shift))
        if not found:
            raise MissingTable(f"none of the runs has the table {name!r}.")
        return pa.concat_tables(found, promote_options="permissive")

    @cached_property
    def summary(self) -> Summary:
        groups, totals = [], []
        for run, shift in zip(self._runs, self._shifts, strict=True):
            groups += [replace(group, cell=group.cell + shift) for group in run.summary.groups]
            totals += [replace(total, cell=total.cell + shift) for total in run.summary.totals]
        return Summary(groups, totals, [])


def _shifted(table: pa.Table, shift: int) -> pa.Table:
    """With plain texts, which tables of different dictionaries can be put behind one another, and shifted cells."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(place, column.name, table[place].cast(column.type.value_type))
        elif column.name == "cell" and shift:
            moved = pc.add(table[place], pa.scalar(shift, column.type))
            table = table.set_column(place, column, moved)
    return table


class Joined(ReportRun):
    """Several runs, beside each other."""

    def __init__(self, joined: Sequence[Part]) -> None:
        sizes = [1 + max(cell["index"] for cell in part.run.meta["cells"]) for part in joined]
        shifts = [0, *accumulate(sizes[:-1])]
        self._joined = list(zip(joined, shifts, strict=True))
        self._parts = [(ReportRun(part.run), shift, part.name) for part, shift in self._joined]
        cells = [
            {**cell, "index": cell["index"] + shift, "axes": part.axes.get(cell["index"], cell["axes"])}
            for part, shift in self._joined
            for cell in part.run.meta["cells"]
        ]
        # What is compared stands together, and in the order of the first run.
        order = [cell["axes"] for cell in cells]
        cells.sort(key=lambda cell: order.index(cell["axes"]))
        runs = [part.run for part in joined]
        super().__init__(_Rows({**runs[-1].meta, "cells": cells}, runs, shifts))

    @classmethod
    def of_diff(cls, diff: Diff) -> Joined:
        """The two runs of a diff."""
        axes: list[dict[int, Axes]] = [{}, {}]
        for one in diff.compared:
            axes[0][one.a.cell] = axes[1][one.b.cell] = [list(axis) for axis in one.place]
        runs = (diff.a, diff.b)
        return cls([Part(run, name, own) for run, name, own in zip(runs, diff.names, axes, strict=True)])

    @classmethod
    def of_engines(cls, runs: Sequence[Run]) -> Joined:
        """Runs of one scenario by several engines: cells that differ in the kernel alone stand together."""
        joined = []
        for run in runs:
            cells = range(len(run.meta["cells"]))
            axes = {cell: [list(axis) for axis in engines_text.axes_of(run, cell)] for cell in cells}
            joined.append(Part(run, run.meta["engine"], axes, {cell: engines_text.who(run, cell) for cell in cells}))
        return cls(joined)

    @property
    def parts(self) -> list[tuple[ReportRun, int, str]]:
        return self._parts

    @cached_property
    def entrants(self) -> list[Entrant]:
        """Of every run. Each has the name of its run too, and its colour by both."""
        found = list(self._named())
        cells = list(self.cells)
        return sorted(found, key=lambda entrant: (cells.index(entrant.cell), entrant.group))

    def _named(self) -> Iterator[Entrant]:
        for (part, shift), (own, *_) in zip(self._joined, self._parts, strict=True):
            for entrant in own.entrants:
                cell = entrant.cell + shift
                who = part.who.get(entrant.cell, part.name)
                yield replace(
                    entrant,
                    cell=cell,
                    condition=self.condition_of[cell].index,
                    algorithm=f"{entrant.algorithm}, {who}",
                    label=f"{entrant.label}, {who}",
                )

    @cached_property
    def slots(self) -> dict[str, int]:
        """In the order in which they stand, so that what is compared differs in colour."""
        return {name: place for place, name in enumerate(dict.fromkeys(one.algorithm for one in self.entrants))}

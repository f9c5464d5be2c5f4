"""Two runs as one that figures can draw: the cells of both under common conditions, each entrant named by its run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tcpknee.errors import MissingTable
from tcpknee.runs.results import Run
from tcpknee.runs.summary import Summary

from .run import Entrant, ReportRun

if TYPE_CHECKING:
    import pyarrow as pa

    from tcpknee.datasets.table import Table
    from tcpknee.runs.differences import Diff


class _Joined(Run):
    """The rows of two runs, those of the second with numbers of cells behind those of the first."""

    def __init__(self, meta: Mapping[str, Any], runs: Sequence[Run], shift: int) -> None:
        super().__init__(meta)
        self._runs, self._shift = tuple(runs), shift

    def table(self, name: str) -> Table:
        from tcpknee.datasets.table import Table

        if name not in self._tables:
            self._tables[name] = Table(self.rows(name))
        return self._tables[name]

    def rows(self, name: str, columns: Sequence[str] | None = None, **equals: int) -> pa.Table:
        if "cell" in equals:
            second = equals["cell"] >= self._shift
            at = equals["cell"] - (self._shift if second else 0)
            return self._runs[second].rows(name, columns, **{**equals, "cell": at})
        import pyarrow as pa

        found = []
        for run, shift in zip(self._runs, (0, self._shift), strict=True):
            with suppress(MissingTable):
                found.append(_shifted(run.rows(name, columns, **equals), shift))
        if not found:
            raise MissingTable(f"neither run has the table {name!r}.")
        return pa.concat_tables(found, promote_options="permissive")

    @cached_property
    def summary(self) -> Summary:
        groups, totals = [], []
        for run, shift in zip(self._runs, (0, self._shift), strict=True):
            groups += [replace(group, cell=group.cell + shift) for group in run.summary.groups]
            totals += [replace(total, cell=total.cell + shift) for total in run.summary.totals]
        return Summary(groups, totals, [])


def _shifted(table: pa.Table, shift: int) -> pa.Table:
    """With plain texts, which tables of different dictionaries can be put behind one another, and shifted cells."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(place, field.name, table[place].cast(field.type.value_type))
        elif field.name == "cell" and shift:
            moved = pc.add(table[place], pa.scalar(shift, field.type))
            table = table.set_column(place, field, moved)
    return table


class Both(ReportRun):
    """The two runs of a diff."""

    def __init__(self, diff: Diff) -> None:
        runs = (diff.a, diff.b)
        shift = 1 + max(cell["index"] for cell in diff.a.meta["cells"])
        self._parts = [(ReportRun(run), at, name) for run, at, name in zip(runs, (0, shift), diff.names, strict=True)]
        axes = {}
        for one in diff.compared:
            axes[one.a.cell] = axes[one.b.cell + shift] = [list(axis) for axis in one.place]
        cells = [
            {**cell, "index": cell["index"] + at, "axes": axes.get(cell["index"] + at, cell["axes"])}
            for run, at in zip(runs, (0, shift), strict=True)
            for cell in run.meta["cells"]
        ]
        # What is compared stands together, and in the order of the first run.
        order = [cell["axes"] for cell in cells]
        cells.sort(key=lambda cell: order.index(cell["axes"]))
        super().__init__(_Joined({**diff.b.meta, "cells": cells}, runs, shift))

    @property
    def parts(self) -> list[tuple[ReportRun, int, str]]:
        return self._parts

    @cached_property
    def entrants(self) -> list[Entrant]:
        """Those of both, of which each is called by its run too: by that they have their colours."""
        found = list(self._named())
        cells = list(self.cells)
        return sorted(found, key=lambda entrant: (cells.index(entrant.cell), entrant.group))

    def _named(self) -> Iterator[Entrant]:
        for part, shift, name in self._parts:
            for entrant in part.entrants:
                cell = entrant.cell + shift
                yield replace(
                    entrant,
                    cell=cell,
                    condition=self.condition_of[cell].index,
                    algorithm=f"{entrant.algorithm}, {name}",
                    label=f"{entrant.label}, {name}",
                )

    @cached_property
    def slots(self) -> dict[str, int]:
        """In the order in which they stand, so that what is compared differs in colour."""
        return {name: place for place, name in enumerate(dict.fromkeys(one.algorithm for one in self.entrants))}

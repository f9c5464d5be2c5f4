"""What the terms of expressions mean in a scenario: which cell and group, and their values after the run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from tcpknee import algorithms, human
from tcpknee.evidence import metrics
from tcpknee.evidence.expressions import Place, Problem, Quantity, Term, kind_of
from tcpknee.evidence.stats import Unit

from .summary import REPETITION, Group, Summary, Total

_OF_FLOW = re.compile(r"flow\.(\d+)\.(?:algorithm|name)")
"""Axes that tell a flow by what it is called."""


@dataclass(frozen=True, eq=False)
class OfCells:
    """Terms as a scenario means them: names are flows or algorithms, axes are those of its cells. `summary` has their
    values; None before the run. `each`: values of a repetition count that others lack."""

    cells: Sequence[Mapping[str, Any]]
    summary: Summary | None = None
    each: bool = False

    @property
    def unit(self) -> Unit:
        return REPETITION

    def places(self, terms: Sequence[Term]) -> list[dict[str, str]]:
        """Every combination of the values of axes that some term leaves open. Raises `Problem`."""
        axes = self._axes
        for term in terms:
            for key, value in term.index:
                if key not in axes:
                    known = ", ".join(axes) or "none"
                    raise Problem(f'got the axis "{key}"; expected an axis of this scenario: {known}')
                if value not in axes[key]:
                    raise Problem(f'got {key}="{value}"; expected one of {", ".join(axes[key])}')
        free = [key for key in axes if not all(_fixed(key, term, self.cells) for term in terms)]
        return [dict(zip(free, values, strict=True)) for values in self._combinations(free)]

    @cached_property
    def _axes(self) -> dict[str, dict[str, int]]:
        """Each axis with its values and their order."""
        axes: dict[str, dict[str, int]] = {}
        for cell in self.cells:
            for key, value in cell["axes"]:
                values = axes.setdefault(key, {})
                values.setdefault(value, len(values))
        return axes

    def _combinations(self, free: Sequence[str]) -> list[tuple[str, ...]]:
        """The combinations of values of these axes that cells have: axes of a zip or a sample have few of those that
        could be. A parameter of bbr1 is no axis of cubic's cells, which have each of its values."""
        found = {tuple(dict(cell["axes"]).get(key) for key in free) for cell in self.cells}
        whole = {tuple(value for value in values if value is not None) for values in found if None not in values}
        projected: dict[tuple[int, ...], set[tuple[str, ...]]] = {}
        for values in found - whole:
            has = tuple(at for at, value in enumerate(values) if value is not None)
            if has not in projected:
                projected[has] = {tuple(one[at] for at in has) for one in whole}
            if tuple(values[at] for at in has) not in projected[has]:
                choices = (
                    [value] if value is not None else self._axes[key] for key, value in zip(free, values, strict=True)
                )
                whole |= set(product(*choices))
        orders = [self._axes[key] for key in free]
        return sorted(whole, key=lambda values: [order[value] for order, value in zip(orders, values, strict=True)])

    def find(self, term: Term, place: Place) -> tuple[int, int]:
        """(cell, group) that a term means; group -1 is the whole cell. Raises `Problem`."""
        names = _metric_names(term.name)
        if term.metric not in names:
            sized = {metric.name for metric in metrics.METRICS if metric.sizes}
            shown = [name for name in names if name not in sized]
            if len(shown) < len(names):
                shown[-1] += f" or, of transfers of one size, transfers, completion_us_p99 … with {_endings()}"
            raise Problem(
                f'got the metric "{term.metric}" of {term.name}; '
                + human.suggest(term.metric, names, "expected one of", shown)
            )
        wanted = {**place, **dict(term.index)}
        # A parameter of bbr1 is no axis of cubic's cells, which then stand for each of its values.
        in_place = [self.cells[at] for at in self._at(wanted)]
        if term.name == "total":
            found = [(int(cell["index"]), -1) for cell in in_place]
        else:
            by_algorithm = _groups(algorithms.ours(term.name), "algorithm", in_place)
            found = _groups(term.name, "name", in_place) or by_algorithm
        if not found:
            known = sorted(
                {text for cell in self.cells for flow in cell["flows"] for text in (flow["name"], flow["algorithm"])}
            )
            if term.name in known:
                where = ", ".join(f'{key}="{value}"' for key, value in place.items() if key not in dict(term.index))
                raise Problem(
                    f"{term} means nothing in the cells with {where}, where no flow is called so; they are looked at, "
                    "as another name of the assertion stands for flows there. Give the flows names (`name = ...`) or "
                    'pick an axis, as in NAME[flow.0.algorithm="bbr1"].goodput'
                )
            raise Problem(
                f'got "{term.name}"; ' + human.suggest(term.name, [*known, "total"], "expected a flow or an algorithm:")
            )
        if len(found) > 1:
            raise Problem(
                f"{term} could mean {len(found)} groups of flows; give the flows names (`name = ...`) or pick an axis, "
                f'as in {term.name}[path.rtt="100ms"].{term.metric}'
            )
        return found[0]

    @cached_property
    def _positions(self) -> dict[tuple[str, str | None], list[int]]:
        """Where in `cells` an axis has a value; None: where it is no axis."""
        found: dict[tuple[str, str | None], list[int]] = {}
        for at, cell in enumerate(self.cells):
            values = dict(cell["axes"])
            for key in self._axes:
                found.setdefault((key, values.get(key)), []).append(at)
        return found

    def _at(self, wanted: Mapping[str, str]) -> Sequence[int]:
        """Where in `cells` all of these axes have that value, as far as they are axes there."""
        known = [(key, value) for key, value in wanted.items() if key in self._axes]
        if not known:
            return range(len(self.cells))
        # The row of a sample leaves a few cells of thousands.
        at = min((self._where(key, value) for key, value in known), key=len)
        fits = [at for at in at if all(dict(self.cells[at]["axes"]).get(key, value) == value for key, value in known)]
        return sorted(fits)

    def _where(self, key: str, value: str) -> list[int]:
        return [*self._positions.get((key, value), []), *self._positions.get((key, None), [])]

    @cached_property
    def _rows(self) -> dict[tuple[int, int], Group | Total]:
        """The summary's groups, and totals with group -1, by their cell."""
        assert self.summary is not None, "nothing was run yet"
        totals: dict[tuple[int, int], Group | Total] = {(row.cell, -1): row for row in self.summary.totals}
        return totals | {(row.cell, row.group): row for row in self.summary.groups}

    @cached_property
    def _repeat(self) -> int:
        assert self.summary is not None, "nothing was run yet"
        return 1 + max((int(row.reps.max()) for row in self.summary.groups), default=0)

    def values(self, term: Term, place: Place) -> Quantity:
        """A term's value in each repetition, NaN where it has none."""
        name = metrics.ALIASES.get(term.metric, term.metric)
        found = self._rows.get(self.find(term, place))
        series = np.full(self._repeat, np.nan)
        if found is not None:
            own = found.each if self.each and isinstance(found, Group) else found.values
            series[found.reps] = own[name]
        return Quantity.of_metric(kind_of(term), series)


def _fixed(key: str, term: Term, cells: Sequence[Mapping[str, Any]]) -> bool:
    """Does the term itself settle that axis, by its index or by naming a value of it?"""
    if key in dict(term.index):
        return True
    flow = _OF_FLOW.fullmatch(key)
    if flow is None:
        return False
    group, names = int(flow[1]), {term.name, algorithms.ours(term.name)}
    meant = [
        flow["group"] == group and dict(cell["axes"])[key] in names
        for cell in cells
        for flow in cell["flows"]
        if names & {flow["name"], flow["algorithm"]}
    ]
    return bool(meant) and all(meant)


def _groups(name: str, attribute: str, cells: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    return [
        (int(cell["index"]), int(flow["group"])) for cell in cells for flow in cell["flows"] if flow[attribute] == name
    ]


def _endings() -> str:
    return ", ".join(f"_{sizes.name}" for sizes in metrics.SIZES)


def _metric_names(name: str) -> list[str]:
    if name == "total":
        return [metric.name for metric in metrics.TOTALS] + ["goodput", "utilization"]
    limits = [f"limited_by.{limit}" for limit in metrics.LIMITED_BY]
    short = [alias for alias, full in metrics.ALIASES.items() if full != "utilisation"]
    return [*short, *(metric.name for metric in metrics.METRICS), *limits]

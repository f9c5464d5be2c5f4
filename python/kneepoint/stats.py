"""Statistics over repetitions: metrics with 95 % intervals, and verdicts between algorithms on paired seeds.

Everything is computed from the tables of a run and the cells of its `run.json`. The unit of evidence is the
repetition: members of a group are combined first (see `metrics`), and repetition `r` of one cell is paired with
repetition `r` of another, which ran on the same seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from . import doubts, groups
from .metrics import BY_NAME, LIMITED_BY, SIZES, Sizes, of_sizes

Floats = npt.NDArray[np.float64]

LEVEL = 0.95
"""Confidence of every interval."""

MINIMAL_EFFECT = 0.05
"""The difference that a comparison should be able to decide: 5 %."""

LEAST_TO_ADVISE = 3
"""Repetitions from which on it is said how many would do. The deviation of two is known to a factor of 70 (95 %), that
of three to one of 12."""

FURTHEST_ADVICE = 10
"""Advice goes to so many times the repetitions that there are; beyond it says that more would be needed."""

_ROUNDING = 1e-12
"""Values closer than this share of themselves differ by the rounding of floats only."""


@dataclass(frozen=True)
class Estimate:
    """A mean over repetitions. `low` and `high` are None for a single repetition.

    The interval is Student's t at 95 %, cut to what the quantity can be (a rate is never below 0).
    `identical`: two or more repetitions, all with the same value.
    """

    mean: float
    low: float | None
    high: float | None
    n: int
    identical: bool = False

    def json(self) -> dict[str, float | int | None]:
        """The object of `--json`."""
        return {"mean": self.mean, "low": self.low, "high": self.high, "n": self.n}

    def map(self, function: Callable[[float], float]) -> Estimate:
        """Of a rising function of the quantity; of a falling one the ends change places."""
        ends = [None if end is None else function(end) for end in (self.low, self.high)]
        if None not in ends:
            ends.sort()
        return replace(self, mean=function(self.mean), low=ends[0], high=ends[1])


@dataclass(frozen=True, eq=False)
class Group:
    """One `[[flow]]` table in one cell: its metrics, and their values by repetition (NaN: does not apply there)."""

    cell: int
    group: int
    name: str
    algorithm: str
    workload: str
    count: int
    axes: Mapping[str, str]
    reps: npt.NDArray[np.int64]
    values: Mapping[str, Floats]
    metrics: Mapping[str, Estimate]
    limited_by: Mapping[str, Estimate]

    @property
    def sizes(self) -> list[Sizes]:
        """Those that some of its transfers are of."""
        counts = ((sizes, self.metrics.get(of_sizes("transfers", sizes))) for sizes in SIZES)
        return [sizes for sizes, count in counts if count and count.mean > 0]

    @property
    def limits(self) -> list[tuple[str, Estimate]]:
        """What held it back most: the two greatest shares of time, from 5 % on."""
        shares = sorted(self.limited_by.items(), key=lambda entry: entry[1].mean, reverse=True)
        return [(limit, found) for limit, found in shares[:2] if found.mean >= 0.05]


@dataclass(frozen=True, eq=False)
class Total:
    """A whole cell: goodput of all flows, the share of the link used, Jain's index where there are several flows."""

    cell: int
    axes: Mapping[str, str]
    reps: npt.NDArray[np.int64]
    values: Mapping[str, Floats]
    metrics: Mapping[str, Estimate]


@dataclass(frozen=True)
class Verdict:
    """A comparison of `b` with `a` in one metric.

    `found`: with `scale` "ratio" b / a as `ratio` has it; with "difference" b - a, where a zero makes ratios
    meaningless. `decision`: "more" (b above a), "less", "same" (identical in every repetition), "none shown" (the
    interval holds equality) or "single" (one repetition: no interval, no verdict). `shared`: both ran in the same cell
    and the values are per flow. `too_wide`: the interval holds equality and is too wide to decide `MINIMAL_EFFECT`;
    `repetitions_needed` would then do. It is None where the repetitions at hand are fewer than `LEAST_TO_ADVISE`, or
    where it would be more than `FURTHEST_ADVICE` times as many.
    """

    metric: str
    a: str
    b: str
    cells: tuple[int, int]
    axes: Mapping[str, str]
    shared: bool
    scale: str
    found: Estimate
    decision: str
    too_wide: bool
    repetitions_needed: int | None
    text: str
    primary: bool

    @property
    def value(self) -> float:
        return self.found.mean

    @property
    def low(self) -> float | None:
        return self.found.low

    @property
    def high(self) -> float | None:
        return self.found.high

    @property
    def n(self) -> int:
        return self.found.n

    def json(self) -> dict[str, Any]:
        """The object of `--json`."""
        return {
            "metric": self.metric,
            "a": self.a,
            "b": self.b,
            "cells": list(self.cells),
            "axes": dict(self.axes),
            "shared": self.shared,
            self.scale: self.found.json(),
            "decision": self.decision,
            "too_wide": self.too_wide,
            "repetitions_needed": self.repetitions_needed,
            "text": self.text,
        }


@dataclass(frozen=True)
class Summary:
    """All that the statistics say of a run, in the order of the matrix."""

    groups: list[Group]
    totals: list[Total]
    verdicts: list[Verdict]
    warnings: list[str] = field(default_factory=list)

    @property
    def shown(self) -> list[Verdict]:
        """What text shows: the verdicts in the first metric of each pair. Warnings speak of these."""
        return shown(self.verdicts)


def shown(verdicts: list[Verdict]) -> list[Verdict]:
    """Those in the first metric of each pair; all, where no pair has one."""
    return [verdict for verdict in verdicts if verdict.primary] or verdicts


def summarise(
    flows: pa.Table,
    queue: pa.Table | None,
    cells: Sequence[Mapping[str, Any]],
    programs: pa.Table | None = None,
) -> Summary:
    """Summary of a run's tables; `cells` as in `run.json`.

    Without `queue` no use of the link; `programs` gives groups of external programs what those measured themselves.
    """
    from .verdicts import compare_groups

    by_cell = {int(cell["index"]): cell for cell in cells}
    found = [_group(by_cell[part.cell], part) for part in groups.of_flows(flows, by_cell, programs)]
    totals = [_total(by_cell[part.cell], part) for part in groups.of_cells(flows, queue, by_cell)]
    verdicts = compare_groups(found)
    return Summary(found, totals, verdicts, _warnings(found, shown(verdicts), by_cell))


UNBOUNDED = (-float("inf"), float("inf"))


def estimate(values: npt.ArrayLike, bounds: tuple[float, float] = UNBOUNDED) -> Estimate | None:
    """Mean and 95 % interval over repetitions, cut to `bounds`; NaN values do not count; None without any value."""
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    n = len(known)
    if n == 0:
        return None
    if n == 1:
        return Estimate(float(known[0]), None, None, 1)
    value = float(known[0])
    if np.all(np.abs(known - value) <= _ROUNDING * abs(value)):
        return Estimate(value, value, value, n, identical=True)
    mean, half = float(known.mean()), half_width(float(known.std(ddof=1)), n)
    return Estimate(mean, max(mean - half, bounds[0]), min(mean + half, bounds[1]), n)


def ratio(quotients: npt.ArrayLike) -> Estimate | None:
    """The ratio of two measured quantities from its value in each repetition: the geometric mean, and the 95 % interval
    of the mean logarithm. So a / b is exactly 1 / (b / a). None where there is no value, or one that is not above 0.
    """
    known = np.asarray(quotients, dtype=np.float64)
    known = known[~np.isnan(known)]
    if not len(known) or np.any(known <= 0):
        return None
    found = estimate(known)
    assert found is not None
    if found.identical and abs(found.mean - 1) <= _ROUNDING:
        return Estimate(1.0, 1.0, 1.0, found.n, identical=True)
    if found.identical or found.n == 1:
        return found
    logarithms = estimate(np.log(known))
    assert logarithms is not None
    return logarithms.map(lambda value: float(np.exp(value)))


def half_width(deviation: float, n: int) -> float:
    """Half the 95 % interval of a mean of `n` >= 2 values with that sample standard deviation."""
    return t_quantile(n - 1) * deviation / float(np.sqrt(n))


@lru_cache(maxsize=256)
def t_quantile(degrees: int) -> float:
    """Two-sided 95 % quantile of Student's t: 12.706 for one degree of freedom, 1.96 for very many."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.5 + LEVEL / 2))


def repetitions_for(deviation: float, half: float) -> int:
    """The least number of repetitions whose 95 % interval is `half` or less to each side, at that deviation."""
    low, high = 1, 2
    while half_width(deviation, high) > half:
        low, high = high, high * 2
        if high > 1 << 30:
            return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if half_width(deviation, middle) > half else (low, middle)
    return high


def _group(cell: Mapping[str, Any], part: groups.Part) -> Group:
    spec: Mapping[str, Any] = next((flow for flow in cell["flows"] if flow["group"] == part.group), {})
    estimates = {
        name: estimate(values, BY_NAME[name].bounds) for name, values in part.values.items() if name in BY_NAME
    }
    shares = {limit: estimate(part.values[f"limited_by.{limit}"], (0.0, 1.0)) for limit in LIMITED_BY}
    return Group(
        cell=part.cell,
        group=part.group,
        name=part.name,
        algorithm=part.algorithm,
        workload=part.workload,
        count=int(spec.get("count", 1)),
        axes=dict(cell["axes"]),
        reps=part.reps,
        values=part.values,
        metrics={name: found for name, found in estimates.items() if found is not None},
        limited_by={limit: found for limit, found in shares.items() if found is not None},
    )


def _total(cell: Mapping[str, Any], part: groups.Part) -> Total:
    estimates = {name: estimate(values, BY_NAME[name].bounds) for name, values in part.values.items()}
    known = {name: found for name, found in estimates.items() if found is not None}
    return Total(part.cell, dict(cell["axes"]), part.reps, part.values, known)


def _warnings(
    found: Sequence[Group], verdicts: Sequence[Verdict], by_cell: Mapping[int, Mapping[str, Any]]
) -> list[str]:
    counts = {len(group.reps) for group in found}
    lines = []
    if counts == {1}:
        lines.append("One repetition: no intervals and no verdicts; `repeat = 5` in the scenario would give them.")
    elif len(counts) > 1:
        lines.append(f"Cells have between {min(counts)} and {max(counts)} repetitions: the run is not complete.")
    if counts and min(counts) > 1 and all(m.identical for group in found for m in group.metrics.values()):
        lines.append(
            "Every repetition is identical: nothing in this scenario is random, so one would do (`repeat = 1`)."
        )
    wide = [verdict for verdict in verdicts if verdict.too_wide]
    if wide:
        are = "is" if len(wide) == 1 else "are"
        lines.append(
            f"{len(wide)} of {len(verdicts)} comparison{'s' if len(verdicts) > 1 else ''} {are} too wide to decide a "
            f"difference of {MINIMAL_EFFECT * 100:.0f} %; {_advice(wide)}."
        )
    for group in found:
        missing = int(np.sum(group.values["unfinished"]))
        if missing:
            lines.append(
                f"cell {group.cell}, {group.name}: {missing} of {int(np.sum(group.values['members']))} transfers were "
                "not complete when the run ended, so late percentiles of their completion are missing; "
                "a longer `duration` would show them."
            )
    lines += doubts.of_settings(list(by_cell.values()))
    missing_cells = sorted(set(by_cell) - {group.cell for group in found})
    if missing_cells:
        lines.append(f"{len(missing_cells)} of {len(by_cell)} cells have no repetition yet.")
    return lines


def _advice(wide: Sequence[Verdict]) -> str:
    """How many repetitions would narrow all of these."""
    beyond = [verdict.n for verdict in wide if verdict.repetitions_needed is None]
    if beyond and min(beyond) < LEAST_TO_ADVISE:
        return f"how many repetitions would do is told from {LEAST_TO_ADVISE} on"
    if beyond:
        return f"more than {FURTHEST_ADVICE * max(beyond)} repetitions would be needed"
    most = max(verdict.repetitions_needed or 0 for verdict in wide)
    return f"about {most} repetitions would do (`repeat = {most}`)"

"""Pairwise verdicts between algorithms: which differ, by how much, and where the data cannot tell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from . import human, metrics
from .stats import (
    FURTHEST_ADVICE,
    LEAST_TO_ADVISE,
    MINIMAL_EFFECT,
    Floats,
    Group,
    Verdict,
    estimate,
    half_width,
    repetitions_for,
)


def compare_groups(found: Sequence[Group]) -> list[Verdict]:
    """Verdicts for groups of cells equal but for one algorithm, and for groups that share a cell."""
    verdicts = []
    for a, b, shared in _pairs(found):
        for position, name in enumerate(metrics.compared(a.workload)):
            verdict = _compare(a, b, name, shared=shared, primary=position == 0)
            if verdict is not None:
                verdicts.append(verdict)
    return verdicts


def _pairs(found: Sequence[Group]) -> Iterator[tuple[Group, Group, bool]]:
    alike: dict[tuple[object, ...], list[Group]] = {}
    sharing: dict[int, list[Group]] = {}
    for group in found:
        axis = f"flow.{group.group}.algorithm"
        rest = tuple((key, value) for key, value in group.axes.items() if key != axis)
        alike.setdefault((group.group, group.workload, rest), []).append(group)
        sharing.setdefault(group.cell, []).append(group)
    for members in alike.values():
        yield from ((a, b, False) for a, b in combinations(members, 2) if a.algorithm != b.algorithm)
    for members in sharing.values():
        yield from ((a, b, True) for a, b in combinations(members, 2) if a.workload == b.workload)


def _compare(a: Group, b: Group, name: str, *, shared: bool, primary: bool) -> Verdict | None:
    left, right = _paired(a, b, name, shared=shared)
    n = len(left)
    if n == 0:
        return None
    ratio = bool(np.all(left > 0) and np.all(right > 0))
    steps = np.log(right / left) if ratio else right - left
    found = estimate(steps)
    assert found is not None
    value, low, high = found.mean, found.low, found.high
    decision = _decision(low, high)
    too_wide, needed = _needed(steps, left, ratio=ratio, decision=decision)
    if ratio:
        value = math.exp(value)
        low, high = (math.exp(low), math.exp(high)) if low is not None and high is not None else (None, None)
    labels = _labels(a, b, shared=shared)
    verdict = Verdict(
        metric=name,
        a=labels[0],
        b=labels[1],
        cells=(a.cell, b.cell),
        axes={key: value for key, value in a.axes.items() if b.axes.get(key) == value},
        shared=shared,
        scale="ratio" if ratio else "difference",
        value=value,
        low=low,
        high=high,
        n=n,
        decision=decision,
        too_wide=too_wide,
        repetitions_needed=needed,
        text="",
        primary=primary,
    )
    text = _text(verdict, identical=found.identical)
    return Verdict(**{**verdict.__dict__, "text": text})


def _paired(a: Group, b: Group, name: str, *, shared: bool) -> tuple[Floats, Floats]:
    """Values of the repetitions that both have; per flow when the groups share a cell."""
    _, in_a, in_b = np.intersect1d(a.reps, b.reps, return_indices=True)
    left, right = a.values[name][in_a], b.values[name][in_b]
    if shared and metrics.BY_NAME[name].how == "sum":
        left, right = left / a.values["members"][in_a], right / b.values["members"][in_b]
    known = ~np.isnan(left) & ~np.isnan(right)
    return left[known], right[known]


def _decision(low: float | None, high: float | None) -> str:
    """Of an interval around "no difference" = 0."""
    if low is None or high is None:
        return "single"
    if low == high == 0:
        return "same"
    if low > 0:
        return "more"
    return "less" if high < 0 else "none shown"


def _needed(steps: Floats, left: Floats, *, ratio: bool, decision: str) -> tuple[bool, int | None]:
    """Whether the interval is too wide to decide `MINIMAL_EFFECT`, and how many repetitions would do if that can be
    told."""
    half = math.log(1 + MINIMAL_EFFECT) if ratio else MINIMAL_EFFECT * float(np.mean(left))
    if decision != "none shown" or half <= 0:
        return False, None
    n, deviation = len(steps), float(np.std(steps, ddof=1))
    if half_width(deviation, n) <= half:
        return False, None
    needed = repetitions_for(deviation, half)
    return True, needed if n >= LEAST_TO_ADVISE and needed <= FURTHEST_ADVICE * n else None


def _labels(a: Group, b: Group, *, shared: bool) -> tuple[str, str]:
    names = (a.name, b.name) if shared else (a.algorithm, b.algorithm)
    return names if names[0] != names[1] else (f"{a.name} (flow {a.group})", f"{b.name} (flow {b.group})")


def _text(verdict: Verdict, *, identical: bool) -> str:
    """One sentence, the greater first: `bbr1 is 21× cubic [18, 25] in goodput`."""
    metric = metrics.BY_NAME[verdict.metric]
    flip = verdict.value < (1 if verdict.scale == "ratio" else 0)
    more, less = (verdict.a, verdict.b) if flip else (verdict.b, verdict.a)
    of = f"{metric.label} per flow" if verdict.shared and metric.how == "sum" else metric.label
    if verdict.decision == "same":
        return f"{of}: {verdict.a} and {verdict.b} are identical in every repetition"
    size = _size(verdict, metric, flip=flip)
    claim = f"{more} is {size} {less}" if verdict.scale == "ratio" else f"{more} is {size} above {less}"
    bracket = _bracket(verdict, metric, flip=flip)
    if verdict.decision == "single":
        return f"{of}: {claim} in the one repetition; no interval, so no verdict"
    if identical:
        return f"{of}: {claim}, identical in every repetition"
    if verdict.decision != "none shown":
        return f"{of}: {claim} {bracket}"
    text = f"{of}: no difference shown ({claim} {bracket})"
    if not verdict.too_wide:
        return text
    text += f"; too wide to decide {MINIMAL_EFFECT * 100:.0f} %"
    if verdict.repetitions_needed is not None:
        return f"{text}, about {verdict.repetitions_needed} repetitions would do"
    if verdict.n < LEAST_TO_ADVISE:
        return text
    return f"{text}, more than {FURTHEST_ADVICE * verdict.n} repetitions would be needed"


def _size(verdict: Verdict, metric: metrics.Metric, *, flip: bool) -> str:
    if verdict.scale == "ratio":
        value = 1 / verdict.value if flip else verdict.value
        if value >= 10:
            return f"{human.digits(value, 2)}×"
        # Enough digits to tell it from 1: 1.002×, not 1.00×.
        apart = 2 - math.floor(math.log10(value - 1)) if value > 1 else 3
        return f"{human.digits(value, min(max(apart, 3), 6))}×"
    return human.quantity(metric.kind, abs(verdict.value))


def _bracket(verdict: Verdict, metric: metrics.Metric, *, flip: bool) -> str:
    low, high = verdict.low, verdict.high
    if low is None or high is None:
        return ""
    if verdict.scale == "ratio":
        return human.interval(1 / high, 1 / low) if flip else human.interval(low, high)
    low, high = (-high, -low) if flip else (low, high)
    divisor, unit = human.scale(metric.kind, max(abs(low), abs(high)))
    return f"{human.interval(low / divisor, high / divisor)} {unit}".rstrip()

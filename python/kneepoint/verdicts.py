"""Pairwise verdicts between algorithms: which differ, by how much, and where the data cannot tell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from . import metrics, written
from .stats import (
    FURTHEST_ADVICE,
    LEAST_TO_ADVISE,
    MINIMAL_EFFECT,
    Estimate,
    Floats,
    Group,
    Verdict,
    estimate,
    half_width,
    ratio,
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
    if not len(left):
        return None
    is_ratio = bool(np.all(left > 0) and np.all(right > 0))
    found = ratio(right / left) if is_ratio else estimate(right - left)
    assert found is not None
    decision = _decision(found, 1.0 if is_ratio else 0.0)
    too_wide, needed = _needed(left, right, is_ratio=is_ratio) if decision == "none shown" else (False, None)
    labels = _labels(a, b, shared=shared)
    verdict = Verdict(
        metric=name,
        a=labels[0],
        b=labels[1],
        cells=(a.cell, b.cell),
        axes={key: value for key, value in a.axes.items() if b.axes.get(key) == value},
        shared=shared,
        scale="ratio" if is_ratio else "difference",
        found=found,
        decision=decision,
        too_wide=too_wide,
        repetitions_needed=needed,
        text="",
        primary=primary,
    )
    return replace(verdict, text=_text(verdict))


def _paired(a: Group, b: Group, name: str, *, shared: bool) -> tuple[Floats, Floats]:
    """Values of the repetitions that both have; per flow when the groups share a cell."""
    _, in_a, in_b = np.intersect1d(a.reps, b.reps, return_indices=True)
    left, right = a.values[name][in_a], b.values[name][in_b]
    if shared and metrics.BY_NAME[name].how == "sum":
        left, right = left / a.values["members"][in_a], right / b.values["members"][in_b]
    known = ~np.isnan(left) & ~np.isnan(right)
    return left[known], right[known]


def _decision(found: Estimate, equal: float) -> str:
    """Of an interval around what it is when there is no difference."""
    if found.low is None or found.high is None:
        return "single"
    if found.low == found.high == equal:
        return "same"
    if found.low > equal:
        return "more"
    return "less" if found.high < equal else "none shown"


def _needed(left: Floats, right: Floats, *, is_ratio: bool) -> tuple[bool, int | None]:
    """Whether the interval is too wide to decide `MINIMAL_EFFECT`, and how many repetitions would do if that can be
    told."""
    steps = np.log(right / left) if is_ratio else right - left
    half = math.log(1 + MINIMAL_EFFECT) if is_ratio else MINIMAL_EFFECT * float(np.mean(left))
    if half <= 0:
        return False, None
    n, deviation = len(steps), float(np.std(steps, ddof=1))
    if half_width(deviation, n) <= half:
        return False, None
    needed = repetitions_for(deviation, half)
    return True, needed if n >= LEAST_TO_ADVISE and needed <= FURTHEST_ADVICE * n else None


def _labels(a: Group, b: Group, *, shared: bool) -> tuple[str, str]:
    names = (a.name, b.name) if shared else (a.algorithm, b.algorithm)
    return names if names[0] != names[1] else (f"{a.name} (flow {a.group})", f"{b.name} (flow {b.group})")


def greater_first(verdict: Verdict) -> tuple[str, str, str, str]:
    """Who has more, who has less, how much more, and its interval: `("bbr1", "cubic", "21.0×", "[19.4, 22.5]")`."""
    flip = verdict.found.mean < (1 if verdict.scale == "ratio" else 0)
    more, less = (verdict.a, verdict.b) if flip else (verdict.b, verdict.a)
    if verdict.scale == "ratio":
        found = verdict.found.map(lambda value: 1 / value) if flip else verdict.found
        return more, less, *written.ratio(found)
    found = verdict.found.map(lambda value: -value) if flip else verdict.found
    return more, less, *written.quantity(found, metrics.BY_NAME[verdict.metric].kind)


def _text(verdict: Verdict) -> str:
    """One sentence, the greater first: `bbr1 is 21.0× cubic [19.4, 22.5] in goodput`."""
    metric = metrics.BY_NAME[verdict.metric]
    of = f"{metric.label} per flow" if verdict.shared and metric.how == "sum" else metric.label
    if verdict.decision == "same":
        return f"{of}: {verdict.a} and {verdict.b} are identical in every repetition"
    more, less, size, bracket = greater_first(verdict)
    claim = f"{more} is {size} {less}" if verdict.scale == "ratio" else f"{more} is {size} above {less}"
    if verdict.decision == "single":
        return f"{of}: {claim} in the one repetition; no interval, so no verdict"
    if verdict.found.identical:
        return f"{of}: {claim}, identical in every repetition"
    if verdict.decision != "none shown":
        return f"{of}: {claim} {bracket}"
    text = f"{of}: no difference shown ({claim} {bracket})"
    if not verdict.too_wide:
        return text
    text += f"; too wide to decide {MINIMAL_EFFECT * 100:.0f} %"
    n = verdict.found.n
    if verdict.repetitions_needed is not None:
        return f"{text}, about {verdict.repetitions_needed} repetitions would do"
    if n < LEAST_TO_ADVISE:
        return text
    return f"{text}, more than {FURTHEST_ADVICE * n} repetitions would be needed"

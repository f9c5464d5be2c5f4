"""Pairwise verdicts between groups: which differ, by how much, and where the data cannot tell."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from . import metrics, written
from .stats import (
    FURTHEST_ADVICE,
    LEAST_TO_ADVISE,
    LEAST_TO_LOOK,
    MINIMAL_EFFECT,
    Estimate,
    Floats,
    Indices,
    Unit,
    difference_apart,
    estimate,
    half_width,
    ratio,
    ratio_apart,
    units_for,
    while_looking,
)

SMALL = 0.01
"""Where nothing is random, intervals exclude equality by a thousandth. A verdict says where all of its interval is
nearer to it than this."""


@dataclass(frozen=True, eq=False)
class Side:
    """A group to compare: what it is called, its units by number, and its metrics' values in each of them."""

    label: str
    units: Indices
    values: Mapping[str, Floats]


@dataclass(frozen=True, eq=False)
class Pair:
    """Two groups to compare in `metrics`, of which those of `primary`, or else the first, matter most.

    Units of the same number are paired, unless `apart`: then the two are independent samples. `shared`: the two
    shared a path, so that sums are compared per member. `places` tells where each was measured, and `axes` what both
    places have in common. `groups`: the `[[flow]]` table of each. `limit`: what held both of them back nearly all the
    time, in words, where no congestion control changes it.
    """

    a: Side
    b: Side
    metrics: tuple[str, ...]
    shared: bool
    places: tuple[int, int]
    axes: Mapping[str, str]
    apart: bool = False
    primary: tuple[str, ...] = ()
    groups: tuple[int, int] = (0, 0)
    limit: str = ""


@dataclass(frozen=True)
class Verdict:
    """A comparison of `b` with `a` in one metric.

    `found`: with `scale` "ratio" b / a as `ratio` has it; with "difference" b - a, where a zero makes ratios
    meaningless. `decision`: "more" (b above a), "less", "same" (identical in every unit), "none shown" (the
    interval holds equality) or "single" (one unit: no interval, no verdict). `shared`: both shared a path and
    the values are per member. `too_wide`: the interval holds equality and is too wide to decide `MINIMAL_EFFECT`;
    `units_needed` would then do. It is None where the units at hand are fewer than `LEAST_TO_ADVISE`, or
    where it would be more than `FURTHEST_ADVICE` times as many, and where one looked (`compare`).
    """

    metric: str
    a: str
    b: str
    places: tuple[int, int]
    groups: tuple[int, int]
    axes: Mapping[str, str]
    shared: bool
    scale: str
    found: Estimate
    decision: str
    too_wide: bool
    units_needed: int | None
    text: str
    primary: bool

    @property
    def word(self) -> str:
        """What `b` is beside `a`: better or worse; higher or lower where a metric has no better; else the decision."""
        if self.decision not in ("more", "less"):
            return self.decision
        sign, better = (1 if self.decision == "more" else -1), metrics.BY_NAME[self.metric].better
        if not better:
            return "higher" if sign > 0 else "lower"
        return "better" if sign == better else "worse"

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


def shown(verdicts: list[Verdict]) -> list[Verdict]:
    """Those in the metrics that matter most to each pair; all, where no pair has one."""
    return [verdict for verdict in verdicts if verdict.primary] or verdicts


_GAIN, _PRICE = "goodput_bits_per_sec", "srtt_us_p95"


def price(gain: Verdict, verdicts: Iterable[Verdict]) -> Verdict | None:
    """What the better goodput of one of two costs: the verdict on their round-trip times in the same place, where that
    goes the other way and says something to choose by. Of flows that share a path neither is better."""
    where = (_PRICE, gain.places, gain.groups, False)
    for one in verdicts if gain.metric == _GAIN else ():
        if (one.metric, one.places, one.groups, one.shared) == where:
            return one if {gain.word, one.word} == {"better", "worse"} and not _is_small(one) else None
    return None


def compare(pairs: Iterable[Pair], unit: Unit, *, looking: bool = False) -> list[Verdict]:
    """A verdict for each pair and metric that both have a value of. `unit`: what the values are of. `looking`: whether
    more units are measured depends on the verdicts, which is so from `LEAST_TO_LOOK` paired units on; their intervals
    hold all the same."""
    found = (_compare(pair, name, unit, looking=looking) for pair in pairs for name in pair.metrics)
    return [verdict for verdict in found if verdict is not None]


def _compare(pair: Pair, name: str, unit: Unit, *, looking: bool) -> Verdict | None:
    left, right = apart(pair, name) if pair.apart else paired(pair, name)
    if not len(left) or not len(right):
        return None
    is_ratio = bool(np.all(left > 0) and np.all(right > 0))
    looked = looking and not pair.apart and len(left) >= LEAST_TO_LOOK
    if pair.apart:
        found = ratio_apart(left, right) if is_ratio else difference_apart(left, right)
    elif is_ratio:
        found = ratio(right / left, looking=looked)
    else:
        found = while_looking(right - left) if looked else estimate(right - left)
    assert found is not None
    decision = _decision(found, 1.0 if is_ratio else 0.0)
    if is_ratio and found.identical and _is_a_bucket(name, found):
        decision = "none shown"
    too_wide, needed = False, None
    if decision == "none shown" and looked:
        too_wide = _is_wide(found, float(np.mean(left)), is_ratio=is_ratio)
    elif decision == "none shown":
        too_wide, needed = _needed(left, right, is_ratio=is_ratio, apart=pair.apart)
    verdict = Verdict(
        metric=name,
        a=pair.a.label,
        b=pair.b.label,
        places=pair.places,
        groups=pair.groups,
        axes=pair.axes,
        shared=pair.shared,
        scale="ratio" if is_ratio else "difference",
        found=found,
        decision=decision,
        too_wide=too_wide,
        units_needed=needed,
        text="",
        primary=name in (pair.primary or pair.metrics[:1]),
    )
    return replace(verdict, text=_text(verdict, unit, looked=looked) + (pair.limit if verdict.primary else ""))


def paired(pair: Pair, name: str) -> tuple[Floats, Floats]:
    """Values of the units that both have; per member when the groups shared a path."""
    a, b = pair.a, pair.b
    _, in_a, in_b = np.intersect1d(a.units, b.units, return_indices=True)
    left, right = a.values[name][in_a], b.values[name][in_b]
    if pair.shared and metrics.BY_NAME[name].how == "sum":
        left, right = left / a.values["members"][in_a], right / b.values["members"][in_b]
    known = ~np.isnan(left) & ~np.isnan(right)
    return left[known], right[known]


def apart(pair: Pair, name: str) -> tuple[Floats, Floats]:
    """Values of the units of each."""
    left, right = pair.a.values[name], pair.b.values[name]
    return left[~np.isnan(left)], right[~np.isnan(right)]


def _decision(found: Estimate, equal: float) -> str:
    """Of an interval around what it is when there is no difference."""
    if found.low is None or found.high is None:
        return "single"
    if found.low == found.high == equal:
        return "same"
    if found.low > equal:
        return "more"
    return "less" if found.high < equal else "none shown"


_OF_BUCKETS = ("srtt_us_p", "queue_delay_us_p", "latency_us_p", "read_gap_us_p", "read_bytes_p")
_BUCKET = 1 / 64
"""Their percentiles are of a histogram with 64 buckets to a power of two (`crates/tables/src/histogram.rs`)."""


def _is_a_bucket(name: str, found: Estimate) -> bool:
    """Are two percentiles, each the same in every unit, so near that what lies between them may be next to nothing?"""
    return name.startswith(_OF_BUCKETS) and 0 < abs(math.log(found.mean)) < math.log1p(_BUCKET) + 1e-9


def _needed(left: Floats, right: Floats, *, is_ratio: bool, apart: bool) -> tuple[bool, int | None]:
    """Whether the interval is too wide to decide `MINIMAL_EFFECT`, and how many units would do if that can be
    told; of samples `apart`, in each."""
    half = math.log(1 + MINIMAL_EFFECT) if is_ratio else MINIMAL_EFFECT * float(np.mean(left))
    if half <= 0:
        return False, None
    if is_ratio:
        left, right = np.log(left), np.log(right)
    if apart:
        n, deviation = min(len(left), len(right)), float(np.hypot(np.std(left, ddof=1), np.std(right, ddof=1)))
    else:
        n, deviation = len(left), float(np.std(right - left, ddof=1))
    if half_width(deviation, n) <= half:
        return False, None
    needed = units_for(deviation, half)
    return True, needed if n >= LEAST_TO_ADVISE and needed <= FURTHEST_ADVICE * n else None


def _is_wide(found: Estimate, left: float, *, is_ratio: bool) -> bool:
    """The first of what `_needed` tells, of an interval as it is."""
    assert found.low is not None and found.high is not None
    if is_ratio:
        return math.log(found.high / found.low) / 2 > math.log(1 + MINIMAL_EFFECT)
    return (found.high - found.low) / 2 > MINIMAL_EFFECT * left > 0


def greater_first(verdict: Verdict) -> tuple[str, str, str, str]:
    """Who has more, who has less, how much more, and its interval: `("bbr1", "cubic", "21.0×", "[19.4, 22.5]")`."""
    flip = verdict.found.mean < (1 if verdict.scale == "ratio" else 0)
    more, less = (verdict.a, verdict.b) if flip else (verdict.b, verdict.a)
    if verdict.scale == "ratio":
        found = verdict.found.map(lambda value: 1 / value) if flip else verdict.found
        return more, less, *written.ratio(found)
    found = verdict.found.map(lambda value: -value) if flip else verdict.found
    return more, less, *written.quantity(found, metrics.BY_NAME[verdict.metric].kind)


def _text(verdict: Verdict, unit: Unit, *, looked: bool) -> str:
    """One sentence, the greater first: `goodput: bbr1 is 21.0× cubic [19.4, 22.5]: better`."""
    metric = metrics.BY_NAME[verdict.metric]
    of = f"{metric.label} per flow" if verdict.shared and metric.how == "sum" else metric.label
    if verdict.decision == "same":
        return f"{of}: {verdict.a} and {verdict.b} are identical in every {unit.one}"
    more, less, size, bracket = greater_first(verdict)
    if verdict.scale != "ratio":
        claim = f"{more} is {size} above {less}"
    elif metric.is_time_taken:
        claim = f"{more} takes {size} as long as {less}"
    else:
        claim = f"{more} is {size} {less}"
    judged = _judged(verdict, more)
    if verdict.decision == "single":
        return f"{of}: {claim} in the one {unit.one}; no interval, so no verdict"
    if verdict.found.identical and verdict.decision == "none shown":
        return f"{of}: no difference shown ({claim}, which is a bucket of its histogram)"
    if verdict.found.identical:
        return f"{of}: {claim}, identical in every {unit.one}{judged}"
    if verdict.decision != "none shown":
        return f"{of}: {claim} {bracket}{judged}"
    text = f"{of}: no difference shown ({claim} {bracket})"
    if not verdict.too_wide:
        return text
    text += f"; too wide to decide {MINIMAL_EFFECT * 100:.0f} %"
    n = verdict.found.n
    if verdict.units_needed is not None:
        return f"{text}, about {verdict.units_needed} {unit.many} would do"
    if n < LEAST_TO_ADVISE or looked:
        return text
    return f"{text}, more than {FURTHEST_ADVICE * n} {unit.many} would be needed"


def _judged(verdict: Verdict, more: str) -> str:
    """Whether who has more is better; of flows that share a path neither is, as one has what the other lacks."""
    if verdict.shared or verdict.word not in ("better", "worse"):
        return ""
    word = "better" if (verdict.word == "better") == (more == verdict.b) else "worse"
    return f": {word}, by less than {100 * SMALL:g} %" if _is_small(verdict) else f": {word}"


def _is_small(verdict: Verdict) -> bool:
    """Shown, and nothing to choose by."""
    bounds = (verdict.low, verdict.high)
    return verdict.scale == "ratio" and all(
        one is not None and abs(math.log(one)) < math.log1p(SMALL) for one in bounds
    )

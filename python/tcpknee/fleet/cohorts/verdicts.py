"""Verdicts: per metric and cohort against the baseline, what the data shows, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tcpknee import human
from tcpknee.fleet.statistics import (
    Interval,
    Tally,
    adjust,
    difference,
    least_difference,
    mean,
    non_inferior,
    quantile,
    ratio,
)

from .metrics import QUANTILES, Metric

ALPHA = 0.05
_FOUR_OF_FIVE = 1.95996 + 0.84162
"""Standard errors of a difference that many clusters call at 5 %, two-sided, four times of five."""
UNKNOWN = "cannot be told"
"""The word where there is no interval."""


@dataclass(frozen=True)
class Verdict:
    """One metric of a cohort against the baseline's.

    `ratio` is NaN where the baseline's value is 0. `least` is the smallest difference that such data would have shown
    four times of five, as a share of the baseline's value, or in the metric's unit where there is no ratio.
    """

    metric: Metric
    cohort: str
    baseline: str
    adoption: float
    value: Interval
    base: Interval
    difference: Interval
    ratio: Interval
    least: float
    margin: float
    no_worse: str
    p_adjusted: float = math.nan
    same_as: Metric | None = None
    """The metric of an earlier verdict whose values are the same in every connection: one comparison with it."""
    is_nothing: bool = False
    """Are all values of both cohorts 0? Then there is nothing to compare."""

    @property
    def counts(self) -> bool:
        """Is it one of the comparisons for whose number p-values are corrected?"""
        return self.same_as is None and not self.is_nothing and not math.isnan(self.p_value)

    @property
    def is_relative(self) -> bool:
        """Is it told as a ratio?"""
        return not math.isnan(self.ratio.low)

    @property
    def p_value(self) -> float:
        """Uncorrected."""
        found = (self.ratio if self.is_relative else self.difference).p_value
        return math.nan if found is None else found

    def clusters_to_detect(self, share: float) -> int | None:
        """How many clusters each cohort would need to show such a difference four times of five: errors shrink with the
        root of their number, of each cohort by its own. None where this is not told as a ratio."""
        if not self.is_relative or not math.isfinite(self.least) or not self.least:
            return None
        relative = [(one.error / one.value) ** 2 for one in (self.value, self.base)]
        # What both cohorts share makes the error of their ratio less.
        shared = self.ratio.error**2 / sum(relative)
        of_one = shared * sum(one * side.clusters for one, side in zip(relative, (self.value, self.base), strict=True))
        return math.ceil(of_one * (_FOUR_OF_FIVE / math.log1p(share)) ** 2)

    @property
    def word(self) -> str:
        """better, worse, higher, lower, no worse than 2 %, no difference shown, cannot be told."""
        if math.isnan(self.p_value):
            return UNKNOWN
        if self.p_adjusted < ALPHA:
            sign = 1 if self.value.value > self.base.value else -1
            if not self.metric.better:
                return "higher" if sign > 0 else "lower"
            word = "better" if sign == self.metric.better else "worse"
            return (
                f"worse, by less than {_pct(self.margin)}" if (word, self.no_worse) == ("worse", "no worse") else word
            )
        return f"no worse than {_pct(self.margin)}" if self.no_worse == "no worse" else "no difference shown"

    @property
    def apart(self) -> str:
        """The ratio, or the difference where there is none; `-`: neither is known."""
        if not math.isnan(self.ratio.value):
            return f"{interval_of('', self.ratio)} ×"
        if not math.isnan(self.difference.value):
            return more(self.metric.kind, self.difference)
        return "-"

    @property
    def told(self) -> str:
        """The sentence."""
        kind, name = self.metric.kind, f"{self.metric.label} ({self.metric.middle})"
        text = f"{name}: {self.word}: {shown(kind, self.value.value)} against {shown(kind, self.base.value)}"
        if self.is_relative:
            text += f", {interval_of('', self.ratio)} times"
        elif not math.isnan(self.difference.low):
            text += f", {more(kind, self.difference)}"
        else:
            text += ", no interval"
        if self.p_value < ALPHA <= self.p_adjusted:
            text += f"; p {self.p_value:.2g} alone, {self.p_adjusted:.2g} among all metrics"
        return f"{text}; {self.cohort} at {_adoption(self.adoption)} adoption"

    def as_json(self, detect: float | None = None) -> dict[str, Any]:
        needed = {} if detect is None else {"clusters_to_detect": self.clusters_to_detect(detect)}
        return {
            "metric": self.metric.name,
            "statistic": self.metric.middle,
            "cohort": self.cohort,
            "baseline": self.baseline,
            "adoption": self.adoption,
            "verdict": self.word,
            "told": self.told,
            "value": interval_json(self.value),
            "baseline_value": interval_json(self.base),
            "difference": interval_json(self.difference),
            "ratio": interval_json(self.ratio),
            "p_value": number(self.p_value),
            "p_adjusted": number(self.p_adjusted),
            "same_as": None if self.same_as is None else self.same_as.name,
            "least_detectable": number(self.least),
            **needed,
            "non_inferiority": {"margin": self.margin, "verdict": self.no_worse},
        }


def judge(
    metrics: Sequence[Metric],
    tallies: Mapping[str, Mapping[str, Tally]],
    adoption: Mapping[str, float],
    *,
    margin: float,
    seed: int,
) -> list[Verdict]:
    """Verdicts of every cohort but the first, which is the baseline; corrected over all of them, among which metrics of
    the same values count once."""
    baseline, *others = tallies
    found = []
    for cohort in others:
        seen: dict[Metric, tuple[Tally, Tally]] = {}
        for metric in metrics:
            a, b = tallies[cohort].get(metric.name), tallies[baseline].get(metric.name)
            if a is not None and b is not None and a.rows and b.rows:
                one = _verdict(metric, cohort, baseline, a, b, adoption[cohort], margin=margin, seed=seed)
                same_as = next((other for other, (c, d) in seen.items() if _are_same(a, c) and _are_same(b, d)), None)
                found.append(replace(one, same_as=same_as))
                seen[metric] = (a, b)
    own = [verdict for verdict in found if verdict.counts]
    corrected = adjust([verdict.p_value for verdict in own])
    adjusted = {(one.cohort, one.metric): float(p) for one, p in zip(own, corrected, strict=True)}
    return [replace(one, p_adjusted=adjusted.get((one.cohort, one.same_as or one.metric), math.nan)) for one in found]


def _are_same(one: Tally, other: Tally) -> bool:
    """Are their values the same, and not all 0? The order of sums may differ."""
    return (
        bool(one.total.any())
        and one.rows == other.rows
        and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("keys", "row", "bin", "count"))
        and np.allclose(one.total, other.total, rtol=1e-9, atol=0)
    )


def _verdict(
    metric: Metric, cohort: str, baseline: str, a: Tally, b: Tally, adoption: float, *, margin: float, seed: int
) -> Verdict:
    apart = _within(metric, difference(a, b, metric.p, seed=seed), least=-100.0)
    times = ratio(a, b, metric.p, seed=seed)
    is_relative = not math.isnan(times.low)
    least = least_difference(times) - 1 if is_relative else least_difference(apart)
    passes = non_inferior(times, margin, metric.better) if metric.better and is_relative else "undecided"
    value, base = middle(metric, a, seed=seed), middle(metric, b, seed=seed)
    is_nothing = not (a.total.any() or b.total.any())
    return Verdict(
        *(metric, cohort, baseline, adoption, value, base, apart, times, least, margin, passes), is_nothing=is_nothing
    )


def middle(metric: Metric, cohort: Tally, *, seed: int) -> Interval:
    """The statistic that a verdict is about."""
    return _within(metric, mean(cohort, seed=seed) if metric.p is None else quantile(cohort, metric.p))


def spread(metric: Metric, cohort: Tally, *, seed: int) -> dict[str, Interval]:
    """The quantiles of a cohort, and its mean."""
    found = {name: quantile(cohort, p) for name, p in QUANTILES.items()}
    return {name: _within(metric, one) for name, one in {"mean": mean(cohort, seed=seed), **found}.items()}


def _within(metric: Metric, found: Interval, least: float = 0.0) -> Interval:
    """A percentage is from 0 to 100, and a difference of two from -100 on. Nothing else is below 0 either."""
    if metric.kind != "pct":
        return replace(found, low=0.0) if not least and found.low == -math.inf else found
    ends = (found.value, found.low, found.high)
    value, low, high = (min(max(end, least), 100.0) if end == end else end for end in ends)
    return replace(found, value=value, low=low, high=high)


def shown(kind: str, value: float) -> str:
    """A value with its unit; `-` where there is none."""
    if not math.isfinite(value):
        return "-"
    return human.quantity("" if kind == "packets" else kind, value)


def interval_of(kind: str, found: Interval) -> str:
    """`1.20 [1.10, 1.31]` or `1.20 [no interval]`, with the unit behind."""
    is_known = not math.isnan(found.low)
    ends = (found.value, found.low, found.high) if is_known else (found.value,)
    divisor, unit = human.scale(
        "" if kind == "packets" else kind, max(filter(math.isfinite, map(abs, ends)), default=0)
    )
    value, *known = ("∞" if math.isinf(end) else human.digits(end / divisor) for end in ends)
    return f"{value} [{', '.join(known) or 'no interval'}] {unit}".rstrip()


def more(kind: str, found: Interval) -> str:
    """A difference in words: `12 [5, 19] ms more`, `3 [1, 5] points less`; without an interval `12 ms more [no
    interval]`. Percentages differ by points."""
    is_known = not math.isnan(found.low)
    if not is_known and not found.value:
        return "no difference [no interval]"
    word = "more"
    if found.value < 0:
        found, word = replace(found, value=-found.value, low=-found.high, high=-found.low), "less"
    told = f"{interval_of(kind, found) if is_known else shown(kind, found.value)} {word}"
    told = told.replace(" %", " points", 1) if kind == "pct" else told
    return told if is_known else f"{told} [no interval]"


def _pct(share: float) -> str:
    return f"{100 * share:g} %"


def _adoption(share: float) -> str:
    return f"{human.digits(100 * share, 2)} %"


def number(value: float) -> float | None:
    """null where there is none: JSON has no NaN."""
    return value if math.isfinite(value) else None


def interval_json(found: Interval) -> dict[str, Any]:
    return {
        "value": number(found.value),
        "low": number(found.low),
        "high": number(found.high),
        "n": found.n,
        "clusters": found.clusters,
        "effective_clusters": number(found.effective),
        "few_clusters": found.few,
    }

"""Quantiles, means and shares of a cohort, and differences and ratios of two, with 95 % intervals over clusters."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kneepoint.errors import UsageError

from .bins import Floats
from .hashes import poisson_weights
from .tally import Tally

LEVEL = 0.95
RESAMPLES = 1000
FEW = 30
"""Clusters below which an interval is not to be trusted."""


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % interval; NaN where there is none.

    `n` are the connections, `clusters` the clusters, and `effective` the equal clusters that would know as much: less
    than `clusters` where few of them hold most connections. `error` is the standard error, of the logarithm where
    `logarithmic`. `p_value` is two-sided, of the hypothesis that a difference is 0 or a ratio 1; None for one cohort.
    """

    value: float
    low: float
    high: float
    n: int
    clusters: int
    effective: float
    error: float
    logarithmic: bool = False
    p_value: float | None = None

    @property
    def few(self) -> bool:
        """Are there too few clusters, or too unequal ones, to trust it?"""
        return self.effective < FEW

    def inverted(self) -> Interval:
        """Of a ratio: the other cohort over this one."""
        if not self.logarithmic:
            raise UsageError("only a ratio can be inverted; swap the two cohorts of a difference")
        return replace(self, value=1 / self.value, low=1 / self.high, high=1 / self.low)


def quantile(cohort: Tally, p: float, *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """The value below which the share `p` of the connections lies."""
    return _one(cohort, _quantile(p), seed, resamples)


def mean(cohort: Tally, *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """The mean over connections."""
    return _one(cohort, _mean, seed, resamples)


def share_below(cohort: Tally, threshold: float, *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """The share of connections below a threshold."""
    return _one(cohort, _share(threshold), seed, resamples)


def difference(a: Tally, b: Tally, p: float | None = None, *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """The quantile (None: the mean) of a minus that of b. Clusters that both share are taken account of."""
    return _two(a, b, _mean if p is None else _quantile(p), False, seed, resamples)


def ratio(a: Tally, b: Tally, p: float | None = None, *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """The quantile (None: the mean) of a over that of b. NaN where one of them is not above 0."""
    return _two(a, b, _mean if p is None else _quantile(p), True, seed, resamples)


Statistic = Callable[[Tally, Floats], Floats]
"""Of a tally under weights of its clusters, one row per resample: a value per resample."""


def _one(cohort: Tally, statistic: Statistic, seed: int, resamples: int) -> Interval:
    value = float(statistic(cohort, np.ones((1, len(cohort.keys))))[0])
    drawn = statistic(cohort, poisson_weights(cohort.keys, seed, resamples).astype(np.float64))
    return _interval(value, drawn, cohort.rows, cohort.clusters, _effective(cohort), False)


def _two(a: Tally, b: Tally, statistic: Statistic, logarithmic: bool, seed: int, resamples: int) -> Interval:
    if a.grouped or b.grouped:
        a, b = a.as_groups(), b.as_groups()
    values, draws = [], []
    for one in (a, b):
        point = statistic(one, np.ones((1, len(one.keys))))
        drawn = statistic(one, poisson_weights(one.keys, seed, resamples).astype(np.float64))
        with np.errstate(divide="ignore", invalid="ignore"):
            values.append(np.log(point) if logarithmic else point)
            draws.append(np.log(drawn) if logarithmic else drawn)
    with np.errstate(invalid="ignore"):
        value, drawn = float((values[0] - values[1])[0]), draws[0] - draws[1]
    clusters, effective = min(a.clusters, b.clusters), min(_effective(a), _effective(b))
    found = _interval(value, drawn, a.rows + b.rows, clusters, effective, True)
    if not logarithmic:
        return found
    value, low, high = (math.exp(end) for end in (found.value, found.low, found.high))
    return replace(found, value=value, low=low, high=high, logarithmic=True)


def _interval(value: float, drawn: Floats, n: int, clusters: int, effective: float, compared: bool) -> Interval:
    drawn = drawn[np.isfinite(drawn)]
    if not math.isfinite(value) or len(drawn) < 2 or effective < 2:
        return Interval(
            value if math.isfinite(value) else math.nan, math.nan, math.nan, n, clusters, effective, math.nan
        )
    from scipy.special import ndtr, stdtr, stdtrit

    # Percentiles of resampled values are too narrow for few clusters: they are taken further out, where Student's t has
    # its tails (Hesterberg, The American Statistician 69(4), 2015, section 5.3).
    degrees = effective - 1
    tail = float(ndtr(stdtrit(degrees, (1 - LEVEL) / 2) * math.sqrt(effective / (effective - 1))))
    low, high = (float(end) for end in np.quantile(drawn, [tail, 1 - tail]))
    error = float(drawn.std())
    p_value = None
    if compared:
        p_value = float(2 * stdtr(degrees, -abs(value) / error)) if error else float(value == 0)
    return Interval(value, min(low, value), max(high, value), n, clusters, effective, error, p_value=p_value)


def _effective(cohort: Tally) -> float:
    squares = float(cohort.n @ cohort.n)
    return float(cohort.n.sum()) ** 2 / squares if squares else 0.0


def _mean(cohort: Tally, weights: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return (weights @ cohort.total) / (weights @ cohort.n)


def _share(threshold: float) -> Statistic:
    def statistic(cohort: Tally, weights: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            return (weights @ cohort.below(threshold)) / (weights @ cohort.n)

    return statistic


def _quantile(p: float) -> Statistic:
    if not 0 < p < 1:
        raise UsageError(f"a quantile at p = {p}; p is a share between 0 and 1, as 0.95")

    def statistic(cohort: Tally, weights: Floats) -> Floats:
        if not len(cohort.bin):
            return np.full(len(weights), np.nan)
        least = int(cohort.bin.min())
        span = int(cohort.bin.max()) - least + 1
        table = np.zeros((len(cohort.keys), span))
        table[cohort.row, cohort.bin - least] = cohort.count
        reached = np.cumsum(weights @ table, axis=1)
        target = p * reached[:, -1]
        place = np.minimum((reached < target[:, None]).sum(axis=1), span - 1)
        low, high = cohort.bins.edges(place + least)
        after = np.take_along_axis(reached, place[:, None], 1)[:, 0]
        before = np.where(place > 0, np.take_along_axis(reached, np.maximum(place - 1, 0)[:, None], 1)[:, 0], 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return low + (high - low) * (target - before) / (after - before)

    return statistic

"""Quantiles, means and shares of a cohort, and differences and ratios of two, with 95 % intervals over clusters.

The interval of a quantile holds the values x at which "the share below x is p" is not refused: a test of a share, whose
variance comes of the clusters' sums. A share's interval is the same test turned round (Wilson). Means and everything of
two cohorts are resampled: clusters get Poisson(1) weights, and the interval lies between percentiles of what comes out.
Both go by Student's t with the degrees of freedom that clusters of such sizes leave (`degrees.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tcpknee.errors import UsageError
from tcpknee.evidence.stats import LEVEL, t_quantile

from .bins import Floats
from .degrees import degrees_of
from .hashes import Hashes, poisson_weights
from .tally import Tally

RESAMPLES = 1000
FEW = 30
"""Clusters below which an interval is not to be trusted."""


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % interval; NaN where there is none: of one cluster the value alone is known.

    `n` are the connections, `clusters` the clusters, and `effective` the clusters of equal size that would know as
    much. `error` is the standard error, of the logarithm where `logarithmic`, and `degrees` are its degrees of freedom.
    `p_value` is two-sided, of the hypothesis that a difference is 0 or a ratio 1; None for one cohort.
    """

    value: float
    low: float
    high: float
    n: int
    clusters: int
    effective: float
    error: float
    degrees: float
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


def quantile(cohort: Tally, p: float) -> Interval:
    """The value below which the share `p` of the connections lies. An end of the interval is infinite where what was
    seen does not bound it: the largest of 100 connections is below P99 more often than not."""
    found = _Curve(cohort, p)
    if not found.known:
        return _unknown(cohort)
    if len(cohort.keys) < 2:
        return _unknown(cohort, found.value(p))
    value, (low, high) = found.value(p), found.ends(cohort.effective)
    reaches = [reach for reach in (value - low, high - value) if math.isfinite(reach)]
    error = float(np.mean(reaches)) / t_quantile(found.degrees) if reaches else math.nan
    # The test's ends may lie at a bin's edge, beside the quantile within it.
    return _plain(cohort, (value, min(low, value), max(high, value)), error, found.degrees)


def share_below(cohort: Tally, threshold: float) -> Interval:
    """The share of connections below a threshold."""
    size = float(cohort.n.sum())
    if not size:
        return _unknown(cohort)
    below = cohort.below(threshold)
    share = float(below.sum()) / size
    if len(cohort.keys) < 2:
        return _unknown(cohort, share)
    deviation = below - share * cohort.n
    degrees = degrees_of(cohort.n, deviation, cohort.rows, share * (1 - share))
    error = _error(cohort.n, deviation)
    # As many independent connections would know the share as well; all or none below it leave only the clusters.
    alike = share * (1 - share) / error**2 if error else cohort.effective
    square = t_quantile(degrees) ** 2 / alike
    middle = (share + square / 2) / (1 + square)
    half = math.sqrt(square * (share * (1 - share) + square / 4)) / (1 + square)
    return _plain(cohort, (share, max(middle - half, 0.0), min(middle + half, 1.0)), error, degrees)


def mean(cohort: Tally, *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """The mean over connections."""
    found = _resampled(cohort, None, seed, resamples)
    if found is None:
        return _unknown(cohort, _value(cohort, None))
    # Of few clusters a resample may draw none at all, which says nothing.
    drawn = found.drawn[~np.isnan(found.drawn)]
    low, high = _percentiles(drawn, found.value, found.degrees, cohort.effective)
    error = float(drawn.std())
    return _plain(cohort, (found.value, min(low, found.value), max(high, found.value)), error, found.degrees)


def difference(a: Tally, b: Tally, p: float | None = None, *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """The quantile (None: the mean) of a minus that of b. Clusters that both share are taken account of."""
    return _compared(a, b, p, False, seed, resamples)


def ratio(a: Tally, b: Tally, p: float | None = None, *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """The quantile (None: the mean) of a over that of b. NaN where one of them is not above 0."""
    return _compared(a, b, p, True, seed, resamples)


@dataclass(frozen=True)
class _Sample:
    """A statistic of a cohort, and the same in each resample."""

    value: float
    drawn: Floats
    degrees: float


class _Curve:
    """The share of a cohort below each bin's upper edge, near the share p, by cluster."""

    REACH = 6.0
    """Standard errors to each side of p that are looked at, if a cluster's connections were all the same."""

    def __init__(self, cohort: Tally, p: float) -> None:
        if not 0 < p < 1:
            raise UsageError(f"a quantile at p = {p}; p is a share between 0 and 1, as 0.95")
        bins, cumulative = cohort.cumulative
        self.p, self.n = p, cohort.n
        self.known = len(bins) > 0
        if not self.known:
            return
        shares = cumulative.sum(axis=0, dtype=np.float64) / cohort.n.sum()
        shares[-1] = 1.0
        reach = self.REACH * math.sqrt(p * (1 - p) / cohort.effective)
        first = max(int(np.searchsorted(shares, p - reach)) - 1, 0)
        last = min(int(np.searchsorted(shares, p + reach)), len(bins) - 1)
        near = slice(first, last + 1)
        self.lows, self.highs = cohort.bins.edges(bins[near])
        self.shares = shares[near]
        # The share below the window, then that below each bin's upper edge: one column more than there are bins.
        before = cumulative[:, first - 1 : first] if first else np.zeros((len(self.n), 1), np.float32)
        self.below = np.hstack([before, cumulative[:, near]])
        self.reached = np.r_[shares[first - 1] if first else 0.0, self.shares]
        self.degrees = degrees_of(self.n, self._at_p() - p * self.n, cohort.rows, p * (1 - p))

    def value(self, p: float) -> float:
        return float(self._crossing(self.reached, p))

    def ends(self, effective: float) -> tuple[float, float]:
        """The 95 % interval of the quantile: where the test of "the share below is p" refuses; infinite where it never
        does. `effective`: of the clusters."""
        p, size = self.p, float(self.n.sum())
        deviations = self.below - self.n[:, None] * self.reached
        squares = (_leverage(self.n) ** 2) @ (deviations**2) / size**2
        spread = self.reached * (1 - self.reached)
        if spread.max() < 1e-12:
            # All values are as one.
            return float(self.lows[0]), float(self.highs[-1])
        # The variance as it would be if the share were p: the clusters say how many times that of single rows. Where
        # all or none are below they say nothing: it is as at the quantile or, if nothing differs there, as of clusters.
        at_p = float((_leverage(self.n) ** 2) @ (self._at_p() - p * self.n) ** 2) / size**2
        alike = at_p / (p * (1 - p)) or 1 / effective
        with np.errstate(divide="ignore", invalid="ignore"):
            per_row = np.where((spread < 1e-12) | (squares == 0), alike, squares / spread)
        distance = (self.reached - p) / np.sqrt(per_row * p * (1 - p))
        place = int(np.searchsorted(self.reached, p))
        distance[place:] = np.maximum.accumulate(distance[place:])
        distance[:place] = np.minimum.accumulate(distance[:place][::-1])[::-1]
        limit = t_quantile(self.degrees)
        low = self._crossing(distance, -limit) if distance[0] <= -limit else -math.inf
        high = self._crossing(distance, limit) if distance[-1] >= limit else math.inf
        return low, high

    def drawn(self, weights: npt.NDArray[np.float32]) -> Floats:
        """The quantile in each resample; NaN where no cluster was drawn."""
        reached = (weights @ self.below).astype(np.float64)
        target = self.p * (weights @ self.n.astype(np.float32)).astype(np.float64)
        place = np.clip((reached < target[:, None]).sum(axis=1), 1, len(self.highs))[:, None]
        after = np.take_along_axis(reached, place, 1)[:, 0]
        before = np.take_along_axis(reached, place - 1, 1)[:, 0]
        lows, highs = self.lows[place[:, 0] - 1], self.highs[place[:, 0] - 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(after > before, (target - before) / (after - before), 0.5)
        found: Floats = lows + (highs - lows) * np.clip(part, 0, 1)
        return np.where(target > 0, found, np.nan)

    def _at_p(self) -> Floats:
        """The weight of each cluster below the quantile itself."""
        place = min(max(int(np.searchsorted(self.reached, self.p)), 1), len(self.highs))
        before, after = self.reached[place - 1], self.reached[place]
        part = min(max((self.p - before) / (after - before), 0.0), 1.0) if after > before else 0.5
        found: Floats = (1 - part) * self.below[:, place - 1] + part * self.below[:, place]
        return found

    def _crossing(self, curve: Floats, target: float) -> float:
        """Where a rising curve, known at the bins' upper edges, reaches a target, on a straight line within a bin."""
        place = min(max(int(np.searchsorted(curve, target)), 1), len(self.highs))
        before, after = curve[place - 1], curve[place]
        part = min(max((target - before) / (after - before), 0.0), 1.0) if after > before else 0.5
        low, high = self.lows[place - 1], self.highs[place - 1]
        return float(low + (high - low) * part)


def _resampled(cohort: Tally, p: float | None, seed: int, resamples: int) -> _Sample | None:
    if len(cohort.keys) < 2 or not cohort.n.any():
        return None
    weights = _weights(cohort.keys.tobytes(), seed, resamples)
    if p is not None:
        curve = _Curve(cohort, p)
        return _Sample(curve.value(p), curve.drawn(weights), curve.degrees)
    value = _value(cohort, None)
    deviation = cohort.total - value * cohort.n
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = value + (weights @ deviation) / (weights @ cohort.n)
    return _Sample(value, drawn, degrees_of(cohort.n, deviation, cohort.rows, None))


def _value(cohort: Tally, p: float | None) -> float:
    """The quantile (None: the mean) alone; NaN of no connections."""
    if not cohort.n.any():
        return math.nan
    return float(cohort.total.sum() / cohort.n.sum()) if p is None else _Curve(cohort, p).value(p)


def _compared(a: Tally, b: Tally, p: float | None, logarithmic: bool, seed: int, resamples: int) -> Interval:
    if a.grouped or b.grouped:
        a, b = a.as_groups(), b.as_groups()
    n, clusters, effective = a.rows + b.rows, min(a.clusters, b.clusters), min(a.effective, b.effective)
    nothing = Interval(math.nan, math.nan, math.nan, n, clusters, effective, math.nan, math.nan, logarithmic, math.nan)
    first, second = (_resampled(one, p, seed, resamples) for one in (a, b))
    if first is None or second is None:
        return replace(nothing, value=_apart(_value(a, p), _value(b, p), logarithmic))
    if logarithmic and min(first.value, second.value) <= 0:
        return nothing
    values, draws = np.array([first.value, second.value]), np.stack([first.drawn, second.drawn])
    if logarithmic:
        with np.errstate(divide="ignore", invalid="ignore"):
            values, draws = np.log(values), np.log(draws)
    with np.errstate(invalid="ignore"):
        drawn = draws[0] - draws[1]
    drawn = drawn[~np.isnan(drawn)]
    finite = drawn[np.isfinite(drawn)]
    if len(finite) < 2:
        return nothing
    value, error = float(values[0] - values[1]), float(finite.std())
    # Rounding is no error.
    error = error if error > 1e-9 * (1.0 if logarithmic else float(np.abs(values).max())) else 0.0
    both = len(np.union1d(a.keys, b.keys))
    if not error and _by_order(a, b, both) > 1 - LEVEL:
        # So few clusters may agree by chance.
        return replace(nothing, value=math.exp(value) if logarithmic else value)
    degrees = _welch([one[np.isfinite(one)].var() for one in draws], [first.degrees, second.degrees])
    # Clusters of both cohorts are no more than they are.
    degrees = min(degrees, max(both - 1.0, 1.0))
    low, high = _percentiles(drawn, value, degrees, effective)
    low, high = min(low, value), max(high, value)
    p_value = _p_value(drawn, value, error, degrees, effective)
    if logarithmic:
        value, low, high = (math.exp(end) if end < 700 else math.inf for end in (value, low, high))
    error *= _widening(effective)
    return Interval(value, low, high, n, clusters, effective, error, degrees, logarithmic, p_value)


def _by_order(a: Tally, b: Tally, both: int) -> float:
    """The least p-value that the order of the clusters can have: of those that both cohorts have a test of signs, else
    one of their ranks."""
    if both < len(a.keys) + len(b.keys):
        return 2.0 ** (1 - both)
    return 2 / math.comb(both, len(a.keys))


def _apart(value: float, other: float, logarithmic: bool) -> float:
    """The difference of two values or their ratio; NaN where one is not known, or a ratio needs one above 0."""
    if not logarithmic:
        return value - other
    return value / other if min(value, other) > 0 else math.nan


@lru_cache(maxsize=8)
def _weights(keys: bytes, seed: int, resamples: int) -> npt.NDArray[np.float32]:
    found: Hashes = np.frombuffer(keys, dtype=np.uint64)
    return poisson_weights(found, seed, resamples).astype(np.float32)


_FEWEST = 10
"""Resamples that must lie beyond a percentile for it to be known."""


def _percentiles(drawn: Floats, value: float, degrees: float, effective: float) -> tuple[float, float]:
    """The percentiles between which the interval lies.

    Those at 2.5 and 97.5 % are too near for few clusters: they are taken as far out as Student's t has its own
    (Hesterberg, The American Statistician 69(4), 2015, section 5.3). Where too few resamples lie beyond that, the
    outermost percentile that is known is drawn out in proportion.
    """
    from scipy.special import ndtr

    reach = t_quantile(degrees) * _widening(effective)
    known = _reach(drawn)
    tail = float(ndtr(-min(reach, known)))
    ends = np.quantile(drawn, [tail, 1 - tail], method="inverted_cdf")
    if reach > known:
        ends = value + reach / known * (ends - value)
    return float(ends[0]), float(ends[1])


def _reach(drawn: Floats) -> float:
    """How many standard deviations out a normal distribution has the outermost percentile that is known."""
    from scipy.special import ndtri

    return -float(ndtri(min(_FEWEST / len(drawn), 0.25)))


def _p_value(drawn: Floats, value: float, error: float, degrees: float, effective: float) -> float:
    """The level at which the interval of `_percentiles` ends at 0."""
    from scipy.special import ndtri, stdtr

    if not error:
        return float(value == 0)
    beyond = float(((drawn <= 0) if value > 0 else (drawn >= 0)).sum())
    if beyond >= _FEWEST:
        distance = -float(ndtri(min(beyond / len(drawn), 0.5)))
    else:
        tail = min(_FEWEST / len(drawn), 0.25)
        outermost = float(np.quantile(drawn, tail if value > 0 else 1 - tail, method="inverted_cdf"))
        distance = _reach(drawn) * value / (value - outermost) if value != outermost else math.inf
    return float(min(2 * stdtr(degrees, -distance / _widening(effective)), 1.0))


def _widening(effective: float) -> float:
    """By how much resampling understates a standard error."""
    return math.sqrt(effective / max(effective - 1, 0.5))


def _welch(variances: list[Any], degrees: list[float]) -> float:
    """Degrees of freedom of a difference (Welch, 1947)."""
    whole = sum(variances)
    parts = sum(one**2 / many for one, many in zip(variances, degrees, strict=True))
    return float(whole**2 / parts) if parts > 0 else min(degrees)


def _leverage(n: Floats) -> Floats:
    """What makes up for the share that each cluster has in the estimate it is compared with (CR2)."""
    return np.asarray(1 / np.sqrt(np.maximum(1 - n / n.sum(), 1e-9)))


def _error(n: Floats, deviation: Floats) -> float:
    return float(np.sqrt(np.sum((_leverage(n) * deviation) ** 2)) / n.sum())


def _plain(cohort: Tally, ends: tuple[float, float, float], error: float, degrees: float) -> Interval:
    return Interval(*ends, cohort.rows, cohort.clusters, cohort.effective, error, degrees)


def _unknown(cohort: Tally, value: float = math.nan) -> Interval:
    """Of a cohort with less than two clusters: none leave the value unknown as well."""
    nothing = math.nan
    return Interval(value, nothing, nothing, cohort.rows, cohort.clusters, cohort.effective, nothing, nothing)

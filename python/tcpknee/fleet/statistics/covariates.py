"""Covariates from before the experiment (CUPED: Deng, Xu, Kohavi and Walker, WSDM 2013)."""

from __future__ import annotations

import math

import numpy as np

from tcpknee.errors import UsageError
from tcpknee.evidence.stats import t_quantile

from .bins import Floats
from .intervals import Interval
from .sequence import Moments


def covariate_adjusted(
    outcome: Floats, before: Floats, treated: np.ndarray[tuple[int], np.dtype[np.bool_]], weights: Floats | None = None
) -> Interval:
    """The difference of means over clusters, treated minus not, with what was known before taken out.

    One value per cluster; `before` is the same cluster's value of the period before, NaN where it was not seen: such a
    cluster counts as an average one. The slope is fitted to both arms together.
    """
    if not len(outcome) == len(before) == len(treated):
        raise UsageError(
            f"{len(outcome)} outcomes, {len(before)} covariates and {len(treated)} arms; give one of each per cluster"
        )
    weights = np.ones(len(outcome)) if weights is None else np.asarray(weights, dtype=np.float64)
    seen = ~np.isnan(before)
    if not seen.any():
        raise UsageError("no cluster has a value of the period before; compare without a covariate")
    middle = float(np.average(before[seen], weights=weights[seen]))
    known = np.where(seen, before, middle) - middle
    fitted = np.zeros(len(outcome))
    for arm in (treated, ~treated):
        fitted[arm] = outcome[arm] - np.average(outcome[arm], weights=weights[arm])
    spread = float(np.sum(weights * known**2))
    slope = float(np.sum(weights * known * fitted)) / spread if spread else 0.0
    adjusted = outcome - slope * known
    arms = [Moments.of(adjusted[arm] * weights[arm], weights[arm]).interval() for arm in (treated, ~treated)]
    return minus(*arms)


def minus(a: Interval, b: Interval) -> Interval:
    """The difference of two estimates of clusters that they do not share (Welch)."""
    from scipy.special import stdtr

    value, error = a.value - b.value, math.hypot(a.error, b.error)
    n, clusters, effective = a.n + b.n, min(a.clusters, b.clusters), min(a.effective, b.effective)
    if math.isnan(error) or not error:
        return Interval(value, math.nan, math.nan, n, clusters, effective, error, math.nan, p_value=math.nan)
    degrees = error**4 / (a.error**4 / a.degrees + b.error**4 / b.degrees)
    half = t_quantile(degrees) * error
    p_value = float(2 * stdtr(degrees, -abs(value) / error))
    return Interval(value, value - half, value + half, n, clusters, effective, error, degrees, p_value=p_value)

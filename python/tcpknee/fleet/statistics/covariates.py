"""Covariates from before the experiment (CUPED: Deng, Xu, Kohavi and Walker, WSDM 2013)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tcpknee.errors import UsageError
from tcpknee.evidence.stats import t_quantile

from .bins import Floats
from .intervals import Interval
from .robust import contrast


def covariate_adjusted(
    outcome: Floats,
    before: Floats,
    treated: npt.NDArray[np.bool_],
    weights: Floats | None = None,
    clusters: npt.NDArray[np.intp] | None = None,
) -> Interval:
    """The difference of means over clusters, treated minus not, with what was known before taken out.

    One value per cluster and arm; `before` is the same cluster's value of the period before, NaN where it was not seen.
    `clusters` numbers them from 0, where some are in both arms. Least squares of the arm, the value before, and whether
    there is one: the slope is that within the arms, so that what they differed by before is taken out whole.
    """
    if not len(outcome) == len(before) == len(treated):
        raise UsageError(
            f"{len(outcome)} outcomes, {len(before)} covariates and {len(treated)} arms; give one of each per cluster"
        )
    weights = np.ones(len(outcome)) if weights is None else np.asarray(weights, dtype=np.float64)
    clusters = np.arange(len(outcome)) if clusters is None else clusters
    seen = ~np.isnan(before)
    if not seen.any():
        raise UsageError("no cluster has a value of the period before; compare without a covariate")
    known = np.where(seen, before - np.average(before[seen], weights=weights[seen]), 0.0)
    # In units of its own spread: least squares tell columns apart by their size.
    known /= math.sqrt(float(np.average(known**2, weights=weights))) or 1.0
    columns = [np.ones(len(outcome)), treated.astype(np.float64), known]
    if not seen.all():
        columns.append(seen.astype(np.float64))
    root = np.sqrt(weights / weights.mean())
    of = np.zeros(len(columns))
    of[1] = 1.0
    found = contrast(np.stack(columns, axis=1) * root[:, None], outcome * root, clusters, of)
    of_arms = [weights[arm] for arm in (treated, ~treated)]
    effective = min(float(one.sum() ** 2 / (one**2).sum()) if len(one) else 0.0 for one in of_arms)
    return replace(found, clusters=min(map(len, of_arms)), effective=effective)


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

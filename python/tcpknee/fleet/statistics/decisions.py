"""From intervals to decisions: many metrics at once, no worse than a margin, what could be seen, shares of arms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tcpknee.errors import UsageError
from tcpknee.evidence.stats import t_quantile

from .bins import Floats
from .intervals import Interval

Noninferiority = Literal["no worse", "worse", "undecided"]


def adjust(p_values: Sequence[float]) -> Floats:
    """The p-values of many metrics, corrected so that calling those below 0.05 makes at most 5 % of the calls false
    (Benjamini and Hochberg, 1995). NaN stays NaN and does not count."""
    raw = np.asarray(p_values, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(raw))
    order = known[np.argsort(raw[known])]
    scaled = raw[order] * len(order) / np.arange(1, len(order) + 1)
    corrected = np.full(len(raw), np.nan)
    corrected[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return corrected


def non_inferior(ratio: Interval, margin: float, better: int) -> Noninferiority:
    """Is the first cohort no worse than the second by more than `margin` (0.02: 2 %)?

    `better` is +1 where more is better, -1 where less is. The 95 % interval of the ratio decides, so an inferior cohort
    passes in 2.5 % of the tests.
    """
    if better not in (-1, 1):
        raise UsageError(f"non-inferiority of a metric with better = {better}; expected +1 (more is better) or -1")
    if not ratio.logarithmic:
        raise UsageError("non-inferiority of a difference; give it the ratio of the cohorts")
    if math.isnan(ratio.low) or math.isnan(ratio.high):
        return "undecided"
    limit = 1 - margin if better > 0 else 1 + margin
    worst, best = (ratio.low, ratio.high) if better > 0 else (-ratio.high, -ratio.low)
    if worst >= limit * better:
        return "no worse"
    return "worse" if best < limit * better else "undecided"


def least_difference(found: Interval, power: float = 0.8) -> float:
    """The smallest true difference that such data would have shown with that probability: in the metric's unit for a
    difference, as a factor above 1 for a ratio."""
    if math.isnan(found.error) or math.isnan(found.degrees):
        return math.nan
    from scipy.special import stdtrit

    size = found.error * (t_quantile(found.degrees) + float(stdtrit(found.degrees, power)))
    return math.exp(size) if found.logarithmic else size


@dataclass(frozen=True)
class Mismatch:
    """Observed and intended shares of arms. `suspicious`: so unlikely by chance that the assignment or the recording
    favours an arm, and no metric is to be believed before it is known why."""

    observed: dict[str, int]
    intended: dict[str, float]
    p_value: float

    @property
    def suspicious(self) -> bool:
        """Below 0.001, as is usual for this check: it is made for every experiment."""
        return self.p_value < 0.001


def mismatch(observed: Mapping[str, int], intended: Mapping[str, float]) -> Mismatch:
    """The chi-squared test of the counts of assigned units against the intended shares, by its own distribution where
    an arm was to get fewer than five.

    Count what was drawn independently: connections where each connection was drawn, clusters where clusters were.
    """
    if set(observed) != set(intended):
        raise UsageError(
            f"arms of the data are {sorted(observed)}, of the assignment {sorted(intended)}; give both the same arms"
        )
    if any(share <= 0 for share in intended.values()):
        raise UsageError(f"intended shares {dict(intended)}; each arm needs a share above 0")
    from scipy.special import gammaincc

    whole = sum(intended.values())
    shares = {arm: share / whole for arm, share in intended.items()}
    count = sum(observed.values())
    if not count or len(observed) < 2:
        return Mismatch(dict(observed), shares, math.nan)
    wanted = np.array([count * shares[arm] for arm in observed])
    distance = float(np.sum((np.array(list(observed.values())) - wanted) ** 2 / wanted))
    if wanted.min() >= _FEW_WANTED:
        return Mismatch(dict(observed), shares, float(gammaincc((len(observed) - 1) / 2, distance / 2)))
    drawn = np.random.default_rng(1).multinomial(count, wanted / count, _DRAWN)
    farther = int((np.sum((drawn - wanted) ** 2 / wanted, axis=1) >= distance * (1 - 1e-9)).sum())
    return Mismatch(dict(observed), shares, (1 + farther) / (1 + _DRAWN))


_FEW_WANTED = 5
"""Fewer units of an arm than this, and chi-squared is not how such a distance is spread (Cochran, 1952)."""
_DRAWN = 100_000

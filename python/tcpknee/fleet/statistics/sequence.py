"""Intervals that hold at every look at once, for experiments that are watched while they run.

Asymptotic confidence sequences of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, "Time-uniform central limit theory
and asymptotic confidence sequences" (arXiv 2103.06476, section 2): estimate and standard error are all they need.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tcpknee.evidence.stats import LEVEL, t_quantile

from .bins import Floats
from .intervals import FEW, Interval


@dataclass(frozen=True)
class Moments:
    """Sums over clusters that add up over hosts, each of which has clusters of its own.

    A cluster is `weight` (1, or its connections) and `total` (its value, or the sum of its connections' values).
    """

    clusters: int = 0
    weight: float = 0.0
    total: float = 0.0
    weight_weight: float = 0.0
    weight_total: float = 0.0
    total_total: float = 0.0

    @staticmethod
    def of(totals: Floats, weights: Floats | None = None) -> Moments:
        """Of clusters' totals and weights; without weights every cluster counts alike."""
        weights = np.ones(len(totals)) if weights is None else weights
        return Moments(
            len(totals),
            float(weights.sum()),
            float(totals.sum()),
            float(weights @ weights),
            float(weights @ totals),
            float(totals @ totals),
        )

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            self.clusters + other.clusters,
            self.weight + other.weight,
            self.total + other.total,
            self.weight_weight + other.weight_weight,
            self.weight_total + other.weight_total,
            self.total_total + other.total_total,
        )

    def interval(self) -> Interval:
        """The weighted mean with its ordinary interval."""
        if self.clusters < 2:
            value = self.total / self.weight if self.weight else math.nan
            return Interval(value, math.nan, math.nan, self.clusters, self.clusters, self.clusters, math.nan, math.nan)
        value = self.total / self.weight
        squares = self.total_total - 2 * value * self.weight_total + value**2 * self.weight_weight
        error = math.sqrt(max(squares, 0.0) * self.clusters / (self.clusters - 1)) / self.weight
        effective = self.weight**2 / self.weight_weight
        degrees = max(effective - 1, 1.0)
        half = t_quantile(degrees) * error
        return Interval(value, value - half, value + half, self.clusters, self.clusters, effective, error, degrees)


def always(found: Interval, planned: int) -> Interval:
    """The interval that holds at all looks at once, of what an ordinary interval gives at this look.

    It is narrowest when there are about `planned` clusters; choose it before the first look. It is endless below 30
    clusters, where the theory has nothing to say. A p-value becomes one that may be looked at whenever one likes.
    """
    clusters = found.effective
    if clusters < FEW or math.isnan(found.error):
        whole = (0.0, math.inf) if found.logarithmic else (-math.inf, math.inf)
        return replace(found, low=whole[0], high=whole[1], p_value=None if found.p_value is None else 1.0)
    alpha = 1 - LEVEL
    # The prior's variance with which the boundary is narrowest at `planned` clusters (appendix B.2).
    scale = (-2 * math.log(alpha) + math.log(-2 * math.log(alpha) + 1)) / planned
    seen = clusters * scale
    factor = math.sqrt((1 + 1 / seen) * math.log((seen + 1) / alpha**2))
    value = math.log(found.value) if found.logarithmic else found.value
    low, high = value - factor * found.error, value + factor * found.error
    p_value = None
    if found.p_value is not None:
        distance = (value / found.error) ** 2 if found.error else math.inf * abs(value)
        p_value = min(1.0, math.sqrt(seen + 1) * math.exp(-distance * seen / (2 * (seen + 1)))) if value else 1.0
    if found.logarithmic:
        low, high = math.exp(low), math.exp(high)
    return replace(found, low=low, high=high, p_value=p_value)

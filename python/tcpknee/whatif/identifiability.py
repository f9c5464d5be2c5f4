"""What a recording leaves open about its path, and draws from what it leaves open.

A value is known when changing it changes what would have been recorded. The buffer of a path that never filled is known
from below only: such buffers are drawn from those of the other paths that are larger (Kaplan and Meier's estimate).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from .events import random_losses
from .fit import CALIBRATED, HELD_BACK, Fit, Tried
from .host_noise import SAYS_NOTHING
from .model import Path

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

WITHIN = 4.0
"""Score above the best up to which a path may be the one: 95 % for one value (chi-squared)."""
IDENTIFIED = 2.0
"""A value is identified when the largest that may be is less than this multiple of the least."""
_PROPOSED = 8
"""Rates of others that are tried where the own one is open."""
_ALIKE = 3.0
"""How many features say the same, in the mean."""
_BEYOND_ALL = 8.0
"""Where no path is known to have more, an open value is drawn from up to this multiple of its bound."""


@dataclass(frozen=True)
class Bounds:
    """What a value may be; `high` is None where nothing was seen that bounds it."""

    low: float
    high: float | None

    @property
    def identified(self) -> bool:
        return self.high is not None and self.high < IDENTIFIED * self.low


@dataclass(frozen=True)
class Judged:
    """A fit with what it leaves open."""

    fit: Fit
    rate: Bounds
    """In bit/s."""
    buffer: Bounds
    """In us at the path's rate."""
    names: tuple[str, ...]
    """Explanations that may be the one, the best first."""
    late: Numbers = field(default_factory=lambda: SAYS_NOTHING)
    """How likely the recording makes each lateness of hosts (`host_noise.py`)."""


def judged(fit: Fit) -> Judged:
    """Bounds from all paths that were tried and may be the one."""
    if fit.explanation == HELD_BACK:
        rate, buffer = Bounds(fit.path.rate_bits_per_sec, None), Bounds(fit.path.buffer_us, None)
        return Judged(fit, rate, buffer, (HELD_BACK,))
    able = [tried for tried in fit.tried if tried.score <= fit.best.score + WITHIN]
    rates = [tried.path.rate_bits_per_sec for tried in able]
    buffers = [tried.path.buffer_us for tried in able]
    open_rate = max(rates) >= fit.probed_rate_bits_per_sec
    open_buffer = max(buffers) >= fit.probed_buffer_us
    names = dict.fromkeys([fit.explanation, *(tried.explanation for tried in able)])
    return Judged(
        fit,
        Bounds(min(rates), None if open_rate else max(rates)),
        Bounds(min(buffers), None if open_buffer else max(buffers)),
        tuple(names),
    )


class Others:
    """How a value is spread over the paths of a population, those included that are known from below only."""

    def __init__(self, bounds: Sequence[Bounds]) -> None:
        from scipy.stats import CensoredData, ecdf

        known = [float(np.sqrt(one.low * one.high)) for one in bounds if one.high is not None]
        open_ones = [one.low for one in bounds if one.high is None]
        self.values: Numbers = np.empty(0)
        if known:
            estimate = ecdf(CensoredData(uncensored=known, right=open_ones)).sf
            steps = -np.diff(np.r_[1.0, estimate.probabilities])
            self.values, self.weights = estimate.quantiles[steps > 0], steps[steps > 0]

    def above(self, low: float, share: float) -> float:
        """Of the others' values above `low`, the one with that share of them below it; beyond `low` where there is
        none."""
        above = self.values > low
        if not above.any():
            return float(low * _BEYOND_ALL**share)
        values, weights = self.values[above], self.weights[above]
        place = int(np.searchsorted(np.cumsum(weights / weights.sum()), share))
        return float(values[min(place, len(values) - 1)])


def draws(one: Judged, rates: Others, buffers: Others, count: int, rng: np.random.Generator) -> list[Path]:
    """Paths that may be the one, each as often as the recording makes it likely. What it leaves open is drawn from
    other paths."""
    tried = list(one.fit.tried)
    if one.rate.high is None:
        tried += _of_others(one, rates, rng)
    tried.sort(key=lambda each: each.path.rate_bits_per_sec)
    likely = _likely(tried, max(one.fit.misfit**2, _ALIKE))
    # Evenly spread over what is likely, so that a few draws stand for it.
    places = rng.permutation(np.searchsorted(np.cumsum(likely), _spread(count, rng)))
    found = []
    for place, share in zip(places.clip(max=len(tried) - 1), rng.permutation(_spread(count, rng)), strict=True):
        path = tried[place].path
        if one.buffer.high is None:
            path = replace(path, buffer_bytes=buffers.above(one.buffer.low, share) * path.rate_bits_per_sec / 8e6)
        found.append(_with_loss(path, one, rng))
    return found


def _of_others(one: Judged, rates: Others, rng: np.random.Generator) -> list[Tried]:
    """The path at rates of others, which the recording may still find more or less likely."""
    path, rate = one.fit.path, one.fit.path.rate_bits_per_sec
    paths = [path.faster(rates.above(one.rate.low, share) / rate) for share in _spread(_PROPOSED, rng)]
    if one.fit.explanation == HELD_BACK:
        # It says nothing of its path.
        return [Tried(each, HELD_BACK, 0.0) for each in paths]
    base = one.fit.best.score - one.fit.trial(path)
    return [Tried(each, one.fit.explanation, base + one.fit.trial(each)) for each in paths]


def _likely(tried: Sequence[Tried], misfit: float) -> Numbers:
    """How likely each path is. An explanation is as likely as the best of its paths, however many were tried. Where the
    simulator cannot do what was recorded, scores say less; and features are no independent witnesses."""
    scores = np.array([one.score for one in tried])
    names = np.array([one.explanation for one in tried])
    likely: Numbers = np.zeros(len(scores))
    for name in set(names):
        own = scores[names == name]
        within = np.exp(-(own - own.min()) / 2 / misfit)
        likely[names == name] = np.exp(-(own.min() - scores.min()) / 2 / misfit) * within / within.sum()
    likely /= likely.sum()
    return likely


def _spread(count: int, rng: np.random.Generator) -> Numbers:
    """`count` shares between 0 and 1 at even distances, from a random one on."""
    return (np.arange(count) + rng.random()) / count


def _with_loss(path: Path, one: Judged, rng: np.random.Generator) -> Path:
    """Another share of random losses that may have led to as many as were recorded (Jeffreys' prior)."""
    observed = one.fit.observed
    if one.fit.explanation == CALIBRATED or path.loss_pct == 0:
        return path
    segments = sum(series.segments for series in observed.connections)
    together = path.loss_burst_pkts
    lost = together * rng.gamma(random_losses(path, observed) / together + 0.5)
    return replace(path, loss_pct=100 * lost / segments)

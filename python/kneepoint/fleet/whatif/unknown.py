"""What a recording leaves open about its path, and draws from what it leaves open.

A value is known when changing it changes what would have been recorded. The buffer of a path that never filled is known
from below only: such buffers are drawn from those of the other paths that are larger (Kaplan and Meier's estimate).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .fit import HELD_BACK, Fit
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


def buffer_us(path: Path) -> float:
    return path.buffer_bytes * 8e6 / path.rate_bits_per_sec


def judged(fit: Fit) -> Judged:
    """Bounds from all paths that were tried and may be the one."""
    if fit.explanation == HELD_BACK:
        rate, buffer = Bounds(fit.path.rate_bits_per_sec, None), Bounds(buffer_us(fit.path), None)
        return Judged(fit, rate, buffer, (HELD_BACK,))
    able = [tried for tried in fit.tried if tried.score <= fit.best.score + WITHIN]
    rates = [tried.path.rate_bits_per_sec for tried in able]
    buffers = [buffer_us(tried.path) for tried in able]
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

    def draw(self, low: float, rng: np.random.Generator) -> float:
        """A value of the others above `low`; beyond all of them where there is none."""
        above = self.values > low
        if not above.any():
            return float(low * np.exp(rng.uniform(0, np.log(_BEYOND_ALL))))
        weights = self.weights[above]
        return float(rng.choice(self.values[above], p=weights / weights.sum()))


def draws(one: Judged, rates: Others, buffers: Others, count: int, rng: np.random.Generator) -> list[Path]:
    """Paths that may be the one, as often as the recording makes them likely; what it leaves open as others have it."""
    tried = [(each.path, each.score) for each in one.fit.tried]
    if one.rate.high is None:
        # Whatever it leaves open it may still find more or less likely.
        proposed = [_with_rate(one.fit.path, rates.draw(one.rate.low, rng)) for _ in range(_PROPOSED)]
        tried = [(path, one.fit.trial(path)) for path in (one.fit.path, *proposed)]
    scores = np.array([score for _, score in tried])
    # Where the simulator cannot do what was recorded, its scores say less; and features are no independent witnesses.
    likely = np.exp(-(scores - scores.min()) / 2 / max(one.fit.misfit**2, _ALIKE))
    found = []
    for place in rng.choice(len(tried), count, p=likely / likely.sum()):
        path = tried[place][0]
        if one.buffer.high is None:
            path = replace(path, buffer_bytes=buffers.draw(one.buffer.low, rng) * path.rate_bits_per_sec / 8e6)
        found.append(path)
    return found


def _with_rate(path: Path, rate: float) -> Path:
    """Another rate, and a queue that is as long in time."""
    return replace(path, rate_bits_per_sec=rate, buffer_bytes=buffer_us(path) * rate / 8e6)

"""How late hosts send, read from how much RTTs vary while the queue does not.

No counter tells it, but a smoothed deviation of the RTT is never smaller than what the hosts put into it. So its lowest
values are compared with those of simulations whose hosts are late by more or less. One connection says little, and what
all of a recording say is put together: the lateness of a path is taken as spread around a mean, and both the mean and
the spread follow from the paths (a random-effects model). A prediction draws from that spread. Where paths disagree by
more than chance, because real lateness has another form than the simulated one, it is wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .events import as_it_happened
from .fit import CALIBRATED, HELD_BACK, Fit
from .model import HOST_NOISES_US, simulate
from .series import Series

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

TRIED_US = (10.0, 20.0, 50.0, 100.0, 200.0, 400.0)
"""From below what an idle machine has to twice what fits a busy one best (docs/simulator.md, The noise of hosts)."""
_QUANTILES = (10, 25)
"""Of the samples' deviations: most of the others are of a queue that changes."""
_SEEDS = (21, 22)
_OFF = 0.15
"""Logarithm by which these quantiles differ on a fitted path beside the true one, in the mean."""
_FREEDOM = 4.0
"""Degrees of freedom of Student's t: a path that is fitted as something else must not outvote the others."""
_STEP = 0.05
"""Of the logarithms between which the simulated ones are interpolated."""
_GRID = np.arange(np.log(TRIED_US[0]), np.log(TRIED_US[-1]) + _STEP / 2, _STEP)
_SPREADS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0)
"""Deviations of the logarithm that lateness may have from path to path, each as likely beforehand."""
SAYS_NOTHING: Numbers = np.zeros(len(_GRID))
"""The witness of a path whose simulation does not depend on the hosts."""


def witness(fit: Fit) -> Numbers:
    """How likely a path's recording makes each lateness of the grid: logarithms."""
    if fit.explanation in (CALIBRATED, HELD_BACK):
        return SAYS_NOTHING
    observed, load = fit.trial.observed, fit.trial.load
    places = sorted(observed.telling)
    wanted = np.array([_low(observed.connections[place]) for place in places])
    found = []
    for noise_us in TRIED_US:
        for seed in _SEEDS:
            path = as_it_happened(fit.path, observed, seed)
            every = simulate(path, load, seed=seed, noise_us=noise_us)
            known = [series for place in places if isinstance(series := every[place], Series)]
            if len(known) < len(places):
                return SAYS_NOTHING
            found.append([_low(series) for series in known])
    # Lateness, seeds, connections and quantiles.
    simulated = np.reshape(found, (len(TRIED_US), len(_SEEDS), *wanted.shape))
    chance = simulated.var(axis=1, ddof=1).mean(axis=0)
    scale = np.sqrt(chance * (1 + 1 / len(_SEEDS)) + _OFF**2)
    steps = (_between(simulated.mean(axis=1)) - wanted) / scale
    likely = -(_FREEDOM + 1) / 2 * np.log1p(steps**2 / _FREEDOM)
    # The quantiles of a path say nearly the same, and so do its connections.
    alike: Numbers = likely.mean(axis=(1, 2))
    return alike


def _low(series: Series) -> list[float]:
    """Logarithms of the low quantiles."""
    varying = series.rttvar_us[series.srtt_us > 0]
    return [float(np.log(max(value, 1.0))) for value in np.percentile(varying, _QUANTILES)]


def _between(simulated: Numbers) -> Numbers:
    """By lateness of the grid, from those that were simulated (first axis)."""
    flat = simulated.reshape(len(TRIED_US), -1)
    columns = [np.interp(_GRID, np.log(TRIED_US), flat[:, column]) for column in range(flat.shape[1])]
    return np.stack(columns, axis=1).reshape(len(_GRID), *simulated.shape[1:])


def likely_us(witnesses: Sequence[Numbers], count: int) -> tuple[float, ...]:
    """So many latenesses that stand for what the paths of a recording make likely: quantiles at even distances."""
    spoken = [one for one in witnesses if np.any(one != 0)]
    if not spoken:
        return tuple(float(HOST_NOISES_US[place % len(HOST_NOISES_US)]) for place in range(count))
    likelihoods = np.exp(np.array([one - one.max() for one in spoken]))
    joint, kernels = [], []
    for spread in _SPREADS:
        kernel = np.exp(-(((_GRID[:, None] - _GRID) / max(spread, _STEP / 2)) ** 2) / 2)
        kernel /= kernel.sum(axis=1, keepdims=True)
        kernels.append(kernel)
        # Means of the spread (first axis); of each path, its likelihood in the mean over that spread.
        joint.append(np.log(kernel @ likelihoods.T).sum(axis=1))
    weights = np.exp(np.array(joint) - np.max(joint))
    weights /= weights.sum()
    predicted = sum(weight @ kernel for weight, kernel in zip(weights, kernels, strict=True))
    shares = (np.arange(count) + 0.5) / count
    return tuple(float(value) for value in np.exp(np.interp(shares, np.cumsum(predicted), _GRID)))

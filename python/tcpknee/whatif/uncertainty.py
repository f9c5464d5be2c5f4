"""How far a predicted change of a mean over paths may be off: what differs from path to path, and what is common.

What differs from path to path becomes smaller with their number. What paths have in common does not, and is read from
means over paths. Such a mean is not 0 even where nothing is common: it has the chance of what differs between paths,
which is counted already. So only the rest is common: the mean's square without the variance of the mean. This is the
method of moments for components of variance, cut at 0 (Searle, Casella and McCulloch, Variance Components, 1992;
DerSimonian and Laird, Controlled Clinical Trials 7, 1986).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .series import METRICS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

TRANSFER = {
    "goodput_bits_per_sec": (0.0010, 0.0023),
    "srtt_us_p50": (0.0031, 0.0098),
    "srtt_us_p95": (0.0031, 0.0098),
    "queue_delay_us_p95": (0.0245, 0.0577),
    "retransmit_pct": (0.0529, 0.1358),
}
"""How far the simulator may be from Linux: standard deviations of logarithms, and of points; of what all paths have in
common, and of what differs from path to path. `tools/whatif_transfer.py` makes them of the differences of cubic and
bbr1 from Linux 6.12 on 13 paths. Its RTTs are medians, which stand for the 95th percentile, too."""
_COMMON_TO_ALL, _OF_PATHS = (np.array([TRANSFER[name][place] for name in METRICS]) for place in (0, 1))


@dataclass(frozen=True)
class Errors:
    """Of the mean over some paths. Standard deviations of each metric, unless said otherwise."""

    weights: Numbers
    """Of each path in the mean; they add up to 1."""
    guessed: Numbers
    """Paths and metrics: how far the truth may be from what was predicted of the path."""
    misfit: Numbers
    """Paths and metrics: how far simulations of what was recorded are off."""
    witnesses: int
    """Rehearsals; a path that had none took the error of another one."""
    draws: int
    """Of each path. One less, and the rehearsal, are as many estimates of what is guessed."""
    common_rehearsed: Numbers
    common_misfit: Numbers
    late: Numbers
    """Draws and metrics: what the change differs by when hosts are as late as in that draw."""

    @property
    def of_paths(self) -> Numbers:
        """Paths and metrics. What the simulator cannot do of the recording it may be unable to do of the prediction, by
        as much."""
        guessed, misfit = self._own
        every: Numbers = np.sqrt(guessed**2 + misfit**2 + _OF_PATHS**2)
        return every

    @property
    def _own(self) -> tuple[Numbers, Numbers]:
        """What is guessed and the misfit, each as large as it may be for all that so few estimates tell of it."""
        return _few(self.witnesses * self.draws) * self.guessed, _few(self.witnesses) * self.misfit

    def sampled(self, count: int, rng: np.random.Generator) -> Numbers:
        """So many draws (first axis) of what paths have in common."""
        deviation = np.sqrt(self.common_rehearsed**2 + self.common_misfit**2 + _COMMON_TO_ALL**2)
        common: Numbers = rng.standard_normal((count, len(METRICS))) * deviation
        return common + self.late[rng.integers(len(self.late), size=count)]

    def parts(self) -> dict[str, Numbers]:
        """The standard deviation that each part alone would give the mean, of each metric."""
        guessed, misfit = self._own
        return {
            "draws and rehearsals": np.sqrt(self.weights**2 @ guessed**2),
            "misfits": np.sqrt(self.weights**2 @ misfit**2),
            "common to rehearsals": self.common_rehearsed,
            "common to misfits": self.common_misfit,
            "late hosts": self.late.std(axis=0),
            "simulator": np.sqrt(_COMMON_TO_ALL**2 + np.sum(self.weights**2) * _OF_PATHS**2),
        }


def errors_of(
    recorded: Numbers, now: Numbers, then: Numbers, wrong: Numbers, sources: NDArray[np.intp], sizes: Numbers
) -> Errors:
    """Of paths with so many connections (`sizes`), what was recorded of them (paths and metrics) and what was simulated
    (paths, draws and metrics). `wrong`: errors of rehearsals, each of the path that `sources` names."""
    weights = sizes / sizes.sum()
    # A path that lent its error to others is one witness, and not several.
    _, first, witness = np.unique(sources, return_index=True, return_inverse=True)
    return Errors(
        weights,
        _guessed(wrong, then),
        misfits(recorded, now),
        len(first),
        then.shape[1],
        _common(wrong[first], np.bincount(witness, weights).astype(np.float64)),
        _common(recorded - now.mean(axis=1), weights),
        _late(then - now, weights),
    )


def _few(estimates: int) -> float:
    """A few errors tell little of their deviation: Student's t in place of the normal distribution."""
    from scipy.stats import norm, t

    return float(t.ppf(0.975, max(estimates - 1, 1)) / norm.ppf(0.975))


def _guessed(wrong: Numbers, then: Numbers) -> Numbers:
    """What draws of a path differ by, and how wrong its one rehearsal was, both tell how far the truth may be from what
    is predicted. Draws hold nothing of what a fit misses, and a rehearsal may come out right by luck: the larger."""
    # The truth is one more draw, held against the mean of the others.
    drawn = then.std(axis=1, ddof=1) * np.sqrt(1 + 1 / then.shape[1])
    found: Numbers = np.maximum(np.abs(wrong), drawn)
    return found


def misfits(recorded: Numbers, now: Numbers) -> Numbers:
    """How far simulations of what was recorded are off, without what is as small as their differences between draws:
    that was luck, which the prediction will not have (the positive-part estimate of James and Stein)."""
    off = recorded - now.mean(axis=-2)
    chance = now.var(axis=-2, ddof=1)
    misfit: Numbers = off * np.clip(1 - chance / np.maximum(off**2, 1e-12), 0, 1)
    return misfit


def _common(errors: Numbers, weights: Numbers) -> Numbers:
    """Of errors (paths and metrics), what is beyond chance in their mean."""
    if len(errors) == 1:
        return np.zeros(errors.shape[1])
    mean = weights @ errors
    chance = weights**2 @ (errors - mean) ** 2 / (1 - np.sum(weights**2))
    common: Numbers = np.sqrt(np.maximum(mean**2 - chance, 0))
    return common


def _late(changed: Numbers, weights: Numbers) -> Numbers:
    """The hosts of all paths are late by as much, which is that of one of the draws. Draws differ by other things, too,
    which are not the same for all paths: so differences between the means of draws count as far as they are beyond
    that chance."""
    by_draw = np.einsum("p,pdm->dm", weights, changed)
    late: Numbers = by_draw - by_draw.mean(axis=0)
    if len(weights) == 1:
        return late
    rest = changed - changed.mean(axis=1, keepdims=True) - late
    chance = np.einsum("p,pdm->m", weights**2, rest**2) / (1 - np.sum(weights**2))
    spread = np.sum(late**2, axis=0)
    beyond: Numbers = late * np.sqrt(np.clip(1 - chance / np.maximum(spread, 1e-12), 0, 1))
    return beyond

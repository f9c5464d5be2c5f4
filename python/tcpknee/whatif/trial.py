"""How well a path explains a recording: the load of the recording is simulated on it, and the two are compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .distance import FAR, Features, likeness
from .events import as_it_happened
from .model import Load, Path, simulate
from .observation import Observed
from .series import Series, Starved

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

SEEDS = (1, 2, 3, 4)
"""Seeds that show how much chance there is in an explanation; a search uses the first one or two."""
OTHER_SEEDS = (11, 12, 13, 14)
"""Seeds with which the best paths are simulated once more: with those of the search they may be best by chance."""


class Trial:
    """Simulates paths under one recording's load, and says how far each is from it. `happened`: with the losses and the
    cross traffic that were recorded."""

    def __init__(self, observed: Observed, load: Load, *, happened: bool = False) -> None:
        self.load = load
        self.observed = observed
        self.happened = happened
        wanted = self._features(observed.connections)
        assert wanted is not None
        self.wanted = wanted
        self.chance: Numbers = np.zeros(len(self.wanted.values))
        self.simulated: dict[tuple[Path, int], Numbers | None] = {}
        """Features by path and seed: a search comes back to its best paths."""

    def measure_chance(self, paths: Sequence[Path], seeds: Sequence[int]) -> None:
        """Measures how much simulations of a path differ from seed to seed, if only because hosts are late by more or
        less: in the mean over these paths."""
        found = [values for path in paths if len(values := self.every(path, seeds)) > 1]
        if found:
            self.chance = np.sqrt(np.mean([np.var(values, axis=0, ddof=1) for values in found], axis=0))

    def features(self, path: Path, seed: int = 1) -> Numbers | None:
        """None: a connection that is compared did not get through."""
        if (path, seed) not in self.simulated:
            self.simulated[path, seed] = self._simulated(path, seed)
        return self.simulated[path, seed]

    def _simulated(self, path: Path, seed: int) -> Numbers | None:
        path = as_it_happened(path, self.observed, seed) if self.happened else path
        found = self._features(simulate(path, self.load, seed=seed))
        return None if found is None else found.values

    def _features(self, every: Sequence[Series | Starved]) -> Features | None:
        """None: a connection that is compared did not get through."""
        telling = self.observed.telling
        known = [(place, series) for place, series in enumerate(every) if isinstance(series, Series)]
        compared = [series for place, series in known if place in telling]
        others = [series for place, series in known if place not in telling]
        return Features(compared, self.observed.interval_us, others) if len(compared) == len(telling) else None

    def every(self, path: Path, seeds: Sequence[int]) -> list[Numbers]:
        """The features by each seed with which all connections that are compared get through."""
        return [values for seed in seeds if (values := self.features(path, seed)) is not None]

    def __call__(self, path: Path, seeds: Sequence[int] = SEEDS[:1], *, of_any: bool = False) -> float:
        found = self.every(path, seeds)
        enough = found if of_any else len(found) == len(seeds)
        return float(self.score(np.array(found), of_any=of_any)) if enough else FAR**2

    def score(self, values: Numbers, *, of_any: bool = False) -> Numbers:
        """Of the mean over the seeds; the last two axes are seeds and features. `of_any`: of the mean likelihood over
        the seeds, since what lies between samples is not recorded, and may have been as with any of them."""
        if not of_any:
            # The mean over a few seeds has some chance of its own.
            chance = self.chance * np.sqrt(1 + 1 / values.shape[-2])
            apart, costs = likeness(self.wanted, values.mean(axis=-2), chance)
            return apart + costs
        apart, costs = likeness(self.wanted, values, self.chance)
        scores = apart + costs
        least = scores.min(axis=-1)
        likely: Numbers = least - 2 * np.log(np.mean(np.exp(-(scores - least[..., np.newaxis]) / 2), axis=-1))
        return likely

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
"""Seeds that show how much chance there is in an explanation; searches use the first one or two."""
OTHER_SEEDS = (11, 12, 13, 14)
"""Seeds with which the best paths are simulated once more: with those of the search they may be best by chance."""


class Trial:
    """Simulates paths under one recording's load, and says how far each is from it. `happened`: with the losses and the
    cross traffic that were recorded. `many`: more connections share the path than are compared, and over many of them
    luck is even, so a search simulates half as many seeds."""

    def __init__(self, observed: Observed, load: Load, *, happened: bool = False, many: bool = False) -> None:
        self.load = load
        self.observed = observed
        self.happened = happened
        self.many = many
        wanted = self._features(observed.connections)
        assert wanted is not None
        self.wanted = wanted
        self.chance: Numbers = np.zeros(len(self.wanted.values))
        self.seeds: tuple[int, ...] = SEEDS[:1]
        self.simulated: dict[tuple[Path, int], Numbers | None] = {}
        """Features by path and seed: a search comes back to its best paths."""

    def measure_chance(self, path: Path, *, random: bool, seeds: Sequence[int] = SEEDS) -> None:
        """Measures how much simulations of that path differ from seed to seed, if only because hosts are late by more
        or less. `random`: they differ so much that two seeds are simulated from now on, unless many share the path."""
        found = self.every(path, seeds)
        if len(found) > 1:
            self.chance = np.std(found, axis=0, ddof=1)
        if random:
            self.seeds = self.of(SEEDS[:2])

    def of(self, seeds: tuple[int, ...]) -> tuple[int, ...]:
        """Those of these seeds that are simulated."""
        return seeds[: len(seeds) // 2] if self.many else seeds

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

    def __call__(self, path: Path, seeds: Sequence[int] = ()) -> float:
        found = []
        for seed in seeds or self.seeds:
            values = self.features(path, seed)
            if values is None:
                return FAR**2
            found.append(values)
        # The mean over a few seeds has some chance of its own.
        return sum(likeness(self.wanted, np.mean(found, axis=0), self.chance * np.sqrt(1 + 1 / len(found))))

    def by_any(self, path: Path, seeds: Sequence[int]) -> float:
        """The score of the mean likelihood over the seeds: what lies between samples is not recorded, and may have been
        as with any of them."""
        likenesses = [sum(likeness(self.wanted, values, self.chance)) for values in self.every(path, seeds)]
        scores = np.array(likenesses or [FAR**2])
        return float(scores.min() - 2 * np.log(np.mean(np.exp(-(scores - scores.min()) / 2))))

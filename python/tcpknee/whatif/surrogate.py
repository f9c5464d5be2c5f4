"""Finds the least score in few simulations: between them, a surrogate stands for the simulator.

The score is that of many features, and each feature is taken as a linear function of the values that vary, fitted to
the simulations near the best point so far. So d + 1 simulations tell where all features would be right, as in the
method of Gauss and Newton; one that looks at scores alone needs several times as many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

# docs/validation/what-if-studies.md has the distributions that these are from, tools/whatif_limits.py makes them.
_MOST_STEPS = 12
"""After the first d + 1 simulations. Without a limit 89 % of searches are within 0.5 of their end by then."""
_LEAST_RADIUS, _MOST_RADIUS = 0.15, 4.0
"""How far from the best point a surrogate is relied on, in units of the values. Without a limit, 38 % of the steps are
within a smaller radius, and bring 3 % of what is gained."""
_LEAST_GAIN = 0.2
"""Of the score: what promises less is not simulated. Such steps are 15 %, and bring 0.4 % of what is gained."""
_DIRECTIONS = 200
"""Points that the surrogate is asked for. A quarter or four times as many find paths that are as good."""


def minimize(
    simulated: Callable[[Numbers], tuple[float, Numbers | None]],
    scores: Callable[[Numbers], Numbers],
    count: int,
    enough: float,
) -> None:
    """Simulates points of `count` values, from 0 on, until the score is `enough` or nothing more is to be gained.
    `simulated` gives the score of a point and its features, if it has any; `scores` those of rows of features."""
    points: list[Numbers] = []
    rows: list[Numbers] = []
    best, lowest, radius = np.zeros(count), np.inf, 1.0

    def is_better(point: Numbers) -> bool:
        nonlocal best, lowest
        score, features = simulated(point)
        if features is not None:
            points.append(point)
            rows.append(features)
        better = score < lowest
        if better:
            best, lowest = point, score
        return better

    for point in (best, *np.eye(count)):
        is_better(point)
    for _ in range(_MOST_STEPS):
        if lowest < enough or radius < _LEAST_RADIUS or not points:
            return
        offset, gain = proposed(np.array(points) - best, np.array(rows), radius, scores)
        if gain < _LEAST_GAIN:
            return
        if not is_better(best + offset):
            radius /= 2
        elif np.linalg.norm(offset) > 0.7 * radius:
            radius = min(2 * radius, _MOST_RADIUS)


def proposed(
    points: Numbers, rows: Numbers, radius: float, scores: Callable[[Numbers], Numbers]
) -> tuple[Numbers, float]:
    """The point within the radius around 0 that a surrogate of these rows finds best, and what it gains."""
    near = 1 / (1 + (np.linalg.norm(points, axis=1) / (2 * radius)) ** 2)[:, np.newaxis]
    design = np.column_stack([np.ones(len(points)), points])
    constant, *linear = np.linalg.lstsq(design * near, rows * near, rcond=None)[0]
    rng = np.random.default_rng(len(points))
    ways = rng.standard_normal((_DIRECTIONS, points.shape[1]))
    ways *= (rng.random(_DIRECTIONS) ** (1 / points.shape[1]) / np.linalg.norm(ways, axis=1))[:, np.newaxis]
    ways[0] = 0.0
    best = ways[0]
    for reach in (radius, radius / 4, radius / 16):
        around = best + reach * ways
        around /= np.maximum(np.linalg.norm(around, axis=1) / radius, 1)[:, np.newaxis]
        found = scores(constant + around @ np.array(linear))
        best = around[np.argmin(found)]
    now = scores(constant[np.newaxis])
    return best, float(now[0] - found.min())

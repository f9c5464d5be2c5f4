"""Bins of constant relative width, as in DDSketch (Masson, Rim and Lee, VLDB 2019).

Bin 0 holds zero and what is nearer to it than `TINY`; bin i > 0 holds TINY * g^(i-1) <= value < TINY * g^i with
g = (1 + error) / (1 - error), and bin -i the same below zero. The middle of a bin is within `error` of each value in
it. A quantile is interpolated within its bin, so it is never further than the bin's width, 2 * error, from the exact
one, and on smooth data far nearer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int32]

TINY = 1e-9
HUGE = 1e21


@dataclass(frozen=True)
class Bins:
    """`error`: the largest relative distance of a value from its bin's middle."""

    error: float = 0.005

    @property
    def growth(self) -> float:
        """Upper edge of a bin over its lower one."""
        return (1 + self.error) / (1 - self.error)

    def index(self, values: Floats) -> Integers:
        """The bin of each value, none of which is NaN; what lies beyond `HUGE` is in the last bin."""
        size = np.abs(values)
        with np.errstate(divide="ignore"):
            found = np.floor(np.log(np.minimum(size, HUGE) / TINY) * (1 / math.log(self.growth))) + 1
        return np.where(size < TINY, 0.0, np.copysign(found, values)).astype(np.int32)

    def edges(self, index: npt.ArrayLike) -> tuple[Floats, Floats]:
        """The lower and the upper edge of bins."""
        index = np.asarray(index, dtype=np.float64)
        outer = TINY * np.exp(np.abs(index) * math.log(self.growth))
        inner = outer / self.growth
        low = np.where(index > 0, inner, np.where(index < 0, -outer, 0.0))
        high = np.where(index > 0, outer, np.where(index < 0, -inner, 0.0))
        return low, high

"""Means and ratios with 95 % intervals.

Values are one per unit of evidence, such as a repetition or a host. What is measured within a unit is not independent,
and is combined to one value first (see `metrics`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

Indices = npt.NDArray[np.int64]

LEVEL = 0.95
"""Confidence of every interval."""

MINIMAL_EFFECT = 0.05
"""The difference that a comparison should be able to decide: 5 %."""

LEAST_TO_ADVISE = 3
"""Units from which on it is said how many would do. The deviation of two is known to a factor of 70 (95 %), that of
three to one of 12."""

FURTHEST_ADVICE = 10
"""Advice goes up to this many times the units that there are; beyond it says that more would be needed."""

_ROUNDING = 1e-12
"""Values closer than this share of themselves differ by the rounding of floats only."""


@dataclass(frozen=True)
class Unit:
    """What evidence is counted in: values of different units are independent of each other."""

    one: str
    many: str


@dataclass(frozen=True)
class Estimate:
    """A mean over units. `low` and `high` are None for a single unit.

    The interval is Student's t at 95 %, cut to what the quantity can be (a rate is never below 0).
    `identical`: two or more units, all with the same value.
    """

    mean: float
    low: float | None
    high: float | None
    n: int
    identical: bool = False

    def json(self) -> dict[str, float | int | None]:
        """The object of `--json`."""
        return {"mean": self.mean, "low": self.low, "high": self.high, "n": self.n}

    def map(self, function: Callable[[float], float]) -> Estimate:
        """Of a rising function of the quantity; of a falling one the ends change places."""
        ends = [None if end is None else function(end) for end in (self.low, self.high)]
        if None not in ends:
            ends.sort()
        return replace(self, mean=function(self.mean), low=ends[0], high=ends[1])


UNBOUNDED = (-float("inf"), float("inf"))


def estimate(values: npt.ArrayLike, bounds: tuple[float, float] = UNBOUNDED) -> Estimate | None:
    """Mean and 95 % interval over units, cut to `bounds`; NaN values do not count; None without any value."""
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    n = len(known)
    if n == 0:
        return None
    if n == 1:
        return Estimate(float(known[0]), None, None, 1)
    value = float(known[0])
    if np.all(np.abs(known - value) <= _ROUNDING * abs(value)):
        return Estimate(value, value, value, n, identical=True)
    mean, half = float(known.mean()), half_width(float(known.std(ddof=1)), n)
    return Estimate(mean, max(mean - half, bounds[0]), min(mean + half, bounds[1]), n)


_PLANNED = 32
"""Units at which an interval that holds while one looks is narrowest."""
LEAST_TO_LOOK = 16
"""Units from which on there is one. From 8 on it erred in 6 % of 1500 sequences of exponential draws, from 16 on in
4.9 %."""


def while_looking(values: npt.ArrayLike, *, of: int = 1) -> Estimate | None:
    """As `estimate`, with an interval that holds at 95 % however often one looks while units are added, and stops when
    one likes: an asymptotic confidence sequence (Waudby-Smith et al., Annals of Statistics 52(6) 2024, proposition 5),
    with Student's t in the place of the normal distribution. `of`: how many are looked at, which share the 5 % that may
    be wrong."""
    from scipy.special import ndtr, stdtrit

    known = np.asarray(values, dtype=np.float64)
    n = len(known)
    if n < LEAST_TO_LOOK:
        return Estimate(float(known.mean()), None, None, n) if n else None
    level = (1 - LEVEL) / of
    rho = (-2 * np.log(level) + np.log(-2 * np.log(level)) + 1) / _PLANNED
    wide = n * rho + 1
    normal = np.sqrt(2 * wide / (n * rho) * np.log(np.sqrt(wide) / level))
    half = float(stdtrit(n - 1, ndtr(normal)) * known.std(ddof=1) / np.sqrt(n))
    mean = float(known.mean())
    return Estimate(mean, mean - half, mean + half, n, identical=half == 0)


def ratio(quotients: npt.ArrayLike, *, looking: bool = False) -> Estimate | None:
    """The ratio of two measured quantities from its value in each unit: the geometric mean, and the 95 % interval
    of the mean logarithm. So a / b is exactly 1 / (b / a). None where there is no value, or one that is not above 0.
    `looking`: the interval is that of `while_looking`.
    """
    known = np.asarray(quotients, dtype=np.float64)
    known = known[~np.isnan(known)]
    if not len(known) or np.any(known <= 0):
        return None
    found = estimate(known)
    assert found is not None
    if found.identical and abs(found.mean - 1) <= _ROUNDING:
        return Estimate(1.0, 1.0, 1.0, found.n, identical=True)
    if found.identical or found.n == 1:
        return found
    logarithms = (while_looking if looking else estimate)(np.log(known))
    assert logarithms is not None
    return logarithms.map(lambda value: float(np.exp(value)))


def difference_apart(left: Floats, right: Floats) -> Estimate | None:
    """The mean of `right` less that of `left`, whose units are independent of each other, with the 95 % interval of
    Welch (1947). NaN values do not count; None where either has no value."""
    left, right = (values[~np.isnan(values)] for values in (left, right))
    of_left, of_right = estimate(left), estimate(right)
    if of_left is None or of_right is None:
        return None
    step, n = of_right.mean - of_left.mean, min(of_left.n, of_right.n)
    if n == 1:
        return Estimate(step, None, None, 1)
    if of_left.identical and of_right.identical:
        equal = abs(step) <= _ROUNDING * abs(of_left.mean)
        step = 0.0 if equal else step
        return Estimate(step, step, step, n, identical=True)
    errors = [
        0.0 if found.identical else float(values.var(ddof=1)) / found.n
        for values, found in ((left, of_left), (right, of_right))
    ]
    degrees = sum(errors) ** 2 / (errors[0] ** 2 / (of_left.n - 1) + errors[1] ** 2 / (of_right.n - 1))
    half = t_quantile(degrees) * float(np.sqrt(sum(errors)))
    return Estimate(step, step - half, step + half, n)


def ratio_apart(left: Floats, right: Floats) -> Estimate | None:
    """`ratio` of `right` to `left` where their units are independent: the ratio of the geometric means. None where
    there is no value, or one that is not above 0."""
    left, right = (values[~np.isnan(values)] for values in (left, right))
    if np.any(left <= 0) or np.any(right <= 0):
        return None
    logarithms = difference_apart(np.log(left), np.log(right))
    return None if logarithms is None else logarithms.map(lambda value: float(np.exp(value)))


def half_width(deviation: float, n: int) -> float:
    """Half the 95 % interval of a mean of `n` >= 2 values with that sample standard deviation."""
    return t_quantile(n - 1) * deviation / float(np.sqrt(n))


_PANELS = np.linspace(0, 1, 1025)
_SIMPSON = np.array([1, *[4, 2] * 511, 4, 1]) / 3072
"""Weights of Simpson's rule at `_PANELS`."""
_NORMAL_DEGREES = 1e6
"""From here on Student's t has the quantile of the normal distribution to six digits."""


@lru_cache(maxsize=4096)
def t_quantile(degrees: float) -> float:
    """Two-sided 95 % quantile of Student's t with `degrees` >= 1 of freedom: 12.706 for one, 1.96 for very many.

    With t = sqrt(degrees) tan(angle) the probability between -t and t is an integral of powers of a cosine over a
    finite range, which is concave in the angle: Newton's steps from 0 reach it from below. `scipy.special` has it, too,
    and takes 0.3 s to be imported, which was half of what a short `knee run` takes.
    """
    degrees = min(degrees, _NORMAL_DEGREES)
    power = degrees - 1
    density = 2 / math.sqrt(math.pi) * math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2))
    angle, step = 0.0, 1.0
    while abs(step) > 1e-12 * angle:
        within = density * angle * float(_SIMPSON @ np.cos(angle * _PANELS) ** power)
        step = (LEVEL - within) / (density * math.cos(angle) ** power)
        angle += step
    return math.sqrt(degrees) * math.tan(angle)


def units_for(deviation: float, half: float) -> int:
    """The least number of units whose 95 % interval is `half` or less to each side, at that deviation."""
    low, high = 1, 2
    while half_width(deviation, high) > half:
        low, high = high, high * 2
        if high > 1 << 30:
            return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if half_width(deviation, middle) > half else (low, middle)
    return high

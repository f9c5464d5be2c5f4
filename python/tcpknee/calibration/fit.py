"""Costs that explain what was measured, beginning with those of a published profile.

What a run costs is the sum over operations of how often it does each and what that costs. How often, the simulator
says; it does so again with the costs found, as these change the order of what happens. No set of runs tells thirty
operations apart, so the costs are those most plausible after the measurement: of two operations that always come
together, the sum is known and the parts are as far apart as before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tcpknee.errors import EngineError

from .measuring import Predicted
from .micro import Micro

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

Floats = npt.NDArray[np.float64]

PRIOR_SPREAD = math.log(2)
"""Standard deviation of a cost's logarithm before anything is measured: two thirds are within a factor of two."""
LEAST_ERROR = 0.05
"""No run says more of costs than one known to this, whatever its rounds say: the model leaves out as much. Where each
run was known within 5 %, the model's errors for runs that it was not fitted to had a standard deviation of 6 %."""
FREEDOM = 4.0
"""Degrees of freedom of Student's t, which errors of runs are taken to follow: where the model does something else than
the kernel, a run says little of costs, and must not outvote those that agree."""
ROUNDS = 4
"""Times that the model is asked how often operations happen."""
NORMAL_95 = 1.96
SEEN_FROM = 0.05
"""Share of a cost's uncertainty below which the measurement said nothing of it: the cost is the prior's."""


@dataclass(frozen=True)
class Measured:
    """A run's cost on this host. `log_ns`: median of the rounds; `error`: standard error of it."""

    micro: Micro
    log_ns: float
    error: float

    @property
    def ns(self) -> float:
        return math.exp(self.log_ns)

    @property
    def interval(self) -> tuple[float, float]:
        """95 %."""
        half = NORMAL_95 * self.error
        return math.exp(self.log_ns - half), math.exp(self.log_ns + half)


@dataclass(frozen=True)
class Cost:
    """An operation's cost with its 95 % interval, ns. `told`: how much of the uncertainty the measurement took."""

    ns: float
    low: float
    high: float
    told: float

    @property
    def is_seen(self) -> bool:
        """Whether the measurement says anything of it."""
        return self.told >= SEEN_FROM


def fit(
    measured: Sequence[Measured],
    prior: Mapping[str, float],
    predict: Callable[[Micro, Mapping[str, float]], Predicted],
) -> dict[str, Cost]:
    """The costs. `prior`: those to begin with, by operation; 0 stays 0. `predict`: a run by the model with such."""
    from scipy.optimize import least_squares

    names = [name for name, ns in prior.items() if ns > 0]
    first = np.log([prior[name] for name in names])
    logs = np.array([one.log_ns for one in measured])
    errors = np.array([max(one.error, LEAST_ERROR) for one in measured])
    if not np.isfinite(errors).all():
        raise EngineError("calibration: got one round; expected two or more, to know how far apart they are.")

    def count(at: Floats) -> tuple[Floats, Floats]:
        """How often each run does each operation with such costs, and the rest of its ns."""
        costs = dict(zip(names, np.exp(at).tolist(), strict=True))
        predicted = [predict(one.micro, costs) for one in measured]
        counts = np.array([[one.by_operation[name] / costs[name] for name in names] for one in predicted])
        return counts, np.array([one.ns for one in predicted]) - counts @ np.exp(at)

    def likeliest(found: Floats, freedom: float, rounds: int) -> OptimizeResult:
        for _ in range(rounds):
            counts, rest = count(found)

            def residuals(at: Floats, counts: Floats = counts, rest: Floats = rest) -> Floats:
                whole = np.maximum(counts @ np.exp(at) + rest, 1e-9)
                steps = (np.log(whole) - logs) / errors
                return np.concatenate([unlikely(steps, freedom), (at - first) / PRIOR_SPREAD])

            solved = least_squares(residuals, found)
            found = solved.x
        return solved

    # A cost can lie far from the prior, which may be of another kind of machine. If few runs say so, a search that
    # begins at the prior takes them for runs in which the model does something else. So another begins where all runs
    # are believed.
    beginnings = [first, likeliest(first, math.inf, 1).x]
    solved = min((likeliest(one, FREEDOM, ROUNDS) for one in beginnings), key=lambda one: float(one.cost))
    found, jacobian = solved.x, solved.jac
    covariance = np.linalg.inv(jacobian.T @ jacobian)
    spreads = np.sqrt(np.diag(covariance))
    costs_found = {}
    for name, at, spread in zip(names, found.tolist(), spreads.tolist(), strict=True):
        half = NORMAL_95 * spread
        told = 1 - min(1.0, spread / PRIOR_SPREAD)
        costs_found[name] = Cost(math.exp(at), math.exp(at - half), math.exp(at + half), told)
    return {name: costs_found.get(name, Cost(0.0, 0.0, 0.0, 0.0)) for name in prior}


def unlikely(steps: Floats, freedom: float) -> Floats:
    """By how much errors of so many standard deviations are unlikely: their squares are what the logarithm of the
    likelihood falls by, twice."""
    if math.isinf(freedom):
        return steps
    spread: Floats = np.sign(steps) * np.sqrt((freedom + 1) * np.log1p(steps**2 / freedom))
    return spread

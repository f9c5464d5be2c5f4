"""What rounds of runs say together: each run's level, and how well it is known.

Other work makes a run longer and never shorter, so of a shared machine's rounds a few lie far above the others: the
level of a run is its median. How far rounds of one run lie apart says little of how well that run is known, if there
are five: by chance they are near each other in some, and such runs would decide the fit. So half of what is taken for
the spread of a run is that of all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

Log = float
"""A natural logarithm of ns."""

MEDIAN_ERROR = 1.2533
"""Standard error of a median, as a multiple of a mean's: the square root of pi / 2."""
SMALL = {2: 1.196, 3: 1.495, 4: 1.363, 5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}
"""By how much the median absolute deviation of so few values is too small (Croux and Rousseeuw, COMPSTAT 1992)."""
PRIOR_FREEDOM = 4
"""Degrees of freedom that the spread of all runs counts for beside a run's own (moderated variances: Smyth, Statistical
Applications in Genetics and Molecular Biology 3:3, 2004): as many as five rounds have."""


def even_out(rounds: Sequence[Mapping[str, float]]) -> dict[str, list[Log]]:
    """Logarithms of each run's ns by round, less what the round as a whole was slower than the others.

    A shared machine is slower in one minute than in the next, for all runs alike. The level is the median round's.
    """
    names = list(rounds[0])
    logs = np.log(np.array([[one[name] for name in names] for one in rounds]))
    typical = np.median(logs, axis=0)
    of_round = np.median(logs - typical, axis=1)
    level = float(np.median(of_round))
    even = logs - of_round[:, None] + level
    return {name: even[:, column].tolist() for column, name in enumerate(names)}


def levels(even: Mapping[str, Sequence[Log]]) -> dict[str, tuple[Log, float]]:
    """The level of each run, and the standard error of it: infinite where there is one round."""
    from scipy.stats import median_abs_deviation

    logs = np.array(list(even.values()))
    rounds = logs.shape[1]
    middle = np.median(logs, axis=1)
    if rounds < 2:
        return {name: (float(at), math.inf) for name, at in zip(even, middle, strict=True)}
    small = SMALL.get(rounds, rounds / (rounds - 0.8))
    own = small * np.asarray(median_abs_deviation(logs, axis=1, scale="normal"))
    freedom = rounds - 1
    variance = (PRIOR_FREEDOM * np.mean(own) ** 2 + freedom * own**2) / (PRIOR_FREEDOM + freedom)
    errors = MEDIAN_ERROR * np.sqrt(variance / rounds)
    return {name: (float(at), float(error)) for name, at, error in zip(even, middle, errors, strict=True)}

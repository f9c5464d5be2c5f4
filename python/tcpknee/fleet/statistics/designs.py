"""What an experiment says when its arms share bottlenecks, by its design.

*Total effect*: all connections treated against none. *Direct effect*: treated against control while both are on the
network, which is what a naive comparison measures. *Spillover*: what the treated do to the control, control beside them
against control alone. Direct = total - spillover only where the treated are nearly all; at a small allocation the
direct effect may even have the other sign (Spang et al., "Unbiased Experiments in Congested Networks", IMC 2021).

Outcomes are those of units: a cluster, or a period of time on a link. With `relative` they are compared as ratios of
geometric means over units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tcpknee.errors import UsageError

from . import intervals
from .bins import Floats
from .intervals import Interval
from .robust import contrast
from .tally import Tally

Bools = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Effect:
    """`allocation`: the share treated at which `direct` and `spillover` were measured. None: the design cannot tell."""

    design: str
    allocation: float
    total: Interval | None = None
    direct: Interval | None = None
    spillover: Interval | None = None


def ab(treated: Tally, control: Tally, p: float | None = None, *, relative: bool = False) -> Effect:
    """Each connection drawn by itself: the direct effect at this allocation, and nothing else."""
    compare = intervals.ratio if relative else intervals.difference
    allocation = treated.rows / max(treated.rows + control.rows, 1)
    return Effect("ab", allocation, direct=compare(treated, control, p))


def by_cluster(outcome: Floats, treated: Bools, *, relative: bool = False) -> Effect:
    """Each cluster in one arm: the total effect, as far as clusters share no bottleneck with each other."""
    columns = np.column_stack([np.ones(len(outcome)), treated])
    total = _fit(columns, outcome, np.arange(len(outcome)), np.array([0.0, 1.0]), relative)
    return Effect("cluster", float(np.mean(treated)) if len(treated) else math.nan, total=total)


def switchback(
    values: Floats,
    period: Numbers,
    treated: Bools,
    since_switch_us: Numbers,
    *,
    carry_over_us: int,
    relative: bool = False,
) -> Effect:
    """The whole bottleneck alternates: the total effect, from one mean per period, with a linear trend taken out.

    One value per connection. Connections that began less than `carry_over_us` after their period did are left out,
    because the period before still acts on them.
    """
    kept = (since_switch_us >= carry_over_us) & ~np.isnan(values)
    periods, place = np.unique(period[kept], return_inverse=True)
    if not len(periods):
        return Effect("switchback", math.nan)
    count = np.bincount(place)
    outcome = np.bincount(place, values[kept]) / count
    arm = np.bincount(place, treated[kept]) / count
    mixed = np.flatnonzero((arm != 0) & (arm != 1))
    if len(mixed):
        raise UsageError(
            f"period {periods[mixed[0]]} holds connections of both arms; in a switchback all connections of a period "
            "have one: check the clocks, or compare it as an ab"
        )
    trend = periods - periods.mean()
    columns = np.column_stack([np.ones(len(periods)), arm, trend])
    total = _fit(columns, outcome, np.arange(len(periods)), np.array([0.0, 1.0, 0.0]), relative)
    return Effect("switchback", float(arm.mean()), total=total)


def paired_link(
    outcome: Floats,
    period: Numbers,
    mostly_treated: Bools,
    treated: Bools,
    *,
    allocation: float,
    before: tuple[Floats, Bools] | None = None,
    relative: bool = False,
) -> Effect:
    """Two alike links, one with `allocation` treated, the other with 1 - `allocation`.

    One outcome per (period, link, arm). Total effect: treated on the mostly treated link against control on the other,
    in the same period. `before` has outcomes and links of periods in which none was treated: the links' difference
    then is taken off.
    """
    names = {(True, True): "tt", (True, False): "tc", (False, False): "cc"}
    cells: dict[str, dict[int, float]] = {name: {} for name in names.values()}
    for value, when, link, arm in zip(outcome, period, mostly_treated, treated, strict=True):
        name = names.get((bool(link), bool(arm)))
        if name and not math.isnan(value):
            cells[name][int(when)] = float(value)

    def paired(one: str, other: str, corrected: bool) -> Interval | None:
        both = sorted(cells[one].keys() & cells[other].keys())
        if not both:
            return None
        first, second = (np.array([cells[name][when] for when in both]) for name in (one, other))
        difference = np.log(first) - np.log(second) if relative else first - second
        columns = np.column_stack([np.ones(len(both))])
        if before is not None and corrected:
            values, links = before
            values = np.log(values) if relative else values
            # Periods of before come in pairs, in the same order on both links.
            earlier = values[links] - values[~links]
            columns = np.column_stack(
                [np.ones(len(both) + len(earlier)), np.r_[np.ones(len(both)), np.zeros(len(earlier))]]
            )
            difference = np.r_[difference, earlier]
        of = np.zeros(columns.shape[1])
        of[-1] = 1
        return _shown(contrast(columns, difference, np.arange(len(difference)), of), relative)

    return Effect(
        "paired-link",
        allocation,
        total=paired("tt", "cc", True),
        direct=paired("tt", "tc", False),
        spillover=paired("tc", "cc", True),
    )


def ramp(outcome: Floats, allocation: Floats, treated: Bools, clusters: Numbers, *, relative: bool = False) -> Effect:
    """The allocation grows in steps: straight lines through the treated and through the control.

    One outcome per (step, arm, unit); `clusters` says which outcomes are of one unit. The total effect is the treated
    line at 1 minus the control line at 0, so it extrapolates where these were not reached. Direct effect and spillover
    are at the largest allocation that has both arms.
    """
    both = np.intersect1d(allocation[treated], allocation[~treated])
    most = float(both.max()) if len(both) else math.nan
    on = treated.astype(np.float64)
    columns = np.column_stack([1 - on, (1 - on) * allocation, on, on * allocation])
    _, place = np.unique(clusters, return_inverse=True)

    def fit(of: list[float]) -> Interval | None:
        return None if math.isnan(sum(of)) else _fit(columns, outcome, place, np.array(of), relative)

    return Effect(
        "ramp",
        most,
        total=fit([-1, 0, 1, 1]),
        direct=fit([-1, -most, 1, most]),
        spillover=fit([0, most, 0, 0]),
    )


def _fit(columns: Floats, outcome: Floats, clusters: npt.NDArray[np.intp], of: Floats, relative: bool) -> Interval:
    if relative and not (outcome > 0).all():
        raise UsageError("a relative effect of outcomes that are not above 0; ask for the difference")
    return _shown(contrast(columns, np.log(outcome) if relative else outcome, clusters, of), relative)


def _shown(found: Interval, relative: bool) -> Interval:
    """A difference of logarithms as a ratio."""
    if not relative:
        return found
    value, low, high = (math.exp(end) for end in (found.value, found.low, found.high))
    return replace(found, value=value, low=low, high=high, logarithmic=True)

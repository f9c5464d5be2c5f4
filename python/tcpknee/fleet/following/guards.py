"""Guards: what an arm of an experiment must not do to its connections, such as `retransmit_pct ratio <= 1.2`.

They are judged by intervals that hold at every look at once (`statistics/sequence.py`), so an experiment may be ended
at any of them: of experiments that harm nothing, at most 1 in 40 is ended by a guard, however often one looks.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpknee.errors import UsageError
from tcpknee.fleet.connections import COLUMNS
from tcpknee.fleet.statistics import FEW, Interval, always, cluster_hashes, difference, ratio, tally
from tcpknee.human import suggest

if TYPE_CHECKING:
    from tcpknee.fleet.statistics.bins import Floats

METRICS = tuple(
    column.name
    for column in COLUMNS
    if column.name.endswith(("_pct", "_us", "_per_sec", "_pkts"))
    and column.name not in ("allocation_pct", "app_limited_pct")
)
"""Columns of connections whose means are compared."""

PLANNED = 1000
"""Clusters of an arm at which intervals are narrowest, unless said otherwise."""

_KINDS: dict[str, Callable[..., Interval]] = {"ratio": ratio, "difference": difference}
_SIGNS = {"<=": operator.gt, ">=": operator.lt}
_FORM = '"METRIC ratio <= NUMBER", also with difference and with >=, such as "retransmit_pct ratio <= 1.2"'


@dataclass(frozen=True)
class Guard:
    """The mean of a metric over the connections of an arm, compared with that of the control."""

    metric: str
    kind: str
    sign: str
    bound: float

    def __str__(self) -> str:
        return f"{self.metric} {self.kind} {self.sign} {self.bound:g}"

    def judge(
        self, treated: tuple[Floats, Sequence[str]], control: tuple[Floats, Sequence[str]], *, planned: int = PLANNED
    ) -> Judged:
        """Values and clusters of both arms' connections; values that are not known are NaN."""
        tallies = [tally(values, cluster_hashes(clusters)) for values, clusters in (treated, control)]
        found, bound = always(_KINDS[self.kind](*tallies), planned), self.bound
        is_without = self.kind == "ratio" and math.isnan(found.value) and all(one.rows for one in tallies)
        if is_without:
            # Of a mean of 0 there is no ratio. It holds as the difference to so many times the control's does.
            scaled = tally(control[0] * bound, cluster_hashes(control[1]))
            found, bound = always(difference(tallies[0], scaled), planned), 0.0
        nearest = found.low if self.sign == "<=" else found.high
        # An endless or unknown interval crosses nothing.
        is_crossed = math.isfinite(nearest) and bool(_SIGNS[self.sign](nearest, bound))
        return Judged(self, found, is_crossed, is_without)


@dataclass(frozen=True)
class Judged:
    """A guard at one look."""

    guard: Guard
    interval: Interval
    is_crossed: bool
    """Is the whole interval beyond the bound?"""
    is_without_ratio: bool = False
    """Is a mean 0, so that `interval` is the difference to the control's mean times the bound?"""

    @property
    def told(self) -> str:
        """`1.31 [1.22, 1.42] with 211 clusters`."""
        found = self.interval
        if found.few:
            return f"not judged before {FEW} clusters: {found.effective:.3g} so far"
        if math.isnan(found.value):
            return "not judged: no value is known"
        text = f"{found.value:.4g} [{found.low:.4g}, {found.high:.4g}]"
        if self.is_without_ratio:
            text += f" more than {self.guard.bound:g} times the control's, as a mean is 0,"
        return f"{text} with {found.clusters} clusters"


def parse(text: str) -> Guard:
    """Raises UsageError."""
    found = re.fullmatch(r"\s*(\w+)\s+(ratio|difference)\s*(<=|>=)\s*(-?\d+(?:\.\d+)?)\s*", text)
    if not found:
        raise UsageError(f'guard: got "{text}"; expected {_FORM}.')
    metric, kind, sign, number = found.groups()
    if metric not in METRICS:
        raise UsageError(f'guard: got the metric "{metric}"; ' + suggest(metric, METRICS, "expected one of"))
    bound = float(number)
    if kind == "ratio" and bound <= 0:
        raise UsageError(f'guard: got "{text}"; expected a ratio above 0.')
    return Guard(metric, kind, sign, bound)

"""Distributions of connections, from their tallies: what figures draw on a linear and on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import marks
from .encode import Block
from .quantities import Quantity
from .theme import Layout

if TYPE_CHECKING:
    import altair as alt
    from numpy.typing import NDArray

    from .cohorts import Cohorts

POINTS_AT_MOST = 250
"""Of a curve: two pixels from one to the next."""
TAIL, FOOT = 0.99, 0.005
"""Shares of connections at which axes end, of the cohort that reaches furthest: the few beyond would take most of the
room."""


@dataclass(frozen=True)
class Axis:
    """One way to draw a quantity."""

    is_logarithmic: bool
    low: float
    high: float

    @property
    def word(self) -> str:
        return "logarithmic" if self.is_logarithmic else "linear"

    def scale(self) -> alt.Scale:
        import altair as alt

        return alt.Scale(type="log" if self.is_logarithmic else "linear", domain=[self.low, self.high], nice=False)

    def title(self, quantity: Quantity) -> str:
        return f"{quantity.title}, {self.word} ({quantity.unit})"


def shown(found: Cohorts, quantities: Sequence[Quantity]) -> list[Quantity]:
    """Those that are known of any connection."""
    return [one for one in quantities if found.has(one)]


def steps(found: Cohorts, quantity: Quantity) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """By cohort: values, and the share of its connections up to each. Exact at these values, which are ends of bins."""
    curves = {}
    for cohort, tally in found.tallies_of(quantity).items():
        index, place = np.unique(tally.bin, return_inverse=True)
        reached = np.r_[0.0, np.cumsum(np.bincount(place, tally.count))]
        # Between two bins with values is a flat part.
        edges = np.ravel(np.stack(tally.bins.edges(index), axis=1)) * quantity.scale
        shares = np.ravel(np.stack([reached[:-1], reached[1:]], axis=1)) / reached[-1]
        curves[cohort] = np.maximum.accumulate(edges), shares
    return curves


def axes(found: Cohorts, quantity: Quantity) -> list[Axis]:
    """Linear from 0, and logarithmic where there are values above 0."""
    curves = steps(found, quantity).values()
    high = max((_at(curve, TAIL) for curve in curves), default=0.0) or 1.0
    # On a logarithmic axis the foot is of those above 0.
    lows = [_at(curve, none + FOOT * (1 - none)) for curve in curves if (none := _share_of_zeros(curve)) < 1]
    low = min((one for one in lows if one > 0), default=0.0)
    linear = Axis(False, 0.0, high * (1 + marks.HEADROOM))
    return [linear, Axis(True, low * 0.9, high * 1.2)] if 0 < low < high else [linear]


def _share_of_zeros(curve: tuple[NDArray[Any], NDArray[Any]]) -> float:
    return float(curve[1][curve[0] <= 0].max(initial=0.0))


def _at(curve: tuple[NDArray[Any], NDArray[Any]], share: float) -> float:
    return float(np.interp(share, curve[1], curve[0]))


def panels(found: Cohorts, quantities: Sequence[Quantity], layout: Layout, panel: Any) -> Any:
    """A row of drawings per quantity, linear and logarithmic side by side, or below one another where there is no room;
    `panel(quantity, axis, width)` makes one."""
    import altair as alt

    across = min(layout.across, 2)
    width = layout.width / across - (50 if across > 1 else 0)
    charts = [panel(one, axis, width) for one in quantities for axis in axes(found, one)]
    return alt.concat(*charts, columns=across, spacing=24)


def curves(found: Cohorts, quantity: Quantity, axis: Axis, layout: Layout) -> Any:
    """Cumulative distributions in one drawing; `curve_blocks` are its data."""
    import altair as alt

    value = "exp(datum.log_v)" if axis.is_logarithmic else "datum.v"
    base = alt.Chart(alt.NamedData(name=set_name(quantity, axis))).transform_calculate(value=value)
    line = base.mark_line(strokeWidth=1.8, clip=True).encode(
        x=alt.X("value:Q", title=axis.title(quantity), scale=axis.scale(), axis=alt.Axis(tickCount=5)),
        y=alt.Y("pct:Q", title="Connections (%)", scale=alt.Scale(domain=[0, 100]), axis=alt.Axis(tickCount=4)),
        color=marks.colour(found, layout, "cohort"),
        order=alt.Order("pct:Q"),
        tooltip=[
            alt.Tooltip("cohort:N"),
            alt.Tooltip("value:Q", title=quantity.axis, format=",.4~g"),
            alt.Tooltip("pct:Q", title="connections up to it (%)", format=".3~g"),
        ],
    )
    # Of a drawing without layers Vega gives its lines the class that a page finds whole drawings by.
    return alt.layer(line)


def set_name(quantity: Quantity, axis: Axis) -> str:
    return f"curves_{quantity.name}_{axis.word}"


def curve_blocks(found: Cohorts, quantity: Quantity, axis: Axis) -> list[Block]:
    """A block per cohort, with points evenly along its curve."""
    made = []
    for cohort, (values, shares) in steps(found, quantity).items():
        within = np.flatnonzero((values >= axis.low) & (values <= axis.high))
        # From the last value before the axis to the first behind it, so that the curve reaches both edges.
        first = max(int(within[0]) - 1, 0) if len(within) else 0
        last = min(int(within[-1]) + 2, len(values)) if len(within) else len(values)
        values, shares = values[first:last], shares[first:last]
        if axis.is_logarithmic:
            values, shares = np.log(values[values > 0]), shares[values > 0]
        if len(values):
            length = np.cumsum(
                np.hypot(
                    np.diff(values, prepend=values[0]) / max(np.ptp(values), 1e-12), np.diff(shares, prepend=shares[0])
                )
            )
            picks = np.unique(np.searchsorted(length, np.linspace(0, length[-1], POINTS_AT_MOST)))
            name = "log_v" if axis.is_logarithmic else "v"
            made.append(Block({"cohort": cohort}, {name: values[picks], "pct": 100 * shares[picks]}))
    return made

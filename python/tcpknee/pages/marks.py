"""Pieces that several figures draw alike: scales by algorithm, points with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import palette
from .encode import Block, rounded
from .run import Condition, Entrant, ReportRun
from .theme import Layout

if TYPE_CHECKING:
    import altair as alt

    from tcpknee.evidence.stats import Estimate

    from .cohorts import Cohorts
    from .sources import Panel


#: Room for the numbers of the value axis, the same in every panel and for every condition.
AXIS_PIXELS = 52


def time(seconds: float, *, last: bool) -> alt.X:
    """The time axis of panels above one another: the last has its numbers, and all have the grid at its ticks."""
    import altair as alt

    axis = alt.Axis(title="Time (s)") if last else alt.Axis(labels=False, ticks=False, title=None)
    return alt.X("t:Q", scale=alt.Scale(domain=[0, seconds], nice=False), axis=axis)


def value(panel: Panel, title: str | None = None) -> alt.Y:
    """The value axis of such a panel. Round-trip times do not begin at 0: what is above the least of them counts."""
    import altair as alt

    return alt.Y(
        "v:Q",
        title=[title or panel.title, f"({panel.unit})"],
        scale=alt.Scale(zero=begins_at_zero(panel)),
        axis=alt.Axis(tickCount=4, minExtent=AXIS_PIXELS, maxExtent=AXIS_PIXELS),
    )


def begins_at_zero(panel: Panel) -> bool:
    return panel.name != "srtt"


def values(rows: Sequence[Mapping[str, Any]]) -> alt.InlineData:
    import altair as alt

    return alt.InlineData(values=rounded(rows))


def algorithms(run: ReportRun) -> list[str]:
    return list(run.slots)


def colour(run: ReportRun | Cohorts, layout: Layout, field: str = "algorithm") -> alt.Color:
    import altair as alt

    slots = run.slots
    return alt.Color(
        f"{field}:N",
        scale=alt.Scale(domain=list(slots), range=[palette.colour(k) for k in slots.values()]),
        legend=legend(list(slots), layout),
    )


def shape(run: ReportRun | Cohorts, layout: Layout, field: str = "algorithm") -> alt.Shape:
    import altair as alt

    slots = run.slots
    return alt.Shape(
        f"{field}:N",
        scale=alt.Scale(domain=list(slots), range=[palette.shape(k) for k in slots.values()]),
        legend=legend(list(slots), layout),
    )


def legend(names: Sequence[str], layout: Layout, **more: Any) -> alt.Legend:
    """Above the drawing, and no wider than it."""
    import altair as alt

    return alt.Legend(title=None, columns=layout.legend_columns(names), **more)


def line_legend(names: Sequence[str], layout: Layout) -> alt.Legend:
    """For lines, also where areas have their colour too."""
    return legend(names, layout, symbolSize=260, symbolType="stroke")


#: Points of a line in one panel, of 860 pixels, from which on dashes are as short as its turns and nobody makes out
#: either: such a line is solid, in every panel and in the legend.
DENSE_FROM = 100


def is_dense(block: Block) -> bool:
    return len(block.columns["t"]) >= DENSE_FROM


#: Of the greatest value, or of the spread: what an axis shows beyond it. A line at the very edge is half cut off and
#: looks like the frame.
HEADROOM = 0.08


def from_zero(values: Iterable[float | None]) -> alt.Scale:
    """An axis from 0 to somewhat beyond the greatest value."""
    import altair as alt

    most = max((value for value in values if value is not None), default=0.0)
    return alt.Scale(domain=[0, most * (1 + HEADROOM) or 1.0], nice=False)


def headroom(data: alt.Data, high: str = "v", low: str = "v", *, zero: bool) -> alt.Chart:
    """A layer that draws nothing and makes the value axis reach beyond the data, also beyond a constant's."""
    import altair as alt

    around = f"max({HEADROOM} * (datum.most - datum.least), {HEADROOM / 4} * abs(datum.most))"
    top = f"datum.most > 0 ? {1 + HEADROOM} * datum.most : 1" if zero else f"datum.most + {around}"
    floor = "0" if zero else f"datum.least - {around}"
    layer: alt.Chart = (
        alt.Chart(data)
        .transform_aggregate(most=f"max({high})", least=f"min({low})")
        .transform_filter("isValid(datum.most)")
        .transform_calculate(top=top, floor=floor)
        .mark_rule(opacity=0)
        .encode(y=alt.Y("floor:Q"), y2="top:Q")
    )
    return layer


def spread(interval: Estimate, scale: float, prefix: str) -> dict[str, float | None]:
    """`prefix`, `prefix_low`, `prefix_high`; without an interval the ends are the mean itself."""
    low = interval.mean if interval.low is None else interval.low
    high = interval.mean if interval.high is None else interval.high
    return {
        prefix: interval.mean * scale,
        f"{prefix}_low": max(low, 0.0) * scale,
        f"{prefix}_high": high * scale,
    }


def entrant_words(run: ReportRun, entrant: Entrant) -> dict[str, Any]:
    return {
        "algorithm": entrant.algorithm,
        "entrant": entrant.label,
        "condition": condition_label(run, entrant),
    }


def condition_label(run: ReportRun, entrant: Entrant) -> str:
    condition: Condition = run.conditions[entrant.condition]
    return condition.label


def conditions(run: ReportRun) -> list[str]:
    return [condition.label for condition in run.conditions]


def entrants(run: ReportRun) -> list[str]:
    """Entrant labels, in the order of the matrix, as the summary has them."""
    return list(dict.fromkeys(entrant.label for entrant in run.entrants))


def row_axis() -> alt.Axis:
    """Names of rows, clear of a point that lies at 0."""
    import altair as alt

    return alt.Axis(domain=False, ticks=False, grid=True, labelPadding=10)


#: What a panel with the numbers and the title of its value axis takes besides its drawing, in pixels.
_BESIDE_PANEL = 66


def grid(
    layers: Any,
    rows: Sequence[Mapping[str, Any]],
    field: str,
    names: Sequence[str],
    layout: Layout,
    *,
    most: int = 4,
    columns: int | None = None,
) -> alt.ConcatChart:
    """A small chart per name, of the rows that have it in `field`: `columns` side by side where there is room, or at
    most `most` in rows that are as full as they can be.

    Each has its axes: of a facet those of the last row would stand below nothing where it is not full."""
    import altair as alt

    if columns and layout.across > 1:
        across = min(len(names), columns)
    else:
        across = min(len(names), layout.across, most)
        across = math.ceil(len(names) / math.ceil(len(names) / across))
    width = layout.width / across - (_BESIDE_PANEL if across > 1 else 0)
    panels = [
        layers.properties(
            data=values([row for row in rows if row[field] == name]),
            width=width,
            **({"title": name} if len(names) > 1 else {}),
        )
        for name in names
    ]
    found: alt.ConcatChart = alt.concat(*panels, columns=across, spacing=24)
    return found


def stacked(run: ReportRun, layers: Any, rows: Sequence[Mapping[str, Any]]) -> alt.FacetChart:
    """One strip per condition, one under the other on a common scale."""
    import altair as alt

    header = alt.Header(labelOrient="top", labelAnchor="start", labelFontWeight=600, labelPadding=4)
    facet: alt.FacetChart = layers.facet(
        row=alt.Row("condition:N", title=None, sort=conditions(run), header=header), data=values(rows), spacing=8
    )
    return facet

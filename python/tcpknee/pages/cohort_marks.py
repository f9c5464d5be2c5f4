"""Pieces that several figures of a fleet draw alike: cohorts with intervals, and cohorts over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import marks, palette, theme
from .cohorts import SEVERAL
from .theme import Layout

if TYPE_CHECKING:
    from .cohorts import Cohorts


def intervals(found: Cohorts, rows: Sequence[dict[str, Any]], title: str, layout: Layout) -> Any:
    """A strip per `what`, with a row for each cohort: a point at `v` and a line from `low` to `high`."""
    import altair as alt

    x = alt.X("v:Q", title=title, scale=marks.from_zero(row["high"] for row in rows))
    base = alt.Chart().encode(
        y=alt.Y("cohort:N", title=None, sort=found.names, axis=marks.row_axis()),
        color=marks.colour(found, layout, "cohort").legend(None),
    )
    layers = alt.layer(
        base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=title), x2="high:Q"),
        base.mark_point(size=80, filled=True, opacity=1).encode(
            x=x,
            shape=marks.shape(found, layout, "cohort").legend(None),
            tooltip=[
                alt.Tooltip("cohort:N"),
                alt.Tooltip("what:N"),
                alt.Tooltip("v:Q", title=title, format=",.4~g"),
                alt.Tooltip("low:Q", title="95 % from", format=",.4~g"),
                alt.Tooltip("high:Q", title="to", format=",.4~g"),
                alt.Tooltip("n:Q", title="connections", format=","),
                alt.Tooltip("clusters:Q", format=","),
            ],
        ),
    ).properties(width=layout.width, height=alt.Step(26))
    header = alt.Header(labelOrient="top", labelAnchor="start", labelFontWeight=600, labelPadding=4)
    order = list(dict.fromkeys(row["what"] for row in rows))
    return layers.facet(
        row=alt.Row("what:N", title=None, sort=order, header=header), data=marks.values(rows), spacing=8
    )


def over_wall_time(
    found: Cohorts, rows: Sequence[dict[str, Any]], title: str, layout: Layout, by: str = "cohort"
) -> Any:
    """A line per cohort, or for each `by` in the colour of its cohort; each point says what holds about it."""
    import altair as alt

    base = alt.Chart(marks.values(rows)).encode(
        x=_moment(),
        y=alt.Y("v:Q", title=title, scale=marks.from_zero(row["v"] for row in rows)),
        color=_line_colour(found, rows, layout),
        detail=alt.Detail(f"{by}:N"),
    )
    others = [alt.Tooltip(f"{by}:N")] if by != "cohort" else []
    line = base.mark_line(strokeWidth=1.6, point={"size": 18, "filled": True}).encode(
        tooltip=[
            alt.Tooltip("cohort:N"),
            *others,
            alt.Tooltip("t:T", title="UTC", format="%Y-%m-%d %H:%M:%S"),
            alt.Tooltip("v:Q", title=title, format=",.4~g"),
        ]
    )
    return line.properties(width=layout.width, height=220)


def bands_over_wall_time(found: Cohorts, rows: Sequence[dict[str, Any]], title: str, layout: Layout) -> Any:
    """Percentiles of each cohort: the median as a line, a band around it, the 95th dashed."""
    import altair as alt

    scale = marks.from_zero(row["p95"] for row in rows)
    base = alt.Chart().encode(x=_moment(), color=_line_colour(found, rows, layout))
    tooltip = [
        alt.Tooltip("cohort:N"),
        alt.Tooltip("t:T", title="UTC", format="%Y-%m-%d %H:%M:%S"),
        *(alt.Tooltip(f"{name}:Q", title=name.upper(), format=",.4~g") for name in ("p25", "p50", "p75", "p95")),
        alt.Tooltip("n:Q", title="connections", format=","),
    ]
    layers = [
        base.mark_area(opacity=0.18).encode(y=alt.Y("p25:Q", title=title, scale=scale), y2="p75:Q"),
        base.mark_line(strokeWidth=1.2, strokeDash=[4, 3]).encode(y=alt.Y("p95:Q", title=title, scale=scale)),
        base.mark_line(strokeWidth=1.8, point={"size": 18, "filled": True}).encode(
            y=alt.Y("p50:Q", title=title, scale=scale), tooltip=tooltip
        ),
    ]
    return alt.layer(*layers, data=marks.values(rows)).properties(width=layout.width, height=240)


def _moment() -> Any:
    import altair as alt

    return alt.X("t:T", title="Time (UTC)", scale=alt.Scale(type="utc"))


def _line_colour(found: Cohorts, rows: Sequence[dict[str, Any]], layout: Layout) -> Any:
    """Of the cohorts that have a row."""
    import altair as alt

    present = {row["cohort"] for row in rows}
    inks = {name: palette.colour(slot) for name, slot in found.slots.items() if name in present}
    if SEVERAL in present:
        inks[SEVERAL] = theme.NEUTRAL
    return alt.Color(
        "cohort:N",
        scale=alt.Scale(domain=list(inks), range=list(inks.values())),
        legend=marks.line_legend(list(inks), layout),
    )

"""Every verdict as a ratio with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpknee.fleet.cohorts.verdicts import ALPHA
from tcpknee.pages import marks, theme
from tcpknee.pages.cohorts import Cohorts
from tcpknee.pages.theme import Layout

if TYPE_CHECKING:
    from tcpknee.fleet.cohorts import Verdict

name = "forest"
title = "Ratios of the cohorts"
summary = (
    "Each metric of a cohort over that of the one it is compared with. Lines are 95 % intervals: one that crosses 1 "
    "shows no difference, one that reaches the edge goes on beyond it. Filled points are differences that the "
    "correction for many metrics leaves standing."
)
MARGIN = 1.05
#: What an interval that is far too wide may take of the axis, to each side of its ratio.
FURTHEST = 2.5


def applies(found: Cohorts) -> bool:
    return bool(rows(found))


def rows(found: Cohorts) -> list[dict[str, Any]]:
    """A row per verdict that has a ratio."""
    return [
        {
            "metric": label(verdict),
            "pair": f"{verdict.cohort} / {verdict.baseline}",
            "cohort": verdict.cohort,
            "words": verdict.word,
            "ratio": verdict.ratio.value,
            "low": verdict.ratio.low,
            "high": verdict.ratio.high,
            "shown": verdict.p_adjusted < ALPHA,
        }
        for verdict in found.verdicts
        if verdict.is_relative
    ]


def label(verdict: Verdict) -> str:
    """Metric and statistic of a verdict, as a row is called."""
    return f"{verdict.metric.label} {verdict.metric.middle}"


def chart(found: Cohorts, layout: Layout) -> Any:
    import altair as alt

    made = rows(found)
    low = min([1.0, *(max(row["low"], row["ratio"] / FURTHEST) for row in made)]) / MARGIN
    high = max([1.0, *(min(row["high"], row["ratio"] * FURTHEST) for row in made)]) * MARGIN
    for row in made:
        row |= {"from": max(row["low"], low), "to": min(row["high"], high)}
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    at = alt.Axis(tickCount=6, format="~g", grid=True)
    title = "Ratio, logarithmic (×)"
    metrics = list(dict.fromkeys(row["metric"] for row in made))
    base = alt.Chart().encode(
        y=alt.Y("metric:N", title=None, sort=metrics, axis=marks.row_axis()),
        color=marks.colour(found, layout, "cohort").legend(None),
    )
    filled = alt.when(alt.datum.shown).then(alt.value(1)).otherwise(alt.value(0))
    layers = alt.layer(
        alt.Chart()
        .transform_aggregate(verdicts="count()")
        .transform_calculate(one="1")
        .mark_rule(strokeDash=[4, 4], color=theme.NEUTRAL)
        .encode(x=alt.X("one:Q", title=title, scale=scale, axis=at)),
        base.mark_rule(strokeWidth=2, clip=True).encode(
            x=alt.X("from:Q", title=title, scale=scale, axis=at), x2="to:Q"
        ),
        base.mark_point(size=70, opacity=1).encode(
            x=alt.X("ratio:Q", title=title, scale=scale, axis=at),
            fill=marks.colour(found, layout, "cohort").legend(None),
            fillOpacity=filled,
            tooltip=[
                alt.Tooltip("metric:N"),
                alt.Tooltip("pair:N", title="ratio of"),
                alt.Tooltip("ratio:Q", title="×", format=".4~g"),
                alt.Tooltip("low:Q", title="95 % from", format=".4~g"),
                alt.Tooltip("high:Q", title="to", format=".4~g"),
                alt.Tooltip("words:N", title="verdict"),
            ],
        ),
    ).properties(width=layout.width, height=alt.Step(22))
    header = alt.Header(labelOrient="top", labelAnchor="start", labelFontWeight=600, labelPadding=4)
    pairs = list(dict.fromkeys(row["pair"] for row in made))
    return layers.facet(
        row=alt.Row("pair:N", title=None, sort=pairs, header=header), data=marks.values(made), spacing=8
    )

"""The signature plot: p95 delay against mean goodput."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kneepoint.report import marks, theme
from kneepoint.report.run import ReportRun

if TYPE_CHECKING:
    import altair as alt

name = "delay-goodput"
title = "Delay against goodput"
summary = (
    "What each algorithm pays in delay for its goodput: up and to the left is better. "
    "Crosses are 95 % intervals over the repetitions."
)


def applies(run: ReportRun) -> bool:
    return any("srtt_us_p95" in group.metrics for _, group in run.measured)


def chart(run: ReportRun) -> alt.LayerChart:
    import altair as alt

    rows = []
    for entrant, group in run.measured:
        if "srtt_us_p95" not in group.metrics:
            continue
        row = {
            **marks.entrant_words(run, entrant),
            **marks.spread(group.metrics["goodput_bits_per_sec"], 1e-6, "goodput"),
            **marks.spread(group.metrics["srtt_us_p95"], 1e-3, "delay"),
        }
        row["label"] = entrant.label if len(run.conditions) == 1 else f"{entrant.label}, {row['condition']}"
        rows.append(row)
    x = alt.X("delay:Q", title="Smoothed RTT, 95th percentile (ms)", scale=alt.Scale(zero=False, nice=True, padding=24))
    y = alt.Y("goodput:Q", title="Mean goodput (Mbit/s)", scale=alt.Scale(zero=True, nice=True))
    colour = marks.colour(run)
    tooltip = [
        alt.Tooltip("entrant:N", title="algorithm"),
        alt.Tooltip("condition:N"),
        alt.Tooltip("delay:Q", title="srtt p95 (ms)", format=",.4~g"),
        alt.Tooltip("goodput:Q", title="goodput (Mbit/s)", format=",.4~g"),
    ]
    base = alt.Chart().encode(color=colour)
    layers = [
        base.mark_rule(strokeWidth=1.5, opacity=0.8).encode(x=alt.X("delay_low:Q"), x2="delay_high:Q", y=y),
        base.mark_rule(strokeWidth=1.5, opacity=0.8).encode(x=x, y=alt.Y("goodput_low:Q"), y2="goodput_high:Q"),
        base.mark_point(size=120, filled=True, opacity=0.95).encode(x=x, y=y, shape=marks.shape(run), tooltip=tooltip),
    ]
    if len(rows) <= 8:
        layers.append(
            alt.Chart()
            .mark_text(align="left", dx=10, dy=-10, fontSize=12)
            .encode(x=x, y=y, text="label:N", color=alt.value(theme.NEUTRAL))
        )
    return alt.layer(*layers).properties(width=theme.WIDTH, height=340, data=marks.values(rows))

"""The signature plot: p95 delay against mean goodput."""

from __future__ import annotations

from typing import Any

from kneepoint.report import marks, theme
from kneepoint.report.run import ReportRun

name = "delay-goodput"
title = "Delay against goodput"
summary = (
    "What each algorithm pays in delay for its goodput: up and to the left is better. "
    "Crosses are 95 % intervals over the repetitions."
)
HEIGHT = 320
#: More points than this are told by the legend, not by words beside them.
LABELLED_AT_MOST = 8


def applies(run: ReportRun) -> bool:
    return any("srtt_us_p95" in group.metrics for _, group in run.measured)


def chart(run: ReportRun) -> Any:
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
    labelled = len(rows) <= LABELLED_AT_MOST
    colour, shape = marks.colour(run), marks.shape(run)
    if labelled:
        colour, shape = colour.legend(None), shape.legend(None)
    tooltip = [
        alt.Tooltip("entrant:N", title="algorithm"),
        alt.Tooltip("condition:N"),
        alt.Tooltip("delay:Q", title="srtt p95 (ms)", format=",.4~g"),
        alt.Tooltip("goodput:Q", title="goodput (Mbit/s)", format=",.4~g"),
    ]
    base = alt.Chart(marks.values(rows)).encode(color=colour)
    layers: list[Any] = [
        base.mark_rule(strokeWidth=1.5, opacity=0.8).encode(x=alt.X("delay_low:Q"), x2="delay_high:Q", y=y),
        base.mark_rule(strokeWidth=1.5, opacity=0.8).encode(x=x, y=alt.Y("goodput_low:Q"), y2="goodput_high:Q"),
        base.mark_point(size=120, filled=True, opacity=0.95).encode(x=x, y=y, shape=shape, tooltip=tooltip),
    ]
    if labelled:
        words = alt.Chart(marks.values(rows)).mark_text(align="left", dx=10, dy=-10, fontSize=12, color=theme.NEUTRAL)
        layers.append(words.encode(x=x, y=y, text="label:N"))
    rtt_ns = {int(cell["rtt_ns"]) for cell in run.meta.get("cells", ()) if cell.get("rtt_ns")}
    if len(rtt_ns) == 1:
        # What no algorithm can beat.
        at = alt.Chart(marks.values([{"rtt": rtt_ns.pop() / 1e6, "word": "base RTT"}]))
        layers.append(at.mark_rule(strokeDash=[4, 4], color=theme.NEUTRAL).encode(x=alt.X("rtt:Q")))
        words = at.mark_text(align="left", baseline="bottom", dx=5, dy=-5, fontSize=11, color=theme.NEUTRAL)
        layers.append(words.encode(x=alt.X("rtt:Q"), y=alt.value(HEIGHT), text="word:N"))
    return alt.layer(*layers).properties(width=theme.WIDTH, height=HEIGHT)

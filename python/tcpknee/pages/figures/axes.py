"""Goodput over each axis of a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpknee.pages import marks, palette
from tcpknee.pages.run import ReportRun, axis_name
from tcpknee.pages.theme import Layout

if TYPE_CHECKING:
    from tcpknee.runs.summary import Group

name = "axes"
title = "Goodput over the matrix"
summary = (
    "One row per axis of the scenario, one small chart per setting of the others, all on one scale. "
    "Values stand in the order of the file, evenly spaced. Bands are 95 % intervals."
)
#: Beyond this, panels are too narrow to read: the first ones are shown.
PANELS_AT_MOST = 12


def applies(run: ReportRun) -> bool:
    return len(run.conditions) > 1


def chart(run: ReportRun, layout: Layout) -> Any:
    import altair as alt

    parts = []
    scale = marks.from_zero(_high(group) for _, group in run.measured)
    for key, order in run.varied.items():
        rows = []
        panels: dict[str, None] = {}
        for entrant, group in run.measured:
            axes = dict(run.conditions[entrant.condition].axes)
            others = ", ".join(f"{axis_name(k)} {v}" for k, v in axes.items() if k != key and k in run.varied)
            panels[others] = None
            if len(panels) > PANELS_AT_MOST:
                break
            rows.append(
                {
                    **marks.entrant_words(run, entrant),
                    "at": axes.get(key, "–"),
                    "others": others,
                    "ink": palette.colour(run.slots[entrant.algorithm]),
                    **marks.spread(group.metrics["goodput_bits_per_sec"], 1e-6, "goodput"),
                }
            )
        name_of_axis = axis_name(key)
        x = alt.X(
            "at:O",
            title=name_of_axis[:1].upper() + name_of_axis[1:],
            sort=order,
            axis=alt.Axis(labelAngle=0, labelOverlap="greedy", labelSeparation=8),
            scale=alt.Scale(padding=0.3, domain=order),
        )
        y = alt.Y("goodput:Q", title="Goodput (Mbit/s)", scale=scale, axis=alt.Axis(tickCount=5))
        base = alt.Chart().encode(x=x, detail="entrant:N")
        colour = marks.colour(run, layout)
        layers = alt.layer(
            base.mark_area(opacity=0.18).encode(
                y=alt.Y("goodput_low:Q", title="Goodput (Mbit/s)"),
                y2="goodput_high:Q",
                fill=alt.Fill("ink:N", scale=None),
            ),
            base.mark_line(strokeWidth=2).encode(y=y, color=colour),
            base.mark_point(size=60, filled=True, opacity=1).encode(
                y=y,
                color=colour,
                shape=marks.shape(run, layout),
                tooltip=[
                    alt.Tooltip("entrant:N", title="algorithm"),
                    alt.Tooltip("condition:N"),
                    alt.Tooltip("goodput:Q", title="goodput (Mbit/s)", format=",.4~g"),
                    alt.Tooltip("goodput_low:Q", title="95 % from", format=",.4~g"),
                    alt.Tooltip("goodput_high:Q", title="to", format=",.4~g"),
                ],
            ),
        ).properties(height=190 if layout.across > 1 else 130)
        parts.append(marks.grid(layers, rows, "others", list(panels)[:PANELS_AT_MOST], layout))
    return alt.vconcat(*parts, spacing=30)


def _high(group: Group) -> float:
    return marks.spread(group.metrics["goodput_bits_per_sec"], 1e-6, "goodput")["goodput_high"] or 0.0

"""Goodput over two axes of a matrix at once, such as loss and round-trip time: a heat map for each algorithm."""

from __future__ import annotations

from typing import Any

from tcpknee.pages import marks
from tcpknee.pages.run import Entrant, ReportRun, axis_name
from tcpknee.pages.theme import Layout

name = "heat"
title = "Goodput over two axes"
needs = "two axes: keys with lists of values"
summary = (
    "A heat map for each algorithm, and for each setting of further axes: mean goodput in Mbit/s, the greater the "
    "darker, on one logarithmic scale. Values stand in the order of the file."
)
#: Beyond this nobody compares them any more, and the caption says so.
PANELS_AT_MOST = 24
CELL = 30


def applies(run: ReportRun) -> bool:
    return len(run.varied) > 1


def words(run: ReportRun) -> str:
    across, up = _longest(run)
    count = len({_panel(run, entrant, {across, up}) for entrant, _ in run.measured})
    return f"The first {PANELS_AT_MOST} of {count} are shown." if count > PANELS_AT_MOST else ""


def _longest(run: ReportRun) -> tuple[str, str]:
    """The axes that are drawn: those with most values."""
    across, up, *_ = sorted(run.varied, key=lambda key: -len(run.varied[key]))
    return across, up


def _panel(run: ReportRun, entrant: Entrant, drawn: set[str]) -> str:
    """The heat map that an entrant stands in: its name, and the setting of the axes that are not drawn."""
    axes = run.conditions[entrant.condition].axes
    others = [f"{axis_name(key)} {value}" for key, value in axes if key in run.varied and key not in drawn]
    return ", ".join([entrant.label, *others])


def chart(run: ReportRun, layout: Layout) -> Any:
    import altair as alt

    across, up = _longest(run)
    rows: list[dict[str, Any]] = []
    panels: dict[str, None] = {}
    for entrant, group in run.measured:
        axes = dict(run.conditions[entrant.condition].axes)
        panel = _panel(run, entrant, {across, up})
        panels[panel] = None
        goodput = group.metrics["goodput_bits_per_sec"].mean * 1e-6
        # Nothing stands on no logarithmic scale.
        rows.append(
            {
                "panel": panel,
                "x": axes.get(across, "–"),
                "y": axes.get(up, "–"),
                "goodput": goodput,
                "shade": max(goodput, 1e-3),
            }
        )
    shown = list(panels)[:PANELS_AT_MOST]
    rows = [row for row in rows if row["panel"] in shown]
    shades = [row["shade"] for row in rows]
    least, most = min(shades), max(shades)
    most = max(most, least * 1.01)
    base = alt.Chart().encode(
        x=_place("x", across, run, layout),
        y=_place("y", up, run, layout),
        tooltip=[
            alt.Tooltip("panel:N", title="algorithm"),
            alt.Tooltip("x:N", title=axis_name(across)),
            alt.Tooltip("y:N", title=axis_name(up)),
            alt.Tooltip("goodput:Q", title="goodput (Mbit/s)", format=",.4~g"),
        ],
    )
    middle = (least * most) ** 0.5
    layers = alt.layer(
        base.mark_rect(stroke="white").encode(
            color=alt.Color(
                "shade:Q",
                scale=alt.Scale(type="log", domain=[least, most], scheme="blues"),
                legend=alt.Legend(title="goodput (Mbit/s)", format="~g", gradientLength=160),
            )
        ),
        base.mark_text(fontSize=11).encode(
            text=alt.Text("goodput:Q", format=".3~r"),
            color=alt.condition(f"datum.shade > {middle!r}", alt.value("white"), alt.value("#222222")),
        ),
    ).properties(height=CELL * len(run.varied[up]))
    return marks.grid(layers, rows, "panel", shown, layout, most=3)


def _place(field: str, key: str, run: ReportRun, layout: Layout) -> Any:
    import altair as alt

    name_of_axis = axis_name(key)
    title = name_of_axis[:1].upper() + name_of_axis[1:]
    axis = alt.Axis(labelAngle=0, labelOverlap="greedy", ticks=False, domain=False, grid=False)
    channel = alt.X if field == "x" else alt.Y
    return channel(f"{field}:O", title=title, sort=run.varied[key], axis=axis)

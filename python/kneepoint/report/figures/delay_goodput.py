"""The signature plot: p95 delay against mean goodput."""

from __future__ import annotations

import math
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
#: Where words stand beside a point, in the order in which neighbours take them.
PLACES: tuple[dict[str, Any], ...] = (
    {"align": "left", "dx": 10, "dy": -11},
    {"align": "right", "dx": -10, "dy": -11},
    {"align": "left", "dx": 10, "dy": 14},
    {"align": "right", "dx": -10, "dy": 14},
)
#: Height of a line of words and mean width of a letter, in pixels.
LINE, LETTER = 15, 6.6
#: From this ratio on, a linear axis would lay the lesser ones on the floor.
DECADES_FROM = 20.0


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
        row["step"] = entrant.condition
        row["label"] = entrant.label if len(run.conditions) == 1 else f"{entrant.label}, {row['condition']}"
        rows.append(row)
    x = alt.X("delay:Q", title="Smoothed RTT, 95th percentile (ms)", scale=alt.Scale(zero=False, nice=True, padding=24))
    logarithmic = spans_decades([row["goodput"] for row in rows])
    if logarithmic:
        floor = min(row["goodput"] for row in rows) / 2
        rows = [{**row, "goodput_low": max(row["goodput_low"], floor)} for row in rows]
    y = alt.Y(
        "goodput:Q",
        title="Mean goodput, logarithmic (Mbit/s)" if logarithmic else "Mean goodput (Mbit/s)",
        scale=alt.Scale(type="log", nice=False, padding=20) if logarithmic else alt.Scale(zero=True, nice=True),
        axis=alt.Axis(tickCount=4 if logarithmic else 8),
    )
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
        for place, chosen in sides(rows, logarithmic).items():
            words = alt.Chart(marks.values(chosen)).mark_text(**PLACES[place], fontSize=12, color=theme.NEUTRAL)
            layers.append(words.encode(x=x, y=y, text="label:N"))
    elif len(run.varied) == 1:
        # Along the one axis that varies, each algorithm draws a path.
        path = base.mark_line(strokeWidth=1, opacity=0.5)
        layers.insert(0, path.encode(x=x, y=y, detail="entrant:N", order=alt.Order("step:Q")))
    rtt_ns = {int(cell["rtt_ns"]) for cell in run.meta.get("cells", ()) if cell.get("rtt_ns")}
    if len(rtt_ns) == 1:
        # What no algorithm can beat.
        at = alt.Chart(marks.values([{"rtt": rtt_ns.pop() / 1e6, "word": "base RTT"}]))
        layers.append(at.mark_rule(strokeDash=[4, 4], color=theme.NEUTRAL).encode(x=alt.X("rtt:Q")))
        words = at.mark_text(align="left", baseline="bottom", dx=5, dy=-5, fontSize=11, color=theme.NEUTRAL)
        layers.append(words.encode(x=alt.X("rtt:Q"), y=alt.value(HEIGHT), text="word:N"))
    return alt.layer(*layers).properties(width=theme.WIDTH, height=HEIGHT)


def spans_decades(values: list[float]) -> bool:
    return bool(values) and min(values) > 0 and max(values) / min(values) >= DECADES_FROM


def sides(rows: list[dict[str, Any]], logarithmic: bool) -> dict[int, list[dict[str, Any]]]:
    """Rows by the place of their words: the first place that is free, or the first of all where none is."""
    height_of = math.log if logarithmic else float
    xs, ys = [row["delay"] for row in rows], [height_of(row["goodput"]) for row in rows]
    floor = min(ys) if logarithmic else 0.0
    across = (max(xs) - min(xs)) or 1.0
    up = (max(ys) - floor) or 1.0
    taken: list[tuple[float, float, float, float]] = []
    placed: dict[int, list[dict[str, Any]]] = {}
    for row, x, y in zip(rows, xs, ys, strict=True):
        at_x, at_y = (x - min(xs)) / across * theme.WIDTH, (1 - (y - floor) / up) * HEIGHT
        boxes = [_box(place, at_x, at_y, len(row["label"]) * LETTER) for place in PLACES]
        free = [k for k, box in enumerate(boxes) if not any(_overlap(box, other) for other in taken)]
        best = free[0] if free else 0
        taken.append(boxes[best])
        placed.setdefault(best, []).append(row)
    return placed


def _box(place: dict[str, Any], x: float, y: float, width: float) -> tuple[float, float, float, float]:
    left = x + place["dx"] - (width if place["align"] == "right" else 0)
    return left, y + place["dy"] - LINE / 2, left + width, y + place["dy"] + LINE / 2


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]

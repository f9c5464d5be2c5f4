"""The signature plot: p95 delay against mean goodput."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

from tcpknee.pages import marks, theme
from tcpknee.pages.run import ReportRun
from tcpknee.pages.theme import Layout

name = "delay-goodput"
title = "Delay against goodput"
summary = (
    "What each algorithm pays in delay for its goodput: up and to the left is better. "
    "Crosses are 95 % intervals over the repetitions."
)
HEIGHT = 320
#: Where words stand beside a point, in the order in which they are tried.
PLACES: tuple[dict[str, Any], ...] = (
    {"align": "left", "dx": 11, "dy": 1},
    {"align": "right", "dx": -11, "dy": 1},
    {"align": "left", "dx": 10, "dy": -11},
    {"align": "right", "dx": -10, "dy": -11},
    {"align": "left", "dx": 10, "dy": 14},
    {"align": "right", "dx": -10, "dy": 14},
    {"align": "center", "dx": 0, "dy": -16},
    {"align": "center", "dx": 0, "dy": 18},
)
#: Height of a line of words and half of a point with the room about it, in pixels.
LINE, POINT = 15, 7
#: From this ratio on, a linear axis would lay the lesser ones on the floor.
DECADES_FROM = 20.0
#: Room beyond the outermost delays, as a part of their spread, and the least spread that is drawn, of the delay itself.
MARGIN, LEAST_SPREAD = 0.12, 0.04


def applies(run: ReportRun) -> bool:
    return any("srtt_us_p95" in group.metrics for _, group in run.measured)


def chart(run: ReportRun, layout: Layout) -> Any:
    import altair as alt

    rows = points(run)
    base_rtts_ms = set(run.base_rtts_ms.values())
    # What no algorithm can beat.
    base_rtt_ms = base_rtts_ms.pop() if len(base_rtts_ms) == 1 else None
    frame = Frame.of(rows, base_rtt_ms, layout)
    rows = [{**row, "goodput_low": max(row["goodput_low"], frame.ys[0])} for row in rows]
    x = alt.X(
        "delay:Q",
        title="Smoothed RTT, 95th percentile (ms)",
        scale=alt.Scale(domain=list(frame.xs), zero=False, nice=False),
    )
    y = alt.Y(
        "goodput:Q",
        title="Mean goodput, logarithmic (Mbit/s)" if frame.logarithmic else "Mean goodput (Mbit/s)",
        scale=alt.Scale(domain=list(frame.ys), type="log" if frame.logarithmic else "linear", nice=False),
        axis=alt.Axis(tickCount=4 if frame.logarithmic else 8),
    )
    words = labels(rows, frame)
    colour, shape = marks.colour(run, layout), marks.shape(run, layout)
    if {row["entrant"] for row in words} == {row["entrant"] for row in rows} and not run.varied:
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
    if len(run.varied) == 1:
        # Along the one axis that varies, each algorithm draws a path.
        path = base.mark_line(strokeWidth=1, opacity=0.5)
        layers.insert(0, path.encode(x=x, y=y, detail="entrant:N", order=alt.Order("step:Q")))
    for place in sorted({row["place"] for row in words}):
        chosen = alt.Chart(marks.values([row for row in words if row["place"] == place]))
        text = chosen.mark_text(**PLACES[place], fontSize=12, color=theme.NEUTRAL)
        layers.append(text.encode(x=x, y=y, text="label:N"))
    if base_rtt_ms is not None:
        at = alt.Chart(marks.values([{"rtt": base_rtt_ms, "word": "base RTT"}]))
        layers.append(at.mark_rule(strokeDash=[4, 4], color=theme.NEUTRAL).encode(x=alt.X("rtt:Q")))
        word = at.mark_text(align="left", baseline="bottom", dx=5, dy=-5, fontSize=11, color=theme.NEUTRAL)
        layers.append(word.encode(x=alt.X("rtt:Q"), y=alt.value(HEIGHT), text="word:N"))
    return alt.layer(*layers).properties(width=layout.width, height=HEIGHT)


def points(run: ReportRun) -> list[dict[str, Any]]:
    """A row per entrant: its delay and goodput with their intervals, and the words that name it, longest first."""
    rows = []
    for entrant, group in run.measured:
        if "srtt_us_p95" not in group.metrics:
            continue
        axes = dict(run.conditions[entrant.condition].axes)
        setting = ", ".join(axes[key] for key in run.varied if key in axes)
        rows.append(
            {
                **marks.entrant_words(run, entrant),
                **marks.spread(group.metrics["goodput_bits_per_sec"], 1e-6, "goodput"),
                **marks.spread(group.metrics["srtt_us_p95"], 1e-3, "delay"),
                "step": entrant.condition,
                "words": [f"{entrant.label}, {setting}", setting] if setting else [entrant.label],
            }
        )
    for one in run.beside:
        if {"goodput_bits_per_sec", "srtt_us_p95"} <= one.row.metrics.keys():
            rows.append(
                {
                    "algorithm": one.algorithm,
                    "entrant": one.label,
                    "condition": "a path of its own",
                    **marks.spread(one.row.metrics["goodput_bits_per_sec"], 1e-6, "goodput"),
                    **marks.spread(one.row.metrics["srtt_us_p95"], 1e-3, "delay"),
                    "step": len(run.conditions),
                    "words": [one.label],
                }
            )
    return rows


@dataclass(frozen=True)
class Frame:
    """The ends of both axes, and where a value lies between them, in pixels of the narrowest drawing.

    Words have their size in every drawing, and intervals become longer with it: `growth` times in the widest.
    """

    xs: tuple[float, float]
    ys: tuple[float, float]
    logarithmic: bool
    width: int
    growth: float

    @classmethod
    def of(cls, rows: list[dict[str, Any]], base_rtt_ms: float | None, layout: Layout) -> Frame:
        ends = [row[end] for row in rows for end in ("delay_low", "delay_high")]
        ends += [] if base_rtt_ms is None else [base_rtt_ms]
        left, right = min(ends), max(ends)
        spread = max(right - left, LEAST_SPREAD * right, 1e-3)
        middle = (left + right) / 2
        reach = spread * (0.5 + MARGIN)
        goodputs = [row["goodput"] for row in rows]
        most = max(row["goodput_high"] for row in rows)
        logarithmic = spans_decades(goodputs)
        if logarithmic:
            decades = (most / min(goodputs)) ** (2 * marks.HEADROOM)
            ys = min(goodputs) / max(decades, 2.0), most * decades
        else:
            ys = 0.0, most * (1 + marks.HEADROOM) or 1.0
        return cls(
            (max(middle - reach, 0.0), middle + reach), ys, logarithmic, layout.least, layout.most / layout.least
        )

    def at(self, delay: float, goodput: float) -> tuple[float, float]:
        height_of = math.log if self.logarithmic else float
        (left, right), (low, high) = self.xs, map(height_of, self.ys)
        return (delay - left) / (right - left) * self.width, (1 - (height_of(goodput) - low) / (high - low)) * HEIGHT


def spans_decades(values: list[float]) -> bool:
    return bool(values) and min(values) > 0 and max(values) / min(values) >= DECADES_FROM


Box = tuple[float, float, float, float]


def labels(rows: list[dict[str, Any]], frame: Frame) -> list[dict[str, Any]]:
    """Rows with `label` and its `place`, such that no words touch others or a point, nor an interval if that can be.

    The first point of each entrant has the first choice. Where only the shorter words fit, they stand; a point between
    many others has none.
    """
    crosses = [box for row in rows for box in _cross(row, frame)]
    spots = [frame.at(row["delay"], row["goodput"]) for row in rows]
    taken: list[Box] = [(x - POINT, y - POINT, x + POINT, y + POINT) for x, y in spots]
    first: dict[str, int] = {}
    for k, row in enumerate(rows):
        first.setdefault(row["entrant"], k)
    placed: list[dict[str, Any]] = []
    for k in sorted(range(len(rows)), key=lambda k: (k != first[rows[k]["entrant"]], k)):
        # Points at one place hide each other, not their words.
        others = [box for j, box in enumerate(taken) if j != k]
        for word, avoided, place in itertools.product(rows[k]["words"], (others + crosses, others), range(len(PLACES))):
            box = _box(PLACES[place], *spots[k], len(word) * theme.LETTER)
            within = box[0] >= 0 and box[2] <= frame.width and box[1] >= 0
            if within and not any(_touch(box, one) for one in avoided):
                taken.append(box)
                placed.append({**rows[k], "label": word, "place": place})
                break
    return placed


def _cross(row: dict[str, Any], frame: Frame) -> tuple[Box, Box]:
    """The two intervals of a point, in the widest drawing."""
    x, y = frame.at(row["delay"], row["goodput"])
    left, low = frame.at(row["delay_low"], row["goodput_low"])
    right, high = frame.at(row["delay_high"], row["goodput_high"])
    return (x - (x - left) * frame.growth, y - 1, x + (right - x) * frame.growth, y + 1), (x - 1, high, x + 1, low)


def _box(place: dict[str, Any], x: float, y: float, width: float) -> Box:
    left = x + place["dx"] - {"left": 0.0, "center": 0.5, "right": 1.0}[place["align"]] * width
    return left, y + place["dy"] - LINE / 2, left + width, y + place["dy"] + LINE / 2


def _touch(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]

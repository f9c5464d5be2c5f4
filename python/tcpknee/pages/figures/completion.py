"""Completion times of finite transfers."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from tcpknee import workloads
from tcpknee.pages import marks
from tcpknee.pages.run import ReportRun
from tcpknee.pages.theme import Layout

name = "completion"
title = "Completion time of transfers"
summary = (
    "Share of the transfers that were complete after a time, from opening the connection to the last byte read; all "
    "repetitions together. A line that ends below 100 % left transfers unfinished."
)
POINTS_AT_MOST = 200
TAIL_FROM = 100
"""Transfers of one entrant from which on the few slow ones have room: the axis is one of percentiles."""
PERCENTILES = {50.0: 2, 90.0: 10, 95.0: 20, 99.0: 100, 99.9: 1000}
"""Marked there, of so many transfers or more."""
WIDE = 10.0
"""From so many times the least time on, the axis of times is logarithmic there."""


def applies(run: ReportRun) -> bool:
    return any(_is_transfer(row) for row in run.flows)


def words(run: ReportRun) -> str:
    if not _shows_tail(_times(run)):
        return ""
    return (
        "The axis of shares is one of percentiles: from 90 to 99 % is as high as from 0 to 90. Marks are the median, "
        "p90, p95, p99 and, of a thousand transfers or more, p99.9."
    )


def _is_transfer(row: Mapping[str, Any]) -> bool:
    return workloads.of(row["workload"])["counts"] == "completion"


def _times(run: ReportRun) -> dict[tuple[int, int], list[float | None]]:
    """Of the transfers of each cell and group; None: it was not complete."""
    times: dict[tuple[int, int], list[float | None]] = defaultdict(list)
    for row in run.flows:
        if _is_transfer(row):
            times[row["cell"], row["group"]].append(row["completion_us"])
    return times


def _shows_tail(times: Mapping[tuple[int, int], list[float | None]]) -> bool:
    return max(map(len, times.values()), default=0) >= TAIL_FROM


def chart(run: ReportRun, layout: Layout) -> Any:
    import altair as alt

    times = _times(run)
    shows_tail = _shows_tail(times)
    rows: list[dict[str, Any]] = []
    for entrant in run.entrants:
        all_of = times.get((entrant.cell, entrant.group), [])
        done = sorted(t * 1e-3 for t in all_of if t is not None)
        words = {**marks.entrant_words(run, entrant), "of": len(all_of)}
        rows += [{**words, **row} for row in (_tail if shows_tail else _shares)(done, len(all_of))]
        if not done:
            rows.append({**words, "ms": None, "pct": 0.0, "open": 100.0, "done": 0, "mark": False})
    x = alt.X("ms:Q", title="Completion time (ms)", scale=_across(rows, shows_tail))
    y = _percentiles(rows) if shows_tail else _linear()
    base = alt.Chart().encode(x=x, y=y, color=marks.colour(run, layout), detail="entrant:N")
    layers = alt.layer(
        base.mark_line(interpolate="step-before" if shows_tail else "step-after", strokeWidth=2),
        base.transform_filter("datum.mark")
        .mark_point(size=60 if shows_tail else 34, filled=True, opacity=0.9)
        .encode(
            shape=marks.shape(run, layout),
            tooltip=[
                alt.Tooltip("entrant:N", title="algorithm"),
                alt.Tooltip("condition:N"),
                alt.Tooltip("ms:Q", title="time (ms)", format=",.4~g"),
                alt.Tooltip("done:Q", title="complete"),
                alt.Tooltip("of:Q", title="of"),
            ],
        ),
    )
    if len(run.conditions) == 1:
        return layers.properties(width=layout.width, height=260, data=marks.values(rows))
    return marks.grid(layers.properties(height=180), rows, "condition", marks.conditions(run), layout, most=3)


def _shares(done: list[float], count: int) -> list[dict[str, Any]]:
    """The share that was complete at each time."""
    import numpy as np

    if not done:
        return []
    picks = np.unique(np.linspace(0, len(done) - 1, min(len(done), POINTS_AT_MOST)).round().astype(int))
    steps = [{"ms": done[k], "pct": 100.0 * (k + 1) / count, "done": int(k) + 1, "mark": True} for k in picks]
    return [{"ms": done[0], "pct": 0.0, "done": 0, "mark": False}, *steps]


def _tail(done: list[float], count: int) -> list[dict[str, Any]]:
    """The share that took at least each time: as many points among the slowest as among all."""
    import numpy as np

    if not done:
        return []
    half = POINTS_AT_MOST // 2
    body = np.linspace(0, len(done) - 1, half)
    slowest = count - np.geomspace(count, max(count - len(done) + 1, 1), half)
    # The nearest rank of each, where it was reached.
    ranks = {math.ceil(count * percentile / 100) - 1 for percentile, least in PERCENTILES.items() if count >= least}
    marked = {rank for rank in ranks if rank < len(done)}
    picks = {*np.concatenate((body, slowest)).round().astype(int).clip(0, len(done) - 1).tolist(), *marked}
    return [
        {"ms": done[k], "open": 100.0 * (count - k) / count, "done": k + 1, "mark": k in marked} for k in sorted(picks)
    ]


def _across(rows: list[dict[str, Any]], shows_tail: bool) -> Any:
    import altair as alt

    known = [row["ms"] for row in rows if row["ms"]]
    if not shows_tail or not known or max(known) < WIDE * min(known):
        return marks.from_zero(known)
    return alt.Scale(type="log", domain=[min(known) * 0.9, max(known) * 1.1], nice=False)


def _linear() -> Any:
    import altair as alt

    return alt.Y(
        "pct:Q",
        title="Transfers complete (%)",
        scale=alt.Scale(domain=[0, 104], nice=False),
        axis=alt.Axis(values=[0, 20, 40, 60, 80, 100]),
    )


def _percentiles(rows: list[dict[str, Any]]) -> Any:
    """An axis of the share that is still open, read from the other side."""
    import altair as alt

    least = min(row["open"] for row in rows)
    shown = [round(100 - percentile, 1) for percentile in (0.0, *PERCENTILES) if 100 - percentile >= least]
    return alt.Y(
        "open:Q",
        title="Transfers complete (%)",
        scale=alt.Scale(type="log", domain=[100, least * 0.8], nice=False),
        axis=alt.Axis(values=shown, labelExpr="format(100 - datum.value, '.5~r')", labelOverlap=False),
    )

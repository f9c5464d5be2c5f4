"""Completion times of finite transfers."""

from __future__ import annotations

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


def applies(run: ReportRun) -> bool:
    return any(_is_transfer(row) for row in run.flows)


def _is_transfer(row: Mapping[str, Any]) -> bool:
    return workloads.of(row["workload"])["counts"] == "completion"


def chart(run: ReportRun, layout: Layout) -> Any:
    import altair as alt
    import numpy as np

    times: dict[tuple[int, int], list[float | None]] = defaultdict(list)
    for row in run.flows:
        if _is_transfer(row):
            times[row["cell"], row["group"]].append(row["completion_us"])
    rows: list[dict[str, Any]] = []
    for entrant in run.entrants:
        all_of = times.get((entrant.cell, entrant.group), [])
        done = np.sort([t for t in all_of if t is not None]) * 1e-3
        count = len(done)
        picks = np.unique(np.linspace(0, max(count - 1, 0), min(count, POINTS_AT_MOST)).round().astype(int))
        words = {**marks.entrant_words(run, entrant), "of": len(all_of)}
        if count:
            rows.append({**words, "ms": done[0], "pct": 0.0, "done": 0})
        rows += [{**words, "ms": done[k], "pct": 100.0 * (k + 1) / len(all_of), "done": int(k) + 1} for k in picks]
        if not count:
            rows.append({**words, "ms": None, "pct": 0.0, "done": 0})
    x = alt.X("ms:Q", title="Completion time (ms)", scale=marks.from_zero(row["ms"] for row in rows))
    y = alt.Y(
        "pct:Q",
        title="Transfers complete (%)",
        scale=alt.Scale(domain=[0, 104], nice=False),
        axis=alt.Axis(values=[0, 20, 40, 60, 80, 100]),
    )
    base = alt.Chart().encode(x=x, y=y, color=marks.colour(run, layout), detail="entrant:N")
    layers = alt.layer(
        base.mark_line(interpolate="step-after", strokeWidth=2),
        base.transform_filter("datum.done > 0")
        .mark_point(size=34, filled=True, opacity=0.9)
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

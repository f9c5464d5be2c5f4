"""How much each algorithm delivered, with its 95 % interval."""

from __future__ import annotations

import math
from typing import Any

from tcpknee.pages import marks, theme
from tcpknee.pages.run import ReportRun
from tcpknee.pages.theme import Layout

name = "goodput"
title = "Goodput"
summary = (
    "Payload delivered in order to the application, all flows of a kind together, after the warm-up; of transfers that "
    "do not come and go, from their opening. Large marks are means over the repetitions, lines their 95 % intervals, "
    "small marks single repetitions."
)
#: Taller than this nobody compares rows any more; `axes` shows such matrices.
ROWS_AT_MOST = 60


def applies(run: ReportRun) -> bool:
    return bool(run.entrants)


def words(run: ReportRun) -> str:
    count = len(run.measured)
    return f"The first {ROWS_AT_MOST} of {count} rows are shown." if count > ROWS_AT_MOST else ""


def chart(run: ReportRun, layout: Layout) -> Any:
    import altair as alt

    rows: list[dict[str, Any]] = []
    points: list[dict[str, Any]] = []
    shown = run.measured[:ROWS_AT_MOST]
    for entrant, group in shown:
        words = marks.entrant_words(run, entrant)
        rows.append({**words, **marks.spread(group.metrics["goodput_bits_per_sec"], 1e-6, "goodput"),
                     "n": group.metrics["goodput_bits_per_sec"].n})  # fmt: skip
        points += [
            {**words, "goodput": value * 1e-6, "rep": rep}
            for rep, value in zip(group.reps.tolist(), group.values["goodput_bits_per_sec"].tolist(), strict=True)
            if not math.isnan(value)
        ]
    scale = marks.from_zero([row["goodput_high"] for row in rows] + [point["goodput"] for point in points])
    y = alt.Y("entrant:N", title=None, sort=marks.entrants(run), axis=marks.row_axis())
    x = alt.X("goodput:Q", title="Goodput (Mbit/s)", scale=scale)
    tooltip = [
        alt.Tooltip("entrant:N", title="algorithm"),
        alt.Tooltip("condition:N"),
        alt.Tooltip("goodput:Q", title="mean (Mbit/s)", format=",.4~g"),
        alt.Tooltip("goodput_low:Q", title="95 % from", format=",.4~g"),
        alt.Tooltip("goodput_high:Q", title="to", format=",.4~g"),
        alt.Tooltip("n:Q", title="repetitions"),
    ]
    everything = [{**row, "kind": "mean"} for row in rows] + [{**point, "kind": "repetition"} for point in points]
    base = alt.Chart().encode(y=y, color=marks.colour(run, layout).legend(None))
    means = base.transform_filter("datum.kind == 'mean'")
    singles = base.transform_filter("datum.kind == 'repetition'")
    layers = alt.layer(
        singles.mark_point(size=26, filled=True, opacity=0.35).encode(x=x, shape=marks.shape(run, layout).legend(None)),
        means.mark_rule(strokeWidth=2.5).encode(x=alt.X("goodput_low:Q"), x2="goodput_high:Q", tooltip=tooltip),
        means.mark_point(size=110, filled=True, opacity=1).encode(
            x=x, shape=marks.shape(run, layout).legend(None), tooltip=tooltip
        ),
        means.mark_text(align="left", dx=10, dy=-11, fontSize=11).encode(
            x=x, text=alt.Text("goodput:Q", format=",.3r"), color=alt.value(theme.NEUTRAL)
        ),
    ).properties(width=layout.width, height=alt.Step(44))
    if len(run.conditions) == 1:
        return layers.properties(data=marks.values(everything))
    return marks.stacked(run, layers.properties(height=alt.Step(34)), everything)

"""Request latency percentiles of request/response workloads."""

from __future__ import annotations

from typing import Any

from tcpknee.pages import marks
from tcpknee.pages.run import ReportRun
from tcpknee.pages.theme import Layout

name = "latency"
title = "Request latency"
needs = "a workload with requests"
summary = (
    "From writing a request to reading its whole answer: median, 95th and 99th percentile, means over the "
    "repetitions with 95 % intervals."
)
PERCENTILES = ("p50", "p95", "p99")


def applies(run: ReportRun) -> bool:
    return any("latency_us_p50" in group.metrics for _, group in run.measured)


def chart(run: ReportRun, layout: Layout) -> Any:
    import altair as alt

    rows = []
    for entrant, group in run.measured:
        for percentile in PERCENTILES:
            if f"latency_us_{percentile}" in group.metrics:
                rows.append(
                    {
                        **marks.entrant_words(run, entrant),
                        "percentile": percentile,
                        **marks.spread(group.metrics[f"latency_us_{percentile}"], 1e-3, "latency"),
                    }
                )
    y = alt.Y("percentile:N", title=None, sort=list(PERCENTILES), axis=marks.row_axis())
    x = alt.X("latency:Q", title="Request latency (ms)", scale=marks.from_zero(row["latency_high"] for row in rows))
    offset = alt.YOffset("entrant:N", sort=marks.entrants(run))
    base = alt.Chart().encode(y=y, yOffset=offset, color=marks.colour(run, layout))
    layers = alt.layer(
        base.mark_rule(strokeWidth=2.5).encode(x=alt.X("latency_low:Q"), x2="latency_high:Q"),
        base.mark_point(size=90, filled=True, opacity=1).encode(
            x=x,
            shape=marks.shape(run, layout),
            tooltip=[
                alt.Tooltip("entrant:N", title="algorithm"),
                alt.Tooltip("condition:N"),
                alt.Tooltip("percentile:N"),
                alt.Tooltip("latency:Q", title="latency (ms)", format=",.4~g"),
            ],
        ),
    ).properties(width=layout.width, height=alt.Step(max(18, 60 // max(len(marks.entrants(run)), 1))))
    if len(run.conditions) == 1:
        return layers.properties(data=marks.values(rows))
    return marks.stacked(run, layers, rows)

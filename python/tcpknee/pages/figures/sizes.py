"""Completion times of transfers by their size."""

from __future__ import annotations

from typing import Any

from tcpknee.evidence.metrics import SIZES, of_sizes
from tcpknee.pages import marks
from tcpknee.pages.run import ReportRun
from tcpknee.pages.theme import Layout

name = "sizes"
title = "Completion time by size"
summary = (
    "What small transfers wait and large ones need: from the median (point) to the 99th percentile (tick) of the "
    "transfers of each size, means over the repetitions. A tick is missing where that many were not complete. Slowdown "
    "is the time over the least that the path allows for that size: a handshake, half a round trip, and its packets at "
    "the bottleneck's rate."
)
NUMBERS = ("transfers", "slowdown_p50", "slowdown_p99")
TIMES = ("completion_us_p50", "completion_us_p95", "completion_us_p99")


def applies(run: ReportRun) -> bool:
    return any(len(group.sizes) > 1 for _, group in run.measured)


def chart(run: ReportRun, layout: Layout) -> Any:
    import altair as alt

    rows = []
    for entrant, group in run.measured:
        for sizes in group.sizes:
            found = {name: group.metrics.get(of_sizes(name, sizes)) for name in (*NUMBERS, *TIMES)}
            numbers = {name: estimate.mean if estimate else None for name, estimate in found.items()}
            times = {name.removeprefix("completion_us_"): _ms(numbers.pop(name)) for name in TIMES}
            # Where a colour is several entrants', the first row of each says which it is.
            told = entrant.label if sizes is group.sizes[0] and entrant.label != entrant.algorithm else None
            place = times["p50"] if times["p99"] is None else times["p99"]
            row = {**marks.entrant_words(run, entrant), "size": sizes.label, **numbers, **times}
            rows.append({**row, "told": told, "place": place})
    labels = [sizes.label for sizes in SIZES]
    y = alt.Y("size:N", title=None, sort=labels, axis=marks.row_axis())
    x = alt.X(
        "p50:Q",
        title="Completion time, logarithmic (ms)",
        scale=alt.Scale(type="log", nice=False, padding=20),
    )
    tooltip = [
        alt.Tooltip("entrant:N", title="algorithm"),
        alt.Tooltip("condition:N"),
        alt.Tooltip("size:N"),
        alt.Tooltip("transfers:Q", format=",.4~g"),
        *(alt.Tooltip(f"{percentile}:Q", title=f"{percentile} (ms)", format=",.4~g") for percentile in _PERCENTILES),
        alt.Tooltip("slowdown_p50:Q", title="slowdown p50", format=",.3~g"),
        alt.Tooltip("slowdown_p99:Q", title="slowdown p99", format=",.3~g"),
    ]
    offset = alt.YOffset("entrant:N", sort=marks.entrants(run))
    base = (
        alt.Chart().encode(y=y, yOffset=offset, color=marks.colour(run, layout)).transform_filter("isValid(datum.p50)")
    )
    late = base.transform_filter("isValid(datum.p99)")
    layers = alt.layer(
        late.mark_rule(strokeWidth=2).encode(x=x, x2="p99:Q"),
        late.mark_tick(thickness=2.5, size=11).encode(x=alt.X("p99:Q"), tooltip=tooltip),
        base.mark_point(size=80, filled=True, opacity=1).encode(x=x, shape=marks.shape(run, layout), tooltip=tooltip),
        base.transform_filter("isValid(datum.told)")
        .mark_text(align="left", dx=9, fontSize=11)
        .encode(x=alt.X("place:Q"), text="told:N"),
    ).properties(width=layout.width, height=alt.Step(max(16, 48 // max(len(marks.entrants(run)), 1))))
    if len(run.conditions) == 1:
        return layers.properties(data=marks.values(rows))
    return marks.stacked(run, layers, rows)


_PERCENTILES = tuple(name.removeprefix("completion_us_") for name in TIMES)


def _ms(time_us: float | None) -> float | None:
    return None if time_us is None else time_us * 1e-3

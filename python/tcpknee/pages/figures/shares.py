"""Goodput of each flow, where several share the bottleneck."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from tcpknee import workloads
from tcpknee.pages import marks, theme
from tcpknee.pages.run import ReportRun
from tcpknee.pages.theme import Layout

name = "shares"
title = "How the flows share"
summary = "Goodput of every single flow, mean over the repetitions: the wider a row spreads, the less equal the shares."


def applies(run: ReportRun) -> bool:
    found = _of_flows_that_stay(run)
    return any(sum(of == cell for of, _ in found) > 1 for cell in run.cells)


def _of_flows_that_stay(run: ReportRun) -> dict[tuple[int, int], list[float]]:
    """Goodput in each repetition by cell and flow, without those that are drawn: they are others in each."""
    goodputs: dict[tuple[int, int], list[float]] = defaultdict(list)
    for row in run.flows:
        if not workloads.of(row["workload"])["draws"]:
            goodputs[row["cell"], row["flow"]].append(row["goodput_bits_per_sec"] or 0.0)
    return goodputs


def chart(run: ReportRun, layout: Layout) -> Any:
    import altair as alt

    goodputs = _of_flows_that_stay(run)
    rows = []
    for entrant in run.entrants:
        for k, flow in enumerate(entrant.flows):
            values = goodputs.get((entrant.cell, flow))
            if values is None:
                continue
            rows.append(
                {
                    **marks.entrant_words(run, entrant),
                    "flow": k + 1,
                    "goodput": sum(values) / len(values) * 1e-6,
                }
            )
    y = alt.Y("entrant:N", title=None, sort=marks.entrants(run), axis=marks.row_axis())
    x = alt.X("goodput:Q", title="Goodput of one flow (Mbit/s)", scale=marks.from_zero(row["goodput"] for row in rows))
    base = alt.Chart().encode(y=y)
    layers = alt.layer(
        base.mark_point(size=60, filled=True, opacity=0.45).encode(
            x=x,
            color=marks.colour(run, layout).legend(None),
            shape=marks.shape(run, layout).legend(None),
            tooltip=[
                alt.Tooltip("entrant:N", title="algorithm"),
                alt.Tooltip("condition:N"),
                alt.Tooltip("flow:Q", title="flow"),
                alt.Tooltip("goodput:Q", title="goodput (Mbit/s)", format=",.4~g"),
            ],
        ),
        base.mark_tick(thickness=2.5, size=26, color=theme.NEUTRAL).encode(
            x=alt.X("median(goodput):Q", title="Goodput of one flow (Mbit/s)")
        ),
    ).properties(width=layout.width, height=alt.Step(38))
    if len(run.conditions) == 1:
        return layers.properties(data=marks.values(rows))
    return marks.stacked(run, layers, rows)

"""What held each flow back, in percent of its life."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from kneepoint.metrics import LIMITS
from kneepoint.report import marks, palette, theme
from kneepoint.report.run import ReportRun

if TYPE_CHECKING:
    import altair as alt

name = "limits"
title = "What limited each flow"
summary = (
    "Share of each flow's life in which the congestion window, pacing, the receive window, the send buffer or the "
    "application held data back; \"other\" is the rest (handshake, recovery without permission to send). "
    "Means over the repetitions."
)
#: More flows than this are shown as the mean of their kind.
FLOWS_AT_MOST = 24
ROWS_AT_MOST = 60

WORDS = {
    "cwnd": "congestion window",
    "pacing": "pacing",
    "rwnd": "receive window",
    "sndbuf": "send buffer",
    "app": "application",
    "other": "other",
}


def applies(run: ReportRun) -> bool:
    return bool(run.entrants)


def shares(run: ReportRun) -> list[dict[str, object]]:
    """Rows entrant or flow × limit with `pct` of the life of its flows."""
    single = sum(len(e.flows) for e in run.entrants) <= FLOWS_AT_MOST
    sums: dict[tuple[int, int, int], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in run.flows:
        end = row["end_ns"] if row["end_ns"] is not None else run.end_ns
        life_us = max((end - row["start_ns"]) / 1e3, 0.0)
        spent = {limit: float(row[f"{limit}_limited_us"]) for limit in LIMITS}
        spent["other"] = max(life_us - sum(spent.values()), 0.0)
        into = sums[row["cell"], row["group"], row["flow"] if single else -1]
        for limit, us in spent.items():
            into[limit] += us
    rows: list[dict[str, object]] = []
    for entrant in run.entrants:
        for flow in entrant.flows if single else (-1,):
            spent = sums[entrant.cell, entrant.group, flow]
            total = sum(spent.values()) or 1.0
            label = entrant.label
            if len(entrant.flows) > 1:
                label += f" #{entrant.flows.index(flow) + 1}" if single else f", {len(entrant.flows)} flows"
            rows += [
                {
                    **marks.entrant_words(run, entrant),
                    "row": label,
                    "limit": word,
                    "order": order,
                    "pct": 100.0 * spent[limit] / total,
                }
                for order, (limit, word) in enumerate(WORDS.items())
            ]
    return rows


def chart(run: ReportRun) -> alt.Chart | alt.FacetChart:
    import altair as alt

    rows = shares(run)[: ROWS_AT_MOST * len(WORDS)]
    bars = (
        alt.Chart()
        .mark_bar(stroke="white", strokeWidth=0.6)
        .encode(
            y=alt.Y(
                "row:N",
                title=None,
                sort=list(dict.fromkeys(str(row["row"]) for row in rows)),
                axis=alt.Axis(domain=False, ticks=False),
            ),
            x=alt.X("pct:Q", title="Share of the flow's life (%)", scale=alt.Scale(domain=[0, 100], clamp=True)),
            color=alt.Color(
                "limit:N",
                title=None,
                scale=alt.Scale(domain=list(palette.LIMITS), range=list(palette.LIMITS.values())),
            ),
            order="order:Q",
            tooltip=[
                alt.Tooltip("row:N", title="flow"),
                alt.Tooltip("condition:N"),
                alt.Tooltip("limit:N", title="limited by"),
                alt.Tooltip("pct:Q", title="share (%)", format=".1f"),
            ],
        )
        .properties(width=theme.WIDTH, height=alt.Step(26))
    )
    if len(run.conditions) == 1:
        return bars.properties(data=marks.values(rows))
    return bars.facet(
        row=alt.Row(
            "condition:N",
            title=None,
            sort=marks.conditions(run),
            header=alt.Header(labelOrient="top", labelAnchor="start", labelFontWeight=600),
        ),
        data=marks.values(rows),
        spacing=8,
    ).resolve_scale(y="independent")

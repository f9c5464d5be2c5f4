"""What held each flow back, in percent of its life."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from kneepoint.metrics import LIMITS
from kneepoint.report import marks, palette, theme
from kneepoint.report.run import ReportRun

name = "limits"
title = "What limited each flow"
summary = (
    "Share of each flow's life in which the congestion window, pacing, the receive window, the send buffer or the "
    'application held data back; "other" is the rest (handshake, recovery without permission to send). '
    "Means over the repetitions."
)
#: More flows than this are shown as the mean of their kind.
FLOWS_AT_MOST = 24
ROWS_AT_MOST = 60
#: Narrower pieces have no room for their number.
LABELLED_FROM_PCT = 4

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
            if len(entrant.flows) > 1 and single:
                label += f" #{entrant.flows.index(flow) + 1}"
            at = 0.0
            for limit, word in WORDS.items():
                pct = 100.0 * spent[limit] / total
                rows.append(
                    {
                        **marks.entrant_words(run, entrant),
                        "row": label,
                        "limit": word,
                        "pct": pct,
                        "number": f"{pct:.0f}" if pct >= LABELLED_FROM_PCT else "",
                        "ink": palette.LIMITS[word][1],
                        "from": at,
                        "middle": at + pct / 2,
                        "to": at + pct,
                    }
                )
                at += pct
    return rows


def chart(run: ReportRun) -> Any:
    import altair as alt

    rows = shares(run)[: ROWS_AT_MOST * len(WORDS)]
    names = list(palette.LIMITS)
    y = alt.Y(
        "row:N",
        title=None,
        sort=list(dict.fromkeys(str(row["row"]) for row in rows)),
        axis=alt.Axis(domain=False, ticks=False),
        scale=alt.Scale(paddingInner=0.22, paddingOuter=0.1),
    )
    x = alt.X("from:Q", title="Share of the flow's life (%)", scale=alt.Scale(domain=[0, 100], clamp=True))
    fills = alt.Scale(domain=names, range=[fill for fill, _ in palette.LIMITS.values()])
    tooltip = [
        alt.Tooltip("row:N", title="flow"),
        alt.Tooltip("condition:N"),
        alt.Tooltip("limit:N", title="limited by"),
        alt.Tooltip("pct:Q", title="share (%)", format=".1f"),
    ]
    base = alt.Chart().encode(y=y)
    bars = alt.layer(
        base.mark_bar().encode(x=x, x2="to:Q", fill=alt.Fill("limit:N", title=None, scale=fills), tooltip=tooltip),
        base.mark_text(fontSize=11).encode(
            x=alt.X("middle:Q"),
            text="number:N",
            color=alt.condition("datum.ink == 'white'", alt.value("#ffffff"), alt.value("#000000")),
        ),
    ).properties(width=theme.WIDTH, height=alt.Step(28))
    if len(run.conditions) == 1:
        return bars.properties(data=marks.values(rows))
    return marks.stacked(run, bars, rows)

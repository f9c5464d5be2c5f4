"""What held each flow back, in percent of its life."""

from __future__ import annotations

from typing import Any

from tcpknee.evidence.metrics import LIMITED_BY
from tcpknee.pages import marks, palette
from tcpknee.pages.run import ReportRun
from tcpknee.pages.theme import Layout

name = "limits"
title = "What limited each flow"
summary = (
    "Share of each flow's steady part in which the congestion window, pacing, the receive window, the send buffer "
    "or the application held data back; of the rest nothing tells (handshake, recovery without permission to send). "
    "A real kernel's windows, buffers and pacing are told by its counters and by samples. "
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
    "cpu": "processors",
    "other": "not told",
}


def applies(run: ReportRun) -> bool:
    return bool(run.entrants)


def shares(run: ReportRun) -> list[dict[str, object]]:
    """Rows entrant or flow × limit with `pct` of the steady part. An entrant's are those of the statistics."""
    single = sum(len(e.flows) for e in run.entrants) <= FLOWS_AT_MOST
    by_flow = _by_flow(run) if single else {}
    rows: list[dict[str, object]] = []
    for entrant, group in run.measured:
        if not single or len(entrant.flows) == 1:
            parts = [(entrant.label, {limit: found.mean for limit, found in group.limited_by.items()})]
        else:
            parts = [(label, by_flow[entrant.cell, flow]) for flow, label in run.series.labels(entrant).items()]
        for label, spent in parts:
            at = 0.0
            # Bars are cut to a whole; a limit's clock may run a tick past the end.
            total = max(sum(spent.values()), 1.0)
            for limit, word in told(run).items():
                pct = 100.0 * spent.get(limit, 0.0) / total
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


def told(run: ReportRun) -> dict[str, str]:
    """`WORDS` of what the run's engine tells."""
    known = {limit for _, group in run.measured for limit in group.limited_by}
    return {limit: word for limit, word in WORDS.items() if limit in known}


def _by_flow(run: ReportRun) -> dict[tuple[int, int], dict[str, float]]:
    """Shares of each flow by (cell, flow), over the repetitions: each flow as a group of its own."""
    import numpy as np

    from tcpknee.datasets.table import Table
    from tcpknee.runs import groups

    cells = {int(cell["index"]): cell for cell in run.meta["cells"]}
    flows = run.table("flows")
    alone = flows.set_column(flows.schema.get_field_index("group"), "group", flows["flow"])
    found = {}
    for part in groups.of_flows(Table(alone), cells):
        shares = {limit: part.values[f"limited_by.{limit}"] for limit in LIMITED_BY}
        found[part.cell, part.group] = {
            limit: float(np.mean(values[np.isfinite(values)])) if np.isfinite(values).any() else 0.0
            for limit, values in shares.items()
        }
    return found


def chart(run: ReportRun, layout: Layout) -> Any:
    import altair as alt

    words = told(run)
    rows = shares(run)[: ROWS_AT_MOST * len(words)]
    names = [word for word in palette.LIMITS if word in words.values()]
    y = alt.Y(
        "row:N",
        title=None,
        sort=list(dict.fromkeys(str(row["row"]) for row in rows)),
        axis=alt.Axis(domain=False, ticks=False),
        scale=alt.Scale(paddingInner=0.22, paddingOuter=0.1),
    )
    x = alt.X("from:Q", title="Share of the flow's steady part (%)", scale=alt.Scale(domain=[0, 100], clamp=True))
    fills = alt.Scale(domain=names, range=[palette.LIMITS[word][0] for word in names])
    fill = alt.Fill("limit:N", scale=fills, legend=marks.legend(names, layout))
    tooltip = [
        alt.Tooltip("row:N", title="flow"),
        alt.Tooltip("condition:N"),
        alt.Tooltip("limit:N", title="limited by"),
        alt.Tooltip("pct:Q", title="share (%)", format=".1f"),
    ]
    base = alt.Chart().encode(y=y)
    bars = alt.layer(
        base.mark_bar().encode(x=x, x2="to:Q", fill=fill, tooltip=tooltip),
        base.mark_text(fontSize=11).encode(
            x=alt.X("middle:Q"),
            text="number:N",
            color=alt.condition("datum.ink == 'white'", alt.value("#ffffff"), alt.value("#000000")),
        ),
    ).properties(width=layout.width, height=alt.Step(28))
    if len(run.conditions) == 1:
        return bars.properties(data=marks.values(rows))
    return marks.stacked(run, bars, rows)

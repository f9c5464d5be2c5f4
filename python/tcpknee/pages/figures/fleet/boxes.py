"""Box plots of each cohort's connections."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcpknee.pages import distributions, marks, palette
from tcpknee.pages.cohorts import Cohorts
from tcpknee.pages.quantities import INFLIGHT, QUEUE_DELAY, RETRANSMITTED, SRTT, THROUGHPUT, Quantity
from tcpknee.pages.theme import Layout

name = "boxes"
title = "Box plots"
summary = (
    "A box is the middle half of a cohort's connections, the line in it their median, and the whiskers go from the "
    "5th to the 95th percentile; on a linear and on a logarithmic axis."
)
SHOWN = (THROUGHPUT, SRTT, QUEUE_DELAY, RETRANSMITTED, INFLIGHT)
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)


def applies(found: Cohorts) -> bool:
    return bool(distributions.shown(found, SHOWN))


def chart(found: Cohorts, layout: Layout) -> Any:
    def panel(quantity: Quantity, axis: distributions.Axis, width: float) -> Any:
        return boxes(found, quantity, axis, width)

    return distributions.panels(found, distributions.shown(found, SHOWN), layout, panel)


def boxes(found: Cohorts, quantity: Quantity, axis: distributions.Axis, width: float) -> Any:
    """One drawing."""
    import altair as alt

    slots = found.slots
    base = alt.Chart(marks.values(rows(found, quantity, axis))).encode(
        y=alt.Y("cohort:N", title=None, sort=found.names, axis=marks.row_axis()),
        color=alt.Color(
            "cohort:N",
            scale=alt.Scale(domain=list(slots), range=[palette.colour(k) for k in slots.values()]),
            legend=None,
        ),
        tooltip=[
            alt.Tooltip("cohort:N"),
            *(alt.Tooltip(f"p{100 * share:.0f}:Q", title=f"P{100 * share:.0f}", format=",.4~g") for share in SHARES),
        ],
    )

    def at(field: str) -> alt.X:
        return alt.X(
            f"{field}_at:Q", title=axis.title(quantity), scale=axis.scale(), axis=alt.Axis(tickCount=5, grid=True)
        )

    layers = alt.layer(
        base.mark_rule(strokeWidth=1.5, clip=True).encode(x=at("p5"), x2="p95_at:Q"),
        base.mark_bar(height=14, opacity=0.55, clip=True).encode(x=at("p25"), x2="p75_at:Q"),
        base.mark_tick(thickness=2.5, size=20, clip=True).encode(x=at("p50")),
    )
    return layers.properties(width=width, height=alt.Step(28))


def rows(found: Cohorts, quantity: Quantity, axis: distributions.Axis) -> list[dict[str, Any]]:
    """Percentiles of each cohort; `_at`: where they are drawn, which is within the axis."""
    made = []
    for cohort, (values, shares) in distributions.steps(found, quantity).items():
        row: dict[str, Any] = {"cohort": cohort}
        for share in SHARES:
            value = float(np.interp(share, shares, values))
            row |= {f"p{100 * share:.0f}": value, f"p{100 * share:.0f}_at": min(max(value, axis.low), axis.high)}
        made.append(row)
    return made

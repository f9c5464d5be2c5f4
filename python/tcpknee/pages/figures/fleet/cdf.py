"""Cumulative distributions of each cohort's connections."""

from __future__ import annotations

from typing import Any

from tcpknee.pages import distributions
from tcpknee.pages.cohorts import Cohorts
from tcpknee.pages.encode import Block
from tcpknee.pages.quantities import INFLIGHT, MIN_RTT, QUEUE_DELAY, RETRANSMITTED, SRTT, THROUGHPUT, Quantity
from tcpknee.pages.run import Condition
from tcpknee.pages.theme import Layout

name = "cdf"
title = "Distributions"
summary = (
    "Share of each cohort's connections up to a value, on a linear and on a logarithmic axis. The axes end at the "
    "greatest 99th percentile. A curve further right has more."
)
SHOWN = (THROUGHPUT, SRTT, QUEUE_DELAY, MIN_RTT, RETRANSMITTED, INFLIGHT)
HEIGHT = 150


def applies(found: Cohorts) -> bool:
    return bool(distributions.shown(found, SHOWN))


def chart(found: Cohorts, layout: Layout) -> Any:
    def panel(quantity: Quantity, axis: distributions.Axis, width: float) -> Any:
        return distributions.curves(found, quantity, axis, layout).properties(width=width, height=HEIGHT)

    return distributions.panels(found, distributions.shown(found, SHOWN), layout, panel)


def data(found: Cohorts, condition: Condition) -> dict[str, list[Block]]:
    """A block per curve."""
    return {
        distributions.set_name(quantity, axis): distributions.curve_blocks(found, quantity, axis)
        for quantity in distributions.shown(found, SHOWN)
        for axis in distributions.axes(found, quantity)
    }

"""How much of their time connections waited for the receiver's window."""

from __future__ import annotations

from typing import Any

from tcpknee.pages import distributions
from tcpknee.pages.cohorts import Cohorts
from tcpknee.pages.encode import Block
from tcpknee.pages.quantities import RWND_LIMITED
from tcpknee.pages.run import Condition
from tcpknee.pages.theme import Layout

name = "rwnd-limited"
title = "Limited by the receive window"
summary = (
    "Share of each cohort's connections whose receiver's window limited them for up to a part of the time in which "
    "data was outstanding. Where a curve begins is the share that it never limited."
)
AXIS = distributions.Axis(False, 0.0, 100.0)


def applies(found: Cohorts) -> bool:
    return found.has(RWND_LIMITED)


def chart(found: Cohorts, layout: Layout) -> Any:
    return distributions.curves(found, RWND_LIMITED, AXIS, layout).properties(width=layout.width, height=220)


def data(found: Cohorts, condition: Condition) -> dict[str, list[Block]]:
    """A block per curve."""
    return {distributions.set_name(RWND_LIMITED, AXIS): distributions.curve_blocks(found, RWND_LIMITED, AXIS)}

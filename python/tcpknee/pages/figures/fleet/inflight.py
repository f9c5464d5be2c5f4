"""Packets in flight against round-trip time: what a cohort keeps in the network beyond what the path needs."""

from __future__ import annotations

from typing import Any

from tcpknee.pages import binned
from tcpknee.pages.cohorts import Cohorts
from tcpknee.pages.encode import Block
from tcpknee.pages.quantities import INFLIGHT, SRTT
from tcpknee.pages.run import Condition
from tcpknee.pages.theme import Layout

name = "inflight"
title = "In flight against round-trip time"
summary = (
    "Where the connections of each cohort lie: medians of each connection's packets in flight and of its smoothed RTT. "
    "The darker a cell, the more of them."
)
HEIGHT = 300


def applies(found: Cohorts) -> bool:
    return found.density(SRTT, INFLIGHT) is not None


def words(found: Cohorts) -> str:
    density = found.density(SRTT, INFLIGHT)
    return binned.words(density) if density else ""


def data(found: Cohorts, condition: Condition) -> dict[str, list[Block]]:
    density = found.density(SRTT, INFLIGHT)
    return {name: binned.blocks(density, medians=True) if density else []}


def chart(found: Cohorts, layout: Layout) -> Any:
    density = found.density(SRTT, INFLIGHT)
    assert density is not None, "a figure is drawn where it applies"
    return binned.chart(density, name, SRTT, INFLIGHT, layout, HEIGHT, medians=True)

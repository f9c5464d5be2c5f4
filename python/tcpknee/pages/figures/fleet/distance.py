"""Least round-trip time against bandwidth: how far away clients are, and which access rates they have."""

from __future__ import annotations

from typing import Any

from tcpknee.pages import binned
from tcpknee.pages.cohorts import Cohorts
from tcpknee.pages.encode import Block
from tcpknee.pages.quantities import MIN_RTT, THROUGHPUT
from tcpknee.pages.run import Condition
from tcpknee.pages.theme import Layout

name = "distance"
title = "Bandwidth against distance"
summary = (
    "Every connection by its least RTT, which is the length of its path, and its delivery rate. Upright bands are "
    "distances that many clients share, flat ones access rates."
)
HEIGHT = 340


def applies(found: Cohorts) -> bool:
    return found.density(MIN_RTT, THROUGHPUT) is not None


def words(found: Cohorts) -> str:
    density = found.density(MIN_RTT, THROUGHPUT)
    return binned.words(density) if density else ""


def data(found: Cohorts, condition: Condition) -> dict[str, list[Block]]:
    density = found.density(MIN_RTT, THROUGHPUT)
    return {name: binned.blocks(density, medians=False) if density else []}


def chart(found: Cohorts, layout: Layout) -> Any:
    density = found.density(MIN_RTT, THROUGHPUT)
    assert density is not None, "a figure is drawn where it applies"
    return binned.chart(density, name, MIN_RTT, THROUGHPUT, layout, HEIGHT, medians=False)

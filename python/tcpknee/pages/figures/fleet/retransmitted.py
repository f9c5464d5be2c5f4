"""Segments that hosts sent again, over time."""

from __future__ import annotations

from typing import Any

from tcpknee.pages import cohort_marks
from tcpknee.pages.cohorts import Cohorts
from tcpknee.pages.theme import Layout

name = "retransmitted"
title = "Segments retransmitted over time"
summary = (
    "RetransSegs over OutSegs, as the hosts' kernels count them for all their connections. A host whose connections "
    "are of several cohorts has its share in the line of such hosts."
)
SOURCE = """
    select boot_id, host, t_unix_ns, name, value - lag(value) over (
        partition by boot_id, netns, name order by t_unix_ns
    ) as more
    from counters where name in ('Tcp.RetransSegs', 'Tcp.OutSegs') and cpu is null
"""
PCT = """100.0 * sum(more) filter (name = 'Tcp.RetransSegs') / nullif(sum(more) filter (name = 'Tcp.OutSegs'), 0)"""


def applies(found: Cohorts) -> bool:
    return any(row["v"] for row in found.over_time("counters", SOURCE, PCT))


def chart(found: Cohorts, layout: Layout) -> Any:
    return cohort_marks.over_wall_time(found, found.over_time("counters", SOURCE, PCT), "Retransmitted (%)", layout)

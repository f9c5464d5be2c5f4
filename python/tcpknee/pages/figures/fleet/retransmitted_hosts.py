"""Segments that each host sent again, over time: the one host that does worse than the others of its cohort."""

from __future__ import annotations

from typing import Any

from tcpknee.pages import cohort_marks
from tcpknee.pages.cohorts import Cohorts
from tcpknee.pages.theme import Layout

from .retransmitted import PCT, SOURCE

name = "retransmitted-hosts"
title = "Segments retransmitted by each host"
summary = (
    "RetransSegs over OutSegs of each host over time, in the colour of its cohort: of more than 40 hosts those with "
    "the highest share at any moment. A point says which host it is of."
)
HOSTS_AT_MOST = 40


def applies(found: Cohorts) -> bool:
    return any(row["v"] for row in _rows(found))


def chart(found: Cohorts, layout: Layout) -> Any:
    return cohort_marks.over_wall_time(found, _rows(found), "Retransmitted (%)", layout, by="host")


def _rows(found: Cohorts) -> list[dict[str, Any]]:
    rows = found.over_time("counters", SOURCE, PCT, by_host=True)
    highest: dict[str, float] = {}
    for row in rows:
        highest[row["host"]] = max(highest.get(row["host"], 0.0), row["v"])
    shown = set(sorted(highest, key=lambda host: (-highest[host], host))[:HOSTS_AT_MOST])
    return [row for row in rows if row["host"] in shown]

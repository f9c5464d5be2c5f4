"""How many connections use ECN: agreed on it, saw its bits, were marked."""

from __future__ import annotations

from typing import Any

from tcpknee.pages import cohort_marks
from tcpknee.pages.cohorts import Cohorts
from tcpknee.pages.theme import Layout

name = "ecn"
title = "Connections with ECN"
summary = (
    "Share of each cohort's connections whose ends agreed on ECN; of those, the share at which a packet with ECN's "
    "bits arrived, and the share whose far end said that a packet was marked (CE). Lines are 95 % intervals over "
    "clusters."
)
CONDITIONS = {
    "agreed on": "ecn",
    "bits seen, of these": "case when ecn then ecn_seen end",
    "marked, of these": "case when ecn then ce_pct > 0 end",
}


def applies(found: Cohorts) -> bool:
    return {"ecn", "ecn_seen", "ce_pct"} <= found.columns and any(row["v"] for row in _rows(found))


def chart(found: Cohorts, layout: Layout) -> Any:
    return cohort_marks.intervals(found, _rows(found), "Connections (%)", layout)


def _rows(found: Cohorts) -> list[dict[str, Any]]:
    return found.shares_where(CONDITIONS)

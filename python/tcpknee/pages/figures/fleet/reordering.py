"""How many connections saw reordering."""

from __future__ import annotations

from typing import Any

from tcpknee.pages import cohort_marks
from tcpknee.pages.cohorts import Cohorts
from tcpknee.pages.quantities import REORDERING
from tcpknee.pages.theme import Layout

name = "reordering"
title = "Connections that saw reordering"
summary = (
    "Share of each cohort's connections with that many reordering events, or more. Lines are 95 % intervals over "
    "clusters."
)
AT_LEAST = (1, 10)


def applies(found: Cohorts) -> bool:
    return any(row["v"] for row in _rows(found))


def chart(found: Cohorts, layout: Layout) -> Any:
    return cohort_marks.intervals(found, _rows(found), "Connections that saw reordering (%)", layout)


def _rows(found: Cohorts) -> list[dict[str, Any]]:
    return [row for least in AT_LEAST for row in found.shares(REORDERING, least)]

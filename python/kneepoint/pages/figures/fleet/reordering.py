"""How many connections saw reordering."""

from __future__ import annotations

from typing import Any

from kneepoint.pages import cohort_marks
from kneepoint.pages.cohorts import Cohorts
from kneepoint.pages.quantities import REORDERING
from kneepoint.pages.theme import Layout

name = "reordering"
title = "Connections that saw reordering"
summary = "Share of each cohort's connections with at least so many reordering events. Lines are 95 % intervals over clusters."
AT_LEAST = (1, 10)


def applies(found: Cohorts) -> bool:
    return found.has(REORDERING)


def chart(found: Cohorts, layout: Layout) -> Any:
    rows = [row for least in AT_LEAST for row in found.shares(REORDERING, least)]
    return cohort_marks.intervals(found, rows, "Connections that saw reordering (%)", layout)

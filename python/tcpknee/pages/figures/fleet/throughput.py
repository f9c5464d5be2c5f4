"""Throughput of the median and of the faster clients of each cohort, with intervals."""

from __future__ import annotations

from typing import Any

from tcpknee.pages import cohort_marks
from tcpknee.pages.cohorts import Cohorts
from tcpknee.pages.quantities import THROUGHPUT
from tcpknee.pages.theme import Layout

name = "throughput"
title = "Throughput of the median and the faster clients"
summary = (
    "The delivery rate that half (P50) and three quarters (P75) of a cohort's connections stay below. Lines are 95 % "
    "intervals over clusters."
)
PERCENTILES = ("P50", "P75")


def applies(found: Cohorts) -> bool:
    return bool(found.percentiles(THROUGHPUT, PERCENTILES))


def chart(found: Cohorts, layout: Layout) -> Any:
    return cohort_marks.intervals(found, found.percentiles(THROUGHPUT, PERCENTILES), THROUGHPUT.axis, layout)

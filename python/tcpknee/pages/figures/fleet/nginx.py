"""What requests saw: throughput as nginx logged it."""

from __future__ import annotations

from typing import Any

from tcpknee.pages import cohort_marks
from tcpknee.pages.cohorts import Cohorts
from tcpknee.pages.quantities import NGINX
from tcpknee.pages.theme import Layout

name = "nginx"
title = "Throughput of requests"
summary = (
    "Bytes of a connection's requests over their times, as nginx logged them: percentiles over the connections of each "
    "cohort. Lines are 95 % intervals over clusters."
)
PERCENTILES = ("P25", "P50", "P75")


def applies(found: Cohorts) -> bool:
    return bool(found.percentiles(NGINX, PERCENTILES))


def chart(found: Cohorts, layout: Layout) -> Any:
    return cohort_marks.intervals(found, found.percentiles(NGINX, PERCENTILES), NGINX.axis, layout)

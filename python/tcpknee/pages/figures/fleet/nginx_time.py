"""What requests saw over time: percentiles of the throughput that nginx logged."""

from __future__ import annotations

from typing import Any

from tcpknee.pages import cohort_marks
from tcpknee.pages.cohorts import Cohorts
from tcpknee.pages.quantities import NGINX
from tcpknee.pages.theme import Layout

name = "nginx-time"
title = "Throughput of requests over time"
summary = (
    "Bytes of a connection's requests over their times, as nginx logged them, by when the connection began: the line "
    "is the median, the band reaches from the 25th to the 75th percentile, the dashed line is the 95th. Of moments "
    "with fewer than 5 connections of a cohort nothing is drawn."
)


def applies(found: Cohorts) -> bool:
    return bool(found.quantiles_over_time(NGINX))


def chart(found: Cohorts, layout: Layout) -> Any:
    return cohort_marks.bands_over_wall_time(found, found.quantiles_over_time(NGINX), NGINX.axis, layout)

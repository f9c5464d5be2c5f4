"""Requests answered per second over each axis of a matrix, such as connections, threads or sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpknee.pages import over_axes
from tcpknee.pages.run import Entrant, ReportRun
from tcpknee.pages.theme import Layout

if TYPE_CHECKING:
    from tcpknee.evidence.stats import Estimate

name = "requests"
title = "Requests per second over the matrix"
needs = "an axis, and a workload with requests"
summary = (
    "A line per algorithm: requests answered per second over each axis, such as connections or sizes, one small chart "
    "per setting of the others, such as threads, all on one scale. Bands are 95 % intervals."
)


def applies(run: ReportRun) -> bool:
    return len(run.conditions) > 1 and bool(_measured(run))


def chart(run: ReportRun, layout: Layout) -> Any:
    return over_axes.chart(run, layout, _measured(run), "Requests (thousand/s)", 1e-3)


def _measured(run: ReportRun) -> list[tuple[Entrant, str, Estimate]]:
    return [
        (entrant, "", group.metrics["requests_per_sec"])
        for entrant, group in run.measured
        if "requests_per_sec" in group.metrics
    ]

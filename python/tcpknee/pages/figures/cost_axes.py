"""Processor time per byte or request, over each axis of a matrix, such as sizes of writes or of requests."""

from __future__ import annotations

from typing import Any

from tcpknee.pages import over_axes
from tcpknee.pages.run import ReportRun
from tcpknee.pages.theme import Layout

name = "cost-axes"
title = "Processor time per request or byte over the matrix"
needs = "an axis, and processors: --engine kernel, or hosts with `costs`"
summary = (
    "What both hosts spent on a request, or on a byte where nobody asks, over each axis, such as sizes; one small "
    "chart per setting of the others, all on one scale. Bands are 95 % intervals."
)


def applies(run: ReportRun) -> bool:
    return len(run.conditions) > 1 and bool(_metric(run))


def words(run: ReportRun) -> str:
    return over_axes.words(run, _measured(run))


def chart(run: ReportRun, layout: Layout) -> Any:
    unit = _metric(run).rpartition("_")[2]
    return over_axes.chart(run, layout, _measured(run), f"Processor time per {unit} (ns)", 1.0)


def _measured(run: ReportRun) -> over_axes.Measured:
    return [(entrant, "", estimate) for entrant, estimate in over_axes.of_totals(run, _metric(run))]


def _metric(run: ReportRun) -> str:
    """The one that there is; empty: none."""
    names = ("cpu_ns_per_request", "cpu_ns_per_byte")
    return next((one for one in names if over_axes.of_totals(run, one)), "")

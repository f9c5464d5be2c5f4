"""Goodput over each axis of a matrix."""

from __future__ import annotations

from typing import Any

from tcpknee.pages import over_axes
from tcpknee.pages.run import ReportRun
from tcpknee.pages.theme import Layout

name = "axes"
title = "Goodput over the matrix"
needs = "an axis: a key with a list of values"
summary = (
    "One row per axis of the scenario, one small chart per setting of the others, all on one scale. "
    "Three numbers or more stand where they lie, from a tenfold range on by powers of ten; other values in the order "
    "of the file, evenly spaced. Bands are 95 % intervals."
)


def applies(run: ReportRun) -> bool:
    return len(run.conditions) > 1


def words(run: ReportRun) -> str:
    return over_axes.words(run, _measured(run))


def chart(run: ReportRun, layout: Layout) -> Any:
    return over_axes.chart(run, layout, _measured(run), "Goodput (Mbit/s)", 1e-6)


def _measured(run: ReportRun) -> over_axes.Measured:
    return [(entrant, "", group.metrics["goodput_bits_per_sec"]) for entrant, group in run.measured]

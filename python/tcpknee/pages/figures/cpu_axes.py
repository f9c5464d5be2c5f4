"""Where processors spent their time, over each axis of a matrix: programs, the kernel for them, interrupts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpknee.pages import over_axes
from tcpknee.pages.run import Entrant, ReportRun
from tcpknee.pages.theme import Layout

if TYPE_CHECKING:
    from tcpknee.evidence.stats import Estimate

name = "cpu-axes"
title = "Processors over the matrix"
needs = "an axis, and processors: --engine kernel, or hosts with `costs`"
summary = (
    "Share of all processors' time in programs (user), in the kernel on their behalf (system) and in interrupts "
    "(softirq), over each axis, such as connections or sizes; one small chart for each of the three and setting of the "
    "other axes, all on one scale. Of a lab these are the machine's processors, the emulated link included. Bands are "
    "95 % intervals."
)
KINDS = {"user": "cpu_user_share", "system": "cpu_system_share", "softirq": "cpu_softirq_share"}


def applies(run: ReportRun) -> bool:
    return len(run.conditions) > 1 and bool(_measured(run))


def words(run: ReportRun) -> str:
    return over_axes.words(run, _measured(run))


def chart(run: ReportRun, layout: Layout) -> Any:
    return over_axes.chart(run, layout, _measured(run), "Processor time (%)", 100.0)


def _measured(run: ReportRun) -> list[tuple[Entrant, str, Estimate]]:
    found = {kind: dict(over_axes.of_totals(run, name)) for kind, name in KINDS.items()}
    return [
        (entrant, kind, shares[entrant])
        for entrant in run.entrants
        for kind, shares in found.items()
        if entrant in shares
    ]

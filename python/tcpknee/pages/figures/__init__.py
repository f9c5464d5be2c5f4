"""The figures of a report. To add one: a module here and a line below.

A figure module has `name`, `title`, `summary`, `applies(run)` and `chart(run, layout)`, where the layout says how wide
the drawing is and what has room in it; it may have `data(run, condition)`, the named data sets of a chart that is drawn
for one condition at a time, and `words(run)`, what its caption says of this run beyond the summary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import axes, completion, cpu, delay_goodput, goodput, host_costs, latency, limits, shares, sizes, timeseries

if TYPE_CHECKING:
    from tcpknee.pages.run import ReportRun

FIGURES = (
    axes,
    goodput,
    delay_goodput,
    limits,
    shares,
    completion,
    sizes,
    latency,
    host_costs,
    timeseries,
    cpu,
)

OVER_TIME = (timeseries,)
"""Those that need no more than series of connections, and are drawn of any dataset that has some."""


def of(run: ReportRun) -> list[Any]:
    """The figures that apply, in the order of the page: goodput, delay against goodput, and then what explains them.

    A matrix has its goodput in `axes`. Its rows of `goodput`, one per cell, stand behind the delays.
    """
    shown = [figure for figure in FIGURES if run.flows and figure.applies(run)]
    if axes in shown:
        shown.remove(goodput)
        shown.insert(shown.index(delay_goodput) + 1 if delay_goodput in shown else 1, goodput)
    return shown

"""The figures of a report. To add one: a module here and a line below.

A figure module has `name`, `title`, `summary`, `applies(run)` and `chart(run, layout)`, where the layout says how wide
the drawing is and what has room in it; it may have `data(run, condition)`, the named data sets of a chart that is drawn
for one condition at a time, and `words(run)`, what its caption says of this run beyond the summary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import (
    acks,
    axes,
    completion,
    cost_axes,
    cpu,
    cpu_axes,
    delay_goodput,
    goodput,
    heat,
    host_costs,
    latency,
    limits,
    processors,
    requests,
    shares,
    sizes,
    timeseries,
)

if TYPE_CHECKING:
    from tcpknee.pages.run import ReportRun

FIGURES = (
    axes,
    goodput,
    delay_goodput,
    heat,
    requests,
    limits,
    shares,
    completion,
    sizes,
    latency,
    cost_axes,
    cpu_axes,
    host_costs,
    timeseries,
    cpu,
)

OF_DATASETS = (timeseries, acks, processors)
"""Those that are drawn of any dataset with the tables that they need: recordings, imports and traces."""


def of(run: ReportRun) -> list[Any]:
    """The figures that apply, in the order of the page: goodput, delay against goodput, and then what explains them.

    A matrix has its goodput in `axes`. Its rows of `goodput`, one per cell, stand behind the delays.
    """
    shown = [figure for figure in FIGURES if run.flows and figure.applies(run)]
    if axes in shown:
        shown.remove(goodput)
        shown.insert(shown.index(delay_goodput) + 1 if delay_goodput in shown else 1, goodput)
    return shown

"""The figures of a report, in the order of the page. To add one: a module here and a line below.

A figure module has `name`, `title`, `summary`, `applies(run)` and `chart(run)`; it may have `data(run, condition)`,
the named data sets of a chart that is drawn for one condition at a time.
"""

from kneepoint.report.figures import (
    axes,
    completion,
    delay_goodput,
    goodput,
    latency,
    limits,
    shares,
    sizes,
    timeseries,
)

FIGURES = (
    axes,
    goodput,
    delay_goodput,
    limits,
    shares,
    completion,
    sizes,
    latency,
    timeseries,
)

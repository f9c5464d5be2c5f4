"""The figures of a fleet's report. To add one: a module here and a line below.

They are as those of a run (`tcpknee.pages.figures`), and take `Cohorts` where those take a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import (
    bbr,
    boxes,
    cdf,
    distance,
    ecn,
    forest,
    idle,
    inflight,
    loss_by_rtt,
    nginx,
    nginx_time,
    reordering,
    retransmitted,
    retransmitted_hosts,
    rwnd_limited,
    throughput,
)

if TYPE_CHECKING:
    from tcpknee.pages.cohorts import Cohorts

FIGURES = (
    forest,
    throughput,
    cdf,
    boxes,
    retransmitted,
    retransmitted_hosts,
    loss_by_rtt,
    inflight,
    distance,
    bbr,
    rwnd_limited,
    reordering,
    ecn,
    nginx,
    nginx_time,
    idle,
)


def of(found: Cohorts) -> list[Any]:
    """The figures that apply, in the order of the page: verdicts, and then what explains them."""
    return [figure for figure in FIGURES if figure.applies(found)]

"""The bandwidth that BBR knows against the round-trip time that it knows: what it paces by."""

from __future__ import annotations

from tcpknee.pages import binned, windows
from tcpknee.pages.binned import Ceiling, Density
from tcpknee.pages.cohorts import Cohorts
from tcpknee.pages.quantities import BBR_BW, BBR_MIN_RTT

name = "bbr"
title = "What BBR knows of its paths"
summary = (
    "Every connection of BBR by its least RTT and its bandwidth as BBR last knew them (bbr_mrtt, bbr_bw). Upright "
    "bands are distances that many clients share, flat ones access rates. The dashed curve is a receive window over "
    "the RTT: what such a window lets through, where connections are limited by theirs."
)


def _ceiling(found: Cohorts) -> Ceiling | None:
    return windows.ceiling(found, BBR_MIN_RTT, BBR_BW)


def _more(found: Cohorts, density: Density) -> str:
    return windows.words(found, BBR_MIN_RTT, BBR_BW)


applies, words, data, chart = binned.figure(
    name, BBR_MIN_RTT, BBR_BW, height=340, medians=False, ceiling=_ceiling, more=_more
)

"""Packets in flight against round-trip time: what a cohort keeps in the network beyond what the path needs."""

from __future__ import annotations

from tcpknee.pages import binned
from tcpknee.pages.quantities import INFLIGHT, SRTT

name = "inflight"
title = "In flight against round-trip time"
summary = (
    "Where the connections of each cohort lie: medians of each connection's packets in flight and of its smoothed RTT. "
    "The darker a cell, the more of them."
)
applies, words, data, chart = binned.figure(name, SRTT, INFLIGHT, height=300, medians=True)

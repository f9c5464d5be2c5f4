"""Segments retransmitted against round-trip time: whether those that are far lose more."""

from __future__ import annotations

from tcpknee.pages import binned
from tcpknee.pages.quantities import RETRANSMITTED, SRTT

name = "loss-by-rtt"
title = "Retransmissions by round-trip time"
summary = (
    "Every connection that sent something again, by the median of its smoothed RTT and its share of segments "
    "retransmitted, with the median of these. The darker a cell, the more of them. Connections that sent nothing again "
    "are not drawn."
)
applies, words, data, chart = binned.figure(name, SRTT, RETRANSMITTED, height=300, medians=True)

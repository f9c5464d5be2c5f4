"""Least round-trip time against bandwidth: how far away clients are, and which access rates they have."""

from __future__ import annotations

from tcpknee.pages import binned
from tcpknee.pages.quantities import MIN_RTT, THROUGHPUT

name = "distance"
title = "Bandwidth against distance"
summary = (
    "Every connection by its least RTT, which is the length of its path, and its delivery rate. Upright bands are "
    "distances that many clients share, flat ones access rates."
)
applies, words, data, chart = binned.figure(name, MIN_RTT, THROUGHPUT, height=340, medians=False)

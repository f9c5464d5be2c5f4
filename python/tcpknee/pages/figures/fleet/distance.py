"""Least round-trip time against bandwidth: how far away clients are, which access rates they have, and how many of them
a receive window holds back."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcpknee import human
from tcpknee.pages import binned, windows
from tcpknee.pages.binned import Ceiling, Density
from tcpknee.pages.cohorts import Cohorts
from tcpknee.pages.quantities import MIN_RTT, THROUGHPUT

name = "distance"
title = "Bandwidth against distance"
summary = (
    "Every connection by its least RTT, which is the length of its path, and its delivery rate. Upright bands are "
    "distances that many clients share, flat ones access rates. The dashed curve is a receive window over the RTT: "
    "what such a window lets through, where connections are limited by theirs."
)
BAND_SHARE = 0.05
"""Of all connections: a distance that so many share has a name."""
NEIGHBOURS = 4
"""Columns on either side of the middle of a band."""
BANDS_AT_MOST, PREFIXES_AT_MOST, OF_PREFIX_AT_LEAST = 5, 3, 20


def _ceiling(found: Cohorts) -> Ceiling | None:
    return windows.ceiling(found, MIN_RTT, THROUGHPUT)


def _more(found: Cohorts, density: Density) -> str:
    """The window of the curve and how many it holds back, the bands, and who is far."""
    said = [windows.words(found, MIN_RTT, THROUGHPUT)]
    if bands := _bands(density):
        said.append(f"Distances that many share: {', '.join(bands)}.")
    if far := _far(found):
        said.append(f"The farthest prefixes with {OF_PREFIX_AT_LEAST} connections or more: {', '.join(far)}.")
    return " ".join(filter(None, said))


def _bands(density: Density) -> list[str]:
    """Distances that stick out, each with the share of the connections about it, the nearest first."""
    counts = np.zeros(density.x.cells)
    for block in density.cells:
        np.add.at(counts, block.columns["i"].astype(int), np.exp(block.columns["log_n"]))
    around = np.convolve(counts, np.ones(2 * NEIGHBOURS + 1), mode="same") / max(counts.sum(), 1)
    left = around.copy()
    found: list[tuple[int, float]] = []
    while len(found) < BANDS_AT_MOST and left.max(initial=0.0) >= BAND_SHARE:
        peak = int(left.argmax())
        near = slice(max(peak - 2 * NEIGHBOURS, 0), peak + 2 * NEIGHBOURS + 1)
        if around[peak] >= around[near].max():
            found.append((peak, float(around[peak])))
        left[near] = 0.0
    return [
        f"{human.digits(density.x.low * density.x.step ** (peak + 0.5))} ms ({human.quantity('share', share)})"
        for peak, share in sorted(found)
    ]


def _far(found: Cohorts) -> list[str]:
    if "remote_prefix" not in found.columns:
        return []
    rows: list[dict[str, Any]] = found.ask(
        f"""
        select remote_prefix as prefix, median({MIN_RTT.column}) * {MIN_RTT.scale!r} as ms
        from {found.connections} where {MIN_RTT.column} > 0 and remote_prefix is not null
        group by all having count(*) >= {OF_PREFIX_AT_LEAST} order by ms desc, prefix limit {PREFIXES_AT_MOST}
        """
    ).to_pylist()
    return [f"{row['prefix']} ({human.digits(row['ms'])} ms)" for row in rows]


applies, words, data, chart = binned.figure(
    name, MIN_RTT, THROUGHPUT, height=340, medians=False, ceiling=_ceiling, more=_more
)

"""The naive baseline: the rate that was recorded, replayed, whoever made it what it was.

What a connection was given becomes the link, with the recorded least RTT and a queue as long as the longest delay seen.
A loss is then nothing that can happen again, and a rate nothing that another algorithm could have had.
"""

from __future__ import annotations

import numpy as np

from .model import LEAST_BUFFER_BYTES, Path
from .observation import Observed

TRACE_PACKET_BYTES = 1504
"""What a line of mahimahi's format stands for."""


def replayed(observed: Observed) -> Path:
    """The path of a replay."""
    edges = np.arange(0.0, observed.horizon_us + 1000, 1000)
    packets = np.zeros(len(edges))
    for series in observed.connections:
        wire = (series.delivered - series.delivered[0]) * 1500 / TRACE_PACKET_BYTES
        packets += np.interp(edges, series.t_us, wire)
    whole = np.floor(packets).astype(int)
    lines = np.repeat((edges[1:] / 1000).astype(int), np.diff(whole).clip(0))
    # The end of the trace is its last line, after which it begins anew.
    lines = np.append(lines, int(edges[-1] / 1000))
    least = min(series.least_rtt_us for series in observed.connections)
    longest = max(float(series.steady_rtt_us.max()) - series.least_rtt_us for series in observed.connections)
    rate = packets[-1] * TRACE_PACKET_BYTES * 8e6 / observed.horizon_us
    buffer = max(longest * rate / 8e6, 2 * LEAST_BUFFER_BYTES)
    return Path(rate, least, buffer, trace="\n".join(map(str, lines)) + "\n")

"""Where the losses of a recording were: what is the same whatever path is tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .series import Series

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]


class Losses:
    """Of the connections of a path. An entry for each time between two samples in which a connection retransmitted: one
    connection after the other, and each in the order of time."""

    def __init__(self, connections: Sequence[Series]) -> None:
        found: list[Numbers] = []
        every = 0
        for series in connections:
            srtt = np.where(series.srtt_us > 0, series.srtt_us, series.least_rtt_us)
            counts = np.diff(series.total_retrans).round()
            places = np.flatnonzero(counts > 0)
            after = srtt[places + 1]
            # A loss is noticed a round trip after the packet was sent.
            begin = np.maximum(series.t_us[places] - after, 0.0)
            end = np.maximum(series.t_us[places + 1] - after, begin + 1)
            within = np.minimum(np.searchsorted(series.t_us, end), len(series.t_us) - 2)
            found.append(np.array([begin, end, counts[places], np.maximum(srtt[places], after), every + within]))
            every += len(series.t_us) - 1
        self.begin_us, self.end_us, counts, self.rtt_us, samples = np.concatenate(found, axis=1)
        """The packets were sent between these two times; the longer RTT of the two samples."""
        self.counts, self._samples = counts.astype(int), samples.astype(int)
        self.sent: Numbers = np.concatenate([np.diff(series.data_segs_out) for series in connections])
        """Segments between each two samples of each connection."""
        self.sent_before, self.sent_after = (_sent(connections, moments) for moments in (self.begin_us, self.end_us))
        """Packets of all connections by then, each with the one that opened it."""

    def by_sample(self, kept: NDArray[np.bool_]) -> Numbers:
        """How many packets were lost between each two samples, of the losses that are `kept`."""
        lost: Numbers = np.bincount(self._samples[kept], self.counts[kept], len(self.sent)).astype(np.float64)
        return lost


def _sent(connections: Sequence[Series], moments: Numbers) -> Numbers:
    total = np.zeros(len(moments))
    for series in connections:
        total += np.interp(moments, series.t_us, series.data_segs_out) + 1
    return total

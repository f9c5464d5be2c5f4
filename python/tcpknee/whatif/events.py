"""What chance did to a recording: which packets were lost at random, and when others crossed the path.

A simulation that draws its own losses differs from the recording by luck, and luck hides the bottleneck's rate: a cubic
connection that lost its 50th packet never shows it, another one that lost its 500th does. So a search simulates the
losses and the cross traffic that the recording shows, and only their amount is drawn anew for a prediction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from .model import HIDDEN_RANGE, HIDDEN_SIGMA, Path
from .observation import Observed
from .series import carried_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

Some = TypeVar("Some", np.float64, "NDArray[np.float64]")
_FULL = 0.75
"""Share of the buffer above which a queue counts as full when a packet is lost: the smoothed RTT lags behind it."""
_EVEN = 2.0
"""Deviance of a sample up to which losses are as even as independent ones, whose mean is 1 at most."""
_BURSTS_PKTS = np.geomspace(1, 8, 25)
"""Packets that may be lost together at random: more are those of a queue."""
_BUSY_PKTS = 3
"""A queue of more packets than this shows that the link had no pause."""
_MOST_AT_ONCE = 10
"""Transfers side by side."""
_MOST_PIECES = 1000
"""Transfers of a path, whatever their size."""
_TAKEN = 0.1
"""Share of the rate that must be missing before others are said to have taken it: less is the grain of samples."""


def as_it_happened(path: Path, observed: Observed, seed: int) -> Path:
    """The path with the recorded losses in place of random ones, and the transfers that the recording shows in place of
    drawn ones. `seed`: of what lies between two samples."""
    if path.loss_pct > 0:
        path = replace(path, lost=_lost(path, observed, np.random.default_rng(seed)))
    return crossed_as_it_was(path, observed, seed)


def crossed_as_it_was(path: Path, observed: Observed, seed: int) -> Path:
    """The path with the transfers that the recording shows: they come whatever algorithm is recorded. What an algorithm
    loses depends on what it sends, and is drawn."""
    if path.hidden_load_bits_per_sec > 0:
        path = replace(path, transfers=transfers(observed, path, np.random.default_rng(seed)))
    return path


def random_losses(path: Path, observed: Observed) -> int:
    """How many of the recorded losses the path's buffer does not explain."""
    return int(observed.losses.counts[_at_short_queues(path, observed)].sum())


def with_random_losses(path: Path, observed: Observed) -> Path:
    """The path with the share of the losses that its buffer does not explain, and how many are lost together: so many
    that independent bursts leave as many samples without a loss as have none."""
    lost = _by_sample(path, observed)
    path = replace(path, loss_pct=_expected(np.float64(100), lost, observed), loss_burst_pkts=1.0)
    some = 1 - np.exp(-_expected(observed.losses.sent, lost, observed)[:, np.newaxis] / _BURSTS_PKTS)
    by_chance = 1.64 * np.sqrt(np.sum(some[:, 0] * (1 - some[:, 0])))
    found = np.count_nonzero(lost)
    if found >= some[:, 0].sum() - by_chance:
        return path
    # From the longest bursts, which leave most samples without any, to the shortest.
    together = np.interp(found, some.sum(axis=0)[::-1], _BURSTS_PKTS[::-1])
    return replace(path, loss_burst_pkts=float(together))


def unevenness(path: Path, observed: Observed) -> float:
    """How much less even these losses are than independent ones, as a deviance: a queue loses many packets at once."""
    lost = _by_sample(path, observed)
    expected = np.maximum(_expected(observed.losses.sent, lost, observed), 1e-9)
    deviance = 2 * float(np.sum(np.where(lost > 0, lost * np.log(np.maximum(lost, 1) / expected), 0) - lost + expected))
    return max(deviance - _EVEN * len(lost), 0.0)


def _by_sample(path: Path, observed: Observed) -> Numbers:
    """Random losses between each two samples of each connection."""
    return observed.losses.by_sample(_at_short_queues(path, observed))


def _expected(packets: Some, lost: Numbers, observed: Observed) -> Some:
    """How many of these packets would be lost if as many were lost evenly among all that were sent."""
    expected: Some = packets * lost.sum() / max(observed.losses.sent.sum(), 1.0)
    return expected


def _at_short_queues(path: Path, observed: Observed) -> NDArray[np.bool_]:
    """Which of the recorded losses were while the queue was short."""
    short: NDArray[np.bool_] = observed.losses.rtt_us - path.rtt_us < _FULL * path.buffer_us
    return short


def _lost(path: Path, observed: Observed, rng: np.random.Generator) -> tuple[int, ...]:
    """Numbers of the packets that were lost at random. What was sent before a recording began is not counted in it, so
    losses of a connection that was under way are drawn."""
    if not all(series.fresh for series in observed.connections):
        return ()
    numbers: set[int] = set()
    losses, kept = observed.losses, _at_short_queues(path, observed)
    lost = (values[kept].tolist() for values in (losses.sent_before, losses.sent_after, losses.counts))
    for before, after, count in zip(*lost, strict=True):
        # Each packet that was sent meanwhile may be the one, or the first of some that were lost together.
        bursts = min(max(round(count / path.loss_burst_pkts), 1), count)
        for place, number in enumerate(rng.uniform(before, after, bursts).astype(int).tolist()):
            for _ in range(place, count, bursts):
                while number in numbers:
                    number += 1
                numbers.add(max(number, 1))
    return tuple(sorted(numbers))


def transfers(observed: Observed, path: Path, rng: np.random.Generator) -> tuple[tuple[float, float], ...]:
    """Start and bytes of transfers by others: what is missing of the rate while there is a queue. Together they are the
    path's hidden load."""
    edges, missing, carried = _missing(observed, path)
    whole = path.hidden_load_bits_per_sec * observed.horizon_us / 8e6
    if not missing.any():
        return ((0.0, whole),)
    sizes = missing * whole / missing.sum()
    if path.hidden_median_bytes is not None:
        return _pieces(edges, sizes, path, rng)
    taken = missing > 0
    # A single window in which nothing was missing does not end a transfer.
    taken[1:-1] |= taken[:-2] & taken[2:]
    begins = np.flatnonzero(taken & ~np.r_[False, taken[:-1]])
    ends = np.flatnonzero(taken & ~np.r_[taken[1:], False])
    found = []
    for begin, end in zip(begins, ends, strict=True):
        seen, own, size = (values[begin : end + 1].sum() for values in (missing, carried, sizes))
        # Connections that share a link get about equal parts of it, so this many others took the rest.
        count = int(np.clip(round(seen / max(own, 1.0) * len(observed.connections)), 1, _MOST_AT_ONCE))
        # A transfer is small at first: what is seen of it began a round trip before.
        start, length = max(edges[begin] - path.rtt_us, 0.0), edges[end + 1] - edges[begin]
        found += [(float(start + length * number / count / 2), float(size / count)) for number in range(count)]
    return tuple(found)


def _pieces(edges: Numbers, sizes: Numbers, path: Path, rng: np.random.Generator) -> tuple[tuple[float, float], ...]:
    """Transfers of the path's median size that begin at random, the more of them in a window the larger its part."""
    assert path.hidden_median_bytes is not None
    whole = sizes.sum()
    median = max(path.hidden_median_bytes, whole / _MOST_PIECES)
    least, most = (median * times for times in HIDDEN_RANGE)
    drawn = (median * np.exp(HIDDEN_SIGMA * rng.standard_normal(int(whole / median) + 1))).clip(least, most)
    pieces = np.diff(np.cumsum(drawn).clip(max=whole), prepend=0.0)
    pieces = pieces[pieces > 0] * whole / pieces.sum()
    gone = np.r_[0.0, np.cumsum(sizes)] / whole
    starts = np.interp(rng.random(len(pieces)), gone, edges) - path.rtt_us
    return tuple(zip(starts.clip(min=0).tolist(), pieces.tolist(), strict=True))


def load_of_others(observed: Observed, path: Path) -> float:
    """In bit/s over the whole recording: what is missing of the path's rate while there is a queue."""
    _, missing, _ = _missing(observed, path)
    return float(missing.sum()) * 8e6 / observed.horizon_us


def _missing(observed: Observed, path: Path) -> tuple[Numbers, Numbers, Numbers]:
    """Edges of windows in us, the bytes of each that others took, and those that were carried."""
    length = max(observed.interval_us, path.rtt_us)
    edges = np.append(np.arange(0.0, observed.horizon_us, length), observed.horizon_us)
    queued = np.zeros(len(edges) - 1, dtype=bool)
    busy_us = _BUSY_PKTS * 1500 * 8e6 / path.rate_bits_per_sec
    for series in observed.connections:
        known = series.srtt_us > 0
        queue = np.interp(edges, series.t_us[known], series.srtt_us[known]) - path.rtt_us
        queued |= np.minimum(queue[1:], queue[:-1]) > busy_us
    possible = path.rate_bits_per_sec * np.diff(edges) / 8e6
    own = np.diff(carried_bytes(observed.connections, edges))
    missing = possible - own
    return edges, np.where(queued & (missing > _TAKEN * possible), missing, 0.0), own

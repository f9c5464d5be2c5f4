"""How far a simulation of a path is from its recording."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .series import Series, delivered_rates, goodput_bits_per_sec, percentiles, window_us

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

_SHARES = (0.15, 0.3, 0.5, 0.75)
"""Parts of a connection's time after which what was delivered so far is compared."""

_SLICES = 8
"""Equal parts of a connection's time. Their mean RTTs are compared, which tells when the queue was long."""
_IN_SLICES = (np.arange(_SLICES) + np.linspace(0, 1, 8)[:, np.newaxis]) / _SLICES
"""Moments within each of them, as shares of the whole time."""

SCALES = {
    "goodput": 0.03,
    "least_rtt": 0.02,
    "srtt_p10": 0.05,
    "srtt_p50": 0.04,
    "srtt_p95": 0.04,
    "queue_p20": 0.15,
    "queue_p50": 0.15,
    "first_queue": 0.15,
    "rttvar": 0.25,
    "cwnd": 0.10,
    "retransmits": 1.5,
    "any_loss": 0.3,
    "loss_rtt": 0.05,
    "loss_moments": 0.8,
    "progress": 0.04,
    "rtt_course": 0.06,
    "top_rate": 0.03,
    "peak_rate": 0.10,
}
"""What counts as one step of difference. Most features are logarithms. Retransmissions, and the samples that had some,
count as the square root of their number (whose deviation is a half where losses are independent, and several times that
where they come in bursts). Progress is a share of what was delivered."""

_GRAIN_US = 500.0
"""Queueing delays below this come from the hosts and not from the link. Longer ones show the link's rate even where
losses keep the window small: packets leave in bursts, and wait for each other."""
_FIRST = 8
"""Samples of slow start, whose bursts grow until the link or a loss ends them."""
FAR = 30.0
"""Steps of a feature beyond which it does not matter how far away it is."""


class Features:
    """Of the connections of a path: each feature, with an entry per connection or one for all together. `others`: count
    together with them, but have no entry."""

    def __init__(self, connections: Sequence[Series], interval_us: float, others: Sequence[Series] = ()) -> None:
        known = list(connections)
        figures = np.array([_of_one(series) for series in known])
        figures[:, _LOGARITHMS] = np.log(figures[:, _LOGARITHMS])
        parts = dict(zip(_OF_ONE, figures.T, strict=True))
        parts["progress"] = np.concatenate([_progress(series) for series in known])
        parts["rtt_course"] = _rtt_courses(known)
        known += others
        rtt = min(series.least_rtt_us for series in known)
        for name, length, share in (
            ("top_rate", window_us(known, interval_us), 90),
            ("peak_rate", max(interval_us, rtt, 20_000.0), 100),
        ):
            _, rates = delivered_rates(known, length)
            top = float(percentiles(rates, (share,))[0]) if len(rates) else 1.0
            parts[name] = np.array([np.log(max(top, 1.0))])
        # A single loss tells where a queue ends, and a path without any has a longer one.
        parts["any_loss"] = np.array([float(any(series.retransmitted > 0 for series in known))])
        self.parts = parts

    @cached_property
    def values(self) -> Numbers:
        """All entries, in the order of `SCALES`."""
        return np.concatenate([self.parts[name] for name in SCALES])

    @cached_property
    def scales(self) -> Numbers:
        """A step of each entry."""
        return np.concatenate([np.full(len(self.parts[name]), scale) for name, scale in SCALES.items()])

    @cached_property
    def weights(self) -> Numbers:
        """Each feature counts once, however many entries it has."""
        return np.concatenate([np.full(len(self.parts[name]), 1 / len(self.parts[name])) for name in SCALES])


def likeness(wanted: Features, found: Numbers, chance: Numbers) -> tuple[Numbers, float]:
    """(how far apart they are, what the explanation's own chance costs it): their sum is twice the negative logarithm
    of the likelihood, but for a constant. Where only chance is between them, the first is the number of features.

    `found`: entries of features along the last axis. `chance`: the deviation that a simulation of this explanation has
    by itself, from seed to seed. What depends on it is compared less strictly, which must cost something, or the
    wildest explanation would be the best.
    """
    scales = np.hypot(wanted.scales, chance)
    steps = np.clip((found - wanted.values) / scales, -FAR, FAR)
    logarithms = np.log(scales / wanted.scales)
    return steps**2 @ wanted.weights, _OF_CHANCE * float(wanted.weights @ logarithms)


_OF_CHANCE = 0.6
"""Of the logarithm's factor of 2: features that share a chance say the same several times over."""


_LOGARITHMS = slice(0, 11)
_OF_ONE = (
    "goodput",
    "least_rtt",
    "srtt_p10",
    "srtt_p50",
    "srtt_p95",
    "queue_p20",
    "queue_p50",
    "first_queue",
    "rttvar",
    "cwnd",
    "loss_rtt",
    "retransmits",
    "loss_moments",
)
"""Features that are one figure of each connection; the first ones are logarithms."""


def _of_one(series: Series) -> tuple[float, ...]:
    """`_OF_ONE`, before the logarithm."""
    rtt = series.steady_rtt_us
    p10, p20, p50, p95 = percentiles(rtt, (10, 20, 50, 95))
    least = min(series.least_rtt_us, float(rtt.min()))
    (rttvar,) = percentiles(series.rttvar_us[series.srtt_us > 0], (50,))
    (cwnd,) = percentiles(series.snd_cwnd, (50,))
    lost = np.diff(series.total_retrans) > 0
    return (
        max(goodput_bits_per_sec(series), 1.0),
        series.least_rtt_us,
        p10,
        p50,
        p95,
        p20 - least + _GRAIN_US,
        p50 - least + _GRAIN_US,
        rtt[:_FIRST].max() - least + _GRAIN_US,
        rttvar + 200.0,
        cwnd,
        _rtt_before_losses(series, lost, p50),
        np.sqrt(series.retransmitted),
        np.sqrt(np.count_nonzero(lost)),
    )


def _progress(series: Series) -> Numbers:
    begin, end = series.t_us[0], series.t_us[-1]
    at = np.interp(begin + np.array(_SHARES) * (end - begin), series.t_us, series.delivered - series.delivered[0])
    shares: Numbers = at / max(float(series.delivered[-1] - series.delivered[0]), 1.0)
    return shares


def _rtt_courses(connections: Sequence[Series]) -> Numbers:
    """Of each connection, the mean RTTs of the slices."""
    # From sample to sample it is a straight line, so that a slice without a sample has a mean as well.
    courses = []
    for series in connections:
        known = series.srtt_us > 0
        at = series.t_us[0] + _IN_SLICES * series.elapsed_us
        courses.append(np.interp(at, series.t_us[known], series.srtt_us[known]).mean(axis=0))
    logarithms: Numbers = np.log(np.concatenate(courses))
    return logarithms


def _rtt_before_losses(series: Series, lost: NDArray[np.bool_], usual_us: float) -> float:
    """How much longer than usual the RTT is when packets are lost: a full queue is, chance is not."""
    lost = lost & (series.srtt_us[:-1] > 0)
    return float(series.srtt_us[:-1][lost].mean() / usual_us) if lost.any() else 1.0

"""How far a simulation of a path is from its recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .series import Series, delivered_rates, measured, window_us

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

_SHARES = (0.15, 0.3, 0.5, 0.75)
"""Parts of a connection's time after which what was delivered so far is compared."""

SCALES = {
    "goodput": 0.03,
    "least_rtt": 0.02,
    "srtt_p10": 0.05,
    "srtt_p50": 0.04,
    "srtt_p95": 0.04,
    "rttvar": 0.25,
    "cwnd": 0.10,
    "retransmits": 1.5,
    "loss_rtt": 0.05,
    "loss_moments": 0.8,
    "progress": 0.04,
    "top_rate": 0.03,
    "peak_rate": 0.10,
}
"""What counts as one step of difference: of logarithms, for retransmissions and the samples that had some of the square
root of their number (whose deviation is a half where losses are independent, and several times that where they come in
bursts), of progress of the share delivered."""

FAR = 30.0
"""Steps of a feature beyond which it does not matter how far away it is."""


class Features:
    """Of the connections of a path: each feature, with an entry per connection or one for all together."""

    def __init__(self, connections: Sequence[Series], interval_us: float) -> None:
        known = list(connections)
        rows = [_of_one(series) for series in known]
        parts = {name: np.concatenate([np.atleast_1d(row[name]) for row in rows]) for name in rows[0]}
        rtt = min(series.least_rtt_us for series in known)
        for name, length, share in (
            ("top_rate", window_us(known, interval_us), 90),
            ("peak_rate", max(interval_us, rtt, 20_000.0), 100),
        ):
            _, rates = delivered_rates(known, length)
            top = float(np.percentile(rates, share)) if len(rates) else 1.0
            parts[name] = np.array([np.log(max(top, 1.0))])
        self.parts = parts

    @property
    def values(self) -> Numbers:
        """All entries, in the order of `SCALES`."""
        return np.concatenate([self.parts[name] for name in SCALES])

    @property
    def scales(self) -> Numbers:
        """A step of each entry."""
        return np.concatenate([np.full(len(self.parts[name]), scale) for name, scale in SCALES.items()])

    @property
    def weights(self) -> Numbers:
        """Each feature counts once, however many entries it has."""
        return np.concatenate([np.full(len(self.parts[name]), 1 / len(self.parts[name])) for name in SCALES])


def likeness(wanted: Features, found: Numbers, chance: Numbers) -> tuple[float, float]:
    """(how far apart they are, what the explanation's own chance costs it): their sum is twice the negative logarithm
    of the likelihood, but for a constant. Where only chance is between them, the first is the number of features.

    `chance`: the deviation that a simulation of this explanation has by itself, from seed to seed. What depends on it
    is compared less strictly, which must cost something, or the wildest explanation would be the best.
    """
    scales = np.hypot(wanted.scales, chance)
    steps = np.clip((found - wanted.values) / scales, -FAR, FAR)
    logarithms = np.log(scales / wanted.scales)
    return float(np.sum(wanted.weights * steps**2)), _OF_CHANCE * float(np.sum(wanted.weights * logarithms))


_OF_CHANCE = 0.6
"""Of the logarithm's factor of 2: features that share a chance say the same several times over."""


def _of_one(series: Series) -> dict[str, Numbers | float]:
    figures = measured(series)
    rtt = series.steady_rtt_us
    begin, end = series.t_us[0], series.t_us[-1]
    at = np.interp(begin + np.array(_SHARES) * (end - begin), series.t_us, series.delivered - series.delivered[0])
    varying = series.rttvar_us[series.srtt_us > 0]
    return {
        "goodput": float(np.log(max(figures["goodput_bits_per_sec"], 1.0))),
        "least_rtt": float(np.log(series.least_rtt_us)),
        "srtt_p10": float(np.log(np.percentile(rtt, 10))),
        "srtt_p50": float(np.log(figures["srtt_us_p50"])),
        "srtt_p95": float(np.log(figures["srtt_us_p95"])),
        "rttvar": float(np.log(np.median(varying) + 200.0)),
        "cwnd": float(np.log(np.median(series.snd_cwnd))),
        "retransmits": float(np.sqrt(series.retransmitted)),
        "loss_rtt": _rtt_before_losses(series),
        "loss_moments": float(np.sqrt(np.count_nonzero(np.diff(series.total_retrans) > 0))),
        "progress": at / max(float(series.delivered[-1] - series.delivered[0]), 1.0),
    }


def _rtt_before_losses(series: Series) -> float:
    """How much longer than usual the RTT is when packets are lost: a full queue is, chance is not."""
    lost = np.flatnonzero((np.diff(series.total_retrans) > 0) & (series.srtt_us[:-1] > 0))
    if not len(lost):
        return 0.0
    return float(np.log(series.srtt_us[lost].mean() / np.median(series.steady_rtt_us)))

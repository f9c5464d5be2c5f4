"""Fits a path to what its connections recorded: the path on which a simulation of them looks most alike.

Closed forms give where to begin: the plateau of what was delivered is the rate, the least RTT that of the path, the
longest queueing delay is the buffer, and retransmissions are random losses or those of a full queue. Each explanation
that the recording gives reason for is then improved by simulation, and the best one is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .distance import FAR, SCALES, Features, likeness
from .model import LEAST_BUFFER_BYTES, Load, Path, is_held_back, load_of, simulate
from .recorded import Observed
from .series import Series, delivered_rates, window_us

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

HELD_BACK = "held back by application or receiver"
"""The explanation of a recording that says nothing of its path but what it has at least."""
RANDOM_LOSS = "random loss"
CROSS_TRAFFIC = "cross traffic"
PACKET_BITS = 1500 * 8
NEAR = 1.5
"""Score at which a search ends: what remains is chance."""
NONE_BETTER = 5.5
"""Score at which no more complicated explanation is tried: none would be worth its parameters."""
LIKE = 0.7
"""Mean square of the steps below which a simulation is as near as chance allows."""
PER_PARAMETER = 2.0
"""What a value that is varied must gain (Akaike's criterion)."""
_MOST_SIMULATIONS = 24
"""Of a search."""
_SEEDS = (1, 2, 3, 4)
"""By which the chance in an explanation is measured; the first two are simulated throughout."""
_OTHER_SEEDS = (11, 12, 13, 14)
"""By which the best are simulated once more: with the seeds of the search they may be best by chance."""
_BEST = 6
_RUNGS = (1.4, 2.0, 3.0)
"""Multiples of the rate found that are tried where chance hides the rate."""
_OTHERS_PART = 0.7
"""Of a faster link's further rate: what others take."""
_STEPS = {
    "rate_bits_per_sec": 0.06,
    "buffer_bytes": 0.3,
    "loss_pct": 0.5,
    "policer_rate_bits_per_sec": 0.04,
    "policer_burst_bytes": 0.4,
    "aggregate_us": 0.3,
    "hidden_load_bits_per_sec": 0.5,
}
"""First steps of the search, of logarithms."""
_COMMON = ("rate_bits_per_sec", "buffer_bytes")
_CROSSED = (*_COMMON, "hidden_load_bits_per_sec")
_FAR_FETCHED = 3.0
"""Cross traffic that nobody saw can explain nearly everything, and so can a bucket of the right size."""
_FASTER = (1.5, 2.5, 4.0)
"""Where losses hold a connection back, the bottleneck may be that much faster than what was delivered."""
_BURSTS = (1.5, 3.0, 6.0)
"""Time between bursts, in deviations of the RTT."""
_PROBES = (2.0, 6.0)
"""Multiples of a rate and of a buffer that are tried to see whether the recording bounds them."""
_POLICERS = ((1.0, 1.0), (1.1, 1.0), (1.25, 1.0), (1.1, 0.5), (1.1, 2.0))
"""Rate and burst of a policer, as a multiple of what was delivered in the long run and of what came above that."""


@dataclass(frozen=True)
class Tried:
    """A path that was simulated, of which explanation, and its score."""

    path: Path
    explanation: str
    score: float


@dataclass(frozen=True)
class Explanation:
    """What may have made the recording: paths to begin with and the values to vary."""

    name: str
    begins: tuple[Path, ...]
    varied: tuple[str, ...]
    random: bool = False
    """Does chance decide what happens on such a path, if only by who comes first?"""
    unlikely: float = 0.0
    """What it must gain because it is more far-fetched, beside its values."""

    @property
    def extra(self) -> float:
        return PER_PARAMETER * len(self.varied) + self.unlikely


class Trial:
    """Simulates paths under one recording's load, and says how far each is from it."""

    def __init__(self, observed: Observed, load: Load) -> None:
        self.load = load
        self.interval_us = observed.interval_us
        self.wanted = Features(observed.connections, observed.interval_us)
        self.chance: Numbers = np.zeros(len(self.wanted.values))
        self.seeds: tuple[int, ...] = _SEEDS[:1]

    def measure_chance(self, path: Path) -> None:
        """How much differs from seed to seed on that path; from now on two of them are simulated."""
        found = [values for seed in _SEEDS if (values := self.features(path, seed)) is not None]
        if len(found) > 1:
            self.chance = np.std(found, axis=0, ddof=1)
        self.seeds = _SEEDS[:2]

    def features(self, path: Path, seed: int = 1) -> Numbers | None:
        """None: a connection of the load did not get through."""
        found = simulate(path, self.load, seed=seed)
        known = [series for series in found if series is not None]
        return Features(known, self.interval_us).values if len(known) == len(found) else None

    def __call__(self, path: Path, seeds: Sequence[int] = ()) -> float:
        seeds = seeds or self.seeds
        found = [values for seed in seeds if (values := self.features(path, seed)) is not None]
        if len(found) < len(seeds):
            return FAR**2
        # The mean over a few seeds has some chance of its own.
        return sum(likeness(self.wanted, np.mean(found, axis=0), self.chance * np.sqrt(1 + 1 / len(seeds))))

    def is_like(self, path: Path) -> bool:
        """Is there nothing but chance between the recording and simulations of that path?"""
        found = [values for seed in _OTHER_SEEDS if (values := self.features(path, seed)) is not None]
        apart, _ = likeness(self.wanted, np.mean(found, axis=0), self.chance) if found else (FAR**2, 0.0)
        return apart < LIKE * len(SCALES)


@dataclass(frozen=True)
class Fit:
    """The path found for a recording."""

    observed: Observed
    trial: Trial
    """Of the best explanation."""
    best: Tried
    tried: tuple[Tried, ...]
    """Of all explanations, and beyond the best path what only a larger rate or buffer would be."""

    @property
    def load(self) -> Load:
        return self.trial.load

    @property
    def explanation(self) -> str:
        return self.best.explanation

    @property
    def probed_rate_bits_per_sec(self) -> float:
        """The largest rate tried."""
        return self.path.rate_bits_per_sec * _PROBES[-1]

    @property
    def probed_buffer_us(self) -> float:
        """The longest queue tried."""
        return self.path.buffer_bytes * 8e6 / self.path.rate_bits_per_sec * _PROBES[-1]

    @property
    def path(self) -> Path:
        return self.best.path

    @property
    def misfit(self) -> float:
        """Deviation of a feature in steps; about 1 where the simulator can do what was recorded."""
        return float(np.sqrt(max(self.best.score, 0.0) / len(SCALES)))


def fit(observed: Observed) -> Fit:
    """The explanation that is nearest to a recording, where a value more must be worth it."""
    load = load_of(observed)
    if all(is_held_back(series) for series in observed.connections):
        # They did not meet what their path can do, so there is nothing to search for.
        least = Tried(explanations(observed)[0].begins[0], HELD_BACK, 0.0)
        return Fit(observed, Trial(observed, load), least, (least,))
    best: tuple[Trial, Explanation, Tried] | None = None
    every: list[Tried] = []
    for explanation in explanations(observed):
        trial = Trial(observed, load)
        tried = _search(explanation, trial)
        if explanation.random:
            best_ones = [one.path for one in sorted(tried, key=lambda one: one.score)[:_BEST]]
            paths = [*best_ones, *_rungs(explanation, best_ones[0])]
            tried = [Tried(path, explanation.name, trial(path, _OTHER_SEEDS) + explanation.extra) for path in paths]
        every += tried
        least = min(tried, key=lambda one: one.score)
        if best is None or least.score < best[2].score:
            best = trial, explanation, least
        if best[2].score < NONE_BETTER or (best[1] is explanation and trial.is_like(best[2].path)):
            break
    assert best is not None
    return Fit(observed, best[0], best[2], (*every, *_probes(*best)))


def _rungs(explanation: Explanation, best: Path) -> list[Path]:
    """The same with faster links, on which what holds the connection back is all loss, or all others' traffic. A search
    ends at the rate that this one turn of chance likes best; these are about as likely."""
    if explanation.name not in (RANDOM_LOSS, CROSS_TRAFFIC):
        return []
    faster = [
        replace(best, rate_bits_per_sec=more * best.rate_bits_per_sec, buffer_bytes=more * best.buffer_bytes)
        for more in _RUNGS
    ]
    if explanation.name == RANDOM_LOSS:
        return [replace(path, loss_pct=max(best.loss_pct, 1.2 * explanation.begins[0].loss_pct)) for path in faster]
    loads = [best.hidden_load_bits_per_sec + _OTHERS_PART * (more - 1) * best.rate_bits_per_sec for more in _RUNGS]
    return [replace(path, hidden_load_bits_per_sec=load) for path, load in zip(faster, loads, strict=True)]


def _probes(trial: Trial, explanation: Explanation, best: Tried) -> list[Tried]:
    """Would a faster link or a deeper buffer have been seen?"""
    path = best.path
    faster = (
        replace(path, rate_bits_per_sec=more * path.rate_bits_per_sec, buffer_bytes=more * path.buffer_bytes)
        for more in _PROBES
    )
    deeper = (replace(path, buffer_bytes=more * path.buffer_bytes) for more in _PROBES)
    return [Tried(probe, explanation.name, trial(probe) + explanation.extra) for probe in (*faster, *deeper)]


def explanations(observed: Observed) -> list[Explanation]:
    """What the recording gives reason for, the simplest first."""
    connections = list(observed.connections)
    _, rates = delivered_rates(connections, window_us(connections, observed.interval_us))
    top = max(float(np.percentile(rates, 90)) if len(rates) else 1e6, 20_000.0)
    least_rtt = min(series.least_rtt_us for series in connections)
    queue_us = max(float(series.steady_rtt_us.max()) - series.least_rtt_us for series in connections)
    begin = Path(top, max(least_rtt - 300, 20.0), max(queue_us * top / 8e6, LEAST_BUFFER_BYTES))
    retransmitted = sum(series.retransmitted for series in connections)
    share = 100 * retransmitted / sum(series.segments for series in connections)
    bdp = top * least_rtt / 8e6
    found = [Explanation("queue", (begin,), _COMMON)]
    if retransmitted >= 1:
        lossy = replace(begin, loss_pct=0.8 * share, buffer_bytes=max(begin.buffer_bytes, bdp / 2))
        faster = (replace(lossy, rate_bits_per_sec=top * more) for more in _FASTER)
        found.append(Explanation(RANDOM_LOSS, (lossy, *faster), (*_COMMON, "loss_pct"), random=True))
    varying = float(np.percentile(np.concatenate([series.rttvar_us for series in connections]), 25))
    if varying > 400:
        bursty = (replace(begin, aggregate_us=more * varying) for more in _BURSTS)
        found.append(Explanation("bursts", tuple(bursty), (*_COMMON, "aggregate_us"), random=True))
    if retransmitted >= 5:
        found.append(_policed(begin, rates, connections, observed.interval_us))
    crossed = replace(begin, rate_bits_per_sec=1.1 * top, hidden_load_bits_per_sec=0.2 * top)
    found.append(Explanation(CROSS_TRAFFIC, (crossed,), _CROSSED, random=True, unlikely=_FAR_FETCHED))
    return found


def _policed(begin: Path, rates: Numbers, connections: list[Series], interval_us: float) -> Explanation:
    """A token bucket: what was delivered in the long run is nearly its rate, and what came above that at first is its
    burst."""
    late = rates[len(rates) // 3 :] if len(rates) >= 3 else rates
    sustained = float(np.mean(late))
    first = max(connections, key=lambda series: series.acked)
    wire = (first.delivered - first.delivered[0]) * PACKET_BITS
    above = float(np.max(wire - sustained * (first.t_us - first.t_us[0]) / 1e6)) / 8
    _, short = delivered_rates(connections, max(interval_us, begin.rtt_us))
    rate = max(2 * sustained, 1.1 * float(short.max(initial=begin.rate_bits_per_sec)))
    path = replace(
        begin,
        rate_bits_per_sec=rate,
        buffer_bytes=max(begin.buffer_bytes, rate * begin.rtt_us / 8e6),
        policer_burst_bytes=max(above, 10 * LEAST_BUFFER_BYTES),
    )
    begins = (
        replace(
            path, policer_rate_bits_per_sec=multiple * sustained, policer_burst_bytes=path.policer_burst_bytes * burst
        )
        for multiple, burst in _POLICERS
    )
    varied = (*_COMMON, "policer_rate_bits_per_sec", "policer_burst_bytes")
    return Explanation("policer", tuple(begins), varied, random=True, unlikely=_FAR_FETCHED)


def _search(explanation: Explanation, trial: Trial) -> list[Tried]:
    """Nelder and Mead's search over logarithms of the values that vary, from the best of the paths to begin with."""
    from scipy.optimize import minimize

    names = explanation.varied
    begins = [_with_least_rtt(path, trial) for path in explanation.begins]
    if explanation.random:
        trial.measure_chance(begins[0])
    extra = explanation.extra
    tried = [Tried(path, explanation.name, trial(path) + extra) for path in begins]
    begin = min(tried, key=lambda one: one.score)
    if begin.score - extra < NEAR:
        return tried

    def at(logarithms: Numbers) -> float:
        values = dict(zip(names, np.exp(logarithms), strict=True))
        path = replace(begin.path, **values)
        tried.append(Tried(path, explanation.name, trial(path) + extra))
        if tried[-1].score - extra < NEAR:
            raise _NearEnoughError
        return tried[-1].score

    origin = np.log([max(getattr(begin.path, name), 1e-3) for name in names])
    simplex = np.vstack([origin, origin + np.diag([_STEPS[name] for name in names])])
    options = {"initial_simplex": simplex, "maxfev": _MOST_SIMULATIONS, "xatol": 0.003, "fatol": 0.1}
    with suppress(_NearEnoughError):
        minimize(at, origin, method="Nelder-Mead", options=options)
    return tried


def _with_least_rtt(path: Path, trial: Trial) -> Path:
    """The path whose least RTT is the recorded one: what a simulation has too much is taken off."""
    place = list(SCALES).index("least_rtt")
    found = trial.features(path)
    if found is None:
        return path
    # Entries of a feature stand together, one per connection.
    count = len(trial.wanted.parts["least_rtt"])
    begin = sum(len(trial.wanted.parts[name]) for name in list(SCALES)[:place])
    wanted, least = (np.exp(values[begin : begin + count]).min() for values in (trial.wanted.values, found))
    return replace(path, rtt_us=max(path.rtt_us + wanted - least, 20.0))


class _NearEnoughError(Exception):
    """The search may end."""

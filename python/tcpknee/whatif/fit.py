"""Fits a path to what its connections recorded: the path on which a simulation of them looks most alike.

Closed forms give where to begin: the plateau of what was delivered is the rate, the least RTT that of the path, the
longest queueing delay is the buffer, and retransmissions are random losses or those of a full queue. Each explanation
that the recording gives reason for is then improved by simulation, and the best one is taken. A search simulates the
losses and the cross traffic that were recorded (`events.py`); which explanation is the best is judged by drawn ones,
because what was read from the recording agrees with it in any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from .distance import SCALES
from .events import load_of_others, unevenness, with_random_losses
from .model import HIDDEN_MEDIAN_BYTES, LEAST_BUFFER_BYTES, Load, Path, is_held_back, load_of
from .observation import Observed
from .series import Series, delivered_rates, window_us
from .surrogate import minimize
from .trial import OTHER_SEEDS, SEEDS, Trial

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

HELD_BACK = "held back by application or receiver"
"""The explanation where a recording gives only lower bounds for its path."""
CALIBRATED = "calibrated by others"
"""The explanation of a path that nothing was recorded on."""
RANDOM_LOSS = "random loss"
BURSTS = "bursts"
CROSS_TRAFFIC = "cross traffic"
PACKET_BITS = 1500 * 8
NEAR = 1.5
"""Score at which a search ends: what remains is chance."""
PER_PARAMETER = 2.0
"""What a value that is varied must gain (Akaike's criterion)."""
_MOST_SEGMENTS = 60_000
"""Of a path's recording: what a search simulates, some hundred times. More would tell little more."""
_TAKEN = 3
"""Of paths that are tried with one seed, those that are tried with more."""
_STARTS = 2
"""Paths that are searched from."""
_AGAIN = 3
"""Further searches at most."""
_WORTH = 0.5
"""What a path must gain to be searched from again."""
_HOPELESS_AT_FIRST, _HOPELESS = 25.0, 5.0
"""Multiples of the best explanation's score above which another one is not searched: where its search begins, and when
it has come down from there. Of 259 searches without a limit, the 72 that found the best explanation began at 9 at most,
and had 2.9 after the first search; 27 % of the others began above 25, and 48 % stayed above 5. One that begins at a
wrong rate may still gain hundreds. docs/validation/what-if-studies.md has the distributions."""
_FAR_BEHIND = 20.0
"""Score above the best from which an explanation is given up after its search."""
_CANDIDATES = 6
"""Paths of an explanation that are simulated once more."""
_MAY_BE = 12.0
"""Score above the best in the search, up to which they are: chance may have been against them."""
_RUNGS = (0.7, 0.85, 0.93, 1.08, 1.2, 1.5, 2.0, 3.0)
"""Multiples of the rate found that are tried: losses and others may hide the rate."""
_LOADS = (1.5, 3.0)
"""The same of others' traffic: the recorded algorithm may have let little of it through."""
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
_FASTER = (1.0, 1.5, 2.5, 4.0)
"""Where losses hold a connection back, the bottleneck may be that much faster than what was delivered."""
_LEFT = (1.02, 1.2, 1.6, 2.5)
"""The bottleneck's rate as a multiple of what others left of it."""
_BURSTS = (1.5, 3.0, 6.0)
"""Time between bursts, in deviations of the RTT."""
_LEAST_LIKELY_BUFFER_BYTES = 10 * 1500
"""The least that links usually have; the smaller a buffer is than this, the less likely it is."""
_UNEVEN = 10.0
"""Deviance of random losses that costs 1: losses of real links come in bursts of some packets, too."""
_PROBES = (2.0, 6.0)
"""Multiples of a rate and of a buffer that are tried to see whether the recording bounds them."""
_MEDIANS_BYTES = (None, 400_000.0, 120_000.0, 50_000.0, 15_000.0)
"""Of the sizes of transfers by others that are tried. None: they go on for as long as they are seen."""
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
    unlikely: float = 0.0
    """What it must gain because it is more far-fetched, beside its values."""

    @property
    def extra(self) -> float:
        return PER_PARAMETER * len(self.varied) + self.unlikely

    def may_be_better(self, score: float) -> bool:
        """Can it reach this score? None comes nearer to a recording than chance lets it."""
        return self.extra + NEAR < score

    @property
    def happened(self) -> bool:
        """Can what chance did be read from the recording?"""
        return self.name in (RANDOM_LOSS, CROSS_TRAFFIC)


@dataclass(frozen=True)
class Fit:
    """The path found for a recording."""

    observed: Observed
    load: Load
    trial: Trial
    """Of the best explanation: on the beginning of a long recording."""
    best: Tried
    tried: tuple[Tried, ...]
    """Paths of all explanations, and the best one with larger rates and buffers."""

    @property
    def explanation(self) -> str:
        return self.best.explanation

    @property
    def probed_rate_bits_per_sec(self) -> float:
        """The largest rate tried."""
        return self.path.faster(_PROBES[-1]).rate_bits_per_sec

    @property
    def probed_buffer_us(self) -> float:
        """The longest queue tried."""
        return self.path.buffer_us * _PROBES[-1]

    @property
    def path(self) -> Path:
        return self.best.path

    @property
    def misfit(self) -> float:
        """Deviation of a feature in steps; about 1 where the simulator can do what was recorded."""
        return float(np.sqrt(max(self.best.score, 0.0) / len(SCALES)))


@dataclass
class _Searched:
    """An explanation and the paths that were tried for it."""

    explanation: Explanation
    trial: Trial
    begins: list[Path]
    tried: list[Tried] = field(default_factory=list)
    later_us: float = 0.0
    """By how much the base RTT is larger than those of `begins` say."""

    @property
    def best(self) -> Tried:
        return min(self.tried, key=lambda one: one.score)

    @property
    def is_near(self) -> bool:
        """Is only chance left between its best path and the recording?"""
        return self.best.score - self.explanation.extra < NEAR

    @property
    def of_any(self) -> bool:
        """A packet earlier or later is another loss, and the whole course of the connection another one."""
        return self.explanation.name == RANDOM_LOSS

    @property
    def seeds(self) -> Sequence[int]:
        """Those of the search."""
        return SEEDS[:2] if self.of_any else SEEDS[:1]

    def try_(self, path: Path, seeds: Sequence[int] = ()) -> Tried:
        score = self.trial(path, seeds or self.seeds, of_any=self.of_any)
        return Tried(path, self.explanation.name, score + self.cost(path))

    def best_of(self, paths: Sequence[Path]) -> list[Tried]:
        """The paths that are best with one seed, tried with all."""
        one = self.seeds[:1]
        by_one = sorted(paths, key=lambda path: self.trial(path, one) + self.cost(path))
        return [self.try_(path) for path in by_one[:_TAKEN]]

    def cost(self, path: Path) -> float:
        """What the path costs before it is simulated."""
        uneven = unevenness(path, self.trial.observed) if self.explanation.name == RANDOM_LOSS else 0.0
        together = PER_PARAMETER if path.loss_burst_pkts > 1 else 0.0
        return self.explanation.extra + together + _of_tiny_buffer(path) + uneven / _UNEVEN


def fit(observed: Observed) -> Fit:
    """The explanation that is nearest to a recording. One with more values must be worth them."""
    whole, observed = observed, observed.beginning(_MOST_SEGMENTS)
    load = load_of(observed)
    if all(is_held_back(series) for series in observed.connections):
        # They did not meet what their path can do, so there is nothing to search for.
        least = Tried(explanations(observed)[0].begins[0], HELD_BACK, 0.0)
        return Fit(whole, load_of(whole), Trial(observed, load), least, (least,))
    first, *others = explanations(observed)
    searched = [_begun(first, observed, load)]
    _search(searched[0])
    begun = [_begun(one, observed, load) for one in others if one.may_be_better(searched[0].best.score)]
    for one in sorted(begun, key=lambda each: each.best.score):
        rival = _best_of(searched).best.score
        if one.explanation.may_be_better(rival):
            _search(one, rival)
            searched.append(one)
    near = _judged(searched)
    best = _best_of(near)
    best.trial.simulated.clear()
    every = [tried for one in near for tried in one.tried]
    return Fit(whole, load_of(whole), best.trial, best.best, (*every, *_probes(best)))


def _judged(searched: Sequence[_Searched]) -> list[_Searched]:
    """Those that are not far behind the best one, with the scores by other seeds."""
    found: list[_Searched] = []
    for one in sorted(searched, key=lambda each: each.best.score):
        if found and one.best.score > _best_of(found).best.score + _FAR_BEHIND:
            break
        _judge(one)
        found.append(one)
    return found


def _best_of(searched: Sequence[_Searched]) -> _Searched:
    return min(searched, key=lambda one: one.best.score)


def _begun(explanation: Explanation, observed: Observed, load: Load) -> _Searched:
    """The paths to begin with, tried."""
    trial = Trial(observed, load, happened=explanation.happened)
    found = _Searched(explanation, trial, _with_least_rtts(explanation, trial))
    trial.measure_chance(found.begins[:1], SEEDS)
    found.tried = found.best_of([_settled(path, found) for path in found.begins])
    return found


def _of_tiny_buffer(path: Path) -> float:
    """The cost of a buffer that is smaller than links have: one of a few packets explains any loss at any time."""
    return float((max(np.log(_LEAST_LIKELY_BUFFER_BYTES / path.buffer_bytes), 0.0) / 0.5) ** 2)


def _settled(path: Path, searched: _Searched) -> Path:
    """With what follows from the values that vary: the share of random losses, when the path's buffer explains the
    others; the base RTT, because packets wait for the next burst."""
    if searched.explanation.name == BURSTS:
        times, rtts = ([getattr(one, name) for one in searched.begins] for name in ("aggregate_us", "rtt_us"))
        slope, base = np.polyfit(times, rtts, 1)
        return replace(path, rtt_us=max(base + slope * path.aggregate_us + searched.later_us, 20.0))
    if searched.explanation.name != RANDOM_LOSS:
        return path
    return with_random_losses(path, searched.trial.observed)


def _rungs(searched: _Searched) -> list[Path]:
    """The best path at other rates, where losses or the traffic of others hold the connection back; and with more of
    that traffic, in transfers of other sizes."""
    best = searched.best.path
    found = [best.faster(more) for more in _RUNGS]
    if searched.explanation.name == CROSS_TRAFFIC:
        found = [replace(path, hidden_load_bits_per_sec=_others(path, searched.trial.observed)) for path in found]
        more_load = (more * best.hidden_load_bits_per_sec for more in _LOADS)
        found += [replace(best, hidden_load_bits_per_sec=load) for load in more_load]
        found += [replace(best, hidden_median_bytes=median) for median in _MEDIANS_BYTES]
    return [_settled(path, searched) for path in found]


def _others(path: Path, observed: Observed) -> float:
    """Load of others on a path of that rate: a little at least, because it is varied by factors."""
    return max(load_of_others(observed, path), 0.02 * path.rate_bits_per_sec)


def _probes(searched: _Searched) -> list[Tried]:
    """Would a faster link or a deeper buffer have been seen?"""
    path = searched.best.path
    probes = (*map(path.faster, _PROBES), *map(path.deeper, _PROBES))
    return [searched.try_(_settled(probe, searched)) for probe in probes]


def explanations(observed: Observed) -> list[Explanation]:
    """What the recording gives reason for, the simplest first."""
    connections = list(observed.connections)
    _, rates = delivered_rates(connections, window_us(connections, observed.interval_us))
    top = max(float(np.percentile(rates, 90)) if len(rates) else 1e6, 20_000.0)
    least_rtt = min(series.least_rtt_us for series in connections)
    queue_us = max(float(series.steady_rtt_us.max()) - series.least_rtt_us for series in connections)
    begin = Path(top, max(least_rtt - 300, 20.0), max(queue_us * top / 8e6, LEAST_BUFFER_BYTES))
    retransmitted = sum(series.retransmitted for series in connections)
    bdp = top * least_rtt / 8e6
    found = [Explanation("queue", (begin,), _COMMON)]
    if retransmitted >= 1:
        # A buffer that holds more than the longest queue seen: then every loss is random.
        lossy = replace(begin, buffer_bytes=max(2 * begin.buffer_bytes, bdp))
        begins = (*map(lossy.faster, _FASTER), begin)
        found.append(Explanation(RANDOM_LOSS, begins, _COMMON, unlikely=PER_PARAMETER))
    varying = float(np.median(np.concatenate([series.rttvar_us for series in connections])))
    if varying > 250:
        bursty = (replace(begin, aggregate_us=more * varying) for more in _BURSTS)
        found.append(Explanation(BURSTS, tuple(bursty), (*_COMMON, "aggregate_us")))
    if retransmitted >= 5:
        found.append(_policed(begin, rates, connections, observed.interval_us))
    shared = [replace(begin, rate_bits_per_sec=more * top) for more in _LEFT]
    crossed = [replace(path, hidden_load_bits_per_sec=_others(path, observed)) for path in shared]
    begins = tuple(replace(path, hidden_median_bytes=size) for size in (None, HIDDEN_MEDIAN_BYTES) for path in crossed)
    found.append(Explanation(CROSS_TRAFFIC, begins, _CROSSED, unlikely=_FAR_FETCHED))
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
    return Explanation("policer", tuple(begins), varied, unlikely=_FAR_FETCHED)


def _search(searched: _Searched, rival: float = np.inf) -> None:
    """Improves the best paths, unless they stay far behind the best score of another explanation, `rival`."""
    for begin, times in zip(_starts(searched), (_HOPELESS_AT_FIRST, _HOPELESS), strict=False):
        if searched.is_near or searched.best.score > times * rival:
            return
        _minimize(searched, begin)
    if searched.best.score < _HOPELESS * rival:
        _improve(searched)


def _starts(searched: _Searched) -> list[Path]:
    """The best paths to begin with; of others' transfers that go on for long and of short ones the best each."""
    paths = [one.path for one in sorted(searched.tried, key=lambda one: one.score)]
    if searched.explanation.name == CROSS_TRAFFIC:
        kinds = {path.hidden_median_bytes is None: path for path in reversed(paths)}
        return list(kinds.values())
    return paths[:_STARTS]


def _candidates(searched: _Searched) -> list[Path]:
    """The best paths that were tried, each a first step of the search from the others at least: several of the same
    would tell nothing of how many different ones may have been the one."""
    found: list[Path] = []
    names = searched.explanation.varied
    for one in sorted(searched.tried, key=lambda one: one.score):
        if one.score > searched.best.score + _MAY_BE or len(found) == _CANDIDATES:
            break
        if all(_are_apart(one.path, other, names) for other in found):
            found.append(one.path)
    return found


def _are_apart(one: Path, other: Path, names: Sequence[str]) -> bool:
    """Is a value of one another than that of the other?"""
    if one.hidden_median_bytes != other.hidden_median_bytes:
        return True
    values = ((max(getattr(path, name), 1e-3) for path in (one, other)) for name in names)
    return any(abs(np.log(a / b)) >= _STEPS[name] for name, (a, b) in zip(names, values, strict=True))


def _improve(searched: _Searched) -> None:
    """Searches again where the least RTT of the best path, or the best path at another rate, says that another one is
    better: where losses or others hide the rate, a search by small steps ends in the wrong valley."""
    for _ in range(_AGAIN):
        before = searched.best
        if searched.is_near:
            return
        tried = [_least_rtt_again(searched)]
        if searched.explanation.happened:
            tried += searched.best_of(_rungs(searched))
        searched.tried += tried
        if searched.is_near or searched.best.score > before.score - _WORTH:
            return
        _minimize(searched, searched.best.path)


def _least_rtt_again(searched: _Searched) -> Tried:
    """The best path with the base RTT at which its own simulation has the recorded least RTT."""
    path = searched.best.path
    again = _with_least_rtt(path, searched.trial)
    searched.later_us += again.rtt_us - path.rtt_us
    found = searched.try_(_settled(again, searched))
    if found.score > searched.best.score:
        searched.later_us -= again.rtt_us - path.rtt_us
    return found


def _judge(searched: _Searched) -> None:
    """Scores those that may be the one with other seeds. With losses or cross traffic that were read from the recording
    they agree in any case, and with drawn ones luck is between them and the recording: so both count, each half. The
    explanation is then as good as its best path is with drawn ones."""
    searched.tried += [searched.try_(path) for path in _rungs(searched)]
    trial, name, paths = searched.trial, searched.explanation.name, _candidates(searched)
    if not searched.explanation.happened:
        searched.tried = [searched.try_(path, OTHER_SEEDS) for path in paths]
        return
    drawn = Trial(trial.observed, trial.load)
    drawn.measure_chance(paths, OTHER_SEEDS)
    costs = np.array([searched.cost(path) for path in paths])
    by_drawn = costs + [drawn(path, OTHER_SEEDS) for path in paths]
    by_recorded = costs + [trial(path, (*searched.seeds, *OTHER_SEEDS[:2]), of_any=True) for path in paths]
    by_both = (by_drawn + by_recorded) / 2
    best = int(np.argmin(by_both))
    apart = by_drawn[best] - by_both[best]
    searched.tried = [Tried(path, name, score + apart) for path, score in zip(paths, by_both, strict=True)]


def _minimize(searched: _Searched, begin: Path) -> None:
    """Improves a path, with a surrogate between simulations."""
    names, trial = searched.explanation.varied, searched.trial
    units = np.array([_STEPS[name] for name in names])
    origin = np.log([max(getattr(begin, name), 1e-3) for name in names])

    def simulated(point: Numbers) -> tuple[float, Numbers | None]:
        values = dict(zip(names, np.exp(origin + point * units), strict=True))
        path = _settled(replace(begin, **values), searched)
        found = searched.try_(path)
        searched.tried.append(found)
        features = trial.every(path, searched.seeds)
        enough = len(features) == len(searched.seeds)
        return found.score, np.append(features, searched.cost(path)) if enough else None

    def scores(rows: Numbers) -> Numbers:
        features = rows[:, :-1].reshape(len(rows), len(searched.seeds), -1)
        return trial.score(features, of_any=searched.of_any) + rows[:, -1]

    minimize(simulated, scores, len(names), searched.explanation.extra + NEAR)


def _with_least_rtts(explanation: Explanation, trial: Trial) -> list[Path]:
    """The paths to begin with, each with that base RTT. They differ by how long a packet takes at their rate, and by
    what else only bursts do."""
    first = explanation.begins[0]
    if explanation.name == BURSTS:
        return [_with_least_rtt(path, trial) for path in explanation.begins]
    rtt_us = _with_least_rtt(first, trial).rtt_us + _packet_us(first)
    return [replace(path, rtt_us=max(rtt_us - _packet_us(path), 20.0)) for path in explanation.begins]


def _packet_us(path: Path) -> float:
    return PACKET_BITS * 1e6 / path.rate_bits_per_sec


def _with_least_rtt(path: Path, trial: Trial) -> Path:
    """The path with the base RTT at which a simulation has the recorded least RTT."""
    place = list(SCALES).index("least_rtt")
    found = trial.features(path)
    if found is None:
        return path
    # Entries of a feature stand together, one per connection.
    count = len(trial.wanted.parts["least_rtt"])
    begin = sum(len(trial.wanted.parts[name]) for name in list(SCALES)[:place])
    wanted, least = (np.exp(values[begin : begin + count]).min() for values in (trial.wanted.values, found))
    return replace(path, rtt_us=max(path.rtt_us + wanted - least, 20.0))

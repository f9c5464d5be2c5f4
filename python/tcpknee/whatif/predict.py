"""What another algorithm would do on the fitted paths, along its adoption, and how far that may be off.

Of each path a few draws are simulated, with what the recording leaves open drawn anew. Connections that share a path
share its bottleneck, so at 10 % adoption most of them keep their algorithm. The intervals hold the sampling of paths,
the draws, and the error of the model: how far its simulation of the recorded algorithm is from the recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tcpknee.algorithms import naming
from tcpknee.runs.workers import OnAll

from .events import as_it_happened, crossed_as_it_was
from .fit import CALIBRATED, fit
from .host_noise import likely_us, witness
from .identifiability import Judged, Others, draws, judged
from .model import Path, simulate
from .observation import Observed
from .replay import replayed
from .series import LEAST_DELAY_US, METRICS, Series, Starved, measured, whole_goodput_bits_per_sec
from .uncertainty import Errors, errors_of, misfits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

DRAWS = 4
"""Simulations of a path, each with other values for what is open."""
_SEEDS = (100, 2**30)
"""A path draws its seeds from this range; fits use others. If all paths had the same seeds they would have the same
luck, and it would not become smaller with the number of paths."""
MOST_REHEARSALS = 100
"""Of the predictions of a population; the errors of the other paths are drawn from those of paths like them."""
_TRUTHS = 3
"""Paths that a rehearsal tries to take for the true one."""
RESAMPLES = 1000
_GOODPUT = METRICS.index("goodput_bits_per_sec")
LEAST_BITS_PER_SEC = 1000.0
"""A goodput of nothing has no logarithm."""
ABSOLUTE = "retransmit_pct"
"""The metric whose change is a difference in points; the others' is a ratio."""


@dataclass(frozen=True)
class Change:
    """Of a metric, with 95 % intervals: shares (0.1: 10 % more), or points of a percentage."""

    value: float
    low: float
    high: float
    """For the population whose paths were recorded: another sample of it would have had other ones."""
    low_here: float
    high_here: float
    """For the recorded paths alone."""
    naive: float


@dataclass(frozen=True)
class Prediction:
    """Of one algorithm at one adoption, against what was recorded: each metric's change."""

    algorithm: str
    adoption_pct: float
    everyone: dict[str, Change]
    moved: dict[str, Change]
    """Of the connections that have the algorithm then."""
    stayed: dict[str, Change]
    """Of the others: what sharing a path with it does to them. Empty at 100 %."""


@dataclass(frozen=True)
class Outcomes:
    """Of each path (first axis) and draw (second), the mean over its connections of each metric (third): logarithms,
    and points of a percentage."""

    paths: tuple[Judged, ...]
    recorded: Numbers
    """Paths and metrics."""
    now: Numbers
    """The recorded algorithms, simulated."""
    moved: dict[tuple[str, float], Numbers]
    stayed: dict[tuple[str, float], Numbers]
    naive: dict[str, Numbers]
    """By algorithm: paths and metrics."""
    wrong: dict[str, Numbers]
    """The same: error of a rehearsed prediction."""
    rehearsed_on: NDArray[np.intp]
    """The place of the path whose rehearsal that was: of a path like this one where it was not rehearsed itself."""
    noises_us: tuple[float, ...]
    """How late hosts send in each draw."""


def fit_all(paths: Sequence[Observed], on_all: OnAll) -> list[Judged]:
    """Every path, fitted and judged."""
    return on_all("Fitting paths", _fitted, paths)


def _fitted(path: Observed) -> Judged:
    found = judged(fit(path))
    return replace(found, late=witness(found.fit))


@dataclass(frozen=True)
class _Task:
    """A path to simulate, and all that is needed for it."""

    path: Judged
    rates: Others
    buffers: Others
    algorithms: tuple[str, ...]
    files: tuple[naming.Named, ...]
    """Those of them that are of files."""
    levels: tuple[float, ...]
    noises_us: tuple[float, ...]
    """How late hosts send, in each draw."""
    seed: np.random.SeedSequence
    rehearsed: bool


def outcomes(
    paths: Sequence[Judged], algorithms: Sequence[str], adoption_pcts: Sequence[float], *, seed: int, on_all: OnAll
) -> Outcomes:
    """Simulates every path now and along adoption."""
    rates, buffers = Others([one.rate for one in paths]), Others([one.buffer for one in paths])
    seeds = np.random.SeedSequence(seed).spawn(len(paths))
    levels = tuple(sorted({*adoption_pcts} - {0.0}))
    noises_us = likely_us([one.late for one in paths], DRAWS)
    rng = np.random.default_rng(seed)
    files = tuple(naming.loaded(algorithms))
    chosen = set(rng.permutation(len(paths))[:MOST_REHEARSALS].tolist())
    tasks = [
        _Task(path, rates, buffers, tuple(algorithms), files, levels, noises_us, seeds[place], place in chosen)
        for place, path in enumerate(paths)
    ]
    every = on_all("Simulating algorithms on them", _of_path, tasks)
    # Without any, all have that of the first, which is none.
    rehearsed = [place for place in sorted(chosen) if every[place].wrong] or [0]
    rehearsed_on = np.arange(len(paths))
    for place in range(len(paths)):
        if place not in rehearsed:
            alike = [other for other in rehearsed if _kind(paths[other]) == _kind(paths[place])]
            rehearsed_on[place] = rng.choice(alike or rehearsed)
    none = np.zeros(len(METRICS))
    keys = [(name, level) for name in algorithms for level in levels]
    return Outcomes(
        tuple(paths),
        np.array([_mean(found.recorded) for found in every]),
        np.array([found.now for found in every]),
        {key: np.array([found.moved[key] for found in every]) for key in keys},
        {key: np.array([found.stayed[key] for found in every]) for key in keys if key[1] < 100},
        {name: np.array([found.naive[name] for found in every]) for name in algorithms},
        {name: np.array([every[place].wrong.get(name, none) for place in rehearsed_on]) for name in algorithms},
        rehearsed_on,
        noises_us,
    )


def _kind(path: Judged) -> tuple[str, bool, bool]:
    """Of paths that are predicted about as well: the same explanation, and as much left open."""
    return path.fit.explanation, path.rate.high is None, path.buffer.high is None


@dataclass
class _OfPath:
    recorded: Numbers
    """Of each connection."""
    whole: Numbers
    """Logarithms of the goodputs of their whole lives."""
    now: list[Numbers] = field(default_factory=list)
    moved: dict[tuple[str, float], list[Numbers]] = field(default_factory=dict)
    stayed: dict[tuple[str, float], list[Numbers]] = field(default_factory=dict)
    naive: dict[str, Numbers] = field(default_factory=dict)
    wrong: dict[str, Numbers] = field(default_factory=dict)


def _of_path(task: _Task) -> _OfPath:
    for file in task.files:
        naming.load(file)
    rng = np.random.default_rng(task.seed)
    fitted = task.path.fit
    found = _predicted(task, rng)
    replay = replayed(fitted.observed)
    for name in task.algorithms:
        then = simulate(replay, fitted.load.with_one_algorithm(name))
        found.naive[name] = _mean(_values(then, found))
    if task.rehearsed:
        found.wrong = _rehearsed(task, rng)
    return found


def _predicted(task: _Task, rng: np.random.Generator) -> _OfPath:
    observed = task.path.fit.observed
    whole = [max(whole_goodput_bits_per_sec(series), LEAST_BITS_PER_SEC) for series in observed.connections]
    found = _OfPath(np.array([_recorded(series) for series in observed.connections]), np.log(whole))
    for number, drawn in enumerate(draws(task.path, task.rates, task.buffers, DRAWS, rng)):
        _simulate(found, drawn, task, task.noises_us[number], rng)
    return found


def _rehearsed(task: _Task, rng: np.random.Generator) -> dict[str, Numbers]:
    """How wrong a prediction is where the truth is known: a path that may be the one is recorded by simulation, fitted
    and predicted as the real one is, and compared with a simulation of the algorithm there. Nothing, if connections
    whose recordings count starve on whatever path is taken for the true one."""
    fitted = task.path.fit
    if fitted.explanation == CALIBRATED:
        return {name: np.zeros(len(METRICS)) for name in task.algorithms}
    for _ in range(_TRUTHS):
        (truth,) = draws(task.path, task.rates, task.buffers, 1, rng)
        truth = crossed_as_it_was(truth, fitted.observed, int(rng.integers(*_SEEDS)))
        # The hosts are late by as much for both.
        noise_us = float(rng.choice(task.noises_us))
        first, second = (int(seed) for seed in rng.integers(*_SEEDS, 2))
        every = simulate(truth, fitted.load, seed=first, noise_us=noise_us)
        if not any(isinstance(every[place], Starved) for place in fitted.observed.telling):
            break
    else:
        return {}
    known = [series for series in every if isinstance(series, Series)]
    simulated = Observed(fitted.observed.key, tuple(known), fitted.observed.interval_us)
    # As if it were recorded: what was learned from the real recording would make the rehearsal surer than the fit was.
    again = judged(fit(simulated))
    found = _predicted(replace(task, path=again, levels=(100.0,)), rng)
    wrong = {}
    for name in task.algorithms:
        true = simulate(truth, fitted.load.with_one_algorithm(name), seed=second, noise_us=noise_us)
        same = [series for series, before in zip(true, every, strict=True) if isinstance(before, Series)]
        then = _mean(_values(same, found))
        changed = _differences(_mean(found.recorded), np.array(found.now), np.array(found.moved[name, 100.0]))
        wrong[name] = _mean(found.recorded) + changed - then
    return wrong


def _simulate(found: _OfPath, path: Path, task: _Task, noise_us: float, rng: np.random.Generator) -> None:
    """One draw of a path: as it is, and with a connection moved and one that stays at each adoption."""
    seed = int(rng.integers(*_SEEDS))
    fitted = task.path.fit
    load, observed, happened = fitted.load, fitted.observed, fitted.explanation != CALIBRATED
    before = [flow.algorithm for flow in load.flows]
    crossed = crossed_as_it_was(path, observed, seed) if happened else path
    known: dict[tuple[str, ...], Numbers] = {}

    def values(names: Sequence[str]) -> Numbers:
        if tuple(names) not in known:
            then = simulate(crossed, load.with_algorithms(names), seed=seed, noise_us=noise_us)
            known[tuple(names)] = _values(then, found)
        return known[tuple(names)]

    if happened:
        as_recorded = simulate(as_it_happened(path, observed, seed), load, seed=seed, noise_us=noise_us)
        known[tuple(before)] = _values(as_recorded, found)
    found.now.append(_mean(values(before)))
    for name in task.algorithms:
        for level in task.levels:
            moving = rng.random(len(before)) < level / 100
            which = int(rng.integers(len(before)))
            for target, kept in ((found.moved, True), (found.stayed, False)):
                moving[which] = kept
                mixed = [name if moves else old for moves, old in zip(moving, before, strict=True)]
                if kept and level == 100:
                    target.setdefault((name, level), []).append(_mean(values(mixed)))
                elif level < 100:
                    # Beside the same connection as it is now, so that connections of a path may differ.
                    one = values(mixed)[which] - values(before)[which] + found.now[-1]
                    target.setdefault((name, level), []).append(one)


def predictions(
    found: Outcomes, algorithms: Sequence[str], adoption_pcts: Sequence[float], seed: int
) -> list[Prediction]:
    """Every algorithm at every adoption."""
    return [_prediction(found, name, level, seed) for name in algorithms for level in adoption_pcts if level > 0]


def _prediction(found: Outcomes, name: str, level: float, seed: int) -> Prediction:
    moved, wrong = found.moved[name, level], found.wrong[name]
    naive = found.naive[name] - found.recorded
    if level >= 100:
        every = changes(found, moved, naive, wrong, seed)
        return Prediction(name, level, every, every, {})
    stayed = found.stayed[name, level]
    share = level / 100
    return Prediction(
        name,
        level,
        changes(found, share * moved + (1 - share) * stayed, share * naive, share * wrong, seed),
        changes(found, moved, naive, wrong, seed),
        changes(found, stayed, 0 * naive, share * wrong, seed),
    )


def changes(
    found: Outcomes,
    then: Numbers,
    naive: Numbers,
    wrong: Numbers,
    seed: int,
    *,
    kept: NDArray[np.bool_] | None = None,
) -> dict[str, Change]:
    """The mean change of each metric over the paths or those `kept`, each weighted by its number of connections.
    `wrong`: errors of rehearsed predictions."""
    places = np.arange(len(found.paths)) if kept is None else np.flatnonzero(kept)
    errors = errors_in(found, then, wrong, places)
    differences = differences_of(found, then)[places]
    rng = np.random.default_rng(seed)
    picked = rng.integers(len(places), size=(RESAMPLES, len(places)))
    here = np.broadcast_to(np.arange(len(places)), picked.shape)
    recorded = found.recorded[places]
    value = _possible(errors.weights @ differences, errors.weights @ recorded)
    beside = errors.weights @ naive[places]
    every = (
        value,
        *_interval(errors, differences, recorded, picked, rng),
        *_interval(errors, differences, recorded, here, rng),
        beside,
    )
    return {
        metric: Change(*(_told(metric, float(each[place])) for each in every)) for place, metric in enumerate(METRICS)
    }


def _interval(
    errors: Errors, differences: Numbers, recorded: Numbers, picked: NDArray[np.intp], rng: np.random.Generator
) -> Numbers:
    """The ends of the interval of each metric, over paths as they are picked each time."""
    weights = errors.weights[picked] / errors.weights[picked].sum(axis=1, keepdims=True)
    # A path's error may go either way.
    signs = rng.choice([-1.0, 1.0], size=(*picked.shape, 1))
    sampled = np.einsum("rp,rpm->rm", weights, differences[picked] + signs * errors.of_paths[picked])
    drawn = _possible(sampled + errors.sampled(RESAMPLES, rng), np.einsum("rp,rpm->rm", weights, recorded[picked]))
    ends: Numbers = np.percentile(drawn, [2.5, 97.5], axis=0)
    return ends


def _possible(differences: Numbers, recorded: Numbers) -> Numbers:
    """Nothing becomes less than none, or more than all, of a percentage. Metrics are the last axis."""
    points = np.array([metric == ABSOLUTE for metric in METRICS])
    return np.where(points, np.clip(differences, -recorded, 100 - recorded), differences)


def errors_in(found: Outcomes, then: Numbers, wrong: Numbers, places: NDArray[np.intp]) -> Errors:
    """What the mean change of these paths may be off by, each path by how many connections it has."""
    sizes = np.array([len(found.paths[place].fit.observed.connections) for place in places], dtype=float)
    return errors_of(
        found.recorded[places], found.now[places], then[places], wrong[places], found.rehearsed_on[places], sizes
    )


def differences_of(found: Outcomes, then: Numbers) -> Numbers:
    """Of each path (first axis) and metric, how much is predicted to change from what was recorded."""
    return _differences(found.recorded, found.now, then)


def _differences(recorded: Numbers, now: Numbers, then: Numbers) -> Numbers:
    lucky = recorded - now.mean(axis=-2) - misfits(recorded, now)
    difference: Numbers = (then - now).mean(axis=-2) - lucky
    return difference


def _told(metric: str, difference: float) -> float:
    return difference if metric == ABSOLUTE else float(np.expm1(difference))


def mean_of(connections: Sequence[Series]) -> Numbers:
    """Of each metric over connections, as predictions average it: of the logarithm, and of points."""
    return _mean(np.array([_recorded(series) for series in connections]))


def _recorded(series: Series) -> Numbers:
    """Its metrics as they are averaged."""
    figures = measured(series)
    return np.array(
        [figures[name] if name == ABSOLUTE else np.log(max(figures[name], LEAST_DELAY_US)) for name in METRICS]
    )


def _values(every: Sequence[Series | Starved], of: _OfPath) -> Numbers:
    """Metrics of each connection of the path. The goodput of one that was starved, or over too early, changes as much
    as that of its whole life, and all else as it does for the others, which share its queue."""
    rows: Numbers = of.recorded.copy()
    left = np.array([isinstance(series, Starved) for series in every])
    for place, series in enumerate(every):
        if not isinstance(series, Starved):
            rows[place] = _recorded(series)
    if not left.all():
        rows[left] += (rows - of.recorded)[~left].mean(axis=0)
    for place, series in enumerate(every):
        if isinstance(series, Starved):
            whole = np.log(max(series.goodput_bits_per_sec, LEAST_BITS_PER_SEC))
            rows[place, _GOODPUT] = of.recorded[place, _GOODPUT] + whole - of.whole[place]
    return rows


def _mean(rows: Numbers) -> Numbers:
    mean: Numbers = rows.mean(axis=0)
    return mean

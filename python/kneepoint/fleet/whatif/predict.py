"""What another algorithm would do on the fitted paths, along its adoption, and how far that may be off.

Of each path a few draws are simulated, with what the recording leaves open drawn anew. Connections that share a path
share its bottleneck, so at 10 % adoption most of them keep their algorithm. The intervals hold the sampling of paths,
the draws, and the error of the model: how far its simulation of the recorded algorithm is from the recording.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from .fit import fit
from .model import Load, Path, simulate
from .naive import replayed
from .recorded import Observed
from .series import METRICS, Series, measured
from .unknown import Judged, Others, draws, judged

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

DRAWS = 4
"""Simulations of a path, each with other values for what is open."""
RESAMPLES = 1000
ABSOLUTE = "retransmit_pct"
"""The metric whose change is a difference in points; the others' is a ratio."""
TRANSFER = {
    "goodput_bits_per_sec": 0.01,
    "srtt_us_p50": 0.03,
    "srtt_us_p95": 0.03,
    "queue_delay_us_p95": 0.06,
    "retransmit_pct": 0.25,
}
"""How far the mean over paths may be off for an algorithm that was not recorded, although the recorded one fits:
standard deviations of logarithms, and of points. From the first direction of tools/whatif_study.py on the simulator,
cubic to bbr1 (docs/whatif.md)."""
_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Change:
    """Of a metric, with a 95 % interval: a share (0.1: 10 % more), or points of a percentage."""

    value: float
    low: float
    high: float
    naive: float

    @property
    def claimed(self) -> bool:
        """Is its sign beyond doubt?"""
        return self.low > 0 or self.high < 0


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


def fit_all(paths: Sequence[Observed], workers: int) -> list[Judged]:
    """Every path, fitted and judged, on that many processors."""
    return [judged(found) for found in _on_all(fit, paths, workers)]


def outcomes(
    paths: Sequence[Judged],
    algorithms: Sequence[str],
    adoption_pcts: Sequence[float],
    folder: File,
    *,
    seed: int,
    workers: int,
) -> Outcomes:
    """Simulates every path now and along adoption. `folder`: for the traces of the naive baseline."""
    rates, buffers = Others([one.rate for one in paths]), Others([one.buffer for one in paths])
    seeds = np.random.SeedSequence(seed).spawn(len(paths))
    levels = sorted({*adoption_pcts} - {0.0})

    def one(item: tuple[int, Judged]) -> _OfPath:
        place, path = item
        rng = np.random.default_rng(seeds[place])
        able = draws(path, rates, buffers, DRAWS, rng)
        found = _OfPath(np.array([_recorded(series) for series in path.fit.observed.connections]))
        for drawn in able:
            _simulate(found, drawn, path.fit.load, algorithms, levels, rng)
        for name in algorithms:
            load = path.fit.load.with_algorithms([name] * len(path.fit.load.flows))
            replay, trace_folder = replayed(path.fit.observed, folder, place)
            found.naive[name] = _mean(_values(simulate(replay, load, folder=trace_folder), found.recorded))
        return found

    every = _on_all(one, list(enumerate(paths)), workers)
    keys = [(name, level) for name in algorithms for level in levels]
    return Outcomes(
        tuple(paths),
        np.array([_mean(found.recorded) for found in every]),
        np.array([found.now for found in every]),
        {key: np.array([found.moved[key] for found in every]) for key in keys},
        {key: np.array([found.stayed[key] for found in every]) for key in keys if key[1] < 100},
        {name: np.array([found.naive[name] for found in every]) for name in algorithms},
    )


@dataclass
class _OfPath:
    recorded: Numbers
    now: list[Numbers] = field(default_factory=list)
    moved: dict[tuple[str, float], list[Numbers]] = field(default_factory=dict)
    stayed: dict[tuple[str, float], list[Numbers]] = field(default_factory=dict)
    naive: dict[str, Numbers] = field(default_factory=dict)


def _simulate(
    found: _OfPath, path: Path, load: Load, algorithms: Sequence[str], levels: Sequence[float], rng: np.random.Generator
) -> None:
    """One draw of a path: as it is, and with a connection moved and one that stays at each adoption."""
    before = [flow.algorithm for flow in load.flows]
    known: dict[tuple[str, ...], Numbers] = {}

    def values(names: Sequence[str]) -> Numbers:
        if tuple(names) not in known:
            known[tuple(names)] = _values(simulate(path, load.with_algorithms(names)), found.recorded)
        return known[tuple(names)]

    found.now.append(_mean(values(before)))
    for name in algorithms:
        for level in levels:
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
    moved = found.moved[name, level]
    if level >= 100:
        every = changes(found, moved, found.naive[name] - found.recorded, seed)
        return Prediction(name, level, every, every, {})
    stayed = found.stayed[name, level]
    share = level / 100
    naive = found.naive[name] - found.recorded
    return Prediction(
        name,
        level,
        changes(found, share * moved + (1 - share) * stayed, share * naive, seed),
        changes(found, moved, naive, seed),
        changes(found, stayed, 0 * naive, seed),
    )


def changes(
    found: Outcomes,
    then: Numbers,
    naive: Numbers,
    seed: int,
    *,
    kept: NDArray[np.bool_] | None = None,
    these_paths: bool = False,
) -> dict[str, Change]:
    """Of each metric from now to then, over the paths or those `kept`, each by how many connections it has.

    `these_paths`: the interval is for these very paths, and not for a population that they are drawn from.
    """
    places = np.arange(len(found.paths)) if kept is None else np.flatnonzero(kept)
    sizes = np.array([len(found.paths[place].fit.observed.connections) for place in places], dtype=float)
    differences = (then - found.now)[places]
    errors = (found.recorded - found.now.mean(axis=1))[places]
    rng = np.random.default_rng(seed)
    picked = rng.integers(len(places), size=(RESAMPLES, len(places)))
    if these_paths:
        picked = np.broadcast_to(np.arange(len(places)), picked.shape)
    which = rng.integers(differences.shape[1], size=picked.shape)
    weights = sizes[picked] / sizes[picked].sum(axis=1, keepdims=True)
    # A model that is wrong by so much about what was recorded of a path may be wrong by as much about what was not,
    # either way; and by the mean of these errors about all paths together.
    signs = rng.choice([-1.0, 1.0], size=(*picked.shape, 1))
    wrong = signs * errors[picked]
    common = rng.standard_normal((RESAMPLES, 1)) * np.abs(np.average(errors, axis=0, weights=sizes))
    common = common + rng.standard_normal((RESAMPLES, len(METRICS))) * np.array([TRANSFER[name] for name in METRICS])
    sampled = np.einsum("rp,rpm->rm", weights, differences[picked, which] + wrong) + common
    value = np.average(differences.mean(axis=1), axis=0, weights=sizes)
    low, high = np.percentile(sampled, [2.5, 97.5], axis=0)
    beside = np.average(naive[places], axis=0, weights=sizes)
    return {
        metric: Change(*(_told(metric, float(each[place])) for each in (value, low, high, beside)))
        for place, metric in enumerate(METRICS)
    }


def _told(metric: str, difference: float) -> float:
    return difference if metric == ABSOLUTE else float(np.expm1(difference))


def mean_of(connections: Sequence[Series]) -> Numbers:
    """Of each metric over connections, as predictions average it: of the logarithm, and of points."""
    return _mean(np.array([_recorded(series) for series in connections]))


def _recorded(series: Series) -> Numbers:
    """Its metrics as they are averaged."""
    figures = measured(series)
    # A queueing delay of nothing has no logarithm; below a tenth of a millisecond it makes no difference.
    return np.array([figures[name] if name == ABSOLUTE else np.log(max(figures[name], 100.0)) for name in METRICS])


def _values(found: Sequence[Series | None], recorded: Numbers) -> Numbers:
    """Metrics of each connection; of one that did not get through, a goodput of almost nothing, all else as it was."""
    rows = []
    for series, before in zip(found, recorded, strict=True):
        if series is None:
            row = before.copy()
            row[METRICS.index("goodput_bits_per_sec")] = np.log(1000.0)
            rows.append(row)
        else:
            rows.append(_recorded(series))
    return np.array(rows)


def _mean(rows: Numbers) -> Numbers:
    mean: Numbers = rows.mean(axis=0)
    return mean


def _on_all(make: Callable[[_Item], _Made], items: Sequence[_Item], workers: int) -> list[_Made]:
    with ThreadPoolExecutor(workers, thread_name_prefix="kneepoint") as pool:
        return list(pool.map(make, items))

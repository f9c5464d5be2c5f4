"""What the limits of the search of `knee whatif` save and cost: the tables of docs/validation/what-if-studies.md.

    python tools/whatif_limits.py --out runs/whatif-8101 --seed 8101 --each 2

Paths of a mix of `whatif_study.py` are recorded by the simulator and fitted: with every limit as it is, with each of
them lower and higher, and without any, which shows where searches begin and what their steps gain.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import whatif_study
from whatif_mixes import MIXES

from tcpknee.say import aligned
from tcpknee.whatif import fit, model, observation, surrogate, trial
from tcpknee.whatif.observation import Observed

NONE = 1e12
LIMITS: dict[str, tuple[Any, ...]] = {
    "_MOST_STEPS": (6, 24),
    "_LEAST_RADIUS": (0.04, 0.4),
    "_MOST_RADIUS": (2.0, 8.0),
    "_LEAST_GAIN": (0.0, 1.0),
    "_DIRECTIONS": (50, 800),
    "_HOPELESS_AT_FIRST": (5.0, NONE),
    "_HOPELESS": (2.0, NONE),
    "_FAR_BEHIND": (5.0, 40.0, NONE),
}
NO_LIMITS = {
    "_MOST_STEPS": 36,
    "_LEAST_RADIUS": 0.03,
    "_LEAST_GAIN": 0.0,
    "_HOPELESS_AT_FIRST": NONE,
    "_HOPELESS": NONE,
    "_FAR_BEHIND": NONE,
}
PERCENTILES = (0, 5, 25, 50, 75, 95, 100)
TOLD_APART = 12.0
"""What is judged worse by more than this is never drawn from."""


@dataclass
class Seen:
    """What searches did."""

    simulations: int = 0
    rivals: list[tuple[str, float, float]] = field(default_factory=list)
    """Of each search of a path but the first: the explanation, its score where it begins and when it has ended, both as
    multiples of the best one's."""
    steps: list[list[tuple[float, float, float]]] = field(default_factory=list)
    """Of each search by a surrogate, its steps: the radius, the gain that was promised, and that which came."""


@contextmanager
def seen(limits: Mapping[str, Any]) -> Iterator[Seen]:
    """With these limits."""
    found = Seen()
    search, proposed = fit._search, surrogate.proposed

    def simulated(*arguments: Any, **keywords: Any) -> Any:
        found.simulations += 1
        return model.simulate(*arguments, **keywords)

    def searched(one: Any, rival: float = np.inf) -> None:
        begin = one.best.score
        search(one, rival)
        if rival < np.inf:
            found.rivals.append((one.explanation.name, begin / rival, one.best.score / rival))

    def minimized(point: Any, *arguments: Any) -> None:
        lowest = np.inf
        steps: list[tuple[float, float, float]] = []

        def told(*where: Any) -> Any:
            nonlocal lowest
            score, features = point(*where)
            if steps:
                steps[-1] = (*steps[-1][:2], max(lowest - score, 0.0))
            lowest = min(lowest, score)
            return score, features

        def asked(points: Any, rows: Any, radius: float, scores: Any) -> Any:
            offset, gain = proposed(points, rows, radius, scores)
            steps.append((radius, gain, 0.0))
            return offset, gain

        with mock.patch.object(surrogate, "proposed", asked):
            surrogate.minimize(told, *arguments)
        found.steps.append(steps)

    with ExitStack() as stack:
        for place, name, value in (
            (trial, "simulate", simulated),
            (fit, "_search", searched),
            (fit, "minimize", minimized),
            *((surrogate if hasattr(surrogate, name) else fit, name, value) for name, value in limits.items()),
        ):
            stack.enter_context(mock.patch.object(place, name, value))
        yield found


def changed(paths: Sequence[Observed]) -> list[list[str]]:
    """Each limit lower and higher, beside all as they are: simulations, and scores."""
    rows = [["limit", "value", "simulations", "score, mean", "better", "worse", "another explanation"]]
    with seen({}) as of_all:
        known = [fit.fit(path) for path in paths]
    for name, values in LIMITS.items():
        for value in values:
            with seen({name: value}) as found:
                fits = [fit.fit(path) for path in paths]
            steps = np.array([one.best.score - other.best.score for one, other in zip(fits, known, strict=True)])
            others = sum(one.explanation != other.explanation for one, other in zip(fits, known, strict=True))
            more = 100 * (found.simulations / of_all.simulations - 1)
            figures = (f"{more:+.0f} %", f"{steps.mean():+.2f}", f"{sum(steps < -1)}", f"{sum(steps > 1)}", f"{others}")
            rows.append([name, "none" if value == NONE else f"{value}", *figures])
    return rows


def without(paths: Sequence[Observed]) -> list[str]:
    """Where searches begin and end, and what their steps gain, without limits."""
    near: list[list[float]] = []
    far: list[list[float]] = []
    every: list[list[tuple[float, float, float]]] = []
    for path in paths:
        with seen(NO_LIMITS) as found:
            told = fit.fit(path)
        scores: dict[str, float] = {}
        for one in told.tried:
            scores[one.explanation] = min(one.score, scores.get(one.explanation, np.inf))
        for name, *multiples in found.rivals:
            (near if scores[name] < told.best.score + TOLD_APART else far).append(multiples)
        every += found.steps
    lines = []
    for words, rows in (("may be the one", near), ("is not", far)):
        for place, when in enumerate(("begins", "ends")):
            at = np.percentile([row[place] for row in rows], PERCENTILES)
            figures = " ".join(f"{value:.1f}" for value in at)
            lines.append(f"{len(rows)} searches of what {words}: score where it {when}, by percentiles: {figures}")
    total = [sum(gain for *_, gain in steps) for steps in every]
    for most in (4, 8, 12, 16, 24):
        left = [all_ - sum(gain for *_, gain in steps[:most]) for all_, steps in zip(total, every, strict=True)]
        lines.append(
            f"after {most} steps {100 * np.mean(np.array(left) < 0.5):.0f} % of searches are within 0.5 of their end"
        )
    radii, promised, gains = np.array([step for steps in every for step in steps]).T
    for words, values, bounds in (
        ("radius", radii, (0, 0.15, 0.6, 2.4, 5)),
        ("promised gain", promised, (0, 0.2, 1, 5, NONE)),
    ):
        for low, high in itertools.pairwise(bounds):
            inside = (values >= low) & (values < high)
            share, gained = 100 * inside.mean(), 100 * gains[inside].sum() / gains.sum()
            lines.append(f"{words} {low} to {high}: {share:.0f} % of steps, {gained:.1f} % of what is gained")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--mix", choices=list(MIXES), default="study")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--each", type=int, required=True, help="paths of each class")
    asked = parser.parse_args()
    mix = replace(MIXES[asked.mix], seed=asked.seed)
    whatif_study.record(asked.out, "sim", mix, asked.each, None)
    paths: list[Observed] = []
    for algorithm in whatif_study.NEW_OF:
        folder = asked.out / f"sockets-{algorithm}"
        whatif_study.recording(asked.out, algorithm, folder, mix)
        paths += observation.read([folder]).paths
    print("\n".join(without(paths)), flush=True)
    print("\n".join(aligned(changed(paths), left=(True, True, False, False, False, False, False))))


if __name__ == "__main__":
    main()

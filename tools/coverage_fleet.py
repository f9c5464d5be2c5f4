"""How often the intervals of `tcpknee.fleet.statistics` hold the truth, and how often they call what is not there.

    .venv/bin/python tools/coverage_fleet.py --fleets 500

Draws fleets whose truth is known in closed form: clusters of log-normally unequal sizes (the largest of 300 has 4 % of
all connections), each with a level of its own, and values with a Pareto tail (exponent 2.5) within a cluster. Prints
the share of fleets whose 95 % interval holds the truth, then the share of false calls between cohorts that are alike:
of 15 metrics at the end, and of 40 looks while the data come in.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from tcpknee.fleet import statistics
from tcpknee.fleet.statistics import Interval, Moments, Tally, minus, tally

Floats = npt.NDArray[np.float64]
PERCENTILES = (0.50, 0.75, 0.95)
EFFECT = 1.1
"""Values of the treated cohort over those of the other."""


@dataclass(frozen=True)
class Kind:
    """Fleets of one kind. Of the logarithms: sizes deviate by `unequal` around that of `median_size`, levels by
    `level`, and `informative` is their correlation. `shared`: both cohorts have the same clusters."""

    name: str
    clusters: int
    unequal: float = 1.0
    level: float = 0.5
    informative: float = 0.0
    shared: bool = False
    median_size: float = 12.0
    tail: float = 2.5

    @cache  # noqa: B019
    def quantile(self, p: float) -> float:
        """The true quantile over connections: a normal level plus an exponential, in logarithms."""
        from scipy.optimize import brentq
        from scipy.stats import exponnorm

        # A cluster has on average 1/2 + median * exp(deviation * z) connections, z correlated with its level. Seen by
        # connections, the second part's levels are shifted.
        large = self.median_size * math.exp(self.unequal**2 / 2)
        parts = ((0.5, 0.0), (large, self.level * self.informative * self.unequal))
        shape = 1 / (self.level * self.tail)

        def excess(x: float) -> float:
            below = sum(weight * exponnorm.cdf(x, shape, loc=shift, scale=self.level) for weight, shift in parts)
            return float(below / (0.5 + large) - p)

        return math.exp(brentq(excess, -10, 20))

    def mean(self) -> float:
        """The true mean over connections."""
        large = self.median_size * math.exp(self.unequal**2 / 2)
        shift = math.exp(self.level * self.informative * self.unequal)
        average = (0.5 + large * shift) / (0.5 + large)
        return math.exp(self.level**2 / 2) * self.tail / (self.tail - 1) * average

    def draw(self, rng: np.random.Generator) -> tuple[Floats, Floats, npt.NDArray[np.intp]]:
        """Each cluster's level, and each connection's value and cluster."""
        z, other = rng.normal(size=(2, self.clusters))
        size = self.unequal * (self.informative * z + math.sqrt(1 - self.informative**2) * other)
        sizes = 1 + np.floor(self.median_size * np.exp(size)).astype(np.intp)
        cluster = np.repeat(np.arange(self.clusters), sizes)
        return z, np.exp(self.level * z[cluster] + rng.exponential(1 / self.tail, len(cluster))), cluster

    def cohorts(self, seed: int) -> tuple[Tally, Tally]:
        """The treated cohort and the other."""
        rng = np.random.default_rng([seed, self.clusters, round(100 * self.unequal)])
        names = statistics.cluster_hashes([str(number) for number in range(2 * self.clusters)])
        _, values, cluster = self.draw(rng)
        if self.shared:
            treated = rng.random(len(values)) < 0.5
            parts = [(values[treated] * EFFECT, cluster[treated]), (values[~treated], cluster[~treated])]
        else:
            _, more, others = self.draw(rng)
            parts = [(values * EFFECT, cluster), (more, self.clusters + others)]
        treated_part, other_part = (tally(v, names[c]) for v, c in parts)
        return treated_part, other_part


KINDS = (
    Kind("10", 10),
    Kind("10, nearly equal", 10, unequal=0.3),
    Kind("10, shared by the cohorts", 10, shared=True),
    Kind("20", 20),
    Kind("30", 30),
    Kind("100", 100),
    Kind("300", 300),
    Kind("1000", 1000),
    Kind("300, nearly equal", 300, unequal=0.3),
    Kind("300, very unequal", 300, unequal=1.5, median_size=6),
    Kind("300, large ones are slow", 300, informative=0.5),
    Kind("300, alike within", 300, level=0.1),
    Kind("300, shared by the cohorts", 300, shared=True),
    Kind("5000, in groups", 5000, median_size=3),
)


def questions(kind: Kind, treated: Tally, other: Tally, seed: int) -> Iterator[tuple[str, Interval, float]]:
    """Each interval of a fleet, with the truth."""
    for p in PERCENTILES:
        truth = kind.quantile(p)
        name = f"P{100 * p:.0f}"
        yield name, statistics.quantile(other, p), truth
        yield f"{name} ratio", statistics.ratio(treated, other, p, seed=seed), EFFECT
        yield f"{name} difference", statistics.difference(treated, other, p, seed=seed), (EFFECT - 1) * truth
    yield "share", statistics.share_below(other, kind.quantile(0.9)), 0.9
    yield "mean", statistics.mean(other, seed=seed), kind.mean()
    yield "mean ratio", statistics.ratio(treated, other, seed=seed), EFFECT


def coverage(kind: Kind, fleets: int) -> dict[str, tuple[int, int]]:
    """Of each question: intervals that lie above the truth, and below it."""
    found: dict[str, tuple[int, int]] = {}
    for seed in range(fleets):
        treated, other = kind.cohorts(seed)
        for name, interval, truth in questions(kind, treated, other, seed):
            above, below = found.get(name, (0, 0))
            found[name] = above + (not interval.low <= truth), below + (not truth <= interval.high)
    return found


METRICS = 15


def false_calls(fleets: int, clusters: int = 200) -> tuple[int, int, int]:
    """Of cohorts that are alike, compared by 15 metrics: metrics called before and after the correction, and fleets in
    which any is called after it."""
    kind = Kind("alike", clusters)
    names = statistics.cluster_hashes([str(number) for number in range(2 * clusters)])
    raw = corrected = any_called = 0
    for seed in range(fleets):
        rng = np.random.default_rng([seed, 15])
        sides = [kind.draw(rng) for _ in range(2)]
        p_values = []
        for metric in range(METRICS):
            tallies = []
            for side, (_, values, cluster) in enumerate(sides):
                # Half of each metric is what all of them share, as a slow path shows in most of them.
                own = rng.normal(size=clusters)[cluster] * 0.5 + rng.exponential(0.4, len(cluster))
                tallies.append(tally(np.exp((np.log(values) + own) / 2), names[cluster + side * clusters]))
            p_values.append(statistics.ratio(*tallies, (0.5, 0.95, None)[metric % 3], seed=seed).p_value)
        calls = statistics.adjust([math.nan if p is None else p for p in p_values]) < 0.05
        raw += sum(p is not None and p < 0.05 for p in p_values)
        corrected += int(calls.sum())
        any_called += bool(calls.any())
    return raw, corrected, any_called


LOOKS = 40


def peeked(fleets: int, arriving: bool, clusters: int = 400) -> dict[str, tuple[int, int]]:
    """Of cohorts that are alike and looked at 40 times while their connections come in: fleets that were called at any
    look, by ordinary intervals and by those that always hold. `arriving`: clusters come one after the other; else each
    is there all the time."""
    kind = Kind("alike", clusters)
    found = {"mean": [0, 0], "share below P50": [0, 0]}
    threshold = kind.quantile(0.5)
    for seed in range(fleets):
        rng = np.random.default_rng([seed, 40])
        sides = []
        for _ in range(2):
            _, values, cluster = kind.draw(rng)
            order = np.arange(len(values)) if arriving else rng.permutation(len(values))
            sides.append((values[order], cluster[order]))
        for name in found:
            ordinary = always = False
            for look in range(1, LOOKS + 1):
                arms = []
                for values, cluster in sides:
                    seen = len(values) * look // LOOKS
                    shown = values[:seen] if name == "mean" else (values[:seen] < threshold) * 1.0
                    n = np.bincount(cluster[:seen], minlength=clusters)
                    total = np.bincount(cluster[:seen], shown, clusters)
                    arms.append(Moments.of(total[n > 0], n[n > 0].astype(np.float64)).interval())
                now = minus(*arms)
                ordinary |= not now.low <= 0 <= now.high
                held = statistics.always(now, clusters // 2)
                always |= not held.low <= 0 <= held.high
            found[name][0] += ordinary
            found[name][1] += always
    return {name: (calls[0], calls[1]) for name, calls in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fleets", type=int, default=500)
    parser.add_argument("--only", choices=("coverage", "calls", "looks"))
    parser.add_argument("--most-clusters", type=int, help="of coverage: leave out the kinds that have more")
    asked = parser.parse_args()
    fleets = asked.fleets
    if asked.only in (None, "coverage"):
        print(f"95 % intervals of {fleets} fleets that hold the truth, in %; P95 missed: that lie above it, below it\n")
        most = asked.most_clusters or max(kind.clusters for kind in KINDS)
        for number, kind in enumerate(kind for kind in KINDS if kind.clusters <= most):
            told = coverage(kind, fleets)
            if not number:
                print(f"| clusters | {' | '.join(told)} | P95 missed |\n|{' --- |' * (len(told) + 2)}")
            held = [f"{100 - 100 * (above + below) / fleets:.1f}" for above, below in told.values()]
            missed = " / ".join(f"{100 * one / fleets:.1f}" for one in told["P95"])
            print(f"| {kind.name} | {' | '.join(held)} | {missed} |", flush=True)
    if asked.only in (None, "calls"):
        raw, corrected, any_called = false_calls(fleets)
        print(
            f"\nalike, {METRICS} metrics of {fleets} fleets: called {100 * raw / fleets / METRICS:.1f} % of metrics "
            f"before correction, {100 * corrected / fleets / METRICS:.2f} % after it; "
            f"some metric in {100 * any_called / fleets:.1f} % of fleets"
        )
    if asked.only in (None, "looks"):
        for arriving in (False, True):
            for name, (ordinary, always) in peeked(fleets, arriving).items():
                how = "clusters arriving" if arriving else "clusters recurring"
                print(
                    f"alike, {LOOKS} looks, {how}, {name}: called by ordinary intervals in "
                    f"{100 * ordinary / fleets:.1f} % of fleets, by those that always hold in "
                    f"{100 * always / fleets:.1f} %",
                    flush=True,
                )


if __name__ == "__main__":
    main()

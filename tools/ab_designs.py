"""Do switchbacks and paired links find the total effect that a naive A/B test misses? `python tools/ab_designs.py`.

CUBIC is the control and BBR the treatment on one bottleneck, to which transfers come at random times. The truth is what
all transfers with BBR have against all with CUBIC, on the same link. Each design is simulated with many seeds, its
estimate is made by `tcpknee.fleet.statistics`, and what is printed is how often its 95 % interval covers the truth.

A switchback's periods follow each other on one link, so that transfers of a period meet what is left of the one before.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tcpknee import _core
from tcpknee.fleet import statistics
from tcpknee.fleet.statistics import Interval
from tcpknee.runs import api, compose, engines, pool

Floats = npt.NDArray[np.float64]

CONTROL, TREATMENT = "cubic", "bbr1"


@dataclass(frozen=True)
class Plan:
    """The link of gallery/ab-bias.toml and its transfers. `carry_over_sec` of each period are left out. After the last
    period, `drain_sec` let transfers end.

    A link that transfers share forgets its backlog in about S / (1 - load)^2, where S is the time of a mean transfer
    alone: 6 s here, of which the carry-over is more than three. At a load of 0.9 it is a minute.
    """

    periods: int = 12
    period_sec: float = 60.0
    carry_over_sec: float = 20.0
    drain_sec: float = 30.0
    load: float = 0.7
    median_bytes: float = 3e6
    sigma: float = 0.5
    rate_bits_per_sec: float = 50e6


@dataclass(frozen=True)
class Transfers:
    """What came of the transfers of one link; NaN: not complete."""

    goodput_bits_per_sec: Floats
    treated: npt.NDArray[np.bool_]
    period: npt.NDArray[np.int64]
    since_switch_us: npt.NDArray[np.int64]

    def settled(self, plan: Plan) -> npt.NDArray[np.bool_]:
        """Those after a period's carry-over that are complete."""
        return (self.since_switch_us >= plan.carry_over_sec * 1e6) & ~np.isnan(self.goodput_bits_per_sec)


Link = tuple[str, Sequence[float]]
"""A link's name, which its draws depend on, and the share of its transfers that is treated in each period."""


@dataclass(frozen=True)
class Design:
    """The links that it needs, for a seed, and what is estimated from them: a ratio, treatment over control."""

    links: Callable[[Plan, int], list[Link]]
    estimate: Callable[[Plan, Sequence[Transfers]], Interval]


def naive(allocation: float) -> Design:
    """Each transfer is treated by chance, and both groups are compared; periods are the clusters."""

    def estimate(plan: Plan, found: Sequence[Transfers]) -> Interval:
        [link] = found
        names = statistics.cluster_hashes([str(period) for period in link.period])

        def group(chosen: npt.NDArray[np.bool_]) -> statistics.Tally:
            kept = chosen & link.settled(plan)
            return statistics.tally(link.goodput_bits_per_sec[kept], names[kept])

        direct = statistics.ab(group(link.treated), group(~link.treated), relative=True).direct
        assert direct is not None
        return direct

    return Design(lambda plan, seed: [("a", [allocation] * plan.periods)], estimate)


def _switchback(plan: Plan, found: Sequence[Transfers]) -> Interval:
    [link] = found
    total = statistics.switchback(
        link.goodput_bits_per_sec,
        link.period,
        link.treated,
        link.since_switch_us,
        carry_over_us=round(plan.carry_over_sec * 1e6),
        relative=True,
    ).total
    assert total is not None
    return total


def _alternating(plan: Plan, seed: int) -> list[Link]:
    """Of every two periods one is treated, in random order."""
    random = np.random.default_rng([seed, 1])
    order = [float(share) for _ in range((plan.periods + 1) // 2) for share in random.permutation(2)]
    return [("a", order[: plan.periods])]


MOSTLY = 0.95
"""Treated on the one link, control on the other: as in Spang et al."""


def _paired_link(plan: Plan, found: Sequence[Transfers]) -> Interval:
    outcome, period, link, arm = [], [], [], []
    for mostly, transfers in zip((True, False), found, strict=True):
        for when, treated in np.ndindex(plan.periods, 2):
            chosen = transfers.settled(plan) & (transfers.period == when) & (transfers.treated == bool(treated))
            outcome.append(float(np.mean(transfers.goodput_bits_per_sec[chosen])) if chosen.any() else np.nan)
            period.append(when)
            link.append(mostly)
            arm.append(bool(treated))
    total = statistics.paired_link(
        np.array(outcome), np.array(period), np.array(link), np.array(arm), allocation=MOSTLY, relative=True
    ).total
    assert total is not None
    return total


DESIGNS = {
    "naive A/B, 10 % treated": naive(0.1),
    "naive A/B, 50 % treated": naive(0.5),
    "naive A/B, 90 % treated": naive(0.9),
    "switchback": Design(_alternating, _switchback),
    "paired link, 95 % and 5 %": Design(
        lambda plan, seed: [("a", [MOSTLY] * plan.periods), ("b", [1 - MOSTLY] * plan.periods)], _paired_link
    ),
}


class Links:
    """Links to simulate, as the pool takes them: each has a scenario of its own."""

    def __init__(self, plan: Plan, asked: Sequence[tuple[int, Link]]) -> None:
        self.plan, self.asked = plan, asked
        self.cells: Sequence[Mapping[str, Any]] = [{"duration_ns": 1}] * len(asked)

    def run_cell(self, index: int, rep: int, *, cancel: Any = None, progress: Any = None) -> Transfers:
        """The transfers of one link."""
        seed, (name, shares) = self.asked[index]
        return simulated(self.plan, seed, name, shares)


def simulated(plan: Plan, seed: int, name: str, shares: Sequence[float]) -> Transfers:
    """One link over all its periods. Times and sizes are drawn from seed and name, before arms are."""
    random = np.random.default_rng([seed, ord(name)])
    length = plan.periods * plan.period_sec
    mean_bytes = plan.median_bytes * np.exp(plan.sigma**2 / 2)
    count = random.poisson(plan.load * plan.rate_bits_per_sec / 8 / mean_bytes * length)
    start = np.sort(random.uniform(0, length, count))
    sizes = np.maximum(random.lognormal(np.log(plan.median_bytes), plan.sigma, count), 1448)
    period = (start / plan.period_sec).astype(np.int64)
    treated = random.uniform(size=count) < np.array(shares)[period]
    flows = [
        {
            "name": f"t{at}",
            "algorithm": TREATMENT if treated[at] else CONTROL,
            "workload": "transfer",
            "bytes": f"{int(sizes[at])}B",
            "start": f"{int(start[at] * 1e6)}us",
        }
        for at in range(count)
    ]
    path = {"rate": f"{int(plan.rate_bits_per_sec)}bit/s", "rtt": "40ms", "buffer": "4bdp", "queue": "fifo"}
    duration = f"{round((length + plan.drain_sec) * 1000)}ms"
    told = {"duration": duration, "seed": seed, "sample_interval": "10s", "samples": [], "path": path, "flow": flows}
    scenario = api.parse(compose.toml(told), "ab_designs")
    table = engines.Simulator(scenario).run_cell(0, 0)["flows"].sort_by("flow")
    completion_us = table["completion_us"].to_numpy().astype(np.float64)
    goodput = 8e6 * sizes / completion_us
    return Transfers(goodput, treated, period, ((start - period * plan.period_sec) * 1e6).astype(np.int64))


@dataclass(frozen=True)
class Outcome:
    """Estimates of a design and the truth, as ratios."""

    name: str
    truth: float
    found: Sequence[Interval]

    @property
    def covered(self) -> int:
        """How many intervals hold the truth."""
        return sum(one.low <= self.truth <= one.high for one in self.found)

    @property
    def wrong_sign(self) -> int:
        """How many exclude 1 on the side where the truth is not."""
        return sum(one.low > 1 if self.truth < 1 else one.high < 1 for one in self.found)


def truth(plan: Plan, all_on: Sequence[Transfers], all_off: Sequence[Transfers]) -> float:
    """The ratio of geometric means over periods of the mean goodput of a period, which designs estimate."""

    def middle(links: Sequence[Transfers]) -> float:
        means = [
            np.log(np.mean(link.goodput_bits_per_sec[link.settled(plan) & (link.period == when)]))
            for link in links
            for when in np.unique(link.period[link.settled(plan)])
        ]
        return float(np.mean(means))

    return float(np.exp(middle(all_on) - middle(all_off)))


def compare(plan: Plan, seeds: Sequence[int], workers: int, names: Sequence[str] = tuple(DESIGNS)) -> list[Outcome]:
    """Each design with each seed, and the truth from as many links."""
    asked: list[tuple[int, Link]] = []
    for seed in seeds:
        asked += [(seed, ("x", [1.0] * plan.periods)), (seed, ("y", [0.0] * plan.periods))]
    used: dict[tuple[str, int], list[int]] = {}
    for name in names:
        for seed in seeds:
            links = DESIGNS[name].links(plan, seed)
            used[name, seed] = list(range(len(asked), len(asked) + len(links)))
            asked += [(seed, link) for link in links]
    done: dict[pool.Key, Transfers] = {}
    keys = [(at, 0) for at in range(len(asked))]
    pool.execute(Links(plan, asked), keys, done.__setitem__, cancel=_core.Cancel(), workers=workers)
    both = 2 * len(seeds)
    true = truth(plan, [done[at, 0] for at in range(0, both, 2)], [done[at, 0] for at in range(1, both, 2)])
    return [
        Outcome(name, true, [DESIGNS[name].estimate(plan, [done[at, 0] for at in used[name, seed]]) for seed in seeds])
        for name in names
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many of each design (20)")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="links at once")
    given = parser.parse_args()
    plan = Plan()
    outcomes = compare(plan, range(1, given.seeds + 1), given.workers)
    print(f"{TREATMENT} over {CONTROL}, mean goodput of a transfer; truth: {outcomes[0].truth:.3f}")
    print("| design | estimate, median of seeds | 95 % intervals that hold the truth | that have the wrong sign |")
    print("| --- | ---: | ---: | ---: |")
    for one in outcomes:
        middle = float(np.median([found.value for found in one.found]))
        share = f"{one.covered} of {len(one.found)}"
        print(f"| {one.name} | {middle:.3f} | {share} | {one.wrong_sign} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())

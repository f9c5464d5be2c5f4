"""Populations of paths for `whatif_study.py`: from where to where their values are drawn, and how they are recorded."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

EACH = 25
LEAST_KB, LEAST_KB_PER_MS = 150.0, 5.0
"""Of a transfer, and by the RTT of its path: smaller ones may be over before they have the samples that they need."""
CLASSES = ("plain", "shallow", "bloated", "lossy", "policed", "bursty", "shared", "crossed")
Range = tuple[float, float]


@dataclass(frozen=True)
class Mix:
    """A population: from where to where its values are drawn, evenly in their logarithm, and how it is recorded."""

    seed: int
    seconds: int
    interval_ms: int
    noise_us: int
    rate: Range
    rtt_ms: Range
    bdps: Range
    shallow_bdps: Range
    bloated_bdps: Range
    loss_pct: Range
    loss: str
    policed: Range
    policer_kb: Range
    aggregate_ms: Range
    shared: int = 1
    crossing: str = ""
    classes: tuple[str, ...] = CLASSES
    many: tuple[int, int] | None = None
    """Connections that share a path, of unlike sizes and starts; without it, one or `shared`."""
    from_ms: int = 0
    """When the recorder begins: what is under way then was not seen to begin."""
    workload: str = ""
    """Of the recorded connections, in the words of a scenario; without it they always have data."""
    each: int = EACH
    """Paths of each class, unless asked for otherwise."""


_MIDWAY = Mix(
    seed=1301,
    seconds=12,
    interval_ms=100,
    noise_us=120,
    rate=(5e6, 50e6),
    rtt_ms=(10, 80),
    bdps=(0.5, 2),
    shallow_bdps=(0.1, 0.4),
    bloated_bdps=(4, 10),
    loss_pct=(0.05, 1.0),
    loss="{:.3f}%",
    policed=(0.2, 0.6),
    policer_kb=(50, 400),
    aggregate_ms=(2, 10),
    classes=("plain", "shallow", "bloated", "lossy"),
    many=(3, 8),
    from_ms=4000,
    each=6,
)
_STUDY = Mix(
    seed=20,
    seconds=8,
    interval_ms=100,
    noise_us=200,
    rate=(2e6, 40e6),
    rtt_ms=(10, 120),
    bdps=(0.5, 3),
    shallow_bdps=(0.1, 0.4),
    bloated_bdps=(4, 10),
    loss_pct=(0.05, 1.5),
    loss="{:.3f}%",
    policed=(0.2, 0.6),
    policer_kb=(50, 400),
    aggregate_ms=(2, 10),
    shared=2,
    crossing='arrivals = "2/s"\nsizes = "lognormal median 60kB sigma 1.2 from 5kB to 2MB"',
)
MIXES = {
    "study": _STUDY,
    "mice": replace(
        _STUDY,
        seed=32,
        crossing='load = "1500kbit/s"\nsizes = "lognormal median 12kB sigma 0.8 from 2kB to 200kB"',
        classes=("crossed",),
    ),
    "elephants": replace(
        _STUDY,
        seed=31,
        crossing='load = "3Mbit/s"\nsizes = "lognormal median 1.5MB sigma 0.6 from 200kB to 10MB"',
        classes=("crossed",),
    ),
    "wide": Mix(
        seed=77,
        seconds=10,
        interval_ms=150,
        noise_us=50,
        rate=(1e6, 60e6),
        rtt_ms=(5, 200),
        bdps=(0.4, 4),
        shallow_bdps=(0.05, 0.4),
        bloated_bdps=(4, 16),
        loss_pct=(0.02, 2.0),
        loss="gilbert {:.3f}% burst 2",
        policed=(0.1, 0.8),
        policer_kb=(20, 800),
        aggregate_ms=(1, 20),
        shared=3,
        crossing='load = "1500kbit/s"\nsizes = "pareto shape 1.2 from 4kB to 4MB"',
    ),
    "many": Mix(
        seed=1201,
        seconds=6,
        interval_ms=80,
        noise_us=120,
        rate=(10e6, 100e6),
        rtt_ms=(10, 60),
        bdps=(0.5, 1.5),
        shallow_bdps=(0.1, 0.4),
        bloated_bdps=(4, 10),
        loss_pct=(0.05, 1.0),
        loss="{:.3f}%",
        policed=(0.2, 0.6),
        policer_kb=(50, 400),
        aggregate_ms=(2, 10),
        classes=("plain", "shallow", "lossy"),
        many=(12, 60),
        each=4,
    ),
    "midway": _MIDWAY,
    "paused": replace(
        _MIDWAY,
        seed=1501,
        seconds=10,
        shared=3,
        classes=("plain", "shallow", "bloated", "lossy", "shared"),
        many=None,
        from_ms=0,
        workload='workload = "on-off"\non = "400ms"\noff = "600ms"\n',
        each=5,
    ),
}
"""study: the one that whatif was made with. mice and elephants: small and large transfers that cross. wide: another
one, which nothing was chosen by. many: paths that more connections share than whatif compares one by one. midway: a few
connections on each, most of them under way when the recorder begins. paused: applications that pause."""


@dataclass(frozen=True)
class Transfers:
    """Connections of one size, which start one after the other."""

    count: int
    kilobytes: float
    start_ms: float
    stagger_ms: float


@dataclass(frozen=True)
class Drawn:
    """A path of the population, in the words of a scenario."""

    rate: float
    rtt_ms: float
    buffer_ms: float
    loss: str = "0%"
    policer_rate: float | None = None
    policer_kb: float = 0.0
    aggregate_ms: float = 0.0
    flows: int = 1
    transfers: tuple[Transfers, ...] = ()
    """Connections that end, beside the `flows` that do not."""
    stagger_ms: float = 0.0

    def row(self) -> dict[str, str]:
        return {
            "path.rate": f"{self.rate:.0f}bit/s",
            "path.rtt": f"{self.rtt_ms:.2f}ms",
            "path.buffer": f"{self.buffer_ms:.2f}ms",
            "path.loss": self.loss,
            "path.aggregate": f"{self.aggregate_ms:.2f}ms",
            "flow.0.count": str(self.flows),
            **self._policer(),
            **self._many(),
        }

    def _many(self) -> dict[str, str]:
        if not self.transfers:
            return {}
        found = {"flow.0.stagger": f"{self.stagger_ms:.2f}ms"}
        for number, each in enumerate(self.transfers, start=1):
            found |= {
                f"flow.{number}.count": str(each.count),
                f"flow.{number}.bytes": f"{each.kilobytes:.0f}kB",
                f"flow.{number}.start": f"{each.start_ms:.0f}ms",
                f"flow.{number}.stagger": f"{each.stagger_ms:.2f}ms",
            }
        return found

    def _policer(self) -> dict[str, str]:
        if self.policer_rate is None:
            return {}
        return {"path.policer_rate": f"{self.policer_rate:.0f}bit/s", "path.policer_burst": f"{self.policer_kb:.0f}kB"}


def drawn(kind: str, mix: Mix, rng: np.random.Generator) -> Drawn:
    """A path of that class."""

    def log(values: Range) -> float:
        return float(math.exp(rng.uniform(math.log(values[0]), math.log(values[1]))))

    rate, rtt_ms = log(mix.rate), log(mix.rtt_ms)
    # A few packets at least: below, the path is a link that cannot be used.
    least_ms = 6 * 1500 * 8 / rate * 1e3
    others = {"shallow": mix.shallow_bdps, "bloated": mix.bloated_bdps, "lossy": (0.8, 3), "policed": (1, 3)}
    buffer_ms = min(max(log(others.get(kind, mix.bdps)) * rtt_ms, least_ms), 600)
    path = {"rate": rate, "rtt_ms": rtt_ms, "buffer_ms": buffer_ms}
    if kind == "lossy":
        return Drawn(**path, loss=mix.loss.format(log(mix.loss_pct)))
    if kind == "policed":
        return Drawn(**path, policer_rate=rate * rng.uniform(*mix.policed), policer_kb=log(mix.policer_kb))
    if kind == "bursty":
        return Drawn(**path, aggregate_ms=log(mix.aggregate_ms))
    return Drawn(**path, flows=mix.shared if kind == "shared" else 1)


def shared_by_many(path: Drawn, mix: Mix, many: tuple[int, int], rng: np.random.Generator) -> Drawn:
    """The same path with that many connections on it: some that do not end, and two sorts of transfers, whose sizes are
    0.8 to 4 seconds of an equal part of the rate, but not too short to be recorded."""
    count = round(math.exp(rng.uniform(math.log(many[0]), math.log(many[1]))))
    endless = max(round(count * rng.uniform(0.2, 0.6)), 1)
    some = max(round((count - endless) * rng.uniform(0.3, 0.7)), 1)
    part_kb = path.rate / count / 8e3
    least_kb, seconds = max(LEAST_KB, LEAST_KB_PER_MS * path.rtt_ms), mix.seconds
    transfers = tuple(
        Transfers(
            number,
            max(part_kb * math.exp(rng.uniform(math.log(0.8), math.log(4))), least_kb),
            1e3 * rng.uniform(0, 0.3) * seconds,
            1e3 * rng.uniform(0, 0.5) * seconds / number,
        )
        for number in (some, max(count - endless - some, 1))
    )
    stagger_ms = 1e3 * rng.uniform(0, 0.3) * seconds / endless
    return replace(path, flows=endless, transfers=transfers, stagger_ms=stagger_ms)


def population(each: int, mix: Mix) -> dict[str, list[Drawn]]:
    """By class, drawn from the mix's seed."""
    rng = np.random.default_rng(mix.seed)
    found = {kind: [drawn(kind, mix, rng) for _ in range(each)] for kind in mix.classes}
    if mix.many is None:
        return found
    return {kind: [shared_by_many(path, mix, mix.many, rng) for path in paths] for kind, paths in found.items()}

"""A paired experiment in a lab on this host: the same short work with the host as it is and changed, in turn.

Both ends of the lab are on this machine, joined by a veth pair, as `knee calibrate` has them; no interface of the host
is touched. What is compared is the time of the lab's threads for each unit of work. Pairs follow each other closely and
every other one runs backwards, so what else the machine does meanwhile strikes both alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from kneepoint.calibration.measuring import threads_ns_per_sec
from kneepoint.errors import EngineError, KernelUnsupported
from kneepoint.evidence import stats
from kneepoint.evidence.stats import Estimate
from kneepoint.runs import api, compose
from kneepoint.runs.results import Run

DURATION_MS, WARMUP_MS = 700, 200
LEAST_PAIRS, MOST_PAIRS = 3, 12
MODEL_SEEDS = 5
MODEL = "linux-6.18-vm"
"""The cost profile that ships and was measured; `knee calibrate` makes one of this host."""

Engine = Literal["kernel", "model"]


@dataclass(frozen=True)
class Arm:
    """One way to do the work: keys of a scenario that differ."""

    label: str
    algorithm: str
    sender: Mapping[str, Any] = field(default_factory=dict)
    receiver: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """What the present way costs more than another one. `per`: a request, or a byte."""

    work: str
    """For a person: `44-byte requests over 50 connections`."""
    workload: Mapping[str, Any]
    per: Literal["request", "byte"]
    now: Arm
    other: Arm


@dataclass(frozen=True)
class Measured:
    """Time per unit of work with the host as it is, divided by that with the other way."""

    experiment: Experiment
    engine: Engine
    ratio: Estimate
    profile: str = ""
    """Of the model."""

    def text(self) -> str:
        """`bbr1 paced by TCP's timers costs +23 % [18, 28] CPU per request against …`"""
        arms = self.experiment
        ends = [] if self.ratio.identical else [end for end in (self.ratio.low, self.ratio.high) if end is not None]
        interval = f" [{', '.join(_percent(end) for end in ends)}]" if ends else ""
        where = (
            f"{self.ratio.n} pairs of runs on this kernel"
            if self.engine == "kernel"
            else f"the host model with the costs of {self.profile}, as this kernel cannot do it"
        )
        return (
            f"{arms.now.label} costs {_percent(self.ratio.mean)} %{interval} CPU per {arms.per} against "
            f"{arms.other.label}, at {arms.work} ({where})."
        )

    def json(self) -> dict[str, Any]:
        return {
            "now": self.experiment.now.label,
            "other": self.experiment.other.label,
            "work": self.experiment.work,
            "per": self.experiment.per,
            "engine": self.engine,
            "profile": self.profile or None,
            "ratio": self.ratio.json(),
        }


def _percent(ratio: float) -> str:
    return f"{round((ratio - 1) * 100):+d}"


def on_kernel(experiment: Experiment, seconds: float, *, tell: Callable[[str], object] | None = None) -> Measured:
    """Pairs of runs on this kernel, as many as fit into the time, at least three. Raises EngineError."""
    begun = time.monotonic()
    quotients: list[float] = []
    pair_sec = 0.0
    while len(quotients) < LEAST_PAIRS or (
        len(quotients) < MOST_PAIRS and time.monotonic() - begun + pair_sec < seconds
    ):
        if tell is not None:
            tell(f"{experiment.work}: pair {len(quotients) + 1}")
        pair_begun = time.monotonic()
        arms = [experiment.now, experiment.other]
        backwards = len(quotients) % 2
        found = [_kernel_ns(experiment, arm) for arm in (arms[::-1] if backwards else arms)]
        now, other = found[::-1] if backwards else found
        quotients.append(now / other)
        pair_sec = max(pair_sec, time.monotonic() - pair_begun)
    return Measured(experiment, "kernel", _ratio(quotients))


def in_model(experiment: Experiment, profile: str = MODEL) -> Measured:
    """The same work by the simulator's hosts. The interval is over seeds: how well the costs are known is not in it.

    Raises EngineError."""
    quotients = []
    for seed in range(1, MODEL_SEEDS + 1):
        now, other = (_model_ns(experiment, arm, profile, seed) for arm in (experiment.now, experiment.other))
        quotients.append(now / other)
    return Measured(experiment, "model", _ratio(quotients), profile)


def _ratio(quotients: Sequence[float]) -> Estimate:
    found = stats.ratio(quotients)
    if found is None:
        raise EngineError("knee doctor --measure: got no work done; expected some. Is the machine busy?")
    return found


def _kernel_ns(experiment: Experiment, arm: Arm) -> float:
    run = api.run_text(_text(experiment, arm, "none", 1), "<measure>", engine="kernel", out=None)
    return threads_ns_per_sec(run, WARMUP_MS) / _units_per_sec(run, experiment)


def _model_ns(experiment: Experiment, arm: Arm, profile: str, seed: int) -> float:
    run = api.run_text(_text(experiment, arm, profile, seed), "<measure>", out=None)
    spent = sum(row["value"] for row in run.host_costs.arrow().to_pylist() if row["counter"] == "cpu_ns")
    return float(spent) / _units_per_sec(run, experiment)


def _units_per_sec(run: Run, experiment: Experiment) -> float:
    name = "requests_per_sec" if experiment.per == "request" else "goodput_bits_per_sec"
    done: float = sum(value or 0.0 for value in run.flows.arrow()[name].to_pylist())
    if done <= 0:
        raise EngineError(f"knee doctor --measure: {experiment.work}: got no work done. Is the machine busy?")
    return done


def _text(experiment: Experiment, arm: Arm, costs: str, seed: int) -> str:
    # One processor serves both ends, so that it is always busy and its time is that of the work.
    host = {"app_cpus": "0", "gro": False, "cpus": 2, "costs": costs}
    return compose.toml(
        {
            "duration": f"{DURATION_MS}ms",
            "warmup": f"{WARMUP_MS}ms",
            "sample_interval": f"{DURATION_MS}ms",
            "samples": [],
            "seed": seed,
            "path": {"backend": "veth", "rate": "unlimited", "rtt": "0s", "super_packets": "keep"},
            "sender": {**host, **arm.sender},
            "receiver": {**host, "algorithm": arm.algorithm, **arm.receiver},
            "flow": [{"algorithm": arm.algorithm, **experiment.workload}],
        }
    )


def measured(experiment: Experiment, seconds: float, *, tell: Callable[[str], object] | None = None) -> Measured:
    """On this kernel; by the host model where this kernel lacks a piece. Raises EngineError."""
    try:
        return on_kernel(experiment, seconds, tell=tell)
    except KernelUnsupported:
        return in_model(experiment)

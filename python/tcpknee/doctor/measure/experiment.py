"""A paired experiment in a lab on this host: the same short work with the host as it is and changed, in turn.

Both ends of the lab are on this machine: joined by a veth pair, as `knee calibrate` has them, or by the lab's own link,
which has a rate and a round-trip time. No interface of the host is touched. Pairs follow each other closely and every
other one runs backwards, so other load on the machine affects both ways equally.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from tcpknee.calibration import own
from tcpknee.errors import EngineError, KernelUnsupported
from tcpknee.evidence import stats
from tcpknee.evidence.stats import MINIMAL_EFFECT, Estimate
from tcpknee.runs import api, compose

from .quantities import Quantity

LEAST_PAIRS, MOST_PAIRS = 3, 12
MODEL_SEEDS = 5

NOISE = "5us"
"""Mean delay before simulated hosts send. Without it all seeds give the same result, which then depends on how packets
happen to line up. Paced packets of real hosts are 4 us off at the median (docs/simulator.md), as those of an
exponential distribution with about this mean."""

ENDS = Path(__file__).with_name("ends.py")

Where = Literal["kernel", "model", "simulator"]
"""This kernel; the simulator whose hosts have costs; the simulator whose hosts take no time."""

VETH: Mapping[str, Any] = {"backend": "veth", "rate": "unlimited", "rtt": "0s"}
"""A path on which nothing stands between the hosts."""

ONE_CPU: Mapping[str, Any] = {"app_cpus": "0", "gro": False, "cpus": 2}
"""One processor serves both ends, so that it is always busy and its time is that of the work."""


class LinkWasLate(EngineError):
    """The lab's link did not keep up, so the path was not the one that was asked for."""


@dataclass(frozen=True)
class Arm:
    """One way to do the work: what of the scenario differs. `ends`: options of the programs in ends.py."""

    label: str
    algorithm: str = "cubic"
    sender: Mapping[str, Any] = field(default_factory=dict)
    receiver: Mapping[str, Any] = field(default_factory=dict)
    path: Mapping[str, Any] = field(default_factory=dict)
    flow: Mapping[str, Any] = field(default_factory=dict)
    ends: Sequence[str] = ()


@dataclass(frozen=True)
class Experiment:
    """What the present way costs more than another one."""

    work: str
    """For a person: `44-byte requests over 50 connections`."""
    quantity: Quantity
    workload: Mapping[str, Any]
    now: Arm
    other: Arm
    path: Mapping[str, Any] = field(default_factory=lambda: VETH)
    host: Mapping[str, Any] = field(default_factory=dict)
    """Keys of both ends, unless an arm has others."""
    duration_ms: int = 700
    warmup_ms: int = 200
    where: Sequence[Where] = ("kernel", "model")
    """Where it can run, the best place first: the next one is for kernels that cannot do it."""
    beside: Sequence[Mapping[str, Any]] = ()
    """Further flows, whose results do not count."""


def with_programs(
    work: str, quantity: Quantity, now: Arm, other: Arm, path: Mapping[str, Any], *, duration_ms: int = 8000
) -> Experiment:
    """An experiment with the programs of ends.py, which only a kernel runs and which do their own warm-up."""
    return Experiment(
        work,
        quantity,
        {"workload": "programs"},
        now,
        other,
        path,
        duration_ms=duration_ms,
        warmup_ms=0,
        where=("kernel",),
    )


def setting(values: Mapping[str, object]) -> tuple[str, ...]:
    """The options of ends.py that set these sysctls."""
    return tuple(word for name, value in values.items() for word in ("--sysctl", f"{name}={value}"))


@dataclass(frozen=True)
class Measured:
    """How many times as much the present way takes as the other one: above 1 it costs more."""

    experiment: Experiment
    where: Where
    ratio: Estimate
    profile: str = ""
    """Whose costs the model had."""
    instead: str = ""
    """Why it was not made on this kernel, where it could be."""

    @property
    def is_none(self) -> bool:
        """Whether a cost worth a change is ruled out: the whole interval lies below 5 %."""
        high = self.ratio.high if self.ratio.high is not None else self.ratio.mean
        return high < 1 + MINIMAL_EFFECT

    def text(self) -> str:
        """`CPU per request is 23 % higher [+18, +28] with BBR paced by TCP's own timers than with …`"""
        arms = self.experiment
        ends = [] if self.ratio.identical else [end for end in (self.ratio.low, self.ratio.high) if end is not None]
        interval = f" [{', '.join(_percent(end) for end in ends)}]" if ends else ""
        percent = round((self.ratio.mean - 1) * 100)
        more, than = f"{abs(percent):,d} % {'lower' if percent < 0 else 'higher'}", "than"
        if not percent:
            more, than = "the same", "as"
        return (
            f"{arms.quantity.name} is {more}{interval} with {arms.now.label} {than} with "
            f"{arms.other.label}: {self._meaning()}. At {arms.work} ({self._source()})."
        )

    def _meaning(self) -> str:
        if self.is_none:
            return "a change gains nothing"
        low = self.ratio.low if self.ratio.low is not None else self.ratio.mean
        return "a change would save that" if low > 1 else "these runs do not decide it"

    def _source(self) -> str:
        if self.where == "kernel":
            return f"{self.ratio.n} pairs of runs on this kernel"
        instead = f", as {self.instead}" if self.instead else ""
        if self.where == "simulator":
            return f"the simulator, {self.ratio.n} seeds{instead}"
        return f"the host model with the costs of {self.profile}{instead}"

    def json(self) -> dict[str, Any]:
        return {
            "now": self.experiment.now.label,
            "other": self.experiment.other.label,
            "work": self.experiment.work,
            "of": self.experiment.quantity.name,
            "where": self.where,
            "profile": self.profile or None,
            "instead": self.instead or None,
            "ratio": self.ratio.json(),
        }


def _percent(ratio: float) -> str:
    return f"{round((ratio - 1) * 100):+,d}"


def measured(experiment: Experiment, seconds: float, *, tell: Callable[[str], object] | None = None) -> Measured:
    """Runs the experiment in the best place that can. Raises EngineError, with the reason, where none can."""
    first, *others = experiment.where
    if first != "kernel":
        return in_model(experiment, first)
    try:
        return on_kernel(experiment, seconds, tell=tell)
    except (KernelUnsupported, LinkWasLate) as error:
        if not others:
            raise
        late = isinstance(error, LinkWasLate)
        instead = "this machine is too busy for the lab's link" if late else "this kernel cannot do it"
        return replace(in_model(experiment, others[0]), instead=instead)


def on_kernel(experiment: Experiment, seconds: float, *, tell: Callable[[str], object] | None = None) -> Measured:
    """Pairs of runs on this kernel, as many as fit into the time. Raises EngineError; also where three do not fit."""
    begun = time.monotonic()
    quotients: list[float] = []
    pair_sec = 0.0
    while len(quotients) < MOST_PAIRS:
        pair_begun = time.monotonic()
        spent = pair_begun - begun
        if len(quotients) >= LEAST_PAIRS:
            if spent + pair_sec > seconds:
                break
        elif quotients and spent > seconds:
            raise EngineError(
                f"got {len(quotients)} of {LEAST_PAIRS} pairs of runs in {spent:.0f} s, and had {seconds:.0f} s. The "
                "machine is too busy to measure; try again when it has less to do."
            )
        if tell is not None:
            tell(f"{experiment.work}: pair {len(quotients) + 1}")
        arms = [experiment.now, experiment.other]
        backwards = len(quotients) % 2
        found = [_on_kernel(experiment, arm) for arm in (arms[::-1] if backwards else arms)]
        now, other = found[::-1] if backwards else found
        quotients.append(now / other)
        pair_sec = max(pair_sec, time.monotonic() - pair_begun)
    return Measured(experiment, "kernel", _ratio(quotients))


def in_model(experiment: Experiment, where: Where = "model") -> Measured:
    """The same work by the simulator. The interval is over seeds: how well the costs are known is not in it.

    Raises EngineError."""
    costs = own.best() if where == "model" else own.NONE
    quotients = []
    for seed in range(1, MODEL_SEEDS + 1):
        now, other = (_in_model(experiment, arm, costs.key, seed) for arm in (experiment.now, experiment.other))
        quotients.append(now / other)
    return Measured(experiment, where, _ratio(quotients), costs.told)


def _ratio(quotients: Sequence[float]) -> Estimate:
    found = stats.ratio(quotients)
    if found is None:
        raise EngineError("knee doctor --measure: got no work done; expected some. Is the machine busy?")
    return found


def _on_kernel(experiment: Experiment, arm: Arm) -> float:
    text = scenario(experiment, arm, "none", 1)
    with tempfile.TemporaryDirectory(prefix="tcpknee-") as folder:
        # Its programs write sysctls of the lab's namespaces, which only root of the lab may.
        has_programs = experiment.workload.get("workload") == "programs"
        run = api.run_text(
            text,
            "<measure>",
            engine="kernel",
            out=Path(folder) / "run" if has_programs else None,
            programs_as_root=has_programs and os.geteuid() == 0,
        )
        if len(experiment.where) > 1 and any(row["kept_up"] is False for row in run.links.arrow().to_pylist()):
            raise LinkWasLate("the lab's link was late")
        return experiment.quantity.on_kernel(run, experiment.warmup_ms)


def _in_model(experiment: Experiment, arm: Arm, costs: str, seed: int) -> float:
    run = api.run_text(scenario(experiment, arm, costs, seed), "<measure>", out=None)
    return experiment.quantity.in_model(run)


def scenario(experiment: Experiment, arm: Arm, costs: str, seed: int) -> str:
    """The text of a run."""
    host = {"noise": NOISE, **experiment.host, "costs": costs}
    flow = {"algorithm": arm.algorithm, **experiment.workload, **arm.flow}
    if arm.ends:
        words = [sys.executable, "-I", str(ENDS), *arm.ends]
        flow |= {"server": shlex.join([*words, "server"]), "client": shlex.join([*words, "client"])}
    return compose.toml(
        {
            "duration": f"{experiment.duration_ms}ms",
            "warmup": f"{experiment.warmup_ms}ms",
            "sample_interval": f"{min(experiment.duration_ms, 1000)}ms",
            "samples": [],
            "seed": seed,
            "path": {**experiment.path, **arm.path},
            "sender": {**host, **arm.sender},
            "receiver": {**host, "algorithm": arm.algorithm, **arm.receiver},
            "flow": [flow, *experiment.beside],
        }
    )

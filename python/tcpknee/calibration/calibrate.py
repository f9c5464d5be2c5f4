"""A calibration from beginning to end: rounds of micro runs on this host, the fit, the check on what was held back."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tcpknee.errors import EngineError

from . import measuring, profile
from .fit import Cost, Measured, fit
from .measuring import Predicted
from .micro import CALIBRATED, DIFFERS, HELD_BACK, Micro
from .rounds import even_out, levels

BUSY_SHARE = 0.1
"""A machine busier than this before anything runs is not calibrated unless it is asked for."""


@dataclass(frozen=True)
class Checked:
    """A run that was held back: what was measured, and what the model says of it."""

    measured: Measured
    predicted_ns: float

    @property
    def error(self) -> float:
        """How far the prediction is off, as a share of what was measured."""
        return self.predicted_ns / self.measured.ns - 1

    @property
    def beyond(self) -> float:
        """What of that the measurement's own 95 % interval does not explain."""
        low, high = self.measured.interval
        nearest = min(max(self.predicted_ns, low), high)
        return (self.predicted_ns - nearest) / self.measured.ns


@dataclass(frozen=True)
class Calibration:
    """What came of it. `differs`: runs in which the model is known to do something else. `spread`: by how much rounds
    differed as wholes, the slowest over the fastest."""

    costs: Mapping[str, Cost]
    fitted: Sequence[Checked]
    checked: Sequence[Checked]
    differs: Sequence[Checked]
    rounds: int
    spread: float
    busy_share: float


def refuse_busy(share: float, anyway: bool) -> None:
    """Raises EngineError where other work would be measured too."""
    if share > BUSY_SHARE and not anyway:
        raise EngineError(
            f"knee calibrate: got a machine whose processors are busy for {share:.0%} of the time; expected "
            f"{BUSY_SHARE:.0%} at most, since other work slows down what is measured. End that work, or give --busy: "
            "intervals are wider then, and the profile says so."
        )


def calibrate(
    rounds: int,
    prior: str,
    *,
    check: bool = True,
    busy: bool = False,
    tell: Callable[[int, int, str], None] = lambda done, of, what: None,
) -> Calibration:
    """Measures, fits and checks. `rounds`: how often each run is made; `prior`: the shipped profile to begin with;
    `tell`: how many runs are done, of how many, and which is next. Raises EngineError."""
    share = measuring.busy_share()
    refuse_busy(share, busy)
    runs = (*CALIBRATED, *((*HELD_BACK, *DIFFERS) if check else ()))
    found: list[dict[str, float]] = []
    total = rounds * len(runs)
    for number in range(rounds):
        one: dict[str, float] = {}
        # Every other round backwards, so that a drift within rounds favours none.
        for micro in runs if number % 2 == 0 else reversed(runs):
            tell(number * len(runs) + len(one), total, micro.name)
            one[micro.name] = measuring.on_kernel(micro)
        found.append({micro.name: one[micro.name] for micro in runs})
    tell(total, total, "the fit")
    known = levels(even_out(found))
    measured = {micro.name: Measured(micro, *known[micro.name]) for micro in runs}
    means = [sum(math.log(ns) for ns in one.values()) / len(one) for one in found]
    with tempfile.TemporaryDirectory(prefix="tcpknee-") as folder:
        path = Path(folder) / "fitted.toml"

        def predict(micro: Micro, costs: Mapping[str, float]) -> Predicted:
            whole = {**first, **costs}
            profile.keep(path, profile.bare(whole))
            return measuring.in_model(micro, path)

        first = profile.shipped(prior)
        # The veth pair has no interrupts, no driver and no qdisc: what those cost stays as it was.
        costs = fit([measured[micro.name] for micro in CALIBRATED], first, predict)
        final = {name: cost.ns for name, cost in costs.items()}
        checked = {micro.name: Checked(measured[micro.name], predict(micro, final).ns) for micro in runs}
    return Calibration(
        costs,
        [checked[micro.name] for micro in CALIBRATED],
        [checked[micro.name] for micro in HELD_BACK] if check else [],
        [checked[micro.name] for micro in DIFFERS] if check else [],
        rounds,
        math.exp(max(means) - min(means)),
        share,
    )

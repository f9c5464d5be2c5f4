"""What a scenario of the search is drawn from: numbers and choices, each with what stands where it is not set."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

Value: TypeAlias = float | str


@dataclass(frozen=True)
class Number:
    """A number with a unit, drawn evenly by its logarithm. `neutral`: what is written where the case has none; None:
    nothing is, so that the key's default holds. `needs`: another knob, and the values of it (none: any) without which
    this one means nothing."""

    name: str
    low: float
    high: float
    unit: str
    neutral: float | None = None
    whole: bool = False
    needs: tuple[str, tuple[str, ...]] | None = None

    def draw(self, chance: Random) -> float:
        return self.rounded(math.exp(chance.uniform(math.log(self.low), math.log(self.high))))

    def near(self, value: Value, chance: Random, factor: float) -> float:
        """Another number, at most so many times larger or smaller."""
        assert isinstance(value, float)
        return self.rounded(value * math.exp(chance.uniform(-1, 1) * math.log(factor)))

    def rounded(self, value: float, digits: int = 2) -> float:
        """Within the bounds, with so many digits."""
        value = min(max(value, self.low), self.high)
        value = float(f"{value:.{digits - 1}e}")
        return float(max(round(value), 1)) if self.whole else value

    def written(self, value: Value) -> str:
        assert isinstance(value, float)
        text = f"{value:.6f}".rstrip("0").rstrip(".")
        return text if self.unit == "" else f'"{text}{self.unit}"'


@dataclass(frozen=True)
class Choice:
    """One of several values, as a scenario writes them."""

    name: str
    options: tuple[str, ...]
    needs: tuple[str, tuple[str, ...]] | None = None
    neutral: None = None

    def draw(self, chance: Random) -> str:
        return chance.choice(self.options)

    def near(self, value: Value, chance: Random, factor: float) -> str:
        return chance.choice(self.options)

    def written(self, value: Value) -> str:
        return str(value)


Knob: TypeAlias = Number | Choice


def _quoted(*words: str) -> tuple[str, ...]:
    return tuple(f'"{word}"' for word in words)


_COSTS = _quoted("published", "published-vm", "linux-6.18-vm")

EVERY: tuple[Knob, ...] = (
    Choice("kernel", _quoted("3.10", "3.16", "4.4", "4.14", "5.4", "6.1", "7.2")),
    Number("path.rate", 0.5, 1000, "Mbit/s", neutral=20.0),
    Choice("path.trace", _quoted("trace cellular", "trace wifi", "trace satellite")),
    Number("path.rtt", 0.2, 300, "ms", neutral=40.0),
    Number("path.buffer", 0.1, 10, "bdp", neutral=1.0),
    Choice("path.queue", _quoted("codel", "fq_codel", "dualpi2", "cake", "pie", "fq_pie", "step", "red", "fq")),
    Number("path.step.ce_packets", 2, 200, "", whole=True, needs=("path.queue", ('"step"',))),
    Number("path.codel.target", 0.2, 50, "ms", needs=("path.queue", ('"codel"',))),
    Choice("path.codel.ecn", ("true",), needs=("path.queue", ('"codel"',))),
    Number("path.fq_codel.target", 0.2, 50, "ms", needs=("path.queue", ('"fq_codel"',))),
    Number("path.pie.target", 1, 100, "ms", needs=("path.queue", ('"pie"',))),
    Choice("path.pie.ecn", ("true",), needs=("path.queue", ('"pie"',))),
    Number("path.dualpi2.step", 0.2, 10, "ms", needs=("path.queue", ('"dualpi2"',))),
    Number("path.loss", 0.01, 5, "%"),
    Number("path.loss_burst", 2, 20, "", whole=True, needs=("path.loss", ())),
    Number("path.ack_loss", 1, 30, "%"),
    Number("path.jitter", 0.1, 30, "ms"),
    Number("path.ack_rate", 0.03, 5, "Mbit/s"),
    Number("path.aggregate", 1, 20, "ms"),
    Number("path.policer_share", 0.2, 0.9, ""),
    Number("path.outage", 50, 2000, "ms"),
    Number("path.rtt_change", 0.2, 5, ""),
    Choice("path.mtu", _quoted("576B", "1280B", "9000B")),
    Choice("sender.tcp_ecn", ("1",)),
    Choice("receiver.algorithm", _quoted("dctcp"), needs=("sender.tcp_ecn", ())),
    Choice("sender.costs", _COSTS),
    Number("sender.steal", 5, 80, "%", needs=("sender.costs", ())),
    Number("sender.steal_slice", 0.5, 30, "ms", needs=("sender.steal", ())),
    Choice("receiver.costs", _COSTS),
    Number("receiver.steal", 5, 80, "%", needs=("receiver.costs", ())),
    Number("receiver.steal_slice", 0.5, 30, "ms", needs=("receiver.steal", ())),
    Number("sender.noise", 10, 3000, "us"),
    Number("receiver.noise", 10, 3000, "us"),
    Number("sender.tcp_wmem_max", 16, 1024, "kB"),
    Number("sender.initcwnd", 1, 100, "", whole=True),
    Choice("sender.hz", ("100", "1000")),
    Choice("sender.pacing", _quoted("timer", "fq")),
    Choice("sender.tcp_slow_start_after_idle", ("false",)),
    Choice("receiver.gro", ("true",)),
    Number("receiver.rx_coalesce", 50, 2000, "us"),
    Choice("receiver.quickack", ("true",)),
    Choice("flow.workload", _quoted("transfer", "on-off", "small-writes", "request-response")),
    Number("flow.bytes", 20, 20_000, "kB", needs=("flow.workload", ('"transfer"',))),
    Number("flow.write", 64, 65_536, "B", whole=True, needs=("flow.workload", ('"transfer"', '"small-writes"'))),
    Number("flow.on", 20, 2000, "ms", needs=("flow.workload", ('"on-off"',))),
    Number("flow.off", 20, 2000, "ms", needs=("flow.workload", ('"on-off"',))),
    Number("flow.response", 1, 2000, "kB", needs=("flow.workload", ('"request-response"',))),
    Number("flow.window_clamp", 4, 512, "kB"),
    Number("flow.count", 2, 8, "", whole=True),
    Number("late.count", 1, 4, "", whole=True),
    Number("late.start_share", 0.05, 0.5, "", needs=("late.count", ())),
    Number("late.rtt_factor", 1.1, 10, "", needs=("late.count", ())),
    Number("other.count", 1, 4, "", whole=True),
    Number("other.start_share", 0.05, 0.5, "", needs=("other.count", ())),
    Number("other.rtt_factor", 1.1, 10, "", needs=("other.count", ())),
)
"""In the order in which a scenario has them. `late` are further flows of the algorithm, `other` those it meets."""

BY_NAME: Mapping[str, Knob] = {knob.name: knob for knob in EVERY}

BESIDE: Mapping[str, tuple[str, ...]] = {"receiver.gro": ("receiver.rx_coalesce",)}
"""What a setting is drawn with: GRO has nothing to merge unless the NIC gathers packets."""

MARKED_BY = ("path.step.ce_packets", "path.codel.ecn", "path.pie.ecn", "path.fq_codel.target", "path.dualpi2.step")
MARKING = ('"step"', '"codel"', '"pie"', '"fq_codel"', '"dualpi2"', '"fq_pie"', '"cake"')
"""Knobs that bring a queue that marks, and the queues that can."""

ALWAYS_SET = {"flow.bytes": 500.0, "flow.on": 200.0, "flow.off": 500.0, "flow.response": 50.0}
"""What stands where the workload needs a number that the case has not."""

UNDONE: Mapping[str, str] = {"receiver.gro": "false"}
"""What a knob is without effect by, where that is not its default."""

HARMLESS = frozenset(
    {
        "kernel",
        "receiver.gro",
        "receiver.rx_coalesce",
        "receiver.quickack",
        "sender.hz",
        "sender.pacing",
        "sender.tcp_slow_start_after_idle",
    }
)
"""Settings of hosts that are somebody's default, and should cost no algorithm much."""

STRESS = frozenset(
    {
        "path.loss",
        "path.loss_burst",
        "path.ack_loss",
        "path.jitter",
        "path.ack_rate",
        "path.aggregate",
        "path.queue",
        "path.outage",
        "path.rtt_change",
        "path.policer_share",
        "sender.initcwnd",
        "sender.tcp_ecn",
        "sender.costs",
        "receiver.costs",
        "sender.steal",
        "receiver.steal",
        "sender.steal_slice",
        "sender.noise",
        "receiver.noise",
    }
)
"""What costs every algorithm something: the question is whether it costs this one more."""

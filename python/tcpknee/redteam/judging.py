"""A case judged: the runs that an objective asks for, each made once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

from tcpknee.algorithms.naming import Named
from tcpknee.errors import AlgorithmFailed

from .apart import apart
from .cases import Case
from .measured import Measured, measured
from .objectives import BY_NAME, EVERY, Found

_FREE = tuple(
    one.name
    for one in EVERY
    if one.name in ("starvation", "stuck", "lost-wake-up", "standing-queue", "spurious-retransmission")
)
"""Objectives that a run of the case alone answers, so that they are asked of every case."""


@dataclass(frozen=True)
class Sides:
    """Whom the search is about, and whom that is compared with, as scenarios and as people call them."""

    own: str
    other: str
    own_path: str
    other_path: str
    of_files: tuple[Named, ...] = ()


@dataclass(frozen=True)
class Question:
    """A case and what is asked of it. `key`: the knob that is undone, of an objective that has one."""

    case: Case
    objective: str
    key: str = ""

    @property
    def cause(self) -> tuple[str, ...]:
        """What makes two finds the same: the rate and the base RTT of the path are where it was seen, not why."""
        return (self.objective, self.key, *self.case.cause)


@dataclass
class Runs:
    """Those of one seed; `count` of them were made. `crashes`: what the algorithm that the search is about did, where
    it ended its run, which then has no result."""

    sides: Sides
    seed: int
    count: int = 0
    crashes: dict[Case, str] = field(default_factory=dict)
    _made: dict[tuple[Case, str, bool], Measured | None] = field(default_factory=dict)

    def __call__(self, case: Case, who: str, *, alone: bool = False) -> Measured | None:
        if (case, who, alone) not in self._made:
            path = self.sides.own_path if who == "own" else self.sides.other_path
            text = case.text(path, self.sides.other_path, self.seed, alone=alone)
            make = partial(measured, text, case.warmup, self.sides.of_files)
            self.count += 1
            try:
                self._made[case, who, alone] = apart(make) if self.sides.of_files else make()
            except AlgorithmFailed as failure:
                self._made[case, who, alone] = None
                if failure.call["algorithm"] == self.sides.own:
                    self.crashes.setdefault(case, str(failure).removeprefix(f"{self.sides.own} "))
        return self._made[case, who, alone]


def judged(asked: Question, runs: Runs) -> Found:
    return BY_NAME[asked.objective].judge(asked.case, asked.key, runs)


def all_judged(work: tuple[Sides, int, Question]) -> tuple[dict[Question, Found], int]:
    """What is asked, and what the same runs answer besides; and how many runs that took. For a worker."""
    sides, seed, asked = work
    runs = Runs(sides, seed)
    found = {asked: judged(asked, runs)}
    for name in _FREE:
        further = replace(asked, objective=name, key="")
        found[further] = judged(further, runs)
    for case in runs.crashes:
        crashed = Question(case, "crash")
        found[crashed] = judged(crashed, runs)
    return found, runs.count

"""The search: a bandit chooses the objective, and its best cases so far are mutated. Equal seeds give equal finds."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from random import Random

from tcpknee.runs.workers import OnAll

from .cases import Case, drawn, mutated
from .judging import Question, Sides, all_judged
from .objectives import EVERY, Objective

BATCH = 64
"""Cases between two choices: of one size whatever the number of workers, so that the choices are the same."""
PART = 8
"""Of a batch, between two looks at the time; it changes no result."""

_ENOUGH, _ENOUGH_OF_KEY = 12, 6
"""Finds of an objective, or of a knob of one, after which it rests: there are others."""
_KEPT = 40
"""Questions of an objective that are mutated, each with other knobs."""


@dataclass
class _Arm:
    """An objective, of one that is about a knob with that knob: its best question for each set of knobs, and how often
    asking it led to a new find."""

    objective: Objective
    key: str
    names: tuple[str, ...]
    best: dict[tuple[str, ...], tuple[float, Question]] = field(default_factory=dict)
    pulls: int = 0
    gains: int = 0

    def keep(self, score: float, asked: Question) -> bool:
        """Is it better than what was there?"""
        knobs = tuple(asked.case)
        score = min(score, 10.0)
        if score <= self.best.get(knobs, (0.0, asked))[0]:
            return False
        self.best[knobs] = (score, asked)
        if len(self.best) > _KEPT:
            # The first of equal ones goes, as dicts keep their order.
            del self.best[min(self.best, key=lambda one: self.best[one][0])]
        return knobs in self.best

    @property
    def finds(self) -> int:
        return sum(score >= 1 for score, _ in self.best.values())

    @property
    def rests(self) -> bool:
        return self.finds >= (_ENOUGH_OF_KEY if self.key else _ENOUGH)


@dataclass(frozen=True)
class Sought:
    """What a search came to. `over`: the time was over before the runs were."""

    questions: list[list[Question]]
    runs: int
    over: bool


def sought(sides: Sides, *, runs: int, seed: int, until: float, on_all: OnAll) -> Sought:
    """Questions whose score is 1 or more, of each arm the best first. `until`: of the monotonic clock."""
    chance = Random(seed)
    arms = {
        (one.name, names[0] if one.of_key else ""): _Arm(one, names[0] if one.of_key else "", names)
        for one in EVERY
        if sides.of_files or not one.of_file
        for names in (one.wanted if one.of_key else ((),))
    }
    made = 0
    while made < runs and time.monotonic() < until:
        batch = [_next(list(arms.values()), chance) for _ in range(BATCH)]
        for begin in range(0, BATCH, PART):
            if made and time.monotonic() >= until:
                break
            title = f"{made:,} of {runs:,} runs, {sum(arm.finds for arm in arms.values())} finds so far; these"
            part = batch[begin : begin + PART]
            for answers, count in on_all(title, all_judged, [(sides, seed, asked) for asked in part]):
                made += count
                for place, (asked, (score, _)) in enumerate(answers.items()):
                    arm = arms[asked.objective, asked.key]
                    arm.gains += arm.keep(score, asked) and score >= 1 and place == 0
    every = ([asked for score, asked in sorted(arm.best.values(), key=_score) if score >= 1] for arm in arms.values())
    return Sought([questions for questions in every if questions], made, made < runs)


def _score(one: tuple[float, Question]) -> float:
    """The best first."""
    return -one[0]


def _chosen(arms: list[_Arm]) -> _Arm:
    """An objective, and of its arms one, each by an upper confidence bound: that of UCB1 (Auer et al.
    2002) with half its width, since a search is short."""
    groups: dict[str, list[_Arm]] = {}
    for arm in [one for one in arms if not one.rests] or arms:
        groups.setdefault(arm.objective.name, []).append(arm)
    group = max(groups.values(), key=lambda one: _bound(one, arms))
    return max(group, key=lambda one: _bound([one], group))


def _bound(some: list[_Arm], beside: list[_Arm]) -> float:
    pulls, gains = sum(arm.pulls for arm in some), sum(arm.gains for arm in some)
    every = sum(arm.pulls for arm in beside)
    return gains / pulls + math.sqrt(math.log(max(every, 2)) / (2 * pulls)) if pulls else math.inf


def _next(arms: list[_Arm], chance: Random) -> Question:
    arm = _chosen(arms)
    arm.pulls += 1
    while True:
        asked = Question(_case(arm, chance), arm.objective.name, arm.key)
        if asked.case.has_room:
            return asked


def _case(arm: _Arm, chance: Random) -> Case:
    wanted = arm.objective.wanted
    if arm.best and chance.random() < 0.7:
        # The better half is chosen more often.
        ranked = sorted(arm.best.values(), key=_score)
        _, parent = ranked[int(len(ranked) * chance.random() ** 2)]
        return mutated(parent.case, chance)
    return drawn(chance, arm.names or (chance.choice(wanted) if wanted else ()))

"""The search: a bandit chooses the objective, and its best cases so far are mutated. Equal seeds give equal finds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

from .cases import Case, drawn, mutated
from .judging import Question, Sides, all_judged
from .objectives import EVERY, Objective

OnAll: TypeAlias = Callable[[str, Callable[[Any], Any], Any], list[Any]]

BATCH = 64
"""Cases between two choices: of one size whatever the number of workers, so that the choices are the same."""

_ENOUGH = 12
"""Finds of an objective, after which it rests: there are others."""
_KEPT = 40
"""Questions of an objective that are mutated, each with other knobs."""


@dataclass
class _Arm:
    """An objective, of one that is about a knob with that knob: its best question for each set of knobs, and how often
    asking it led to one that is kept."""

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

    def worth(self, pulls: int) -> float:
        """Upper confidence bound of the share of its questions that are kept (Auer et al. 2002, UCB1)."""
        if not self.pulls:
            return math.inf
        return self.gains / self.pulls + math.sqrt(math.log(max(pulls, 2)) / (2 * self.pulls))


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
        for names in (one.wanted if one.of_key else ((),))
    }
    made = 0
    while made < runs and time.monotonic() < until:
        batch = [_next(list(arms.values()), chance) for _ in range(BATCH)]
        title = f"{made:,} of {runs:,} runs, {sum(map(_finds, arms.values()))} finds so far; this batch"
        for answers, count in on_all(title, all_judged, [(sides, seed, asked) for asked in batch]):
            made += count
            for place, (asked, (score, _)) in enumerate(answers.items()):
                arm = arms[asked.objective, asked.key]
                arm.gains += arm.keep(score, asked) and place == 0
    every = ([asked for score, asked in sorted(arm.best.values(), key=_score) if score >= 1] for arm in arms.values())
    return Sought([questions for questions in every if questions], made, made < runs)


def _score(one: tuple[float, Question]) -> float:
    """The best first."""
    return -one[0]


def _finds(arm: _Arm) -> int:
    return sum(score >= 1 for score, _ in arm.best.values())


def _next(arms: list[_Arm], chance: Random) -> Question:
    pulls = sum(arm.pulls for arm in arms)
    arm = max([one for one in arms if _finds(one) < _ENOUGH] or arms, key=lambda one: one.worth(pulls))
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

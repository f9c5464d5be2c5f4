"""A find made small: what it does not need is taken away, and its numbers are rounded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from .cases import Case, nearby
from .judging import Question, Runs, Sides, judged
from .knobs import BY_NAME, Number

SEEDS = 5
"""With which a find is run again, and of which more than half must show it. None is one that it was chosen with."""
NEIGHBOURS = 20


@dataclass(frozen=True)
class Find:
    """`words`: what was seen with the seed of the search. `of_seeds`, `of_nearby`: how many showed it. `seed_matters`:
    not all of the seeds gave the same."""

    asked: Question
    score: float
    words: str
    of_seeds: int
    of_nearby: int
    seed_matters: bool


class _Shown:
    """Does a question hold, with the seed of the search and the next one?"""

    def __init__(self, sides: Sides, seed: int) -> None:
        self.runs = (Runs(sides, seed), Runs(sides, seed + 1))

    def __call__(self, asked: Question) -> bool:
        return all(judged(asked, one)[0] >= 1 for one in self.runs)

    @property
    def count(self) -> int:
        return sum(one.count for one in self.runs)


def shrunk(work: tuple[Sides, int, Question, tuple[Question, ...]]) -> tuple[Find | None, int]:
    """The find that a question leads to, and how many runs that took. None: it does not hold with another seed, or has
    the cause of one of these, which are small already. For a worker."""
    sides, seed, asked, before = work
    shows = _Shown(sides, seed)
    if not shows(asked):
        return None, shows.count
    for known in before:
        if known.key == asked.key and _has_all(asked.case, known.case):
            # What still shows without something that the other find needs has a cause of its own.
            others = (replace(asked, case=asked.case.without(name)) for name in known.case if name != asked.key)
            found = next((one for one in others if shows(one)), None)
            if found is None:
                return None, shows.count
            asked = found
    asked = _rounded(_without(asked, shows), shows)
    if asked.cause in {known.cause for known in before}:
        return None, shows.count
    score, words = judged(asked, shows.runs[0])
    seeds = [Runs(sides, seed + len(shows.runs) + place) for place in range(SEEDS)]
    again = [judged(asked, one) for one in seeds]
    of_seeds = sum(one >= 1 for one, _ in again)
    chance = Random(seed)
    around = [Runs(sides, seed + place) for place in range(NEIGHBOURS)]
    of_nearby = sum(judged(replace(asked, case=nearby(asked.case, chance)), one)[0] >= 1 for one in around)
    made = shows.count + sum(one.count for one in (*seeds, *around))
    find = Find(asked, score, words, of_seeds, of_nearby, {(score, words)} != set(again))
    return find if 2 * of_seeds > SEEDS else None, made


def _has_all(case: Case, other: Case) -> bool:
    """Is everything set, and the same way, that is in the other one?"""
    return other.directions <= case.directions


def _without(asked: Question, shows: _Shown) -> Question:
    """Nothing more can be taken away."""
    while True:
        smaller = (
            replace(asked, case=asked.case.without(name)) for name in reversed(list(asked.case)) if name != asked.key
        )
        found = next((one for one in smaller if shows(one)), None)
        if found is None:
            return asked
        asked = found


def _rounded(asked: Question, shows: _Shown) -> Question:
    for name in asked.case:
        knob, value = BY_NAME[name], asked.case.get(name)
        if isinstance(knob, Number) and isinstance(value, float):
            fewer = replace(asked, case=asked.case.with_(name, knob.rounded(value, 1)))
            if fewer != asked and shows(fewer):
                asked = fewer
    return asked

"""What `knee redteam` does: searches, makes the finds small, runs each again, and writes them as scenarios."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tcpknee.algorithms import naming
from tcpknee.errors import UsageError
from tcpknee.runs.workers import OnAll, on_processes

from .judging import Question, Sides
from .search import sought
from .shrink import Find, shrunk
from .written import as_json, beside_finds, file_name, scenario, sentence

_MOST, _MOST_OF_KEY = 6, 2
"""Finds of an objective, and of one that is about a knob with that knob."""
LEAST_NEARBY = 5
"""Of the scenarios nearby. What fewer of them show hangs on one number, and is no find."""
_SEARCH_SHARE = 0.7
"""Of the time; the rest is for what was found."""


@dataclass(frozen=True)
class Answer:
    """Finds, the surest first; each with the name and the text of its file. `sources`: files that these name, by their
    paths beside them. `over`: the time was over first, so that another run may find more; `unchecked`: what the
    search had found by then, and nobody made small or ran again."""

    sides: Sides
    finds: list[Find]
    files: dict[str, str]
    sources: dict[str, str]
    searched: int
    spent: int
    over: bool
    unchecked: int

    @property
    def told(self) -> list[tuple[str, str]]:
        """The file of each find, and its sentence."""
        return [(name, sentence(find, self.sides)) for name, find in zip(self.files, self.finds, strict=True)]

    def json(self) -> list[dict[str, Any]]:
        return [as_json(find, name, self.sides) for name, find in zip(self.files, self.finds, strict=True)]


def answered(
    algorithm: str,
    *,
    against: str | None,
    runs: int,
    seconds: float,
    seed: int,
    workers: int,
    progress: Callable[[str], None] = lambda _: None,
) -> Answer:
    """Raises UsageError: there is no such algorithm, or it is compared with itself."""
    other = against or ("reno" if algorithm == "cubic" else "cubic")
    (own_name, other_name), of_files = naming.chosen("algorithms", (algorithm, other))
    if own_name == other_name:
        raise UsageError(f"against: got {other}, which the search is about; expected another algorithm.")
    if slow := next((one.built.path for one in of_files if one.built.kind == "prototype"), None):
        raise UsageError(
            f"algorithm: got {slow}, a prototype in Python; expected an algorithm in C, of which a search makes "
            "millions of calls. `knee compare` runs a prototype."
        )
    naming.note(of_files)
    paths = {one.name: one.built.path for one in of_files}
    sides = Sides(
        own_name, other_name, paths.get(own_name, own_name), paths.get(other_name, other_name), tuple(of_files)
    )
    begun = time.monotonic()
    with on_processes(workers, progress) as on_all:
        found = sought(sides, runs=runs, seed=seed, until=begun + _SEARCH_SHARE * seconds, on_all=on_all)
        finds, spent, unchecked = _finds(sides, found.questions, seed, begun + seconds, on_all)
    named, sources = beside_finds(sides)
    files: dict[str, str] = {}
    for find in finds:
        name = file_name(find, sides, files)
        files[name] = scenario(find, named, seed)
    return Answer(
        sides, finds, files, sources if finds else {}, found.runs, spent, found.over or unchecked > 0, unchecked
    )


def _finds(
    sides: Sides, questions: list[list[Question]], seed: int, until: float, on_all: OnAll
) -> tuple[list[Find], int, int]:
    """Of each arm of the search one question after the other, since a find can explain the next; of all arms at
    once. Of finds with one cause the surest stays. Also how many runs that took, and how many questions are left."""
    of_arm: list[list[Find]] = [[] for _ in questions]
    left = [list(every) for every in questions]
    spent = 0
    while any(left):
        if time.monotonic() >= until:
            break
        places = [place for place, every in enumerate(left) if every]
        work = [(sides, seed, left[place].pop(0), tuple(find.asked for find in of_arm[place])) for place in places]
        title = f"{sum(map(len, of_arm))} finds made small; this round"
        for place, (found, runs) in zip(places, on_all(title, shrunk, work), strict=True):
            spent += runs
            if found is not None and found.of_nearby >= LEAST_NEARBY:
                of_arm[place].append(found)
                if len(of_arm[place]) == (_MOST_OF_KEY if found.asked.key else _MOST):
                    left[place].clear()
    kept: list[Find] = []
    for find in sorted((find for finds in of_arm for find in finds), key=_surest):
        if not any(_is_like(find, other) for other in kept):
            kept = [*(other for other in kept if not _is_like(other, find)), find]
    return kept, spent, sum(map(len, left))


def _is_like(find: Find, other: Find) -> bool:
    """Has it the other's cause, and perhaps more?"""
    if find.asked.objective != other.asked.objective:
        return False
    core = other.asked.case.core
    return find.asked.cause == other.asked.cause or (bool(core) and core <= find.asked.case.core)


def _surest(find: Find) -> tuple[int, int, tuple[str, ...], str]:
    return -find.of_nearby, -find.of_seeds, find.asked.cause, find.asked.case.settings

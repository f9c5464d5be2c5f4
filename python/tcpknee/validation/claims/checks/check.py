"""The request and the result of a check, and the comparison that checks share with expectations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tcpknee.evidence import expect, stats, written
from tcpknee.evidence.expect import Outcome
from tcpknee.evidence.stats import Floats
from tcpknee.runs.pool import Watcher
from tcpknee.runs.results import Run


@dataclass(frozen=True)
class Request:
    """`run` is that of the claim's scenario, where it has one. `folder` is for files; it need not exist. `workers`:
    what runs at once, by default one per processor."""

    run: Run | None
    seed: int
    quick: bool
    folder: Path
    workers: int | None = None
    watcher: Watcher = field(default_factory=Watcher)

    @property
    def of_scenario(self) -> Run:
        """The run, of a claim that has a scenario."""
        assert self.run is not None, "the claim of this check has a scenario"
        return self.run


@dataclass(frozen=True)
class Found:
    """What must hold, and whether it does; and values to show, as (label, text)."""

    outcomes: Sequence[Outcome]
    ours: Sequence[tuple[str, str]]


def fact(what: str, holds: bool, detail: str) -> Outcome:
    """Something that is so or not, without an interval."""
    return Outcome(what, 0, "holds" if holds else "fails", detail)


def smaller(what: str, left: Floats, right: Floats) -> Outcome:
    """Whether `left` is below `right`, by the interval of their ratio over the repetitions, or of their difference
    where a zero makes ratios meaningless."""
    ratio = stats.ratio(left / right) if np.all(right > 0) else None
    if ratio is not None:
        verdict = expect.decide("<", ratio.map(lambda value: value - 1))
        return Outcome(what, 0, verdict, f"left / right is {' '.join(written.ratio(ratio)).rstrip()}")
    step = stats.estimate(left - right, stats.UNBOUNDED)
    if step is None:
        return Outcome(what, 0, "undecided", "no repetition has both sides")
    return Outcome(what, 0, expect.decide("<", step), f"left - right is {' '.join(written.bracketed(step)).rstrip()}")


def text_of(values: Floats, unit: str) -> str:
    """`41.2 kB [40.1, 42.3]`: the mean of repetitions in this unit."""
    found = stats.estimate(values, (0.0, float("inf")))
    if found is None:
        return "-"
    number, bracket = written.bracketed(found)
    return " ".join(filter(None, (number, unit, bracket)))

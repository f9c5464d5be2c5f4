"""`[[expect]]`: comparisons of metrics, checked on intervals.

    bbr1.goodput / cubic.goodput >= 20
    cubic[path.loss="1.5%"].goodput < 3% * cubic[path.loss="0%"].goodput
    95% <= total.utilisation and cubic.limited_by.sndbuf > 50%

A term is `NAME.METRIC`: NAME is a flow's name or its algorithm, or `total` for the whole cell; METRIC one of
`metrics.METRICS` or `TOTALS` (`goodput` is short for `goodput_bits_per_sec`) or `limited_by.cwnd` and its like. An
index picks a value of an axis; an axis that no index picks is gone through, and the expectation must hold at each of
its values. Numbers carry their unit. Each side is computed in every repetition, so that pairs share a seed, and the
95 % interval of left - right decides: the expectation holds when the whole interval agrees, fails when none of it
does, and is undecided otherwise, which counts as failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import human, terms
from .errors import ScenarioError
from .expressions import Chain, Problem, Quantity, Term, check_dimensions, parse, terms_of
from .stats import Estimate, Summary, estimate


@dataclass(frozen=True)
class Outcome:
    """An expectation after the run. `verdict`: "holds", "fails" or "undecided"; only the first passes."""

    assertion: str
    line: int
    verdict: str
    detail: str

    @property
    def passed(self) -> bool:
        return self.verdict == "holds"

    def json(self) -> dict[str, Any]:
        return {"assert": self.assertion, "line": self.line, "verdict": self.verdict, "detail": self.detail}


def check(expects: Sequence[tuple[str, int]], cells: Sequence[Mapping[str, Any]], file: str) -> None:
    """Refuses, before anything runs, an expectation that cannot be read or that names what the scenario has not.

    Raises `ScenarioError` with file and line.
    """
    for number, (assertion, line) in enumerate(expects):
        try:
            chains = parse(assertion)
            used = terms_of(chains)
            for assignment in terms.assignments(used, cells):
                for term in used:
                    terms.find(term, assignment, cells)
            check_dimensions(chains)
        except Problem as problem:
            raise ScenarioError(f"{file}:{line}: expect.{number}.assert: {problem}") from None


def evaluate(expects: Sequence[tuple[str, int]], summary: Summary, cells: Sequence[Mapping[str, Any]]) -> list[Outcome]:
    """Each expectation's outcome; they have passed `check`."""
    return [_evaluate(assertion, line, summary, cells) for assertion, line in expects]


_ORDER = {"holds": 0, "undecided": 1, "fails": 2}


def _evaluate(assertion: str, line: int, summary: Summary, cells: Sequence[Mapping[str, Any]]) -> Outcome:
    chains = parse(assertion)
    worst, details = "holds", []
    used = terms_of(chains)
    for assignment in terms.assignments(used, cells):
        values = {term: terms.values(term, assignment, summary, cells) for term in used}
        where = ", ".join(f"{key}={value}" for key, value in assignment.items())
        for chain in chains:
            verdict, detail = _judge(chain, values)
            worst = max(worst, verdict, key=_ORDER.__getitem__)
            details.append(f"{detail} ({where})" if where else detail)
    return Outcome(assertion, line, worst, "; ".join(details))


def _judge(chain: Chain, values: Mapping[Term, Quantity]) -> tuple[str, str]:
    left, right = (side.value(values) for side in (chain.left, chain.right))
    step = left.minus(right)
    found = estimate(step.values)
    if found is None:
        return "undecided", "no repetition has both sides"
    verdict = _verdict(chain.operator, found)
    shown = left if len(np.unique(right.values)) == 1 else step
    what = "left is" if shown is left else "left - right is"
    if shown is step and chain.right_is_constant():
        what, shown = "right is", right
    note = ""
    if found.n == 1:
        note = ", judged on one repetition, without an interval"
    elif verdict == "undecided":
        note = ", so the interval holds both outcomes"
    return verdict, f"{what} {_show(shown)}{note}"


def _show(quantity: Quantity) -> str:
    found = estimate(quantity.values)
    if found is None:
        return "unknown"
    kind, factor = quantity.display()
    divisor, unit = human.scale(kind, found.mean * factor) if kind else (1.0, "")
    text = f"{human.digits(found.mean * factor / divisor)} {unit}".rstrip()
    if found.low is None or found.high is None or found.identical:
        return text
    low, high = found.low * factor / divisor, found.high * factor / divisor
    return f"{text} {human.interval(low, high)}"


def _verdict(operator: str, step: Estimate) -> str:
    """Of the interval of left - right."""
    low = step.mean if step.low is None else step.low
    high = step.mean if step.high is None else step.high
    if operator == "==":
        return "holds" if low == high == 0 else "fails"
    if operator in ("<", "<="):
        low, high = -high, -low
    strict = operator in ("<", ">")
    if low > 0 or (low == 0 and not strict):
        return "holds"
    return "fails" if high < 0 or (high == 0 and strict) else "undecided"

"""`[[expect]]`: comparisons of metrics, checked on intervals.

    bbr1.goodput / cubic.goodput >= 20
    cubic[path.loss="1.5%"].goodput < 3% * cubic[path.loss="0%"].goodput
    95% <= total.utilisation and cubic.limited_by.sndbuf > 50%

A term is `NAME.METRIC`: NAME is a flow's name or its algorithm, or `total` for all flows together; METRIC one of
`metrics.METRICS` or `TOTALS` (`goodput` is short for `goodput_bits_per_sec`) or `limited_by.cwnd` and its like. An
index picks a value of an axis; an axis that no index picks is gone through, and the expectation must hold at each of
its values. Numbers carry their unit. Each side is computed in every repetition, so that pairs share a seed. Where one
side is a number, the 95 % interval of the other decides, which is the one that tables and verdicts have; else that of
left - right. The expectation holds when the whole interval agrees, fails when none of it does, and is undecided
otherwise, which counts as failed. What names and axes mean, and what the unit of evidence is where it is no repetition,
the `Meanings` say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import metrics, written
from .expressions import Chain, Meanings, Problem, Quantity, Term, check_dimensions, parse, terms_in, terms_of
from .stats import FURTHEST_ADVICE, LEAST_TO_ADVISE, Estimate, Unit, ratio, units_for


@dataclass(frozen=True)
class Outcome:
    """An expectation after the run. `verdict`: "holds", "fails" or "undecided"; only the first passes. `needed`:
    about so many units would decide an undecided one, if their mean stays where it is; None where that cannot be told.
    `spare`: how far the nearest side is from its limit, as a share of that, below 0 where it is beyond. `n`: the least
    units that a comparison was of. `places`: where it was looked at in several, the verdict, the place and what was
    found of each, which `detail` has in one.
    """

    assertion: str
    line: int
    verdict: str
    detail: str
    needed: int | None = None
    spare: float = 0.0
    n: int = 0
    places: tuple[tuple[str, str, str], ...] = ()

    @property
    def passed(self) -> bool:
        return self.verdict == "holds"

    def json(self) -> dict[str, Any]:
        return {"assert": self.assertion, "line": self.line, "verdict": self.verdict, "detail": self.detail}


def mistakes(expects: Sequence[tuple[str, int]], meanings: Meanings) -> list[tuple[int, str, str]]:
    """Expectations that cannot be read or that name what there is not, as in `ScenarioError.mistakes`."""
    found = []
    for number, (assertion, line) in enumerate(expects):
        try:
            chains = parse(assertion)
            used = terms_of(chains)
            for place in meanings.places(used):
                for term in used:
                    meanings.find(term, place)
            check_dimensions(chains)
        except Problem as problem:
            found.append((line, f"expect.{number}.assert", str(problem)))
    return found


def unread(expects: Sequence[tuple[str, int]]) -> list[tuple[int, str, str]]:
    """Expectations that cannot be read, whatever there is; those without text have been told of."""
    found = []
    for number, (assertion, line) in enumerate(expects):
        try:
            if assertion:
                parse(assertion)
        except Problem as problem:
            found.append((line, f"expect.{number}.assert", str(problem)))
    return found


def evaluate(expects: Sequence[tuple[str, int]], meanings: Meanings) -> list[Outcome]:
    """Each expectation's outcome; `mistakes` found none in them."""
    return [_evaluate(assertion, line, meanings) for assertion, line in expects]


_ORDER = {"holds": 0, "undecided": 1, "fails": 2}


def _evaluate(assertion: str, line: int, meanings: Meanings) -> Outcome:
    chains = parse(assertion)
    worst, places, needed, steps = "holds", [], [], []
    used = terms_of(chains)
    for place in meanings.places(used):
        values = {term: meanings.values(term, place) for term in used}
        where = ", ".join(f"{key}={value}" for key, value in place.items())
        for chain in chains:
            verdict, detail, units, step = _judge(chain, values, meanings.unit)
            steps += [step] if step else []
            worst = max(worst, verdict, key=_ORDER.__getitem__)
            needed += [units] if verdict == "undecided" else []
            places.append((verdict, where, detail))
    known = [units for units in needed if units is not None]
    most = max(known) if worst == "undecided" and len(known) == len(needed) else None
    spare, n = min(steps)[0] if steps else 0.0, min((n for _, n in steps), default=0)
    told = "; ".join(f"{detail} ({where})" if where else detail for _, where, detail in places)
    several = tuple(places) if len({where for _, where, _ in places}) > 1 else ()
    return Outcome(assertion, line, worst, told, most, spare, n, several)


def _judge(
    chain: Chain, values: Mapping[Term, Quantity], unit: Unit
) -> tuple[str, str, int | None, tuple[float, int] | None]:
    """The verdict, what was found, how many units would decide what is undecided, and what was found as the share that
    it is from the limit, to the side that holds, with how many units that is of."""
    left, right = (side.value(values) for side in (chain.left, chain.right))
    if not terms_in(chain.right):
        what, shown, other, sign = "left is", left, right, 1
    elif chain.right_is_constant():
        what, shown, other, sign = "right is", right, left, -1
    else:
        what, shown, other, sign = "left - right is", left.minus(right), None, 1
    if other is not None:
        # A share beside a percentage is shown as one.
        shown = replace(shown, percent=shown.percent or other.percent)
    found = shown.estimate()
    limit = 0.0 if other is None else float(other.values[0])
    if found is None or np.isnan(limit):
        missing = "both sides" if other is None else "a value that is known"
        return "undecided", f"no {unit.one} has {missing}{_why_unknown(chain, values)}", None, None
    # The very interval that is shown decides.
    verdict = decide(chain.operator, found.map(lambda value: sign * (value - limit)))
    spare = sign * (found.mean - limit) / (abs(limit) or 1.0)
    spare = -abs(spare) if chain.operator == "==" else -spare if chain.operator in ("<", "<=") else spare
    note, needed = "", None
    if found.n == 1:
        note = f", judged on one {unit.one}, without an interval"
    elif verdict == "undecided":
        needed = _needed(shown, limit)
        note = f", so the interval holds both outcomes{_advice(needed, found.n, unit)}"
    return verdict, f"{what} {shown_as_text(shown)}{note}", needed, (spare, found.n)


def _why_unknown(chain: Chain, values: Mapping[Term, Quantity]) -> str:
    """What terms without any value would need, as far as their metrics say it."""
    unknown = [term for term in terms_of([chain]) if np.isnan(values[term].values).all()]
    needs = {term: metrics.BY_NAME[term.metric].needs for term in unknown if term.metric in metrics.BY_NAME}
    return "".join(f"; {term} needs {needed}" for term, needed in needs.items() if needed)


def _needed(shown: Quantity, limit: float) -> int | None:
    """How many units would have an interval to one side of the limit, if mean and deviation stay as they are."""
    values = shown.values[~np.isnan(shown.values)]
    if shown.quotient and limit > 0 and ratio(values) is not None:
        values, limit = np.log(values), float(np.log(limit))
    apart = abs(float(values.mean()) - limit)
    if len(values) < LEAST_TO_ADVISE or apart == 0:
        return None
    return units_for(float(values.std(ddof=1)), apart)


def _advice(needed: int | None, n: int, unit: Unit) -> str:
    if needed is None:
        return ""
    if needed > FURTHEST_ADVICE * n:
        return f"; more than {FURTHEST_ADVICE * n} {unit.many} would be needed"
    return f"; about {needed} {unit.many} would decide"


def shown_as_text(quantity: Quantity) -> str:
    """`48.12 Mbit/s [47.81, 48.43]`, `21.0× [19.4, 22.5]`; `-` where there is none."""
    found = quantity.estimate()
    if found is None or np.isnan(found.mean):
        return "-"
    if quantity.is_ratio:
        return " ".join(written.ratio(found)).rstrip()
    kind, factor = quantity.display()
    return " ".join(written.quantity(found.map(lambda value: value * factor), kind)).rstrip()


def decide(operator: str, step: Estimate) -> str:
    """ "holds", "fails" or "undecided", by the interval of left - right."""
    low = step.mean if step.low is None else step.low
    high = step.mean if step.high is None else step.high
    if operator == "==":
        return "holds" if low == high == 0 else "undecided" if low <= 0 <= high else "fails"
    if operator in ("<", "<="):
        low, high = -high, -low
    strict = operator in ("<", ">")
    if low > 0 or (low == 0 and not strict):
        return "holds"
    return "fails" if high < 0 or (high == 0 and strict) else "undecided"

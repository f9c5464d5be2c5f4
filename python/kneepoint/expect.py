"""The language of `[[expect]]`: comparisons of metrics, checked on intervals.

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
from itertools import product
from typing import Any

import numpy as np

from . import human, metrics
from .errors import ScenarioError
from .expressions import Chain, Problem, Quantity, Term, check_dimensions, parse, terms_of
from .stats import Estimate, Group, Summary, Total, estimate


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
            for assignment in _assignments(chains, cells):
                for term in terms_of(chains):
                    _find_in_cells(term, assignment, cells)
            check_dimensions(chains)
        except Problem as problem:
            raise ScenarioError(f"{file}:{line}: expect[{number}].assert: {problem}") from None


def evaluate(expects: Sequence[tuple[str, int]], summary: Summary, cells: Sequence[Mapping[str, Any]]) -> list[Outcome]:
    """Each expectation's outcome; they have passed `check`."""
    return [_evaluate(assertion, line, summary, cells) for assertion, line in expects]


_ORDER = {"holds": 0, "undecided": 1, "fails": 2}


def _evaluate(assertion: str, line: int, summary: Summary, cells: Sequence[Mapping[str, Any]]) -> Outcome:
    chains = parse(assertion)
    worst, details = "holds", []
    for assignment in _assignments(chains, cells):
        values = {term: _values(term, assignment, summary, cells) for term in terms_of(chains)}
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


def _assignments(chains: Sequence[Chain], cells: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Every combination of the values of axes that some term leaves open."""
    terms = list(terms_of(chains))
    axes = {
        key: list(dict.fromkeys(dict(cell["axes"])[key] for cell in cells))
        for key, _ in (cells[0]["axes"] if cells else [])
    }
    for term in terms:
        for key, value in term.index:
            if key not in axes:
                known = ", ".join(axes) or "none"
                raise Problem(f'got the axis "{key}"; expected an axis of this scenario: {known}')
            if value not in axes[key]:
                raise Problem(f'got {key}="{value}"; expected one of {", ".join(axes[key])}')
    free = [key for key in axes if not all(_fixed(key, term, cells) for term in terms)]
    return [dict(zip(free, values, strict=True)) for values in product(*(axes[key] for key in free))]


def _fixed(key: str, term: Term, cells: Sequence[Mapping[str, Any]]) -> bool:
    """Does the term itself settle that axis, by its index or by naming a value of it?"""
    if key in dict(term.index):
        return True
    if not key.endswith((".algorithm", ".name")):
        return False
    group = int(key.split(".")[1])
    meant = [
        flow["group"] == group and dict(cell["axes"])[key] == term.name
        for cell in cells
        for flow in cell["flows"]
        if term.name in (flow["name"], flow["algorithm"])
    ]
    return bool(meant) and all(meant)


def _find_in_cells(term: Term, assignment: Mapping[str, str], cells: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """(cell, group) that a term means; group -1 is the whole cell."""
    if term.metric not in _metric_names(term.name):
        names = _metric_names(term.name)
        raise Problem(
            f'got the metric "{term.metric}" of {term.name}; ' + suggest(term.metric, names, "expected one of")
        )
    wanted = {**assignment, **dict(term.index)}
    in_place = [cell for cell in cells if all(dict(cell["axes"])[key] == value for key, value in wanted.items())]
    if term.name == "total":
        found = [(int(cell["index"]), -1) for cell in in_place]
    else:
        found = _groups(term.name, "name", in_place) or _groups(term.name, "algorithm", in_place)
    if not found:
        known = sorted({text for cell in cells for flow in cell["flows"] for text in (flow["name"], flow["algorithm"])})
        raise Problem(
            f'got "{term.name}"; ' + suggest(term.name, [*known, "total"], "expected a flow or an algorithm:")
        )
    if len(found) > 1:
        raise Problem(
            f"{term} could mean {len(found)} groups of flows; give the flows names (`name = ...`) or pick an axis, "
            f'as in {term.name}[path.rtt="100ms"].{term.metric}'
        )
    return found[0]


def _groups(name: str, attribute: str, cells: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    return [
        (int(cell["index"]), int(flow["group"])) for cell in cells for flow in cell["flows"] if flow[attribute] == name
    ]


def _metric_names(name: str) -> list[str]:
    if name == "total":
        return [metric.name for metric in metrics.TOTALS] + ["goodput", "utilization"]
    limits = [f"limited_by.{limit}" for limit in (*metrics.LIMITS, "other")]
    short = [alias for alias, full in metrics.ALIASES.items() if full != "utilisation"]
    return [*short, *(metric.name for metric in metrics.METRICS), *limits]


def suggest(got: str, known: Sequence[str], expected: str) -> str:
    """`expected …: a, b, c. Did you mean "b"?`"""
    from difflib import get_close_matches

    close = get_close_matches(got, known, n=1)
    return f"{expected} {', '.join(known)}" + (f'. Did you mean "{close[0]}"?' if close else "")


def _values(
    term: Term, assignment: Mapping[str, str], summary: Summary, cells: Sequence[Mapping[str, Any]]
) -> Quantity:
    cell, group = _find_in_cells(term, assignment, cells)
    name = metrics.ALIASES.get(term.metric, term.metric)
    rows: Sequence[Group | Total] = summary.totals if group < 0 else summary.groups
    found = next(
        (row for row in rows if row.cell == cell and (isinstance(row, Total) or row.group == group)),
        None,
    )
    repeat = 1 + max((int(row.reps.max()) for row in summary.groups), default=0)
    values = np.full(repeat, np.nan)
    if found is not None:
        values[found.reps] = found.values[name]
    kind = metrics.BY_NAME[name].kind if name in metrics.BY_NAME else "share"
    return Quantity.of_metric(kind, values)

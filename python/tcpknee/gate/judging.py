"""Runs the rows of a suite with an algorithm and with the one that it is measured against, and judges them.

Both meet the same seeds, so that repetitions are paired. A row has two answers: what changed beside the base (better,
worse, same, undecided), and whether what the row asks holds (ok, not ok, undecided). A difference counts where its
whole 95 % interval is beyond the row's margin.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tcpknee import _core, human
from tcpknee.errors import AlgorithmFailed, EngineError, ScenarioError
from tcpknee.evidence import expect, metrics, written
from tcpknee.evidence.expressions import Node, Place, Problem, Quantity, Term, parse, parse_value, terms_in, terms_of
from tcpknee.evidence.stats import Estimate, Floats, Unit, estimate, ratio
from tcpknee.kernels import cache
from tcpknee.runs import api, compose, named_files
from tcpknee.runs.other_values import with_values
from tcpknee.runs.pool import Watcher
from tcpknee.runs.results import Run
from tcpknee.runs.terms import OfCells
from tcpknee.writing import replacing

from . import suite as suites
from .candidates import Candidate
from .suite import Row, Suite

OK, NOT_OK, UNDECIDED, CRASHED = "ok", "not ok", "undecided", "crashed"
NO_TIME, NOT_RUN = "no time", "not run"
PROSE, NOT_TESTED = "prose wanted", "not tested"
BETTER, WORSE, SAME = "better", "worse", "same"

_HARMS = {
    "completion_us_p50": ("completion", 0.0),
    "latency_us_p95": ("latency", 0.0),
    "goodput_bits_per_sec": ("goodput", 0.0),
    "queue_delay_us_mean": ("delay", 1000.0),
    "retransmit_pct": ("loss", 1.0),
}
"""Metrics that harm is told in, those that users feel first; what they are called, and by how much of its unit the
harmed flow must be worse off than beside the base before harm decides: a share of nearly nothing is no harm."""

HARM_MARGIN = 0.1
"""Harm may be that much more than the base does. Ours: RFC 9743 has no number."""

_WORST = {WORSE: 0, UNDECIDED: 1, SAME: 2, BETTER: 3}


@dataclass(frozen=True, eq=False)
class OfRuns:
    """Terms as a suite means them: of the run that the index `run` names, or else of `usual`. `only`: at one place."""

    runs: Mapping[str, OfCells]
    usual: str = "new"
    only: Mapping[str, str] | None = None

    @property
    def unit(self) -> Unit:
        return self.runs[self.usual].unit

    def places(self, terms: Sequence[Term]) -> list[dict[str, str]]:
        """As `Meanings` has it; runs have the same axes."""
        if self.only is not None:
            return [dict(self.only)]
        return self._of(self.usual).places([_bare(term) for term in terms])

    def find(self, term: Term, place: Place) -> tuple[int, int]:
        """As `Meanings` has it."""
        return self._of(self._run(term)).find(_bare(term), place)

    def values(self, term: Term, place: Place) -> Quantity:
        """As `Meanings` has it."""
        return self._of(self._run(term)).values(_bare(term), place)

    def value(self, node: Node, place: Place) -> Quantity:
        """Of an expression, in each repetition."""
        return node.value({term: self.values(term, place) for term in terms_in(node)})

    def _run(self, term: Term) -> str:
        return dict(term.index).get("run", self.usual)

    def _of(self, run: str) -> OfCells:
        if run not in self.runs:
            raise Problem(f'got run="{run}"; expected one of {", ".join(self.runs)}')
        return self.runs[run]


def _bare(term: Term) -> Term:
    return replace(term, index=tuple((key, value) for key, value in term.index if key != "run"))


@dataclass(frozen=True)
class Harm:
    """What an algorithm does to the flow that it shares with: the share of what that one has alone which it takes (Ware
    et al., HotNets 2019). `new` beside `base`, which another flow of the base's algorithm does."""

    metric: str
    place: Mapping[str, str]
    new: Estimate
    base: Estimate | None
    verdict: str

    @property
    def where(self) -> str:
        """`buffer 1bdp, rtt 20ms`."""
        return _where(self.place)

    @property
    def text(self) -> str:
        """`goodput: harm 0.62 [0.60, 0.64], the base's own 0.48 [0.45, 0.51]`."""
        own = f", the base's own {_number(self.base)}" if self.base else ""
        return f"{self.metric}: harm {_number(self.new)}{own}"

    def json(self) -> dict[str, Any]:
        """The object of JSON."""
        return {
            "metric": self.metric,
            "at": self.where,
            "new": self.new.json(),
            "base": self.base.json() if self.base else None,
            "new_text": _number(self.new),
            "base_text": _number(self.base) if self.base else "-",
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Limit:
    """What a row asks, at the place where it holds least."""

    outcome: expect.Outcome
    place: Mapping[str, str]

    @property
    def verdict(self) -> str:
        """ "holds", "fails" or "undecided"."""
        return self.outcome.verdict

    @property
    def text(self) -> str:
        """`new.retransmit_pct <= 5%: left is 11.2 % [9.8, 12.6]`."""
        return f"{self.outcome.assertion}: {self.outcome.detail.split(' (')[0]}"

    def json(self) -> dict[str, Any]:
        """The object of JSON."""
        return {**self.outcome.json(), "at": _where(self.place)}


@dataclass(frozen=True)
class Change:
    """The measure beside the base's at a place: `found` is new / base, or its like where one of them is 0, turned so
    that more than 1 is better; `told` is new / base as it is. `asked`: the base's, as an assertion."""

    verdict: str
    place: Mapping[str, str]
    found: Estimate | None
    told: str
    asked: str = ""

    @property
    def where(self) -> str:
        """`buffer 1bdp, rtt 20ms`."""
        return _where(self.place)

    def json(self) -> dict[str, Any]:
        """The object of JSON."""
        found = self.found.json() if self.found else None
        return {"verdict": self.verdict, "at": self.where, "ratio_better": found, "text": self.told}


@dataclass(frozen=True)
class Judged:
    """A row after its runs. `verdict` is whether what it asks holds, `base` the same of the base; `changes` has the
    measure at each place, the worst first. `worst`: a finding in words, `place` where it is. `scenario`: the file of
    the row, `finding` the one of ten lines that shows it, None without."""

    row: Row
    engine: str
    verdict: str
    base: str = ""
    changes: Sequence[Change] = ()
    limits: Sequence[Limit] = ()
    harms: Sequence[Harm] = ()
    worst: str = ""
    place: Mapping[str, str] = field(default_factory=dict)
    scenario: str | None = None
    finding: str | None = None

    @property
    def change(self) -> str:
        """better, worse, same or undecided; empty where nothing was compared."""
        return self.changes[0].verdict if self.changes else ""

    @property
    def is_regression(self) -> bool:
        """Does it speak against the algorithm, beside the base?"""
        lost = self.verdict == NOT_OK and self.base == OK
        return self.verdict == CRASHED or (not self.row.stress and (self.change == WORSE or lost))

    @property
    def fails(self) -> bool:
        """Does it speak against the algorithm by what the row asks?"""
        return self.verdict == CRASHED or (self.verdict == NOT_OK and not self.row.stress)

    def json(self) -> dict[str, Any]:
        """The object of JSON."""
        row = self.row
        return {
            "name": row.name,
            "section": row.section or None,
            "must": row.must,
            "stress": row.stress,
            "question": row.question,
            "engine": self.engine or None,
            "verdict": self.verdict,
            "base": self.base or None,
            "change": self.change or None,
            "worst": self.worst or None,
            "thresholds": {"ours": True, "limits": list(row.limits), "margin": row.margin, "why": row.why or None}
            if row.scenario
            else None,
            "changes": [one.json() for one in self.changes],
            "limits": [one.json() for one in self.limits],
            "harm": [one.json() for one in self.harms],
            "scenario": self.scenario,
            "reproducer": self.finding,
        }


@dataclass
class Gate:
    """What is asked. `deadline`: `time.monotonic` after which no row is begun; None: there is none. `base_kernel`: the
    base's, by its rules or as a guest; empty: those of `kernels`."""

    suite: Suite
    new: Candidate
    base: Candidate
    folder: Path
    engine: str = "sim"
    kernels: Sequence[str] = ()
    base_kernel: str = ""
    seed: int = 1
    deadline: float | None = None
    workers: int | None = None
    watcher: Watcher = field(default_factory=Watcher)

    def run(self, tell: Any = lambda _: None) -> list[Judged]:
        """Every row. Raises `ScenarioError` for a row that cannot be read."""
        found = []
        for number, row in enumerate(self.suite.rows, start=1):
            tell(f"{number} of {len(self.suite.rows)} rows: {row.name}")
            found.append(self.judge(row))
        return found

    def judge(self, row: Row) -> Judged:
        """One row."""
        if row.prose:
            return Judged(row, "", PROSE, worst=row.prose)
        if row.not_tested:
            return Judged(row, "", NOT_TESTED, worst=row.not_tested)
        if not row.uses_new:
            said = f"No algorithm under test is in it: knee suite {self.suite.name} has its values."
            return Judged(row, "", NOT_TESTED, worst=said)
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return Judged(row, self.engine, NO_TIME, worst="--budget was spent before its turn")
        text = self._text(row)
        scenario = f"{row.name}.toml"
        head = f"# {self.suite.title}: {row.section or row.name}. {row.question}\n"
        self._write(scenario, head + text)
        asked = Judged(row, self.engine, UNDECIDED, scenario=scenario)
        try:
            found = self._judged(asked, self._meanings(row, text))
        except AlgorithmFailed as failure:
            # What the algorithm did is behind the name of the scenario, the cell and the seed.
            return replace(asked, verdict=CRASHED, worst=str(failure).partition(": ")[2], finding=scenario)
        except EngineError as error:
            return replace(asked, verdict=NOT_RUN, worst=" ".join(str(error).split()))
        return self._with_finding(found, text)

    def _text(self, row: Row) -> str:
        return self._with(suites.put(row.scenario, self.new.text, self.base.text), self.kernels)

    def _base_text(self, text: str) -> str:
        kernels = [self.base_kernel] if self.base_kernel else self.kernels
        return self._with(suites.put(text, self.base.text, self.base.text), kernels)

    def _with(self, text: str, kernels: Sequence[str]) -> str:
        seeded = f"seed = {self.seed}\n{text}"
        return compose.with_kernels(seeded, kernels) if kernels else seeded

    def _meanings(self, row: Row, text: str) -> OfRuns:
        texts = {"new": text}
        if self.new != self.base or self.base_kernel:
            texts["base"] = self._base_text(row.scenario)
        if row.harm:
            texts["alone"] = self._base_text(suites.without_new(row.scenario))
        runs = {name: self._of(name, row, of_run) for name, of_run in texts.items()}
        # The same runs of the same seeds.
        runs.setdefault("base", runs["new"])
        return OfRuns(runs)

    def _of(self, name: str, row: Row, text: str) -> OfCells:
        run = self._run(row, text)
        return OfCells(run.meta["cells"], run.summary)

    def _run(self, row: Row, text: str) -> Run:
        file = str(self.folder / f"{row.name}.toml")
        of_files = [one.of_file.for_core for one in (self.new, self.base) if one.of_file and one.text in text]
        try:
            scenario = _core.parse(
                text,
                file,
                read_file=named_files.named_by(file),
                kernels=cache.releases() if self.kernels or self.base_kernel else {},
                algorithms=of_files,
            )
        except ScenarioError as error:
            raise ScenarioError(f"{self.suite.file}:{row.line}: row {row.name}: {error}") from None
        return api.run_text(
            text,
            file,
            out=None,
            engine=self.engine,
            workers=self.workers,
            watcher=self.watcher,
            scenario=scenario,
        )

    def _judged(self, asked: Judged, runs: OfRuns) -> Judged:
        row = asked.row
        pairs = [(limit, row.line) for limit in row.limits]
        problems = expect.mistakes(pairs, runs)
        if problems:
            raise ScenarioError.of(str(self.suite.file), problems)
        limits = [_limit(pair, runs) for pair in pairs]
        changes = _changes(row, runs) if row.measure else []
        harms = _harms(row, runs) if row.harm else []
        found = replace(asked, limits=limits, changes=changes, harms=harms)
        found = replace(found, verdict=_verdict(found))
        of_base = [_limit(pair, replace(runs, usual="base")).verdict for pair in pairs]
        found = replace(found, base=_word(of_base))
        return replace(found, **_finding(found))

    def _with_finding(self, found: Judged, text: str) -> Judged:
        """The worst cell of a row that fails as a scenario of its own, with what it does not hold."""
        if not (found.fails or found.change == WORSE or (found.row.stress and found.verdict == NOT_OK)):
            return found
        for key, value in found.place.items():
            try:
                text = with_values(text, {key: f'"{value}"'})
            except AssertionError:
                # An axis of a table of several stays as it is.
                continue
        failed = [one.outcome.assertion for one in found.limits if one.verdict == "fails"]
        if found.change == WORSE:
            failed += [one.asked for one in found.changes if one.place == found.place and one.verdict == WORSE][:1]
        lines = [f"# {found.row.question}", f"# Found: {found.worst}", text.strip()]
        for bare in failed:
            if "run=" in bare or not bare:
                continue
            for key, value in found.place.items():
                bare = bare.replace(f'[{key}="{value}"]', "")
            lines += ["", "[[expect]]", f"assert = '{bare}'"]
        name = f"finding-{found.row.name}.toml"
        self._write(name, "\n".join(lines) + "\n")
        return replace(found, finding=name)

    def _write(self, name: str, text: str) -> None:
        with replacing(self.folder / name, make=True) as file:
            file.write(text.encode())

    @property
    def ran_on(self) -> str:
        """`guest, Linux 7.2 beside Linux 6.12`."""
        kernels = ", ".join([self.engine, *(f"Linux {one}" for one in self.kernels)])
        return kernels + (f" beside Linux {self.base_kernel}" if self.base_kernel else "")

    @cached_property
    def title(self) -> str:
        """`bbr3 beside cubic: The criteria of RFC 9743`; of another engine than the simulator with that."""
        where = f" ({self.ran_on})" if self.ran_on != "sim" else ""
        return f"{self.new.label} beside {self.base.label}: {self.suite.title}{where}"


def _number(found: Estimate) -> str:
    """`0.62 [0.60, 0.64]`."""
    return " ".join(written.bracketed(found)).rstrip()


def _where(place: Mapping[str, str]) -> str:
    return ", ".join(f"{key.removeprefix('path.')} {value}" for key, value in place.items())


def _word(verdicts: Sequence[str]) -> str:
    """Of what must all hold."""
    if "fails" in verdicts:
        return NOT_OK
    return UNDECIDED if "undecided" in verdicts else OK


def _verdict(found: Judged) -> str:
    """Of limits and harm; without either of the change."""
    words = [one.verdict for one in found.limits] + [one.verdict for one in found.harms]
    if words:
        return _word(words)
    return {WORSE: NOT_OK, UNDECIDED: UNDECIDED}.get(found.change, OK)


def _finding(found: Judged) -> dict[str, Any]:
    """What a reader should see first of a row: what fails, else the harm, else the worst change."""
    for verdict in ("fails", "undecided"):
        asked: list[Limit | Harm] = [*found.limits, *found.harms]
        for one in asked:
            if one.verdict == verdict:
                return {"worst": f"{one.text}{_at(one.place)}", "place": one.place}
    if found.harms:
        most = found.harms[0]
        return {"worst": f"{most.text}{_at(most.place)}", "place": most.place}
    if found.changes:
        worst = found.changes[0]
        return {"worst": f"{worst.told}{_at(worst.place)}", "place": worst.place}
    return {}


def _at(place: Mapping[str, str]) -> str:
    return f" at {_where(place)}" if place else ""


_ORDER = {"fails": 0, "undecided": 1, "holds": 2}


def _limit(pair: tuple[str, int], runs: OfRuns) -> Limit:
    """At the place where it holds least."""
    places = runs.places(terms_of(parse(pair[0])))
    found = [Limit(expect.evaluate([pair], replace(runs, only=place))[0], place) for place in places]
    return min(found, key=lambda one: _ORDER[one.verdict])


def _changes(row: Row, runs: OfRuns) -> list[Change]:
    """The measure beside the base's at each place, the worst first."""
    node = parse_value(row.measure)
    others = replace(runs, usual="base")
    found = []
    for place in runs.places(terms_in(node)):
        new, base = runs.value(node, place), others.value(node, place)
        change = _change(row, place, new.values, base.values)
        found.append(replace(change, asked=_asked(row, base)))
    return sorted(found, key=lambda one: (_WORST[one.verdict], one.found.mean if one.found else -math.inf))


_UNITS = {"rate": "bit/s", "time": "us", "pct": "%"}


def _asked(row: Row, base: Quantity) -> str:
    """That the measure is within the margin of the base's mean, for `knee run` to check."""
    kind, factor = base.display()
    found = base.estimate()
    if found is None or (kind and kind not in _UNITS):
        return ""
    share, sign = (1 - row.margin, ">=") if row.better == "more" else (1 / (1 - row.margin), "<=")
    return f"{row.measure} {sign} {found.mean * factor * share:.6g}{_UNITS.get(kind, '')}"


def _change(row: Row, place: Mapping[str, str], new: Floats, base: Floats) -> Change:
    missing = [int(np.isnan(values).sum()) for values in (new, base)]
    if missing[0] != missing[1]:
        worse = missing[0] > missing[1]
        said = f"{row.measure} has no value in {missing[0]} of {len(new)} repetitions, with the base in {missing[1]}"
        return Change(WORSE if worse else BETTER, place, None, said)
    known = ~np.isnan(new) & ~np.isnan(base)
    new, base = new[known], base[known]
    if not len(new):
        return Change(UNDECIDED, place, None, f"{row.measure} has no value")
    sign = 1 if row.better == "more" else -1
    if np.all(new > 0) and np.all(base > 0):
        quotient = ratio(new / base)
        assert quotient is not None
        told = " ".join(written.ratio(quotient)).rstrip()
        found = quotient if sign > 0 else quotient.map(lambda value: 1 / value)
    else:
        largest = max(float(np.abs(new).mean()), float(np.abs(base).mean())) or 1.0
        step = estimate((new - base) / largest)
        assert step is not None
        told = f"{human.digits(float(new.mean()))} instead of {human.digits(float(base.mean()))}"
        found = step.map(lambda value: 1 + sign * value)
    low = found.mean if found.low is None else found.low
    high = found.mean if found.high is None else found.high
    verdict = UNDECIDED
    if high < 1 - row.margin:
        verdict = WORSE
    elif low > 1 / (1 - row.margin):
        verdict = BETTER
    elif low >= 1 - row.margin and high <= 1 / (1 - row.margin):
        verdict = SAME
    return Change(verdict, place, found, f"{row.measure} {told}")


def _harms(row: Row, runs: OfRuns) -> list[Harm]:
    """Of each metric at each place where the flow has it, the worst verdict first, then as metrics come."""
    found = []
    for name, (label, material) in _HARMS.items():
        node = Term(row.harm, (), name)
        better = metrics.BY_NAME[name].better
        for place in runs.places([node]):
            new, base, alone = (_raw(runs.runs[run], node, place) for run in ("new", "base", "alone"))
            if np.all(np.isnan(alone)):
                continue
            shares = [_harm(values, alone, better) for values in (new, base)]
            of_new, of_base = (estimate(share) for share in shares)
            if of_new is None:
                continue
            excess = estimate(shares[0] - shares[1])
            word = expect.decide("<=", excess.map(lambda value: value - HARM_MARGIN)) if excess else "undecided"
            worse_by = float(np.nanmean((base - new) * better)) if excess else 0.0
            if word != "holds" and worse_by < material:
                word = "holds"
            found.append(Harm(label, place, of_new, of_base, word))
    metric = [label for label, _ in _HARMS.values()]
    return sorted(found, key=lambda one: (_ORDER[one.verdict], metric.index(one.metric), -one.new.mean))


def _raw(run: OfCells, term: Term, place: Place) -> Floats:
    """As tables have it: microseconds, and percentages from 0 to 100."""
    cell, group = run.find(term, place)
    assert run.summary is not None
    rows = [one for one in run.summary.groups if (one.cell, one.group) == (cell, group)]
    return rows[0].values[term.metric] if rows else np.array([np.nan])


def _harm(values: Floats, alone: Floats, better: int) -> Floats:
    """(alone - shared) / alone where more is better, (shared - alone) / shared where less is; no less than 0."""
    whole = alone if better > 0 else values
    step = (alone - values) * better
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.maximum(np.where(whole > 0, step / whole, 0.0), 0.0)

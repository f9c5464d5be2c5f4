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

from tcpknee import _core
from tcpknee.errors import AlgorithmFailed, EngineError, ScenarioError
from tcpknee.evidence import expect, metrics, written
from tcpknee.evidence.expressions import Node, Place, Problem, Quantity, Term, parse, parse_value, terms_in, terms_of
from tcpknee.evidence.stats import Estimate, Floats, Unit, estimate, ratio
from tcpknee.kernels import cache
from tcpknee.runs import api, compose, named_files
from tcpknee.runs.pool import Watcher
from tcpknee.runs.terms import OfCells
from tcpknee.writing import replacing

from . import cells
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
    "queue_delay_us_mean": ("delay", 0.001),
    "retransmit_pct": ("loss", 0.01),
}
"""Metrics of harm, those that users feel first, with their names in reports. Where less is better, a flow must be worse
off than beside the base by so much (seconds, a share) before that decides: a tenth of nearly nothing is no harm."""

HARM_MARGIN = 0.1
"""Harm in goodput may be so much more than the base's own, and what grows (delay, loss, time) may be that share more
than beside the base. Ours: RFC 9743 has no number."""

RUNS = "runs"
"""In a gate's folder: the runs of engines that take long."""

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
    et al., HotNets 2019). `new` beside `base`, which another flow of the base's algorithm does. `values`: what the flow
    has beside each of them, where that decides; the share does not tell what grows from nothing. `bound`: what a run
    would have to show for the row to hold, as an assertion, "" where none says it."""

    metric: str
    place: Mapping[str, str]
    new: Estimate
    base: Estimate | None
    verdict: str
    values: str
    bound: str

    @property
    def where(self) -> str:
        """`buffer 1bdp, rtt 20ms`."""
        return _where(self.place)

    @property
    def text(self) -> str:
        """`loss: 24.5 % instead of 1.5 %, harm 1.00, the base's own 0.98 [0.97, 0.99]`."""
        own = f", the base's own {_number(self.base)}" if self.base else ""
        values = f"{self.values}, " if self.values else ""
        return f"{self.metric}: {values}harm {_number(self.new)}{own}"

    def json(self) -> dict[str, Any]:
        """The object of JSON."""
        return {
            "metric": self.metric,
            "at": self.where,
            "new": self.new.json(),
            "base": self.base.json() if self.base else None,
            "new_text": _number(self.new),
            "base_text": _number(self.base) if self.base else "-",
            "values": self.values or None,
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
    """The measure beside the base's at a place. `found`: new / base, or its like where one of them is 0, turned so that
    more than 1 is better. `told`: new / base as reports print it. `asked`: that the measure is no worse, as an
    assertion."""

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


@dataclass(frozen=True, eq=False)
class _Ready:
    """A run that was read, and not begun."""

    text: str
    file: str
    scenario: _core.Scenario


@dataclass
class Gate:
    """What is asked. `only`: names of rows; empty: all. `deadline`: `time.monotonic` after which no row is begun; None:
    there is none. `base_kernel`: the base's, by its rules or as a guest; empty: those of `kernels`. `resume`: take what
    the folder has of an earlier one that did not come to its end."""

    suite: Suite
    new: Candidate
    base: Candidate
    folder: Path
    only: Sequence[str] = ()
    engine: str = "sim"
    kernels: Sequence[str] = ()
    base_kernel: str = ""
    seed: int = 1
    deadline: float | None = None
    workers: int | None = None
    resume: bool = False
    watcher: Watcher = field(default_factory=Watcher)
    _prepared: dict[str, Mapping[str, _Ready]] = field(default_factory=dict, init=False)

    @cached_property
    def rows(self) -> list[Row]:
        """Those that are run."""
        return [row for row in self.suite.rows if not self.only or row.name in self.only]

    def prepare(self) -> None:
        """Reads its rows. Raises `ScenarioError` for those that cannot be read, and `UsageError` for a kernel that the
        engine cannot have."""
        mistakes = []
        for row in self.rows:
            if row.uses_new:
                self._prepared[row.name], found = self._ready(row)
                mistakes += found
        if mistakes:
            raise ScenarioError.of(str(self.suite.file), mistakes)

    def run(self, tell: Any = lambda _: None) -> list[Judged]:
        """Its rows. Raises as `prepare` does, before anything runs."""
        if not self._prepared:
            self.prepare()
        for one in (self.new, self.base):
            one.write_sources(self.folder)
        judged = []
        for number, row in enumerate(self.rows, start=1):
            tell(f"{number} of {len(self.rows)} rows: {row.name}")
            judged.append(self._judge(row, self._prepared.get(row.name, {})))
        return judged

    def _judge(self, row: Row, ready: Mapping[str, _Ready]) -> Judged:
        if row.prose:
            return Judged(row, "", PROSE, worst=row.prose)
        if row.not_tested:
            return Judged(row, "", NOT_TESTED, worst=row.not_tested)
        if not row.uses_new:
            said = f"No algorithm under test is in it: knee suite {self.suite.name} has its values."
            return Judged(row, "", NOT_TESTED, worst=said)
        if self.deadline is not None and time.monotonic() >= self.deadline:
            return Judged(row, self.engine, NO_TIME, worst="--budget was spent before its turn")
        text, scenario = ready["new"].text, f"{row.name}.toml"
        head = f"# {self.suite.title}: {row.section or row.name}. {row.question}\n"
        self._write(scenario, head + text)
        asked = Judged(row, self.engine, UNDECIDED, scenario=scenario)
        runs: dict[str, OfCells] = {}
        lost = ""
        try:
            for name, one in ready.items():
                try:
                    runs[name] = self._run(f"{row.name}-{name}", one)
                except AlgorithmFailed as failure:
                    # What the algorithm did is behind the name of the scenario, the cell and the seed.
                    said = str(failure).partition(": ")[2]
                    if name == "new" and not self._is_of_base(failure):
                        return replace(asked, verdict=CRASHED, worst=said, finding=scenario)
                    lost = lost or f"base crashed: {said}"
        except EngineError as error:
            return replace(asked, verdict=NOT_RUN, worst=" ".join(str(error).split()))
        if "new" not in runs:
            return replace(asked, base=CRASHED, worst=lost)
        if not lost:
            # The same runs of the same seeds.
            runs.setdefault("base", runs["new"])
        found = self._judged(asked, OfRuns(runs))
        if lost:
            found = replace(found, base=CRASHED, worst=f"{found.worst}; {lost}" if found.worst else lost)
        return self._with_finding(found, text)

    def _is_of_base(self, failure: AlgorithmFailed) -> bool:
        """Was it the base's flow that did it, beside one of the algorithm?"""
        return failure.call.get("sha256") == self.base.sha256 != self.new.sha256

    def _text(self, row: Row) -> str:
        return self._with(suites.put(row.scenario, self.new.text, self.base.text), self.kernels)

    def _base_text(self, text: str) -> str:
        kernels = [self.base_kernel] if self.base_kernel else self.kernels
        return self._with(suites.put(text, self.base.text, self.base.text), kernels)

    def _with(self, text: str, kernels: Sequence[str]) -> str:
        seeded = f"seed = {self.seed}\n{text}"
        return compose.with_kernels(seeded, kernels) if kernels else seeded

    def _ready(self, row: Row) -> tuple[dict[str, _Ready], list[tuple[int, str, str]]]:
        """The row's runs, read, and mistakes in what it asks of them."""
        texts = {"new": self._text(row)}
        if self.new != self.base or self.base_kernel:
            texts["base"] = self._base_text(row.scenario)
        ready = {name: self._read(row, text) for name, text in texts.items()}
        at = (row.line, f"row {row.name}")
        left = suites.without_new(row.scenario)
        if row.harm and "[[flow]]" in left:
            ready["alone"] = self._read(row, self._base_text(left))
        elif row.harm:
            return ready, [(*at, f'harm: got "{row.harm}", and no flow but those of NEW; expected a flow of BASE')]
        runs = {name: OfCells(list(one.scenario.cells)) for name, one in ready.items()}
        meanings = OfRuns({"base": runs["new"], **runs})
        found = expect.mistakes([(limit, row.line) for limit in row.limits], meanings)
        asked = [("measure", meanings, terms_in(parse_value(row.measure)))] if row.measure else []
        if row.harm:
            asked.append(("harm", replace(meanings, usual="alone"), [Term(row.harm, (), name) for name in _HARMS]))
        for key, known, terms in asked:
            try:
                for place in known.places(terms):
                    for term in terms:
                        known.find(term, place)
            except Problem as problem:
                found.append((*at, f"{key}: {problem}"))
        return ready, found

    def _read(self, row: Row, text: str) -> _Ready:
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
        api.kernels_of(scenario, f"{self.suite.file}:{row.line}: row {row.name}", self.engine)
        return _Ready(text, file, scenario)

    def _run(self, name: str, ready: _Ready) -> OfCells:
        """What takes a minute or two of all rows is not kept; of the other engines a row does."""
        kept = self.folder / RUNS / name if self.engine != "sim" else None
        run = api.run_text(
            ready.text,
            ready.file,
            out=kept,
            resume=self.resume and kept is not None and (kept / "run.json").is_file(),
            engine=self.engine,
            workers=self.workers,
            watcher=self.watcher,
            scenario=ready.scenario,
        )
        return OfCells(run.meta["cells"], run.summary)

    def _judged(self, asked: Judged, runs: OfRuns) -> Judged:
        """By the runs that there are: a base that crashed leaves the limits."""
        row = asked.row
        pairs = [(limit, row.line) for limit in row.limits]
        if "base" not in runs.runs:
            pairs = [pair for pair in pairs if 'run="' not in pair[0]]
        limits = [_limit(pair, runs) for pair in pairs]
        beside = "base" in runs.runs
        each = replace(runs, runs={name: replace(one, each=True) for name, one in runs.runs.items()})
        changes = _changes(row, each) if row.measure and beside else []
        harms = _harms(row, each) if row.harm and beside and "alone" in runs.runs else []
        found = replace(asked, limits=limits, changes=changes, harms=harms)
        if not beside and not limits:
            return found
        found = replace(found, verdict=_verdict(found))
        if beside:
            found = replace(found, base=_word([_limit(pair, replace(runs, usual="base")).verdict for pair in pairs]))
        return replace(found, **_finding(found))

    def _with_finding(self, found: Judged, text: str) -> Judged:
        """The worst cell of a row that fails as a scenario of its own, with what does not hold there."""
        if not (found.fails or found.change == WORSE or (found.row.stress and found.verdict == NOT_OK)):
            return found
        asked = [one.outcome.assertion for one in found.limits if one.verdict == "fails" and one.place == found.place]
        asked += [one.bound for one in found.harms if one.verdict == "fails" and one.place == found.place]
        asked += [one.asked for one in found.changes if one.verdict == WORSE and one.place == found.place]
        # What names other runs than the one that is written here is left out.
        failed = [cells.without_index(one, found.place) for one in asked if one and "run=" not in one]
        if not failed:
            return found
        name = f"finding-{found.row.name}.toml"
        head = [f"# {found.row.question}", f"# Found: {found.worst}", f"# {self._shows_it(name)}"]
        lines = [*head, cells.one(text, found.place).strip()]
        for assertion in failed:
            lines += ["", "[[expect]]", f"assert = {compose.quoted(assertion)}"]
        self._write(name, "\n".join(lines) + "\n")
        return replace(found, finding=name)

    def _shows_it(self, name: str) -> str:
        """The commands that show a finding; only the simulator keeps packets."""
        if self.engine != "sim":
            return f"See it: knee run --engine {self.engine} {name}"
        return f"See it: knee run {name}; its packets: knee export {name} --format pcapng --out finding.pcapng"

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
    """What a reader should see first of a row, and where: what fails, else what is worse, else what is undecided, else
    the harm, else the change."""
    asked: list[Limit | Harm] = [*found.limits, *found.harms]
    changes = [(one.told, one.place, one.verdict) for one in found.changes[:1]]
    told = [(one.text, one.place, one.verdict) for one in asked]
    order = [one for one in told if one[2] == "fails"] + [one for one in changes if one[2] == WORSE]
    order += [one for one in told if one[2] == "undecided"]
    order += [(one.text, one.place, one.verdict) for one in found.harms[:1]] + changes
    if not order:
        return {}
    text, place, _ = order[0]
    return {"worst": f"{text}{_at(place)}", "place": place}


def _at(place: Mapping[str, str]) -> str:
    return f" at {_where(place)}" if place else ""


_ORDER = {"fails": 0, "undecided": 1, "holds": 2}


def _limit(pair: tuple[str, int], runs: OfRuns) -> Limit:
    """At the place where it holds least."""
    places = runs.places(terms_of(parse(pair[0])))
    found = [Limit(_outcome(pair, replace(runs, only=place)), place) for place in places]
    return min(found, key=lambda one: (_ORDER[one.verdict], one.outcome.spare))


def _outcome(pair: tuple[str, int], runs: OfRuns) -> expect.Outcome:
    """One repetition has no interval, and decides nothing here."""
    [found] = expect.evaluate([pair], runs)
    return replace(found, verdict="undecided") if found.n == 1 else found


def _changes(row: Row, runs: OfRuns) -> list[Change]:
    """The measure beside the base's at each place, the worst first."""
    node = parse_value(row.measure)
    others = replace(runs, usual="base")
    found = []
    for place in runs.places(terms_in(node)):
        new, base = runs.value(node, place), others.value(node, place)
        change = _change(row, place, new, base)
        found.append(replace(change, asked=_asked(row, base)))
    return sorted(found, key=lambda one: (_WORST[one.verdict], one.found.mean if one.found else -math.inf))


_UNITS = {"rate": "bit/s", "time": "us", "pct": "%"}


def _bound(what: str, sign: str, like: Quantity, allowed: Floats) -> str:
    """That it is at most, or at least, the mean of `allowed`, for `knee run` to check; "" where no unit says it."""
    kind, factor = like.display()
    found = estimate(allowed)
    if found is None or (kind and kind not in _UNITS):
        return ""
    return f"{what} {sign} {found.mean * factor:.6g}{_UNITS.get(kind, '')}"


def _asked(row: Row, base: Quantity) -> str:
    """That the measure is within the margin of the base's."""
    share, sign = (1 - row.margin, ">=") if row.better == "more" else (1 / (1 - row.margin), "<=")
    return _bound(row.measure, sign, base, base.values * share)


def _change(row: Row, place: Mapping[str, str], of_new: Quantity, of_base: Quantity) -> Change:
    new, base = of_new.values, of_base.values
    missing = [np.isnan(values) for values in (new, base)]
    known = ~missing[0] & ~missing[1]
    counts = [int(one.sum()) for one in missing]
    said = f"{row.measure} has no value in {counts[0]} of {len(new)} repetitions, with the base in {counts[1]}"
    more = estimate(missing[0].astype(float) - missing[1].astype(float))
    if more is not None and more.low is not None and more.high is not None and (more.low > 0 or more.high < 0):
        return Change(WORSE if more.low > 0 else BETTER, place, None, said)
    if not known.any() or counts[0] != counts[1]:
        return Change(UNDECIDED, place, None, said)
    new, base = new[known], base[known]
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
        both = (replace(of_new, values=new), replace(of_base, values=base))
        told = " instead of ".join(expect.shown_as_text(one) for one in both)
        found = step.map(lambda value: 1 + sign * value)
    verdict, low, high = UNDECIDED, found.low, found.high
    if low is None or high is None:
        told += " in one repetition, which decides nothing"
    elif high < 1 - row.margin:
        verdict = WORSE
    elif low > 1 / (1 - row.margin):
        verdict = BETTER
    elif low >= 1 - row.margin and high <= 1 / (1 - row.margin):
        verdict = SAME
    alike = " (the same in each repetition: no interval)" if found.identical else ""
    return Change(verdict, place, found, f"{row.measure} {told}{alike}")


def _harms(row: Row, runs: OfRuns) -> list[Harm]:
    """Of each metric at each place where the flow has it alone, the worst verdict first, then as metrics come."""
    found = []
    for name in _HARMS:
        node = Term(row.harm, (), name)
        for place in runs.places([node]):
            of = {run: runs.runs[run].values(node, place) for run in ("alone", "new", "base")}
            if not np.all(np.isnan(of["alone"].values)):
                found.append(_harmed(node, place, of))
    metric = [label for label, _ in _HARMS.values()]
    return sorted(found, key=lambda one: (_ORDER[one.verdict], metric.index(one.metric), -one.new.mean))


def _harmed(term: Term, place: Place, of: Mapping[str, Quantity]) -> Harm:
    """More is better: harm less that of the base decides. Less is better: what the flow has beside the one and the
    other, as the share is 1 for anything that grows from nothing."""
    label, material = _HARMS[term.metric]
    better = metrics.BY_NAME[term.metric].better
    alone, new, base = (of[run].values for run in ("alone", "new", "base"))
    shares = [_harm(values, alone, better) for values in (new, base)]
    of_new, of_base = (estimate(one, (0.0, 1.0)) for one in shares)
    assert of_new is not None, "the flow has it alone"
    if better > 0:
        values, allowed = "", base - HARM_MARGIN * alone
        excess = shares[0] - shares[1] - HARM_MARGIN
    else:
        values = " instead of ".join(expect.shown_as_text(of[run]) for run in ("new", "base"))
        allowed = base + np.maximum(HARM_MARGIN * base, material)
        excess = new - allowed
    words = [_decided(estimate(excess))]
    # A flow that has nothing to measure beside the algorithm, and has beside the base, is harmed.
    gone = [(np.isnan(one) & ~np.isnan(alone)).astype(float) for one in (new, base)]
    if gone[0].any():
        words.append(_decided(estimate(gone[0] - gone[1])))
    bound = _bound(str(term), ">=" if better > 0 else "<=", of["base"], allowed)
    return Harm(label, place, of_new, of_base, min(words, key=_ORDER.__getitem__), values, bound)


def _decided(excess: Estimate | None) -> str:
    """Whether it is 0 or less; one repetition has no interval, and decides nothing."""
    return "undecided" if excess is None or excess.n == 1 else expect.decide("<=", excess)


def _harm(values: Floats, alone: Floats, better: int) -> Floats:
    """(alone - shared) / alone where more is better, (shared - alone) / shared where less is; no less than 0. What the
    flow has only alone is taken from it whole."""
    whole = alone if better > 0 else values
    step = (alone - values) * better
    share = np.maximum(np.divide(step, whole, out=np.zeros_like(step), where=whole > 0), 0.0)
    return np.where(np.isnan(alone), np.nan, np.where(np.isnan(values), 1.0, share))

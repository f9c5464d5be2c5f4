"""Runs claims and judges them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tcpknee import provenance, reading
from tcpknee.errors import KernelUnsupported, RunFolderError
from tcpknee.evidence import expect
from tcpknee.evidence.expect import Outcome
from tcpknee.evidence.expressions import parse_value, terms_in
from tcpknee.runs import api, scenarios
from tcpknee.runs.folder import next_free
from tcpknee.runs.other_values import with_values
from tcpknee.runs.pool import Watcher
from tcpknee.runs.results import Run
from tcpknee.runs.terms import OfCells
from tcpknee.writing import replacing

from . import checks
from .checks.check import Request
from .claim import ENGINES, EQUIVALENT, Alike, Claim, OnKernel

REPRODUCED, PARTLY, NOT_REPRODUCED, UNDECIDED = "reproduced", "partly", "not reproduced", "undecided"
NOT_TESTABLE = "not testable here"

VERDICTS = "verdicts"
"""The folder of the verdicts, in that of claims."""


@dataclass(frozen=True)
class Form:
    """How claims are run. `seed`: None is that of the scenario."""

    engine: str = "sim"
    seed: int | None = None
    quick: bool = False
    bpf: bool = False


@dataclass(frozen=True)
class Result:
    """What came of a claim. `found` has each thing that must hold: `assert`, `verdict` and `detail`. `ours` are values
    of ours with their intervals, as (label, text), `published` the article's figures beside ours as `--json` of a run
    has them. `why` gives the reason of a verdict that is not "reproduced". `needed`: about so many repetitions would
    decide what is undecided; None where that cannot be told. `seed_asked`: that of the form. `sha256` is that of what
    was run: the scenario's file, or the check's."""

    id: str
    engine: str
    seed: int
    seed_asked: int | None
    quick: bool
    bpf: bool
    verdict: str
    found: Sequence[Mapping[str, Any]]
    ours: Sequence[Sequence[str]]
    published: Sequence[Mapping[str, Any]]
    warnings: Sequence[str]
    why: str
    needed: int | None
    folder: str | None
    sha256: str
    engine_version: str

    def json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def holds(self) -> bool:
        """True if all of it holds, or what it speaks of is shown not to be there. A claim that cannot be tested here
        has not failed."""
        return self.verdict in (REPRODUCED, NOT_TESTABLE) or self.verdict.startswith(EQUIVALENT)


def scenario_of(claim: Claim, engine: str) -> Path:
    """The file of the scenario that an engine runs for it."""
    return (scenarios.kernel_path if _own_form(claim, engine) else scenarios.path)(claim.id)


def _own_form(claim: Claim, engine: str) -> OnKernel | None:
    return claim.on_kernel if engine == "kernel" else None


def text_of(claim: Claim, form: Form) -> str:
    """Returns the text of the scenario to run. A kernel's own form has no short one."""
    text = scenario_of(claim, form.engine).read_text(encoding="utf-8")
    values = dict(claim.quick) if form.quick and not _own_form(claim, form.engine) else {}
    if form.seed is not None:
        values["seed"] = str(form.seed)
    return with_values(text, values)


def sha256(claim: Claim, engine: str) -> str:
    """Digests the files that say what an engine checks."""
    found = hashlib.sha256()
    if claim.has_scenario:
        found.update(scenario_of(claim, engine).read_bytes())
    if claim.check is not None:
        found.update(checks.file_of(claim.check).read_bytes())
    return found.hexdigest()


def judge(claim: Claim, form: Form, out: Path, *, resume: bool, workers: int | None, watcher: Watcher) -> Result:
    """Runs a claim into `out` and judges it; with `resume` what is there of the same form is taken as it is.

    Raises as `api.run_text` does, but for `KernelUnsupported`, which is a verdict.
    """
    if resume and (found := kept(claim, form, out)) is not None:
        return found
    found = _judge(claim, form, out, resume, workers, watcher)
    with replacing(_place(claim, out), make=True) as file:
        file.write((json.dumps(found.json(), indent=1, ensure_ascii=False) + "\n").encode())
    return found


def _judge(claim: Claim, form: Form, out: Path, resume: bool, workers: int | None, watcher: Watcher) -> Result:
    if form.engine not in claim.engines:
        engines = " and ".join(ENGINES[name] for name in claim.engines)
        return _result(claim, form, NOT_TESTABLE, why=f"needs {engines}. {claim.needs}".rstrip())
    own = _own_form(claim, form.engine)
    try:
        has_run = claim.has_scenario and form.engine in claim.scenario_engines
        run = _run(claim, form, out, resume, workers, watcher) if has_run else None
        failed = [doubt.line for doubt in run.doubts if doubt.failed] if run else []
        if failed:
            return _result(claim, form, NOT_TESTABLE, run=run, why=failed[0])
        outcomes: list[Outcome] = list(run.expectations) if run else []
        shows = own.shows if own else claim.shows
        ours = [(label, _shown(expression, run)) for label, expression in shows] if run else []
        if claim.check is not None:
            seed = run.meta["seed"] if run else form.seed or 1
            # A new one: what an interrupted check left is no part of another.
            folder = next_free(out, f"{claim.id}-check")
            found = checks.find(claim.check)(Request(run, seed, form.quick, folder, workers, watcher))
            outcomes += found.outcomes
            ours += found.ours
    except KernelUnsupported as error:
        return _result(claim, form, NOT_TESTABLE, why=str(error))
    alike = claim.alike.get(form.engine)
    same = _alike(alike, run) if alike and run else []
    word, needed = _verdict(outcomes, same, alike)
    outcomes += same if word != REPRODUCED else []
    why = reason(claim, form.engine, word, needed)
    return _result(claim, form, word, run=run, outcomes=outcomes, ours=ours, why=why, needed=needed)


def _verdict(outcomes: Sequence[Outcome], same: Sequence[Outcome], alike: Alike | None) -> tuple[str, int | None]:
    """The word, and how many repetitions would decide what is undecided. `same`: whether the claim's ratios are 1."""
    words = [outcome.verdict for outcome in outcomes]
    if all(word == "holds" for word in words):
        return REPRODUCED, None
    if alike and same and all(outcome.passed for outcome in same):
        return alike.word, None
    if "fails" in words:
        return (PARTLY if "holds" in words else NOT_REPRODUCED), None
    # What decides soonest: the shape itself, or that there is no difference.
    ways = [_needed(outcomes), *([_needed(same)] if same else [])]
    return UNDECIDED, min((way for way in ways if way is not None), default=None)


def _needed(outcomes: Sequence[Outcome]) -> int | None:
    """So many repetitions would decide all of them."""
    undecided = [outcome.needed for outcome in outcomes if not outcome.passed]
    known = [needed for needed in undecided if needed is not None]
    return max(known) if len(known) == len(undecided) else None


def _alike(alike: Alike, run: Run) -> list[Outcome]:
    low, high = 1 - alike.margin, 1 + alike.margin
    bounds = [(f"{low:g} <= {ratio} <= {high:g}", 0) for ratio in alike.ratios]
    return expect.evaluate(bounds, OfCells(run.meta["cells"], run.summary))


def reason(claim: Claim, engine: str, verdict: str, needed: int | None) -> str:
    """Why this is the verdict, for one that is not "reproduced"."""
    if verdict == REPRODUCED:
        return ""
    alike = claim.alike.get(engine)
    said = [alike.reason] if alike and verdict == alike.word else []
    if verdict == UNDECIDED:
        said.append(
            f"An interval holds both outcomes; about {needed} {claim.unit} would decide."
            if needed is not None
            else f"An interval holds both outcomes, and how many {claim.unit} would decide cannot be told."
        )
    return " ".join([*said, *filter(None, [claim.limits.get(engine)])])


def _run(claim: Claim, form: Form, out: Path, resume: bool, workers: int | None, watcher: Watcher) -> Run:
    folder = out / claim.id
    options = [*(["--quick"] if form.quick else []), *(["--engine", "kernel"] if form.engine == "kernel" else [])]
    own = _own_form(claim, form.engine)
    return api.run_text(
        text_of(claim, form),
        f"gallery/{'kernel/' if own else ''}{claim.id}.toml",
        out=folder,
        resume=resume and (folder / "run.json").is_file(),
        engine=form.engine,
        bpf=form.bpf,
        measure=own.measure if own else (),
        workers=workers,
        watcher=watcher,
        command=provenance.command_line("knee", "gallery", "--only", claim.id, *options),
    )


def _shown(expression: str, run: Run) -> str:
    """Evaluates an expression over the repetitions, with its interval."""
    node = parse_value(expression)
    meanings = OfCells(run.meta["cells"], run.summary)
    place = meanings.places(terms_in(node))[0]
    quantity = node.value({term: meanings.values(term, place) for term in terms_in(node)})
    return expect.shown_as_text(quantity)


def _result(
    claim: Claim,
    form: Form,
    verdict: str,
    *,
    run: Run | None = None,
    outcomes: Sequence[Outcome] = (),
    ours: Sequence[tuple[str, str]] = (),
    why: str = "",
    needed: int | None = None,
) -> Result:
    return Result(
        id=claim.id,
        engine=form.engine,
        seed=int(run.meta["seed"]) if run else form.seed or 1,
        seed_asked=form.seed,
        quick=form.quick,
        bpf=form.bpf,
        verdict=verdict,
        found=[{"assert": one.assertion, "verdict": one.verdict, "detail": one.detail} for one in outcomes],
        ours=[list(pair) for pair in ours],
        published=[beside.json() for beside in run.published] if run and verdict != NOT_TESTABLE else [],
        warnings=[doubt.line for doubt in run.doubts] if run else [],
        why=why,
        needed=needed,
        folder=str(run.folder) if run and run.folder else None,
        sha256=sha256(claim, form.engine),
        engine_version=provenance.engine_version(),
    )


def _place(claim: Claim, out: Path) -> Path:
    return out / VERDICTS / f"{claim.id}.json"


def kept(claim: Claim, form: Form, out: Path) -> Result | None:
    """The verdict that the folder `out` holds of a claim, if it has the same form and digest."""
    with suppress(OSError, ValueError, TypeError, RunFolderError):
        found = Result(**reading.json_of(_place(claim, out)))
        same = Form(found.engine, found.seed_asked, found.quick, found.bpf) == form
        if same and found.sha256 == sha256(claim, form.engine) and found.engine_version == provenance.engine_version():
            return found
    return None

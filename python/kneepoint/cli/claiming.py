"""`knee gallery`: the published claims, run and judged."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kneepoint import api, progress, published, say
from kneepoint.claims import catalogue
from kneepoint.claims.catalogue import Claim
from kneepoint.errors import RunFolderError, UsageError
from kneepoint.folder import newest, next_free
from kneepoint.human import counted
from kneepoint.output import SCHEMA, aligned
from kneepoint.terms import suggest
from kneepoint.writing import replacing

from .app import Options
from .running import interruptible

if TYPE_CHECKING:
    from kneepoint.claims.judging import Form, Result

_RUNS = Path("runs")
_WIDTH = 100


def claims(only: Sequence[str], options: Options, *, quick: bool, seed: int | None, resume: bool) -> int:
    """`knee gallery` without a scenario. Exit code 1 when a claim is not reproduced, or in part only."""
    from kneepoint.claims import judging

    chosen = _chosen(only)
    form = judging.Form(options.engine or "sim", seed, quick, options.bpf)
    api.check_engine(form.engine, form.bpf, options.programs_as_root)
    if resume and options.out is None:
        found = newest(_RUNS, "gallery")
        raise UsageError(
            "knee gallery --resume: got no folder; expected --out DIR, the folder to go on with."
            + (f" The newest is {found}." if found else f" There is none in {_RUNS}/: leave out --resume.")
        )
    out = options.out or next_free(_RUNS, "gallery")
    if not resume and (out / "verdicts").exists():
        raise RunFolderError(f"{out}: already holds claims. Finish them with --resume, or choose another --out.")
    results = []
    with interruptible(out, "*/*.json", _command(only, form)):
        for number, claim in enumerate(chosen, 1):
            if not options.quiet:
                say.warn(f"Claim {number} of {len(chosen)}: {claim.id}")
            watcher = progress.watcher(quiet=options.quiet)
            results.append(judging.judge(claim, form, out, resume=resume, workers=options.workers, watcher=watcher))
    told = {
        "schema": SCHEMA,
        "engine": form.engine,
        "seed": seed,
        "quick": quick,
        "folder": str(out),
        "claims": [_with_claim(claim, result) for claim, result in zip(chosen, results, strict=True)],
    }
    path = out / "gallery.json"
    with replacing(path, make=True) as file:
        file.write((json.dumps(told, indent=1, ensure_ascii=False) + "\n").encode())
    if options.json:
        say.json(told, allow_nan=False)
    else:
        say.lines(_lines(chosen, results))
        say.lines(["", f"JSON: {path}"])
    return 0 if all(result.holds for result in results) else 1


def _chosen(only: Sequence[str]) -> list[Claim]:
    known = catalogue.by_id()
    wanted = [name.strip() for text in only for name in text.split(",")]
    unknown = next((name for name in wanted if name not in known), None)
    if unknown is not None:
        raise UsageError(f'knee gallery: --only: got "{unknown}"; ' + suggest(unknown, list(known), "expected claims:"))
    return [claim for claim in catalogue.CLAIMS if not wanted or claim.id in wanted]


def _command(only: Sequence[str], form: Form) -> list[str]:
    """What to type to go on, but for --resume and --out."""
    words = ["knee", "gallery", *(word for text in only for word in ("--only", text))]
    words += ["--engine", form.engine] if form.engine != "sim" else []
    words += ["--seed", str(form.seed)] if form.seed is not None else []
    return [*words, *(["--quick"] if form.quick else []), *(["--bpf"] if form.bpf else [])]


def _with_claim(claim: Claim, result: Result) -> dict[str, object]:
    said = {"article": claim.article, "claim": claim.claim, "shape": claim.shape, "figure": claim.figure}
    return {"id": claim.id, **said, **{key: value for key, value in result.json().items() if key != "id"}}


def _lines(chosen: Sequence[Claim], results: Sequence[Result]) -> Iterator[str]:
    """The table; below it what does not hold, and why."""
    rows = [["claim", "article", "ours", "verdict"]]
    for claim, result in zip(chosen, results, strict=True):
        ours = "; ".join(f"{label} {text}" for label, text in result.ours) or "-"
        first, *rest = textwrap.wrap(ours, _WIDTH // 2) or ["-"]
        figure, *more = textwrap.wrap(claim.figure or "-", _WIDTH // 4)
        rows.append([claim.id, figure, first, result.verdict])
        longest = max(len(rest), len(more))
        rest += [""] * (longest - len(rest))
        more += [""] * (longest - len(more))
        rows += [["", left, right, ""] for left, right in zip(more, rest, strict=True)]
    yield from aligned(rows, left=[True] * 4)
    for claim, result in zip(chosen, results, strict=True):
        failed = [one for one in result.found if one["verdict"] != "holds"]
        if failed or result.why or result.warnings:
            yield ""
            yield f"{claim.id}: {result.verdict}"
            yield f"  claim: {claim.claim}"
            yield from (f"  {one['verdict']}: {one['assert']}  ({one['detail']})" for one in failed)
            yield from (f"  {result.why}",) if result.why else ()
            yield from (f"  * {warning}" for warning in result.warnings)
    yield ""
    counts = {result.verdict: 0 for result in results}
    for result in results:
        counts[result.verdict] += 1
    yield f"{counted(len(results), 'claim')}: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}."
    yield published.NOTE

"""`knee gallery`: the published claims, run and judged, or scenarios that come with tcpknee."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcpknee import say
from tcpknee.errors import RunFolderError, UsageError
from tcpknee.human import counted, suggest
from tcpknee.say import aligned

from . import completion
from .options import SEED_MAX, Options, Whole, names_of, out_option, running_options

if TYPE_CHECKING:
    from tcpknee.validation.claims.claim import Claim
    from tcpknee.validation.claims.judging import Form, Result

_WIDTH = 100


@click.command("gallery", short_help="Check the published claims, or run scenarios of the gallery.")
@click.argument("names", metavar="[NAME...]", nargs=-1, shell_complete=completion.of(completion.scenarios))
@click.option(
    "--only",
    metavar="ID[,ID...]",
    multiple=True,
    shell_complete=completion.of(completion.claims, lists=True),
    help="Of the claims, these; by default all.",
)
@click.option("--quick", is_flag=True, help="The short form of each claim: fewer and shorter repetitions.")
@click.option("--seed", type=Whole(0, SEED_MAX), help="Another seed of all draws.  [default: that of each scenario]")
@click.option("--resume", is_flag=True, help="Go on with the claims in --out.")
@out_option("Folder of the run folders; by default runs/gallery-N.")
@running_options
def command(
    names: tuple[str, ...], only: tuple[str, ...], quick: bool, seed: int | None, resume: bool, **options: Any
) -> int:
    """Check the published claims, and say which are reproduced. With NAME: run those scenarios of the gallery instead.

    Exit code 1: a claim is not reproduced, or in part only. Figures of other machines are shown, never checked.

    Example: knee gallery --only loss-1.5,gro-on-old-cubic --quick
    """
    if names:
        asked = {"--only": only, "--quick": quick, "--seed": seed is not None, "--resume": resume}
        return _scenarios(names, Options(**options), [option for option, given in asked.items() if given])
    return _claims(only, Options(**options), quick=quick, seed=seed, resume=resume)


def _scenarios(names: Sequence[str], options: Options, of_claims: Sequence[str] = ()) -> int:
    """`knee gallery NAME...`. `of_claims`: options that were given and that only claims have."""
    from tcpknee import provenance
    from tcpknee.runs import api, scenarios

    from . import running

    known = scenarios.names()
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise UsageError(
            f'knee gallery: got "{unknown}"; '
            + suggest(unknown, known, "expected one", shown=["of `knee list scenarios`"])
        )
    if of_claims:
        raise UsageError(
            f"knee gallery: got {of_claims[0]} and the scenario {names[0]}; expected one of them. {of_claims[0]} is "
            f"for claims, which `knee gallery --only {names[0]}` names."
        )
    with running.place(options.out, "gallery") as parent:
        jobs = []
        for name in dict.fromkeys(names):
            text, _ = api.read_scenario(scenarios.path(name))
            file = f"gallery/{name}.toml"
            scenario = api.parse(text, file)
            command = provenance.command_line("knee", "gallery", name, *running.engine_words(options))
            jobs.append(running.Job(scenario, text, file, parent / name, name, command))
        return running.run_all(jobs, options)


def _claims(only: Sequence[str], options: Options, *, quick: bool, seed: int | None, resume: bool) -> int:
    """`knee gallery` without a scenario. Exit code 1 when a claim is not reproduced, or in part only."""
    from tcpknee.runs import api
    from tcpknee.validation.claims import judging

    from . import running

    chosen = _chosen(only)
    form = judging.Form(options.engine or "sim", seed, quick, options.bpf)
    if "," in form.engine:
        raise UsageError(
            f'knee gallery: --engine: got "{form.engine}"; expected one engine, as a verdict is of one. '
            "Run it once for each."
        )
    for name in ("programs_as_root", "allow_host_settings"):
        if getattr(options, name):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"knee gallery: got {option} without a scenario; expected one, as in `knee gallery demo {option}`. "
                "Claims are run without it."
            )
    api.check_engine(form.engine, form.bpf)
    measuring = [
        claim.id for claim in chosen if form.engine == "kernel" and claim.on_kernel and claim.on_kernel.measure
    ]
    if measuring and (options.workers or 1) > 1:
        raise UsageError(
            f"knee gallery: --workers: got {options.workers} with the claim {measuring[0]}, which measures what it "
            "costs the host; expected 1, as labs at the same time share the processors."
        )
    if resume and options.out is None:
        raise running.no_folder("gallery", "gallery")
    with running.place(options.out, "gallery") as out:
        return _judged(chosen, only, form, out, options, resume=resume)


def _judged(
    chosen: Sequence[Claim], only: Sequence[str], form: Form, out: Path, options: Options, *, resume: bool
) -> int:
    """The same into a folder."""
    from tcpknee.runs import progress
    from tcpknee.runs.output import SCHEMA
    from tcpknee.validation.claims import judging
    from tcpknee.writing import replacing

    from . import running

    holds = (out / judging.VERDICTS).exists()
    if holds and not resume:
        raise RunFolderError(f"{out}: already holds claims. Finish them with --resume, or choose another --out.")
    if resume and not holds:
        raise RunFolderError(f"{out}: holds no claims to go on with. Leave out --resume, or name the folder that does.")
    results = []
    with running.interruptible(out, judging.VERDICTS, _command(only, form)), _begun(out):
        for number, claim in enumerate(chosen, 1):
            if not options.quiet:
                say.warn(f"Claim {number} of {len(chosen)}: {claim.id}")
            watcher = progress.watcher(quiet=options.quiet)
            results.append(judging.judge(claim, form, out, resume=resume, workers=options.workers, watcher=watcher))
    told = {
        "schema": SCHEMA,
        "engine": form.engine,
        "seed": form.seed,
        "quick": form.quick,
        "folder": str(out),
        "claims": [_with_claim(claim, result) for claim, result in _in_folder(chosen, results, form, out)],
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


@contextmanager
def _begun(out: Path) -> Iterator[None]:
    """Makes a folder known as one of claims before the first has its verdict. Where nothing came of them, it is taken
    back. Raises RunFolderError."""
    from tcpknee import _core
    from tcpknee.validation.claims import judging
    from tcpknee.writing import cannot_write

    try:
        folder = _core.Folder(out)
        folder.folder(judging.VERDICTS)
    except OSError as error:
        raise cannot_write(out, error) from None
    try:
        yield
    except BaseException:
        if not any(out.glob("*/*")):
            with suppress(OSError, RunFolderError):
                folder.remove_empty(judging.VERDICTS)
                if folder.made:
                    out.rmdir()
        raise


def _in_folder(
    chosen: Sequence[Claim], results: Sequence[Result], form: Form, out: Path
) -> Iterator[tuple[Claim, Result]]:
    """The claims just judged, and those that the folder holds from before, in the order of the catalogue."""
    from tcpknee.validation.claims import catalogue, judging

    judged = {claim.id: result for claim, result in zip(chosen, results, strict=True)}
    for claim in catalogue.CLAIMS:
        found = judged.get(claim.id) or judging.kept(claim, form, out)
        if found is not None:
            yield claim, found


def _chosen(only: Sequence[str]) -> list[Claim]:
    from tcpknee.validation.claims import catalogue

    names = names_of("knee gallery: --only", only, list(catalogue.by_id()), "expected claims:")
    return [claim for claim in catalogue.CLAIMS if claim.id in names]


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
    from tcpknee.evidence.published import NOTE

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
    yield NOTE

"""`knee run`, `knee compare`, `knee gallery NAME`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from kneepoint import api, compose, doubts, output, progress, record, say, scenarios
from kneepoint.errors import UsageError
from kneepoint.folder import next_free
from kneepoint.results import Run
from kneepoint.terms import suggest

from .app import Options
from .named import by_option, of_compare

_RUNS = Path("runs")


class Terminated(KeyboardInterrupt):
    """SIGTERM: ends a run as Ctrl-C does, with an exit code of its own."""


def run(files: Sequence[Path], options: Options) -> int:
    """`knee run`."""
    if options.resume:
        return _resume(files, options)
    api.check_engine(options.engine or "sim", options.bpf, options.programs_as_root)
    stems = [file.stem for file in files]
    if options.out and len(set(stems)) < len(stems):
        twice = next(stem for stem in stems if stems.count(stem) > 1)
        raise UsageError(
            f'knee run: got two scenarios called "{twice}", which would both go to {options.out / twice}; expected '
            "different names below one --out. Run them one after the other."
        )
    if not files:
        raise UsageError(
            "knee run: got no scenario; expected a file, as in `knee run demo.toml`. "
            "`knee gallery` runs those that come with Kneepoint."
        )
    texts = [api.read_scenario(file) for file in files]
    # All are parsed before the first is run: a mistake in the last one is said at once.
    for text, name in texts:
        api.parse(text, name)
    if options.dry_run:
        return _dry_run(texts, options)
    jobs = []
    for file, (text, name) in zip(files, texts, strict=True):
        out = options.out / file.stem if options.out and len(files) > 1 else options.out
        jobs.append(_Job(text, name, out, file.stem, record.command_line("knee", "run", name, *_engine(options))))
    return _run_all(jobs, options)


def compare(algorithms: Sequence[str], settings: Mapping[str, Any], options: Options) -> int:
    """`knee compare`."""
    api.check_engine(options.engine or "sim", options.bpf, options.programs_as_root)
    with by_option("knee compare", of_compare(settings["set"])):
        text, file = compose.comparison(algorithms, **settings), "<command line>"
        api.parse(text, file)
    if options.dry_run:
        return _dry_run([(text, file)], options)
    job = _Job(text, file, options.out, "compare", record.command_line("knee", *sys.argv[1:]))
    return _run_all([job], options)


def gallery(names: Sequence[str], options: Options, of_claims: Sequence[str] = ()) -> int:
    """`knee gallery NAME...`. `of_claims`: options that were given and that only claims have."""
    known = scenarios.names()
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise UsageError(f'knee gallery: got "{unknown}"; ' + suggest(unknown, known, "expected one of"))
    if of_claims:
        raise UsageError(
            f"knee gallery: got {of_claims[0]} and the scenario {names[0]}; expected one of them. {of_claims[0]} is "
            f"for claims, which `knee gallery --only {names[0]}` names."
        )
    parent = options.out or next_free(_RUNS, "gallery")
    jobs = []
    for name in names:
        text, _ = api.read_scenario(scenarios.path(name))
        file = f"gallery/{name}.toml"
        api.parse(text, file)
        command = record.command_line("knee", "gallery", name, *_engine(options))
        jobs.append(_Job(text, file, parent / name, name, command))
    return _run_all(jobs, options)


@dataclass(frozen=True)
class _Job:
    """A scenario to run. Without `out` it goes to the next free `runs/STEM-N`."""

    text: str
    file: str
    out: Path | None
    stem: str
    command: str


def _run_all(jobs: Iterable[_Job], options: Options) -> int:
    runs = []
    for job in jobs:
        out = job.out or next_free(_RUNS, job.stem)
        with interruptible(out):
            found = api.run_text(
                job.text,
                job.file,
                out=out,
                force=options.force,
                engine=options.engine or "sim",
                bpf=options.bpf,
                programs_as_root=options.programs_as_root,
                workers=options.workers,
                watcher=progress.watcher(quiet=options.quiet),
                command=job.command,
            )
        runs.append(found)
        _show(found, options, first=len(runs) == 1)
    return _end(runs, options)


def _resume(files: Sequence[Path], options: Options) -> int:
    if options.out is None:
        raise UsageError("knee run --resume: got no folder; expected --out DIR, the run folder to go on with.")
    for name, given in (("--force", options.force), ("--dry-run", options.dry_run)):
        if given:
            raise UsageError(f"knee run: got --resume and {name}; expected one of them. --resume keeps what is there.")
    if len(files) > 1:
        raise UsageError(
            "knee run --resume: got several scenarios; expected one, or none to go on with the stored one."
        )
    with interruptible(options.out):
        watcher = progress.watcher(quiet=options.quiet)
        scenario = files[0] if files else None
        found = api.run(
            scenario,
            out=options.out,
            resume=True,
            engine=options.engine,
            bpf=options.bpf,
            programs_as_root=options.programs_as_root,
            workers=options.workers,
            watcher=watcher,
        )
    _show(found, options, first=True)
    return _end([found], options)


def _show(run: Run, options: Options, *, first: bool) -> None:
    if options.json:
        return
    if not first:
        say.line()
    with progress.Phase("Computing the summary", quiet=options.quiet):
        lines = list(output.lines(run))
    say.lines([*lines, "", f"Run folder: {run.folder}"])
    if options.report:
        from .exporting import report

        assert run.folder is not None
        report(run.folder, quiet=options.quiet)


def _end(runs: Sequence[Run], options: Options) -> int:
    if options.json:
        say.json(output.as_json(runs), allow_nan=False)
        if options.report:
            from .exporting import report

            for run in runs:
                assert run.folder is not None
                report(run.folder, tell=say.warn, quiet=options.quiet)
    failed = any(doubt.failed for run in runs for doubt in run.doubts)
    return 0 if not failed and all(outcome.passed for run in runs for outcome in run.expectations) else 1


def _engine(options: Options) -> list[str]:
    """The words that choose the engine again."""
    flags = {"--bpf": options.bpf, "--programs-as-root": options.programs_as_root}
    return [
        *(["--engine", options.engine] if options.engine else []),
        *(flag for flag, given in flags.items() if given),
    ]


@contextmanager
def interruptible(out: Path, kept: str = "run.json", command: Sequence[str] = ("knee", "run")) -> Iterator[None]:
    """Ctrl-C and SIGTERM end it after what is finished has been saved, and say how to go on, with which command.

    A file like `kept`, a pattern, is in the folder when something is."""

    def terminate(number: int, frame: FrameType | None) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    except KeyboardInterrupt as stop:
        if any(out.glob(kept)):
            words = record.command_line(*command, "--resume", "--out", str(out))
            say.warn(f"Interrupted. What was finished is kept in {out}; go on with: {words}")
        else:
            say.warn("Interrupted before a repetition was finished; nothing is kept.")
        raise SystemExit(143 if isinstance(stop, Terminated) else 130) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _dry_run(texts: Sequence[tuple[str, str]], options: Options) -> int:
    plans = []
    for text, file in texts:
        scenario = api.parse(text, file)
        cells = [record.plain_cell(cell) for cell in scenario.cells]
        plans.append(
            {
                "scenario": file,
                "title": scenario.title,
                "repeat": scenario.repeat,
                "seed": scenario.seed,
                "cells": cells,
            }
        )
        if not options.json:
            how = "in real time" if options.engine == "kernel" else "simulated"
            say.lines(_plan(scenario.title, scenario.repeat, cells, how))
            say.lines(f"Warning: {caution}" for caution in doubts.of_settings(cells))
    if options.json:
        say.json({"schema": output.SCHEMA, "plans": plans})
    return 0


def _plan(title: str, repeat: int, cells: Sequence[Mapping[str, Any]], how: str) -> list[str]:
    from kneepoint import human

    length = human.duration(sum(cell["duration_ns"] for cell in cells) * repeat)
    rows = [["cell", "axes", "flows", "rate", "rtt", "BDP", "buffer", "length"]]
    for cell in cells:
        rate, bdp = cell["rate_bits_per_sec"], cell["bdp_bytes"]
        rows.append(
            [
                str(cell["index"]),
                " ".join(f"{key}={value}" for key, value in cell["axes"]) or "-",
                ",".join(f"{flow['algorithm']}:{flow['count']}" for flow in cell["flows"]),
                human.quantity("rate", rate) if rate else "unlimited",
                human.quantity("time", cell["rtt_ns"] / 1e3),
                human.quantity("bytes", bdp) if bdp is not None else "-",
                output.buffer_text(cell),
                human.duration(cell["duration_ns"]),
            ]
        )
    left = [False, True, True, False, False, False, False, False]
    runs = f"{human.counted(len(cells), 'cell')} x {human.counted(repeat, 'repetition')}"
    head = f"{title}: {runs} = {human.counted(len(cells) * repeat, 'run')}, {length} {how}"
    return [head, "", *output.aligned(rows, left=left)]

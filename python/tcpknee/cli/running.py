"""What the commands have in common that run scenarios: `knee run`, `knee compare`, `knee gallery`."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from tcpknee import _core, human, provenance, say
from tcpknee.errors import RunFolderError, TcpkneeError, UsageError
from tcpknee.runs import api, beside, compose, doubts, engines, engines_text, manifest, output, progress
from tcpknee.runs.folder import OF_HOSTS, fresh, newest, refuse_taken
from tcpknee.runs.results import Run

from .options import PAIR, Options

if TYPE_CHECKING:
    from tcpknee.runs.beside import Entry

RUNS = Path("runs")


class Terminated(KeyboardInterrupt):
    """SIGTERM: ends a run as Ctrl-C does, with an exit code of its own."""


@dataclass(frozen=True)
class Job:
    """A scenario to run, as it was read. Without `out` it goes to the next free `runs/STEM-N`."""

    scenario: _core.Scenario
    text: str
    file: str
    out: Path | None
    stem: str
    command: str


def no_folder(verb: str, stem: str | None) -> UsageError:
    """Of `--resume` without `--out`: names the newest of the folders that the verb calls by that stem."""
    text = f"knee {verb} --resume: got no folder; expected --out DIR, the folder to go on with."
    if stem is not None:
        found = newest(RUNS, stem)
        text += f" The newest is {found}." if found else f" There is none in {RUNS}/: leave out --resume."
    return UsageError(text)


def place(out: Path | None, stem: str) -> AbstractContextManager[Path]:
    """`out`, or a new folder `runs/STEM-N`."""
    return nullcontext(out) if out else fresh(RUNS, stem)


def run_all(jobs: Sequence[Job], options: Options) -> int:
    """Runs each scenario by each engine; what several engines say of one stands beside each other. What one of them
    cannot do is refused before another is waited for; what was finished before one fails is shown all the same."""
    others = Beside(options)
    several = len(options.engines) > 1
    asked = [[(_of_engine(job, one), one) for one in (options.by_engine() if several else [options])] for job in jobs]
    for job, one in itertools.chain.from_iterable(asked):
        _check(job, one, several)
    runs: list[Run] = []
    try:
        for of_engines in asked:
            shown, first = len(runs), of_engines[0][0]
            with place(first.out, first.stem) as parent:
                try:
                    for job, one in of_engines:
                        runs.append(_run(job, one, _place(parent, one, several)))
                except TcpkneeError:
                    for run in runs[shown:]:
                        show(run, replace(options, report=False), first=run is runs[0])
                    raise
            others.put(runs[shown:])
            if several:
                show_beside(runs[shown:], options, first=not shown)
            else:
                show(runs[-1], options, first=not shown)
    except TcpkneeError:
        if options.json and runs:
            say.json(output.as_json(runs), allow_nan=False)
        raise
    return end(runs, options)


def _of_engine(job: Job, options: Options) -> Job:
    """The job as that engine gets it: without kernels where its host's own stands beside them."""
    if not _has_own(options.engines[0], options):
        return job
    text = compose.without_kernels(job.text)
    return replace(job, text=text, scenario=api.parse(text, job.file))


def _place(parent: Path, options: Options, several: bool) -> Path:
    """Where the run of one engine goes."""
    return parent / options.engines[0] if several else parent


def _check(job: Job, options: Options, several: bool) -> None:
    """Refuses now what `_run` would refuse when its turn comes."""
    engine, hosts = options.engines[0], options.of_engine.get("hosts")
    api.check_cluster(options.cluster, options.parts, engine, options.workers, job.out or RUNS, resume=False)
    api.check_scenario(job.scenario, job.file, engine, options.programs_as_root, options.ending, hosts)
    if job.out:
        refuse_taken(_place(job.out, options, several), force=options.force)


class Beside:
    """What `--beside` names, read before anything runs."""

    def __init__(self, options: Options) -> None:
        """Raises UsageError, RunFolderError."""
        self._quiet, self._simulates = options.quiet, "sim" in options.beside
        if self._simulates and options.engines != ["hosts"] and not options.resume:
            raise UsageError(
                f"--beside sim: got it with --engine {','.join(options.engines)}; expected hosts, which measures its "
                "path. `--engine sim,kernel` sets the simulator beside a kernel on the scenario's own path."
            )
        self._entries: list[Entry] = []
        if words := [word for word in options.beside if word != "sim"]:
            from tcpknee.measured import reading

            with progress.Phase("Reading what stands beside", quiet=options.quiet):
                self._entries = [reading.read(word) for word in words]

    def put(self, runs: Sequence[Run]) -> None:
        """Beside each of these runs."""
        if not self._entries and not self._simulates:
            return
        from tcpknee.measured import simulated
        from tcpknee.measured.put import put

        for run in runs:
            entries = list(self._entries)
            if self._simulates:
                try:
                    with progress.Phase("Simulating the measured path", quiet=self._quiet):
                        entries.append(simulated.answer(run))
                except TcpkneeError as error:
                    # What was measured is shown whatever becomes of this.
                    say.warn(f"Warning: --beside sim: the measured path cannot be simulated: {error}")
            put(run, entries)


def _run(job: Job, options: Options, out: Path) -> Run:
    engine = options.engines[0]
    own = _has_own(engine, options)
    again = _goes_on_by(job, replace(options, kernel=()) if own else options)
    with interruptible(out, command=again, replaces=options.force):
        return api.run_text(
            job.text,
            job.file,
            out=out,
            force=options.force,
            engine=engine,
            **options.of_engine,
            ending=options.ending,
            cluster=options.cluster,
            parts=options.parts,
            watcher=progress.watcher(quiet=options.quiet),
            command=job.command,
            scenario=job.scenario,
        )


def _has_own(engine: str, options: Options) -> bool:
    """Does its host's own kernel stand beside those of --kernel, none of which it is?"""
    return engines.in_real_time(engine) and bool(options.kernel)


def show_beside(runs: Sequence[Run], options: Options, *, first: bool) -> None:
    """One table of what several engines say."""
    if options.json:
        return
    if not first:
        say.line()
    with progress.Phase("Computing the summary", quiet=options.quiet):
        lines = engines_text.lines(runs)
    say.lines([str(runs[0].meta["title"]), "", *lines, "", *engines_text.paths(runs), *beside.lines(runs[0])])
    say.lines(engines_text.expectations(runs))
    say.lines(f"Warning: {warning}" for warning in engines_text.warnings(runs))
    say.lines(f"Run folder: {run.folder}" for run in runs)
    if options.report:
        _report(runs, options)


def _report(runs: Sequence[Run], options: Options, tell: Callable[[str], None] = say.line) -> None:
    """The report of a run, or the one of several engines together."""
    assert runs[0].folder is not None
    if len(runs) == 1:
        from .report import write

        write(runs[0].folder, tell=tell, quiet=options.quiet)
        return
    from tcpknee import pages

    target = runs[0].folder.parent / "report.html"
    with progress.Phase("Writing the report", quiet=options.quiet):
        pages.write(list(runs), target)
    tell(f"Report: {target}")


def show(run: Run, options: Options, *, first: bool) -> None:
    if options.json:
        return
    if not first:
        say.line()
    with progress.Phase("Computing the summary", quiet=options.quiet):
        lines = list(output.lines(run, say.room()))
    say.lines([*lines, "", *_judged(run), f"Run folder: {run.folder}"])
    if options.report:
        _report([run], options)


def _judged(run: Run) -> Iterator[str]:
    """What the doctor says of the two hosts of a run, by the files that they sent."""
    if run.meta["engine"] != "hosts" or run.folder is None:
        return
    from tcpknee.doctor.judge import judge
    from tcpknee.doctor.snapshot import recorded

    for role, name in OF_HOSTS.items():
        file = run.folder / name
        if file.exists():
            try:
                rules = dict.fromkeys(finding.rule for finding in judge(recorded.of_folder(file)).findings)
            except (UsageError, RunFolderError) as error:
                yield f"Warning: the doctor cannot judge the {role}: {error}"
                continue
            yield f"Doctor of the {role}: {', '.join(rules) or 'nothing is wrong'}: knee doctor --snapshot {file}"


def end(runs: Sequence[Run], options: Options) -> int:
    if options.json:
        say.json(output.as_json(runs), allow_nan=False)
        if options.report:
            count = len(options.engines)
            for first in range(0, len(runs), count):
                _report(runs[first : first + count], options, say.warn)
    failed = any(doubt.failed for run in runs for doubt in run.doubts)
    return 0 if not failed and all(outcome.passed for run in runs for outcome in run.expectations) else 1


def engine_words(options: Options) -> list[str]:
    """The words that choose the engine again."""
    return [
        *(["--engine", options.engine] if options.engine else []),
        *(["--bpf"] if options.bpf else []),
        *(["--kernel", ",".join(options.kernel)] if options.kernel else []),
        *(["--measure", ",".join(options.measure)] if options.measure else []),
        *(["--capture", options.capture] if options.capture and "hosts" not in options.engines else []),
        *_never_of_a_folder(options),
    ]


def _never_of_a_folder(options: Options) -> list[str]:
    """The words of what a run's folder does not decide: whom it connects to, and what is done as root."""
    names = ("programs_as_root", "allow_host_settings", *PAIR, *(["capture"] if "hosts" in options.engines else []))
    return [word for name in names if (value := getattr(options, name)) for word in _words(name, value)]


def again(options: Options, file: str | None = None) -> list[str]:
    """What goes on with a run, without the folder. `file`: of the scenario, which is not taken from the folder."""
    of_cluster = (("--cluster", options.cluster), ("--parts", options.parts))
    words = (word for name, value in of_cluster if value for word in (name, value))
    told = [file, *engine_words(options)] if file else _never_of_a_folder(options)
    return ["knee", "run", *told, *words]


def _goes_on_by(job: Job, options: Options) -> list[str] | None:
    """The same of a job; None: nothing does, as its folder does not decide which algorithm's file is compiled, and no
    other place has its scenario."""
    if not job.scenario.algorithm_files:
        return again(options)
    if job.file == "<command line>":
        return None
    return again(options, "-" if job.file == "<stdin>" else job.file)


@contextmanager
def interruptible(
    out: Path, kept: str = "run.json", command: Sequence[str] | None = ("knee", "run"), *, replaces: bool = False
) -> Iterator[None]:
    """Ctrl-C and SIGTERM end it after what is finished has been saved, and say how to go on, with which command.

    A file like `kept`, a pattern, is in the folder when something is. `command`: None where none goes on. `replaces`:
    the folder may hold an earlier run until this one begins."""

    def terminate(number: int, frame: FrameType | None) -> None:
        raise Terminated

    earlier = _written(out) if replaces else None
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    except KeyboardInterrupt as stop:
        if earlier is not None and _written(out) == earlier:
            say.warn(f"Interrupted before it began; the run in {out} is as it was.")
        elif any(out.glob(kept)):
            how = "it cannot be gone on with, because a folder does not decide which algorithm's file is compiled here"
            if command is not None:
                how = "go on with: " + provenance.command_line(*command, "--resume", "--out", str(out))
            say.warn(f"Interrupted. What was finished is kept in {out}; {how}")
        else:
            say.warn("Interrupted before a repetition was finished; nothing is kept.")
        raise SystemExit(143 if isinstance(stop, Terminated) else 130) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _written(out: Path) -> tuple[int, int] | None:
    """What tells the `run.json` of a folder from one written later; None: there is none."""
    with suppress(OSError):
        found = (out / "run.json").stat()
        return found.st_ino, found.st_mtime_ns
    return None


def _words(name: str, value: str | int | bool) -> list[str]:
    option = f"--{name.replace('_', '-')}"
    return [option] if value is True else [option, str(value)]


def dry_run(scenarios: Sequence[tuple[_core.Scenario, str]], options: Options) -> int:
    """Prints the plans of scenarios, each with the name of its file."""
    plans = []
    for scenario, file in scenarios:
        cells = manifest.cells(scenario, options.engines[0])
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
            how = "in real time" if engines.in_real_time(options.engines[0]) else "simulated"
            how = "in virtual time" if options.engines[0] == "guest" else how
            say.lines(_plan(scenario.title, scenario.repeat, cells, how))
            say.lines(f"Warning: {caution}" for caution in doubts.of_settings(cells))
    if options.json:
        say.json({"schema": output.SCHEMA, "plans": plans})
    return 0


def _plan(title: str, repeat: int, cells: Sequence[Mapping[str, Any]], how: str) -> list[str]:
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
    return [head, "", *say.aligned(rows, left=left, room=say.room()), *_loads(cells)]


def _loads(cells: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Of the sources whose transfers come and go, what they ask of the network and how often: a line for each that
    differs from the others."""
    told: dict[str, int] = {}
    for cell in cells:
        facts = {key: value for key, value, _ in cell["describe"]}
        for key in facts:
            source, found, name = key.rpartition(".")
            if found and name == "arrivals_per_sec":
                load_bits_per_sec = float(facts[f"{source}.load"].removesuffix("bit/s"))
                words = f"{source}: {human.quantity('rate', load_bits_per_sec)} in {facts[key]} transfers per second"
                told.setdefault(words, cell["index"])
    for words, index in told.items():
        yield f"Asked of the network by {words}." if len(told) == 1 else f"First in cell {index}: {words}."

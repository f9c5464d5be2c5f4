"""The Python front: `run`, `compare` and `open`.

import tcpknee
run = tcpknee.compare("cubic", "bbr1", rate="50Mbit/s", rtt="100ms", loss="1.5%")
run.flows.to_pandas()
for verdict in run.summary.verdicts:
    print(verdict.text)
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpknee import _core, algorithms, provenance, workloads
from tcpknee.algorithms import naming
from tcpknee.arguments import COUNT, KEYS, PATH, TEXTS, checked
from tcpknee.errors import MOST_LISTED, AlgorithmFailed, EngineError, RunFolderError, ScenarioError, UsageError
from tcpknee.human import suggest
from tcpknee.kernels import cache
from tcpknee.say import printable
from tcpknee.shapes import TEXT, Kind, OrNull

from . import calls, compose, engines, looking, manifest, named_files, packets, pool, tables
from .ending import NEVER, Ending
from .folder import RunFolder
from .job import Job
from .pool import Key, Watcher
from .results import Run

if TYPE_CHECKING:
    from .cluster import Cluster
    from .pair import Pair
    from .run_as import User

Setting = str | int | float | bool

_TEXT_MAX_BYTES = 16 << 20
"""Of a scenario. A device that somebody names for one has no end."""


_SCENARIO = Kind("a path, or the text of a scenario; its keys are keyword arguments, as in run(**keys)", PATH.holds)
_ALGORITHM = Kind('the name of one, as in compare("cubic", "bbr1")', TEXT.holds)
_KERNELS = Kind('a release such as "6.12", or a list of them', lambda value: TEXTS.holds(value) and bool(value))
_OF_BOTH = {
    "out": OrNull(PATH),
    "engine": OrNull(TEXT),
    "kernel": OrNull(_KERNELS),
    "budget": TEXT,
    "pause": TEXT,
    "workers": OrNull(COUNT),
}
"""Of `run` and `compare`."""


@checked(
    **_OF_BOTH,
    scenario=OrNull(_SCENARIO),
    measure=TEXTS,
    capture=TEXT,
    cluster=OrNull(TEXT),
    parts=OrNull(TEXT),
)
def run(
    scenario: str | PathLike[str] | None = None,
    *,
    out: str | PathLike[str] | None = None,
    resume: bool = False,
    force: bool = False,
    engine: str | None = None,
    bpf: bool = False,
    programs_as_root: bool = False,
    allow_host_settings: bool = False,
    measure: Sequence[str] = (),
    capture: str = "",
    kernel: str | Sequence[str] | None = None,
    until_decided: bool = False,
    budget: str = "",
    pause: str = "",
    workers: int | None = None,
    cluster: str | None = None,
    parts: str | None = None,
    hosts: Pair | Sequence[str] | None = None,
    watcher: Watcher | None = None,
    **settings: Any,
) -> Run:
    """Runs a scenario: a file's path, its text, or the same keys as keyword arguments.

    `run(duration="10s", path={"rate": "50Mbit/s", "rtt": "40ms"}, flow=[{"algorithm": ["cubic", "bbr1"]}])`: tables are
    dicts, `[[flow]]` is a list of them, a list where a value stands is an axis.

    `out`: a folder to write; None keeps everything in memory. `resume`: go on with the run in `out`. `force`: replace a
    run in `out`. `engine`: "sim" (the default), "kernel", the host's own TCP stack, in real time, or "guest", a kernel
    that was built (`knee kernel list`), in virtual time; `kernel`: whose rules hold, or which kernels boot: the
    scenario's key of that name, whose list is an axis; `bpf`: with the engine kernel, our build of each algorithm also
    where the kernel has its own; `programs_as_root`: there, root's programs of the scenario run as root, and not as the
    user who called sudo, or nobody; `allow_host_settings`: there, as root, what the scenario asks for and the kernel
    has for the whole machine is set, and put back after the run; `measure`: there, instruments for what a repetition
    costs the host (docs/profile.md). `capture`: with another engine than sim, the memory for headers of packets at each
    host, such as "20MB", which are the table `packets`. In real time: `until_decided`: no more repetitions once every
    comparison is decided; `budget`: nor beyond "10min", "5GB" or "10min,5GB"; `pause`: so long between blocks ("10s").
    `workers`: repetitions at once, by default one per processor, which changes no result of the simulator; one in real
    time. `cluster`: the address of a Dask scheduler whose workers run it; `parts`: where these leave finished units, a
    folder or a URL that fsspec knows, by default in `out`; with `resume` also where those of earlier sessions are taken
    from (docs/cluster.md). With `engine="hosts"`, between two hosts of yours (docs/hosts.md): `hosts`, the sender and
    the receiver as ssh knows them or "local", or a `tcpknee.runs.pair.Pair`, which also has an address for data, a
    port, whether the hosts' own netem makes the path, and whether the scenario's programs may run there;
    `allow_host_settings`: there, as root, what the scenario says of its hosts is set on them, and put back.
    Raises `ScenarioError`, `EngineError`, `RunFolderError`, `ClusterError`; Ctrl-C keeps finished repetitions in `out`
    and goes on.
    """
    if scenario is not None and settings:
        raise UsageError("run(): got a scenario and settings; expected one of them.")
    if resume and (out is None or force):
        got, expected = ("force", "one of them") if force else ("no out", "the folder of the run to go on with")
        raise UsageError(f"resume: got it with {got}; expected {expected}.")
    folder, stored = Path(out) if out is not None else None, False
    if scenario is not None:
        text, file = read_scenario(scenario)
    elif settings:
        text, file = compose.toml(settings), "<keyword arguments>"
    elif resume and folder is not None:
        meta = RunFolder.open(folder).read_json()
        if meta["engine"] == "hosts" and engine in (None, "hosts") and hosts is None:
            if meta["status"] == "complete":
                return Run(meta, folder)
            raise UsageError(
                f"{folder}: --resume: got no hosts; expected the options again that this run was begun with, because a "
                "run's folder, which may be somebody else's, does not decide where ssh connects and what is set there. "
                f"It says: {manifest.begun_with(meta)}."
            )
        text, file, stored, engine = meta["scenario"], meta["file"], True, engine or meta["engine"]
    else:
        raise UsageError("run(): expected a scenario (a path or its text) or its keys as keyword arguments.")
    if resume and folder is not None:
        meta = RunFolder.open(folder).read_json()
        # What is done at hosts of the user's no folder asks for.
        if meta["engine"] != "hosts" and engine in (None, meta["engine"]):
            engine, bpf = meta["engine"], bpf or meta.get("bpf", False)
            measure, capture = measure or meta.get("measure", ()), capture or meta.get("capture", "")
    try:
        if kernel is not None:
            text = with_kernels(text, file, kernel, stored=stored, in_guests_alone=engine == "guest")
        return run_text(
            text,
            file,
            out=folder,
            resume=resume,
            force=force,
            engine=engine or "sim",
            bpf=bpf,
            programs_as_root=programs_as_root,
            allow_host_settings=allow_host_settings,
            measure=measure,
            capture=capture,
            ending=Ending(until_decided, budget, pause),
            workers=workers,
            cluster=cluster,
            parts=parts,
            hosts=hosts,
            watcher=watcher,
            stored=stored,
        )
    except ScenarioError as error:
        # Of keyword arguments nobody knows a line.
        raise error.renamed("run()", str) if settings else error from None


_RATE, _RTT = "50Mbit/s", "40ms"


@checked(**_OF_BOTH, algorithms=[_ALGORITHM], set=OrNull(KEYS))
def compare(
    *algorithms: str,
    out: str | PathLike[str] | None = None,
    force: bool = False,
    engine: str = "sim",
    bpf: bool = False,
    until_decided: bool = False,
    budget: str = "",
    pause: str = "",
    workers: int | None = None,
    watcher: Watcher | None = None,
    rate: str | Sequence[str] = _RATE,
    rtt: str | Sequence[str] = _RTT,
    **settings: Any,
) -> Run:
    """Compares algorithms on one path: each in a cell of its own, or sharing one as in `compare("cubic:1,bbr1:2")`.

    Settings: `loss buffer queue duration warmup repeat seed workload kernel`, and others of a scenario by their dotted
    path in `set={"sender.initcwnd": 20}`. A list is an axis. `out`, `force`, `until_decided`, `budget` and `pause` as
    in `run`. Raises as `run` does.
    """
    if unknown := next((name for name in settings if name not in compose.SETTINGS), None):
        known = ["rate", "rtt", *compose.SETTINGS]
        raise UsageError(f"compare(): got {unknown}=…; " + suggest(unknown, known, "expected the settings"))
    given = {**settings, "rate": None if rate == _RATE else rate, "rtt": None if rtt == _RTT else rtt}
    for key in settings.get("set") or {}:
        if given.get(name := compose.ARGUMENTS.get(key, "")) is not None:
            raise UsageError(f'compare(): got {name}=… and set["{key}"]; expected one of them, as they set the same.')
    folder = Path(out) if out is not None else None
    try:
        text = compose.comparison(algorithms, rate=rate, rtt=rtt, in_guests_alone=engine == "guest", **settings)
        ending = Ending(until_decided, budget, pause)
        return run_text(
            text,
            "<compare>",
            out=folder,
            force=force,
            engine=engine,
            bpf=bpf,
            ending=ending,
            workers=workers,
            watcher=watcher,
            command=_call(
                algorithms,
                **given,
                engine=None if engine == "sim" else engine,
                bpf=bpf,
                until_decided=until_decided,
                budget=budget or None,
                pause=pause or None,
            ),
        )
    except ScenarioError as error:
        raise error.renamed("compare()", lambda key: _argument(key, settings.get("set"))) from None


def _call(algorithms: Sequence[str], **given: Any) -> str:
    """What calls `compare` so again."""
    words = [f"{name}={value!r}" for name, value in given.items() if value is not None and value is not False]
    return f"tcpknee.compare({', '.join([*map(repr, algorithms), *words])})"


def _argument(key: str, set_: Mapping[str, Any] | None) -> str:
    """`rate`, or `set["sender.initcwnd"]`."""
    argument, path = compose.argument(key, set_)
    return f'set["{path}"]' if argument == "set" else argument


@checked(folder=PATH)
def open(folder: str | PathLike[str]) -> Run:
    """A run that was written to a folder. Raises `RunFolderError`."""
    found = RunFolder.open(Path(folder))
    return Run(found.read_json(), found.path)


def read_scenario(scenario: str | PathLike[str]) -> tuple[str, str]:
    """Text and name of a scenario given by path, where - is stdin, or by text (which has a line break or a `=`)."""
    if isinstance(scenario, str) and ("\n" in scenario or "=" in scenario):
        return scenario, "<text>"
    # Errors have a line for each mistake: a name is not to make one of its own.
    path, name = Path(scenario), printable(scenario)
    try:
        with ExitStack() as stack:
            file = sys.stdin.buffer if name == "-" else stack.enter_context(path.open("rb"))
            text = file.read(_TEXT_MAX_BYTES + 1)
        if len(text) > _TEXT_MAX_BYTES:
            raise ScenarioError(f"{name}: has more than {_TEXT_MAX_BYTES >> 20} MiB; expected a scenario file.")
        return text.decode("utf-8"), "<stdin>" if name == "-" else name
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ScenarioError(
            f"{name}:{line}: got the byte {error.object[error.start]:#04x}, which is not UTF-8; "
            "expected a TOML file in UTF-8."
        ) from None
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            said = f"there is no such file. {_nearby(path)}"
        elif isinstance(error, IsADirectoryError):
            said = f"is a folder; expected a scenario file.{_runs_again(path)}"
        else:
            said = f"cannot be read: {error.strerror}."
        raise ScenarioError(f"{name}: {said}") from None


def parse(text: str, file: str, *, stored: bool = False, in_guests_alone: bool = False) -> _core.Scenario:
    """The scenario, its expectations and published figures checked. `stored`: it comes from a run's folder, which does
    not decide what is compiled and run here. `in_guests_alone`: no other engine runs it, and files of the kernel may
    use what the simulator does not have. Raises `ScenarioError` with all mistakes, `UsageError`."""
    read_file = named_files.named_by_stored(file, text) if stored else named_files.named_by(file)
    kernels = cache.releases() if "kernel" in text else {}
    read_program = _refuse_program if stored else named_files.programs_named_by(file)
    of_files = naming.of_scenario(text, file, read_program, in_guests_alone=in_guests_alone)
    try:
        scenario = _core.parse(
            text, file, read_file=read_file, kernels=kernels, algorithms=[one.for_core for one in of_files]
        )
    except ScenarioError as error:
        from tcpknee.evidence import expect, published

        entries = [published.Published(*entry) for entry in error.published]
        unread = [*expect.unread(error.expects), *published.unread(entries)]
        if unread and len(error.mistakes) < MOST_LISTED:
            raise ScenarioError.of(file, [*error.mistakes, *unread]) from None
        raise
    algorithms.note(scenario.renamed)
    naming.note(of_files)
    if not scenario.expects and not scenario.published:
        return scenario
    from tcpknee.evidence import expect, published

    from .terms import OfCells

    entries = [published.Published(*entry) for entry in scenario.published]
    # Each is resolved when it is asked for, and expressions ask for all of them again and again.
    meanings = OfCells(list(scenario.cells))
    if mistakes := [*expect.mistakes(scenario.expects, meanings), *published.mistakes(entries, meanings)]:
        raise ScenarioError.of(file, mistakes)
    return scenario


def _refuse_program(path: str) -> tuple[str, bool]:
    raise UsageError(
        f"{printable(path)}: is an algorithm's file that a stored run names; expected the scenario by its name, as in "
        "knee run SCENARIO --resume --out DIR, because a run's folder, which may be somebody else's, does not decide "
        "what is compiled and run here."
    )


def with_kernels(
    text: str, file: str, kernels: str | Sequence[str], *, stored: bool = False, in_guests_alone: bool = False
) -> str:
    """The scenario with `kernels` as its key `kernel`. Raises `ScenarioError`, and `UsageError` where it has one."""
    # What is wrong with it is said of its own lines.
    if parse(text, file, stored=stored, in_guests_alone=in_guests_alone).cells[0]["kernel"] is not None:
        raise UsageError(f"{file}: has a key kernel, and --kernel was given; expected one of them.")
    return compose.with_kernels(text, [kernels] if isinstance(kernels, str) else list(kernels))


def run_text(
    text: str,
    file: str,
    *,
    out: Path | None,
    resume: bool = False,
    force: bool = False,
    engine: str = "sim",
    bpf: bool = False,
    programs_as_root: bool = False,
    allow_host_settings: bool = False,
    measure: Sequence[str] = (),
    capture: str = "",
    ending: Ending = NEVER,
    workers: int | None = None,
    cluster: str | None = None,
    parts: str | None = None,
    hosts: Pair | Sequence[str] | None = None,
    watcher: Watcher | None = None,
    command: str | None = None,
    scenario: _core.Scenario | None = None,
    stored: bool = False,
) -> Run:
    """Parses and runs; nothing is written before the scenario has been found good. `scenario`: what `parse` made of the
    text, where that is known; `stored`: the text comes from a run's folder."""
    check_engine(engine, bpf, programs_as_root, allow_host_settings, measure, workers, hosts, capture)
    pair = _pair(engine, hosts)
    check_cluster(cluster, parts, engine, workers, out, resume)
    count = int(workers) if workers is not None else engines.default_workers(engine)
    if count < 1:
        raise UsageError(f"workers: got {count}; expected 1 or more.")
    scenario = scenario or parse(text, file, stored=stored, in_guests_alone=engine == "guest")
    user, guests = check_scenario(scenario, file, engine, programs_as_root, ending, hosts)
    watcher = watcher or Watcher()
    of_files = [one.facts() for one in naming.used_by(scenario)]
    meta = manifest.describe(
        scenario,
        text,
        file,
        command or _command(file),
        engine,
        bpf,
        measure,
        [guest.facts() for guest in guests],
        of_files,
        {**pair.facts(), "allow_host_settings": allow_host_settings} if pair else None,
        capture,
    )
    if engine == "guest":
        from . import guest

        meta["cells"] = guest.cautioned(meta["cells"])
    job = Job(
        scenario,
        text,
        file,
        bpf=bpf,
        user=user,
        programs_as_root=programs_as_root,
        allow_host_settings=allow_host_settings,
        measure=tuple(measure),
        capture_bytes=packets.room_bytes(capture, engine),
        ending=ending,
        pair=pair,
    )
    if out is None:
        return _run_in_memory(job, meta, count, watcher)
    if cluster is None:
        return _run_in_folder(job, meta, out, resume=resume, force=force, workers=count, watcher=watcher, parts=parts)
    from .cluster import connected

    with connected(cluster, watcher) as on:
        return _run_in_folder(
            job, meta, out, resume=resume, force=force, workers=on.threads, watcher=watcher, on=on, parts=parts
        )


def check_engine(
    engine: str,
    bpf: bool,
    programs_as_root: bool = False,
    allow_host_settings: bool = False,
    measure: Sequence[str] = (),
    workers: int | None = None,
    hosts: Pair | Sequence[str] | None = None,
    capture: str = "",
) -> None:
    """Refuses what no engine can be asked."""
    if engine not in engines.NAMES:
        raise UsageError(f'engine: got "{engine}"; expected one of {", ".join(engines.NAMES)}.')
    if bpf and engine != "kernel":
        raise UsageError(f"bpf: got it with the engine {engine}; expected the engine kernel, which loads our builds.")
    if programs_as_root and engine == "sim":
        raise UsageError(
            "programs_as_root: got it with the engine sim; expected one that runs them: kernel, guest or hosts."
        )
    if allow_host_settings and engine not in ("kernel", "hosts"):
        raise UsageError(
            f"allow_host_settings: got it with the engine {engine}; expected kernel or hosts, which have one."
        )
    if hosts and engine != "hosts":
        raise UsageError(
            f"hosts: got them with the engine {engine}; expected hosts (--engine hosts), which runs between two."
        )
    if engine == "hosts" and workers not in (None, 1):
        raise UsageError(
            f"workers: got {workers} with the engine hosts; expected 1, as between two hosts there is one path."
        )
    packets.room_bytes(capture, engine)
    if measure:
        from . import measuring

        measuring.check(measure, engine, workers)


def check_scenario(
    scenario: _core.Scenario,
    file: str,
    engine: str,
    programs_as_root: bool = False,
    ending: Ending = NEVER,
    hosts: Pair | Sequence[str] | None = None,
) -> tuple[User | None, list[cache.Kernel]]:
    """Refuses what an engine cannot be asked of this scenario. Returns who its programs run as, and the guests."""
    if pair := _pair(engine, hosts):
        pair.check_ports(max(len(cell["flows"]) for cell in scenario.cells), file)
    looking.check(ending, engine, scenario.cells, scenario.repeat, len(scenario.expects))
    kernels = kernels_of(scenario, file, engine)
    guests = [cache.find(name) for name in kernels] if engine == "guest" else []
    has_programs = engine != "sim" and any(map(workloads.of_programs, scenario.cells))
    if engine == "hosts" or not (has_programs or programs_as_root):
        return None, guests
    from . import run_as

    user = run_as.of_programs(programs_as_root)
    return user if has_programs else None, guests


def _pair(engine: str, hosts: Pair | Sequence[str] | None) -> Pair | None:
    """The hosts of the engine hosts, checked."""
    if engine != "hosts":
        return None
    from .pair import Pair

    return Pair.of(hosts or Pair("", ""))


def kernels_of(scenario: _core.Scenario, file: str, engine: str) -> list[str]:
    """The kernels that the cells name. Refuses those that the engine cannot have."""
    named = list(dict.fromkeys(cell["kernel"] for cell in scenario.cells))
    if engine == "guest":
        if None in named:
            raise UsageError(
                f"{file}: kernel: got none; expected one of `knee kernel list`, as in --engine guest --kernel 6.12."
            )
        return named
    for name in filter(None, named):
        if engines.in_real_time(engine):
            raise UsageError(
                f"{file}: kernel: got {name} with the engine {engine}, whose hosts have their own; expected the engine "
                "sim, or guest, which boots it."
            )
        if not cache.VERSION.fullmatch(name):
            raise UsageError(
                f"{file}: kernel: got {name} with the engine sim, which has rules by release; expected a release such "
                "as 6.12, or the engine guest, which boots it."
            )
    return [name for name in named if name is not None]


_NOT_OF_CLUSTERS = {
    "kernel": "measures this host's own TCP stack in real time, which is not the same on other hosts",
    "guest": "boots kernels that were built on this host, which workers do not have",
    "hosts": "measures between two hosts of yours in real time, one repetition after the other",
}


def check_cluster(
    cluster: str | None, parts: str | None, engine: str, workers: int | None, out: Path | None, resume: bool
) -> None:
    """Refuses what no cluster can be asked."""
    if parts is not None:
        from . import store

        store.check_url(parts)
        if cluster is None and not resume:
            raise UsageError(
                "parts: got it without cluster; expected both, or neither. It is where a cluster's workers write."
            )
    if cluster is None:
        return
    if engine != "sim":
        raise UsageError(
            f"cluster: got it with the engine {engine}; expected the engine sim. The engine {engine} "
            f"{_NOT_OF_CLUSTERS[engine]}."
        )
    if workers is not None:
        raise UsageError("workers: got it with cluster; expected one of them. A cluster has workers of its own.")
    if out is None:
        raise UsageError("cluster: got it without out; expected a folder for the run.")


def _run_in_memory(job: Job, meta: dict[str, Any], workers: int, watcher: Watcher) -> Run:
    parts: dict[Key, dict[str, Any]] = {}
    keys = _order(job, meta["engine"])
    session, began = manifest.session(workers), time.monotonic()
    looks = looking.Looking(job.ending, job.scenario.cells)
    try:
        failures = _execute(
            job, meta["engine"], keys, 0, parts.__setitem__, workers, watcher, begin=lambda: None, looks=looks
        )
    finally:
        session |= {"hosts": _of_hosts(job, watcher)} if job.told else {}
    if failures:
        raise failures[min(failures)]
    session |= {"wall_sec": round(time.monotonic() - began, 3), "repetitions": len(parts)}
    notes = {key: tables.take_note(parts[key]["flows"])[1] for key in sorted(parts)}
    told = manifest.repetitions(meta["engine"], notes)
    told |= {"ending": looks.told()} if job.ending else {}
    run = Run({"schema": 1, **meta, **told, "status": "complete", "sessions": [session]}, None, parts)
    run.meta = {**run.meta, "cells": _cautioned(job, run, workers, watcher)}
    return run


def _of_hosts(job: Job, watcher: Watcher) -> dict[str, Any]:
    """What the engine hosts says of both, for `run.json`; its warnings are told at once."""
    for warning in job.told.get("warnings", ()):
        watcher.caution(warning)
    left_out = {"files", "settings"}
    hosts = {role: one for role, one in job.told.items() if role != "warnings"}
    return {role: {key: value for key, value in one.items() if key not in left_out} for role, one in hosts.items()}


def _order(job: Job, engine: str, kept: Iterable[Key] = ()) -> list[Key]:
    """What is still to run: in real time in blocks, in whose order no cell is favoured by a path that changes."""
    seed = job.scenario.seed if engines.in_real_time(engine) else None
    return pool.order(len(job.scenario.cells), job.scenario.repeat, kept, seed=seed)


def _cautioned(job: Job, run: Run, workers: int, watcher: Watcher, on: Cluster | None = None) -> list[dict[str, Any]]:
    """The cells of `run.json`, those of the simulator with what depends on the phase of its flows."""
    cells: list[dict[str, Any]] = run.meta["cells"]
    if run.meta["engine"] != "sim":
        return cells
    from . import phase

    run_late = on.run_late if on else phase.pooled(job, workers)
    found = phase.cautions(run, run_late, watcher)
    return [
        {**cell, "cautions": [*cell["cautions"], found[cell["index"]]]} if cell["index"] in found else cell
        for cell in cells
    ]


def _execute(
    job: Job,
    name: str,
    keys: Sequence[Key],
    kept: int,
    take: Callable[[Key, Any], None],
    workers: int,
    watcher: Watcher,
    on: Cluster | None = None,
    *,
    begin: Callable[[], None],
    looks: looking.Looking,
) -> dict[Key, AlgorithmFailed]:
    """Runs the repetitions of `keys` beside `kept` that are there already, until `looks` ends it; the tables of each
    go to `take`. `begin` is called once the engine is ready. Returns those that an algorithm from a file ended."""
    with ExitStack() as stack:
        with watcher.phase(engines.PREPARING[name]):
            chosen = stack.enter_context(engines.of(name, job))
        begin()
        expectation = (
            on.words
            if on
            else engines.expectation(name, job.scenario.cells, keys, workers, job.user, job.ending.pause_sec)
        )
        watcher.start(job.scenario.title, len(keys) + kept, kept, expectation)
        try:
            if on:
                return on.run(keys, take, watcher)
            cancel = _core.Cancel()
            if not job.ending:
                return pool.execute(chosen, keys, take, cancel=cancel, workers=workers, watcher=watcher)

            def taken(key: Key, found: Any) -> None:
                take(key, found)
                looks.take(key, found)

            failures: dict[Key, AlgorithmFailed] = {}
            for block in looks.blocks(keys):
                failures |= pool.execute(chosen, block, taken, cancel=cancel, workers=workers, watcher=watcher)
            return failures
        finally:
            watcher.stop()


def _run_in_folder(
    job: Job,
    meta: dict[str, Any],
    out: Path,
    *,
    resume: bool,
    force: bool,
    workers: int,
    watcher: Watcher,
    on: Cluster | None = None,
    parts: str | None = None,
) -> Run:
    folder = _take_up(meta, out) if resume else RunFolder.create(out, force=force)
    try:
        if resume:
            begun = folder.read_json()
            meta = {**meta, **{name: begun[name] for name in _OF_EARLIER if name in begun}}
            job = replace(job, ending=job.ending.over(Ending.of_stored(begun.get("ending"))))
            scenario = job.scenario
            looking.check(job.ending, meta["engine"], scenario.cells, scenario.repeat, len(scenario.expects))
        streams = folder if meta["engine"] == "sim" and on is None and not job.scenario.algorithm_files else None
        job = replace(job, output=folder.output, parts=streams)
        return _fill(job, meta, folder, workers, watcher, on, parts)
    finally:
        try:
            holds = folder.parts() or (out / "flows.parquet").exists() or (out / calls.FOLDER).exists()
            if folder.replaces or not holds:
                folder.discard()
        finally:
            folder.unlock()


_OF_EARLIER = ("file", "command", "sessions", "labs", "repetitions", "path_measured", "failed", "beside")
"""What `run.json` keeps of earlier sessions, until there is more to say."""


def _take_up(meta: Mapping[str, Any], out: Path) -> RunFolder:
    folder = RunFolder.open(out)
    manifest.check_same(folder.read_json(), meta, out)
    try:
        folder.lock()
    except OSError as error:
        raise RunFolderError(f"{out}: cannot be written: {error.strerror}.") from None
    return folder


def _fill(
    job: Job,
    meta: dict[str, Any],
    folder: RunFolder,
    workers: int,
    watcher: Watcher,
    on: Cluster | None = None,
    parts: str | None = None,
) -> Run:
    """Runs what is missing, then merges; an interruption merges what there is and keeps the parts. `on`: the cluster
    that runs it, whose workers keep finished units in `parts`."""
    name = meta["engine"]
    if meta["sessions"] and folder.read_json()["status"] == "complete":
        folder.remove_parts()
        return Run(folder.read_json(), folder.path)
    places: list[store.Store] = []
    if meta["sessions"]:
        from . import store

        places, others = store.earlier(folder.path, meta, parts)
        folder.bring_home(places)
        for url in others:
            watcher.caution(
                f"{folder.path}: run.json says that workers left finished repetitions in {url}. It is left as it is, "
                f"because a file does not decide what is read and removed: --parts {url.rpartition('/')[0]} does."
            )
    kept = folder.parts()
    session, began = manifest.session(workers), time.monotonic()
    if on:
        with watcher.phase("Checking the workers"):
            session |= on.open(job, meta, folder.path, parts)
    sessions = [*meta["sessions"], session]
    missing = _order(job, name, kept)
    looks = looking.Looking(job.ending, job.scenario.cells)
    if job.ending:
        meta |= {"ending": looks.told()}
        for key in kept:
            looks.take(key, folder.read_part(key, looking.TABLES))

    def begin() -> None:
        folder.begin(on.place if on else "")
        folder.write_json({**meta, "sessions": sessions})

    failures: dict[Key, AlgorithmFailed] = {}
    try:
        take = folder.keep_part if job.parts else folder.write_part
        failures = _execute(job, name, missing, len(kept), take, workers, watcher, on, begin=begin, looks=looks)
        if job.ending:
            meta |= {"ending": looks.told()}
    except EngineError as error:
        if name != "hosts" or not folder.parts():
            raise
        raise type(error)(f"{error} What was finished is kept; go on with --resume.") from None
    finally:
        done = folder.parts()
        session |= {"wall_sec": round(time.monotonic() - began, 3), "repetitions": len(done) - len(kept)}
        if folder.replaces and on:
            on.close()
        if job.told:
            session["hosts"] = _of_hosts(job, watcher)
        if job.told and not folder.replaces:
            folder.write_hosts(job.told)
        if done:
            with watcher.phase("Merging the tables"):
                told = manifest.repetitions(name, folder.merge(meta, done))
            failed = [one for one in meta.pop("failed", ()) if (one["cell"], one["rep"]) not in done]
            told |= {"failed": failed} if failed else {}
            folder.write_json({**meta, **told, "sessions": sessions})
    # All that workers finished is at home.
    for place in places:
        place.remove()
    if on:
        on.close()
    if failures:
        failed = calls.write(folder.path, failures)
        first = failures[min(failures)]
        again = calls.again(folder.path, job.file, failures)
        if not done:
            raise AlgorithmFailed(f"{first}. {again}".rstrip(), first.call)
        watcher.caution(f"{folder.path}: an algorithm ended repetitions, first: {first}. {again}".rstrip())
        folder.write_json({**folder.read_json(), "failed": failed})
        return Run(folder.read_json(), folder.path)
    cautioned = _cautioned(job, Run(folder.read_json(), folder.path), workers, watcher, on)
    folder.write_json({**folder.read_json(), "cells": cautioned, "status": "complete"})
    folder.remove_parts()
    return Run(folder.read_json(), folder.path)


def _command(file: str) -> str:
    """What runs it again; a scenario that never was a file stands in `run.json` as text."""
    return "tcpknee.run(scenario)" if file.startswith("<") else provenance.command_line("knee", "run", file)


def _nearby(path: Path) -> str:
    from . import scenarios

    name = path.name.removesuffix(".toml")
    return f"Did you mean `knee gallery {name}`?" if name in scenarios.names() else "Give the path of a scenario file."


def _runs_again(path: Path) -> str:
    """What to do with a folder that holds a run."""
    return f" `knee run --resume --out {path}` goes on with the run in it." if (path / "run.json").is_file() else ""

"""The Python front: `run`, `compare` and `open`.

import kneepoint
run = kneepoint.compare("cubic", "bbr1", rate="50Mbit/s", rtt="100ms", loss="1.5%")
run.flows.to_pandas()
for verdict in run.summary.verdicts:
    print(verdict.text)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from . import _core, compose, engine, expect, published, record, tables
from .engine import Key, Watcher
from .errors import RunFolderError, ScenarioError, UsageError
from .folder import RunFolder
from .results import Run

Setting = str | int | float | bool


def run(
    scenario: str | PathLike[str] | None = None,
    *,
    out: str | PathLike[str] | None = None,
    resume: bool = False,
    force: bool = False,
    workers: int | None = None,
    watcher: Watcher | None = None,
    **settings: Any,
) -> Run:
    """Runs a scenario: a file's path, its text, or the same keys as keyword arguments.

    `run(duration="10s", path={"rate": "50Mbit/s", "rtt": "40ms"}, flow=[{"algorithm": ["cubic", "bbr1"]}])`: tables are
    dicts, `[[flow]]` is a list of them, a list where a value stands is an axis.

    `out`: a folder to write; None keeps everything in memory. `resume`: go on with the run in `out`. `force`: replace
    a run in `out`. `workers`: threads, by default one per processor; results do not depend on it.
    Raises `ScenarioError`, `EngineError`, `RunFolderError`; Ctrl-C keeps finished repetitions in `out` and goes on.
    """
    if scenario is not None and settings:
        raise UsageError("run(): got a scenario and settings; expected one of them.")
    folder = Path(out) if out is not None else None
    if scenario is not None:
        text, file = read_scenario(scenario)
    elif settings:
        text, file = compose.toml(settings), "<keyword arguments>"
    elif resume and folder is not None:
        meta = RunFolder.open(folder).read_json()
        text, file = meta["scenario"], meta["file"]
    else:
        raise UsageError("run(): expected a scenario (a path or its text) or its keys as keyword arguments.")
    return run_text(text, file, out=folder, resume=resume, force=force, workers=workers, watcher=watcher)


def compare(
    *algorithms: str,
    out: str | PathLike[str] | None = None,
    workers: int | None = None,
    watcher: Watcher | None = None,
    rate: str | Sequence[str] = "50Mbit/s",
    rtt: str | Sequence[str] = "40ms",
    **settings: Any,
) -> Run:
    """Compares algorithms on one path: each in a cell of its own, or sharing one as in `compare("cubic:1,bbr1:2")`.

    Settings: `loss buffer queue duration warmup repeat seed workload`, and others of a scenario by their dotted path in
    `set={"sender.initcwnd": 20}`. A list is an axis. Raises as `run` does.
    """
    text = compose.comparison(algorithms, rate=rate, rtt=rtt, **settings)
    return run_text(text, "<compare>", out=Path(out) if out is not None else None, workers=workers, watcher=watcher)


def open(folder: str | PathLike[str]) -> Run:
    """A run that was written to a folder. Raises `RunFolderError`."""
    found = RunFolder.open(Path(folder))
    return Run(found.read_json(), found.path)


def read_scenario(scenario: str | PathLike[str]) -> tuple[str, str]:
    """Text and name of a scenario given by path or by text (which has a line break or a `=`)."""
    if isinstance(scenario, str) and ("\n" in scenario or "=" in scenario):
        return scenario, "<text>"
    path = Path(scenario)
    try:
        return path.read_bytes().decode("utf-8"), str(scenario)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ScenarioError(
            f"{path}:{line}: got the byte {error.object[error.start]:#04x}, which is not UTF-8; "
            "expected a TOML file in UTF-8."
        ) from None
    except OSError as error:
        raise ScenarioError(f"{path}:1: cannot be read: {error.strerror}. {_nearby(path)}".rstrip()) from None


def parse(text: str, file: str) -> _core.Scenario:
    """The scenario, its expectations and published figures checked. Raises `ScenarioError`."""
    scenario = _core.parse(text, file)
    cells = scenario.cells
    expect.check(scenario.expects, cells, file)
    published.check([published.Published(*entry) for entry in scenario.published], cells, file)
    return scenario


def run_text(
    text: str,
    file: str,
    *,
    out: Path | None,
    resume: bool = False,
    force: bool = False,
    workers: int | None = None,
    watcher: Watcher | None = None,
    command: str | None = None,
) -> Run:
    """Parses and runs; nothing is written before the scenario has been found good."""
    scenario = parse(text, file)
    count = workers if workers is not None else engine.default_workers()
    if count < 1:
        raise UsageError(f"workers: got {count}; expected 1 or more.")
    watcher = watcher or Watcher()
    meta = record.describe(scenario, text, file, command or _command(file))
    if out is None:
        return _run_in_memory(scenario, meta, count, watcher)
    return _run_in_folder(scenario, meta, out, resume=resume, force=force, workers=count, watcher=watcher)


def _run_in_memory(scenario: _core.Scenario, meta: dict[str, Any], workers: int, watcher: Watcher) -> Run:
    parts: dict[Key, dict[str, Any]] = {}
    keys = engine.order(len(scenario.cells), scenario.repeat)
    session, began = record.session(workers), time.monotonic()
    _execute(scenario, keys, 0, parts.__setitem__, workers, watcher)
    session |= {"wall_sec": round(time.monotonic() - began, 3), "repetitions": len(parts)}
    return Run({"schema": 1, **meta, "status": "complete", "sessions": [session]}, None, parts)


def _execute(
    scenario: _core.Scenario,
    keys: Sequence[Key],
    kept: int,
    take: Callable[[Key, dict[str, Any]], None],
    workers: int,
    watcher: Watcher,
) -> None:
    """Runs the repetitions of `keys` beside `kept` that are there already; the tables of each go to `take`."""
    watcher.start(scenario.title, len(keys) + kept, kept)
    try:
        engine.execute(
            scenario,
            keys,
            lambda key, output: take(key, tables.of_output(output)),
            cancel=_core.Cancel(),
            workers=workers,
            watcher=watcher,
        )
    finally:
        watcher.stop()


def _run_in_folder(
    scenario: _core.Scenario,
    meta: dict[str, Any],
    out: Path,
    *,
    resume: bool,
    force: bool,
    workers: int,
    watcher: Watcher,
) -> Run:
    folder = _take_up(meta, out) if resume else RunFolder.create(out, force=force)
    if resume:
        begun = folder.read_json()
        meta = {**meta, **{name: begun[name] for name in ("file", "command", "sessions")}}
    try:
        return _fill(scenario, meta, folder, workers, watcher)
    finally:
        if not folder.parts() and not (out / "flows.parquet").exists():
            folder.discard()
        folder.unlock()


def _take_up(meta: Mapping[str, Any], out: Path) -> RunFolder:
    folder = RunFolder.open(out)
    record.check_same(folder.read_json(), meta["scenario"], out)
    try:
        folder.lock()
    except OSError as error:
        raise RunFolderError(f"{out}: cannot be written: {error.strerror}.") from None
    folder.created = True  # by an earlier session of this very run
    return folder


def _fill(scenario: _core.Scenario, meta: dict[str, Any], folder: RunFolder, workers: int, watcher: Watcher) -> Run:
    """Runs what is missing, then merges; an interruption merges what there is and keeps the parts."""
    everything = [(cell, rep) for cell in range(len(scenario.cells)) for rep in range(scenario.repeat)]
    if meta["sessions"] and folder.read_json()["status"] == "complete":
        folder.remove_parts()
        return Run(folder.read_json(), folder.path)
    kept = folder.parts()
    session, began = record.session(workers), time.monotonic()
    sessions = [*meta["sessions"], session]
    folder.write_json({**meta, "sessions": sessions})
    missing = engine.order(len(scenario.cells), scenario.repeat, kept)
    try:
        _execute(scenario, missing, len(kept), folder.write_part, workers, watcher)
    finally:
        done = folder.parts()
        status = "complete" if len(done) == len(everything) else "interrupted"
        session |= {"wall_sec": round(time.monotonic() - began, 3), "repetitions": len(done) - len(kept)}
        if done:
            folder.merge(meta, done)
            folder.write_json({**meta, "sessions": sessions, "status": status})
    folder.remove_parts()
    return Run(folder.read_json(), folder.path)


def _command(file: str) -> str:
    """What runs it again; a scenario that never was a file stands in `run.json` as text."""
    return "kneepoint.run(scenario)" if file.startswith("<") else record.command_line("knee", "run", file)


def _nearby(path: Path) -> str:
    from . import scenarios

    name = path.stem
    return f"Did you mean `knee gallery {name}`?" if name in scenarios.names() else "Give the path of a scenario file."

"""What Dask's workers run: units of a run, one repetition of one cell each, several to a task.

A unit needs nothing of the client's disk: the scenario's text and the files that it names travel with the task.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import pyarrow as pa

from tcpknee import _core
from tcpknee.algorithms import naming
from tcpknee.errors import AlgorithmFailed, ClusterError, TcpkneeError

from . import engines, phase, store
from .job import Job
from .pool import Key

_Item = TypeVar("_Item")
Told = TypeVar("Told")


@dataclass(frozen=True)
class Parcel:
    """What all tasks of a run need.

    `files`: path and text of each file that the scenario names. `parts`: URL of the place for finished units. `build`:
    the client's tcpknee, as `store.build` says it. `algorithm_files`: what `run.json` says of each file whose algorithm
    the scenario names, sources included, as JSON.
    """

    text: str
    file: str
    files: tuple[tuple[str, str], ...]
    scenario_sha256: str
    parts: str
    build: tuple[tuple[str, str], ...]
    algorithm_files: tuple[str, ...] = ()

    def store(self) -> store.Store:
        """Where finished units are kept."""
        return store.Store(self.parts, self.scenario_sha256)


@dataclass(frozen=True)
class Done:
    """What a task did: the units that it finished, the part that holds them ("": none does), the units that an
    algorithm from a file ended, with how, and the units that it left."""

    units: list[Key]
    part: str
    failures: dict[Key, AlgorithmFailed]
    left: list[Key]


@dataclass(frozen=True)
class DoneLate:
    """The same of units with late hosts: their flows, as an Arrow stream each."""

    units: list[Key]
    flows: list[bytes]
    failures: dict[Key, AlgorithmFailed]
    left: list[Key]


def greet(parts: str) -> tuple[dict[str, str], str]:
    """Before the first unit: this worker's tcpknee, and the name of a file that it was able to write into `parts`."""
    name = f"checked/{uuid.uuid4().hex}"
    store.place(parts).put(name, b"This worker can write here.\n")
    return store.build(), name


def work(parcel: Parcel, units: Sequence[Key], seconds: float) -> Done:
    """Runs units until so much time has gone by, and keeps those finished as a part, also when one fails."""
    return _told(lambda: _work(parcel, units, seconds))


def _work(parcel: Parcel, units: Sequence[Key], seconds: float) -> Done:
    found: dict[Key, dict[str, pa.Table]] = {}
    try:
        with engines.of("sim", Job(_scenario(parcel), parcel.text, parcel.file)) as simulator:
            failures, left = _until(units, seconds, lambda key: found.__setitem__(key, simulator.run_cell(*key)))
    finally:
        part = parcel.store().write(found) if found else ""
    return Done(list(found), part, failures, left)


def work_late(parcel: Parcel, units: Sequence[Key], seconds: float) -> DoneLate:
    """Runs units with late hosts (`phase.py`), whose flows are small enough to return."""
    return _told(lambda: _work_late(parcel, units, seconds))


def _work_late(parcel: Parcel, units: Sequence[Key], seconds: float) -> DoneLate:
    flows: dict[Key, bytes] = {}

    def run(late: phase.Late, key: Key) -> None:
        table, content = late.run_cell(*key), pa.BufferOutputStream()
        with pa.ipc.new_stream(content, table.schema) as writer:
            writer.write_table(table)
        flows[key] = content.getvalue().to_pybytes()

    with phase.late_hosts(_scenario(parcel), parcel.text, parcel.file) as late:
        failures, left = _until(units, seconds, lambda key: run(late, key))
    return DoneLate(list(flows), list(flows.values()), failures, left)


def call(function: Callable[[_Item], Told], item: _Item, build: tuple[tuple[str, str], ...]) -> Told:
    """What a function makes of an item; refuses a client with another tcpknee."""

    def run() -> Told:
        _check_build(build)
        return function(item)

    return _told(run)


def _until(
    units: Sequence[Key], seconds: float, run: Callable[[Key], object]
) -> tuple[dict[Key, AlgorithmFailed], list[Key]]:
    """Runs one unit at least; returns those that an algorithm from a file ended, and those that are left."""
    began, failures, left = time.monotonic(), {}, list(units)
    while left:
        key = left.pop(0)
        try:
            run(key)
        except AlgorithmFailed as failure:
            failures[key] = failure
        if time.monotonic() - began >= seconds:
            break
    return failures, left


def _scenario(parcel: Parcel) -> _core.Scenario:
    """The scenario; refuses a client with another tcpknee, which a worker that came late can meet here first."""
    _check_build(parcel.build)
    return _parsed(parcel.text, parcel.file, parcel.files, parcel.algorithm_files)


def _check_build(build: tuple[tuple[str, str], ...]) -> None:
    if dict(build) != store.build():
        raise ClusterError(differs(store.build(), dict(build)))


@lru_cache(maxsize=4)
def _parsed(
    text: str, file: str, files: tuple[tuple[str, str], ...], algorithm_files: tuple[str, ...]
) -> _core.Scenario:
    of_files = [naming.Named.of_facts(json.loads(facts)) for facts in algorithm_files]
    return _core.parse(text, file, dict(files), algorithms=[one.for_core for one in of_files])


def differs(got: dict[str, str], expected: dict[str, str]) -> str:
    """How a worker's tcpknee differs from the client's."""
    version = expected["tcpknee"]
    if got["tcpknee"] != version:
        return (
            f"got tcpknee {got['tcpknee']}; expected {version}, as here. Install the same version on every worker "
            "and here."
        )
    return (
        f"got another build of tcpknee {version} (native module {got['core'][:12]}…; here {expected['core'][:12]}…), "
        "whose results may differ. Install the same wheel on every worker and here."
    )


def _told(run: Callable[[], Told]) -> Told:
    """Errors of ours, with the worker that had them."""
    from distributed import get_worker

    try:
        return run()
    except TcpkneeError as error:
        raise type(error)(f"worker {get_worker().address}: {error}") from None

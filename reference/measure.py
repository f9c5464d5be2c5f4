"""Measures the cells of suites on a kernel in virtual time, into a file of reference results:

    measure.py 6.12 algorithms queues -o reference/linux-6.12.csv

Runs that the file holds already are kept, unless --again is given. The engine guest boots the kernel anew for each run.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import matrices
from tcpknee import provenance
from tcpknee.errors import EngineError, KernelUnsupported
from tcpknee.kernels import building, cache
from tcpknee.kernels.cache import Kernel
from tcpknee.runs import api, guest
from tcpknee.runs.job import Job
from tcpknee.runs.progress import Phase
from tcpknee.validation.references import beside, reference
from tcpknee.validation.references.reference import Reference, Row


def main() -> int:
    given = _arguments()
    kernel = find(given.version)
    out = Path(given.output)
    wanted = [
        cell
        for name in given.suites
        for cell in matrices.SUITES[name]()
        if not given.only or any(_means(cell, only) for only in given.only)
    ]
    settings = hosts(given.version)
    facts = {
        "kernel": kernel.release,
        "hz": "250",
        "clock": "virtual (the engine guest)",
    }
    store = Store(out, facts, settings)
    todo = [
        (cell, run)
        for run in range(1, max((cell.runs for cell in wanted), default=0) + 1)
        for cell in wanted
        if run <= min(cell.runs, given.runs) and (given.again or not store.has(cell, run))
    ]
    print(f"{out}: {len(todo)} runs to make, {given.jobs} at once", flush=True)
    began, done = time.monotonic(), 0
    failed: list[str] = []
    stop = threading.Event()

    def work(item: tuple[matrices.Cell, int]) -> None:
        nonlocal done
        if stop.is_set():
            return
        cell, run = item
        began_run = time.monotonic()
        try:
            store.put(cell, run, measure(cell, settings, run))
        except EngineError as error:
            failed.append(f"{describe(cell)}, run {run}: {error}")
            print(f"FAILED {failed[-1]}", flush=True)
            return
        done += 1
        took = time.monotonic() - began_run
        left = (time.monotonic() - began) / done * (len(todo) - done)
        print(f"{done}/{len(todo)} {describe(cell)}, run {run}: {took:.0f} s; {left / 60:.0f} min left", flush=True)

    with ThreadPoolExecutor(given.jobs) as pool:
        try:
            list(pool.map(work, todo))
        except BaseException:
            stop.set()
            raise
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", help="6.1, 6.12: as in linux-source-VERSION")
    parser.add_argument("suites", nargs="+", choices=sorted(matrices.SUITES))
    parser.add_argument("-o", "--output", required=True, help="the CSV file")
    parser.add_argument(
        "--jobs", type=int, default=2, help="kernels at once (virtual time: they do not disturb each other)"
    )
    parser.add_argument("--only", action="append", default=[], help="a group (reno, pie) or an algorithm; repeatable")
    parser.add_argument("--runs", type=int, default=99, help="of each cell at most, for a first look")
    parser.add_argument("--again", action="store_true", help="replace the runs that the file holds")
    return parser.parse_args()


def _means(cell: matrices.Cell, only: str) -> bool:
    return only == cell.group or only in {flow["flow.algorithm"] for flow in cell.flows}


def find(version: str) -> Kernel:
    """The kernel of that version (`knee kernel add`), which is built when it is not there."""
    try:
        return cache.find(version)
    except KernelUnsupported:
        return building.add(version, phase=lambda title: Phase(title, lines=True))


def hosts(version: str) -> dict[str, str]:
    """Settings of every cell on that kernel."""
    return {"kernel": version, **matrices.HOSTS}


def describe(cell: matrices.Cell) -> str:
    path = [value for key, value in cell.settings.items() if key.startswith("path.")]
    return f"{cell.suite} {cell.group}: {'+'.join(flow['flow.algorithm'] for flow in cell.flows)} {' '.join(path)}"


class Store:
    """The file of results, written after every run."""

    def __init__(self, path: Path, facts: Mapping[str, str], settings: Mapping[str, str]) -> None:
        self._path, self._lock = path, threading.Lock()
        self._reference = Reference(str(path), dict(facts), dict(settings), [])
        if path.is_file():
            held = reference.read(path)
            if held.facts != facts or held.settings != settings:
                sys.exit(f"measure.py: {path} holds results of {held.facts}, {held.settings}; choose another --output.")
            self._reference = held
        self._held = {(found.key, run) for found in self._reference.cells() for run in found.runs}

    def has(self, cell: matrices.Cell, run: int) -> bool:
        return (_key(cell), run) in self._held

    def put(self, cell: matrices.Cell, run: int, measured: Iterable[Mapping[str, float]]) -> None:
        labels = {
            "suite": cell.suite,
            "group": cell.group,
            "run": str(run),
            "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
            "scripts": provenance.engine_version(),
        }
        rows = [
            Row({**labels, "flow": str(i)}, {**cell.settings, **flow}, metrics)
            for i, (flow, metrics) in enumerate(zip(cell.flows, measured, strict=True))
        ]
        with self._lock:
            # Rows stand as the matrices have them: the file does not depend on who was ready first.
            runs = {
                (found.key, number): of_run
                for found in self._reference.cells()
                for number, of_run in found.runs.items()
            }
            runs[_key(cell), run] = rows
            ordered = sorted(runs, key=lambda key: (_ORDER.get(key[0], len(_ORDER)), key[1]))
            self._reference.rows[:] = [row for key in ordered for row in runs[key]]
            reference.write(self._reference, self._path)
            self._held.add((_key(cell), run))


def _key(cell: matrices.Cell) -> tuple[Any, ...]:
    return reference.key_of(cell.suite, cell.settings, cell.flows)


def _order() -> dict[tuple[Any, ...], int]:
    every = [_key(cell) for suite in matrices.SUITES.values() for cell in suite()]
    return {key: i for i, key in enumerate(every)}


_ORDER = _order()


def scenario(cell: matrices.Cell, settings: Mapping[str, str]) -> str:
    """The cell as a scenario."""
    shared = {key: value for key, value in settings.items() if not key.startswith("flow.")}
    of_flows = {key: value for key, value in settings.items() if key.startswith("flow.")}
    flows = [{**of_flows, **flow} for flow in cell.flows]
    return reference.scenario({**shared, **cell.settings}, flows, repeat=cell.runs)


def measure(cell: matrices.Cell, settings: Mapping[str, str], run: int) -> Sequence[Mapping[str, Any]]:
    """The metrics of each flow of a run. Raises `EngineError`."""
    text, name = scenario(cell, settings), describe(cell)
    parsed = api.parse(text, name)
    with guest.engine(Job(parsed, text, name)) as engine:
        return beside.measure(engine.run_cell(0, run - 1), parsed.cells[0])


if __name__ == "__main__":
    sys.exit(main())

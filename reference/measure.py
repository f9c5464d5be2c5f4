"""Measures the cells of suites on a kernel in virtual time, into a file of reference results:

    measure.py 6.12 algorithms queues -o reference/linux-6.12.csv

Runs that the file holds already are kept, unless --again is given. Each run boots the kernel (user-mode Linux) anew.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import build
import cell as cells
import matrices
from tcpknee import _core
from tcpknee.errors import KernelUnsupported
from tcpknee.kernels import guest
from tcpknee.kernels.cache import Kernel
from tcpknee.validation.references import reference
from tcpknee.validation.references.reference import Reference, Row

HERE = Path(__file__).resolve().parent
SCRIPTS = (HERE / "cell.py", HERE / "guest" / "flow.c")
"""What decides on a result, beside the kernel."""

DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in SCRIPTS)).hexdigest()[:12]

MOST_SECONDS = 1800.0
"""Of real time for one run."""


def main() -> int:
    given = _arguments()
    kernel = build.kernel(given.version)
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
        "clock": "virtual (user-mode Linux, time-travel=inf-cpu)",
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
            store.put(cell, run, measure(kernel, cell, settings, run))
        except (Failed, cells.Unsupported) as error:
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


def hosts(version: str) -> dict[str, str]:
    """Settings of every cell on that kernel."""
    major, minor = (int(part) for part in version.split(".")[:2])
    grows = (major, minor) >= (6, 10)
    return {**matrices.HOSTS, "sender.grow_skb": "true" if grows else "false"}


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
            "scripts": DIGEST,
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


class Failed(Exception):
    """A run that gave no result."""


def measure(kernel: Kernel, cell: matrices.Cell, settings: Mapping[str, str], run: int) -> list[dict[str, float]]:
    """The metrics of each flow of a run. Raises `Failed`, `Unsupported`."""
    parsed = parse(cell, settings)
    name = hashlib.sha256(f"{_key(cell)} {run}".encode()).hexdigest()[:16]
    folder = build.BUILT / "cells" / kernel.name / name
    shutil.rmtree(folder, ignore_errors=True)
    cells.write(folder, parsed, build.flow())
    boot(kernel, folder, run)
    found = metrics(folder / "samples.csv", parsed)
    shutil.rmtree(folder)
    return found


def parse(cell: matrices.Cell, settings: Mapping[str, str]) -> Mapping[str, Any]:
    """The cell as a scenario has it, with every value resolved."""
    of_hosts = {key: value for key, value in settings.items() if not key.startswith("flow.")}
    of_flows = {key: value for key, value in settings.items() if key.startswith("flow.")}
    text = reference.scenario({**of_hosts, **cell.settings}, [{**of_flows, **flow} for flow in cell.flows])
    [parsed] = _core.parse(text, describe(cell)).cells
    return parsed


def boot(kernel: Kernel, folder: Path, run: int) -> None:
    """Boots the kernel with a cell and waits for its end. Raises `Failed`."""
    work = "sh -e ./setup.sh >setup.log 2>&1 && sh -e ./run.sh >run.log 2>&1"
    process = guest.boot(kernel.program, folder, work, seed=run)
    try:
        console, _ = process.communicate(timeout=MOST_SECONDS)
        code = guest.ended(process, folder, console.decode(errors="replace").splitlines())
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise Failed(f"no end after {MOST_SECONDS:.0f} s; see {folder}") from None
    except KernelUnsupported as error:
        raise Failed(f"{folder}: {error}") from None
    if code:
        logs = [folder / name for name in ("setup.log", "run.log")]
        said = "; ".join(path.read_text(encoding="utf-8", errors="replace")[-300:] for path in logs if path.is_file())
        raise Failed(f"{folder}: {said}")


def metrics(samples: Path, cell: Mapping[str, Any]) -> list[dict[str, float]]:
    """Goodput and the median of the smoothed RTT after the warm-up, retransmissions of the whole run."""
    with samples.open(encoding="utf-8", newline="") as file:
        rows = [{name: int(value) for name, value in row.items()} for row in csv.DictReader(file)]
    found = []
    for i, _ in enumerate(cell["flows"]):
        mine = [row for row in rows if row["flow"] == i]
        steady = [row for row in mine if row["t_ns"] >= cell["warmup_ns"]]
        first, last = steady[0], steady[-1]
        srtts = [row["srtt_us"] for row in steady if row["srtt_us"]]
        if last["t_ns"] != cell["duration_ns"] or not last["data_segs_out"] or not srtts:
            raise Failed(f"{samples}: flow {i} has no samples up to the end")
        found.append(
            {
                "goodput_bits_per_sec": (last["bytes_read"] - first["bytes_read"])
                * 8e9
                / (last["t_ns"] - first["t_ns"]),
                "srtt_us_p50": statistics.median(srtts),
                "retransmit_pct": last["total_retrans"] * 100 / last["data_segs_out"],
            }
        )
    return found


if __name__ == "__main__":
    sys.exit(main())

"""What a sweep on a cluster costs beside one process: 2,000 short units on two workers here, and with two threads.

    python tools/bench_cluster.py [--units 2000] [--rounds 3]

Both commands run in turn, as often as asked, and the tables of all runs are compared byte by byte. The overhead per
unit is told twice: in time of a worker (what the repetitions take longer, times the workers, over the units) and in
processor time of all processes, which a loaded machine changes less. Of both, what the same commands take for a single
unit is taken off: the start of interpreters and of the cluster.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "python"))

from dask_here import dask

WORKERS = 2
SCENARIO = """\
title = "A sweep of short units"
duration = "1s"
repeat = {repeat}
[path]
rate = ["2Mbit/s", "4Mbit/s", "6Mbit/s", "8Mbit/s", "10Mbit/s"]
rtt = ["10ms", "20ms", "30ms", "40ms", "50ms"]
loss = ["0.1%", "1%"]
[[flow]]
algorithm = ["cubic", "reno", "bbr1", "westwood"]
"""
CELLS = 200

ONE = """\
title = "A single unit"
duration = "1s"
repeat = 1
[path]
rate = "2Mbit/s"
rtt = "10ms"
[[flow]]
algorithm = "cubic"
"""


def run(folder: Path, scenario: str, out: str, *words: str) -> tuple[float, float, float]:
    """Seconds of the whole command, of its repetitions, and of all processors."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "tcpknee", "run", scenario, "--out", out, "-q", *words],
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    whole, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    sessions = json.loads((folder / out / "run.json").read_text())["sessions"]
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return whole, sum(session["wall_sec"] for session in sessions), busy


def tables(run: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in run.glob("*.parquet")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--units", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    repeat = max(asked.units // CELLS, 1)
    units = repeat * CELLS
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        (folder / "sweep.toml").write_text(SCENARIO.format(repeat=repeat))
        (folder / "one.toml").write_text(ONE)
        here = stack.enter_context(dask(folder / "dask"))
        ways = {"threads": ("--workers", str(WORKERS)), "cluster": ("--cluster", here.address)}
        starts = {name: run(folder, "one.toml", f"one-{name}", *words) for name, words in ways.items()}
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for number in range(asked.rounds):
            for name, words in ways.items():
                whole, wall, busy = run(folder, "sweep.toml", f"{name}-{number}", *words)
                found[name].append((wall - starts[name][1], busy - starts[name][2]))
                print(
                    f"{name:8} repetitions {wall:6.2f} s, command {whole:6.2f} s, processors {busy:6.2f} s", flush=True
                )
            if len({tuple(tables(folder / f"{name}-{number}").items()) for name in ways}) > 1:
                print("the tables differ")
                return 1
        here, there = ([statistics.median(figures) for figures in zip(*found[name], strict=True)] for name in ways)
        load = " ".join(f"{load:.1f}" for load in os.getloadavg())
        print(
            f"{units} units, tables equal to the byte; overhead a unit: "
            f"{(there[0] - here[0]) * WORKERS / units * 1e3:.2f} ms of a worker, "
            f"{(there[1] - here[1]) / units * 1e3:.2f} ms of processors (load {load})"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

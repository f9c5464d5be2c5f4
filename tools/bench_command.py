"""How much of the engine's speed is left of the whole command `knee run`, tables written; and what a second processor
is worth.

Engine and command take turns, on cells of crates/sim/benches/cells, as they are and ten times as long: the command
takes as long to start however long it then runs. Two processors run twice the repetitions of one in memory: a perfect
second processor makes 2.00 of it.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import tcpknee
from tcpknee import _core

CELLS = Path(__file__).resolve().parents[1] / "crates/sim/benches/cells"
KNEE = Path(sys.executable).with_name("knee")
# With bytecode, as pip installs it, whatever this shell is set to.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
REPEATS = 5
LONGER = 10
"""Times as long as the file says."""


def seconds(work: Callable[[], object]) -> float:
    """Wall time."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def command(name: str, times: int) -> None:
    """One line of a cell that many times as long: data packets per second of the engine and of the command, medians."""
    text = (CELLS / f"{name}.toml").read_text(encoding="utf-8")
    (length_s,) = (times * int(found) for found in re.findall(r'^duration = "(\d+)s"$', text, re.MULTILINE))
    text = re.sub(r'^duration = ".*"$', f'duration = "{length_s}s"', text, flags=re.MULTILINE)
    scenario = _core.parse(text, f"{name}.toml")
    packets = scenario.run_cell(0, 0).data_packets

    def run(folder: Path) -> None:
        words = [KNEE, "run", folder / "cell.toml", "--out", folder / "run", "--workers", "1", "--quiet"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)

    engine, whole = [], []
    for _ in range(REPEATS):
        engine.append(packets / seconds(lambda: scenario.run_cell(0, 0)))
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "cell.toml").write_text(text, encoding="utf-8")
            whole.append(packets / seconds(lambda folder=folder: run(Path(folder))))
    a, b = statistics.median(engine), statistics.median(whole)
    print(f"  {name:<14} {length_s:>6} {packets:>12,} {a / 1e6:>8.2f} {b / 1e6:>8.2f} {100 * b / a:>6.0f} %")


def two_processors(name: str) -> None:
    """One line: what two workers do in the time in which one does half of it, median of pairs."""
    text = (CELLS / f"{name}.toml").read_text(encoding="utf-8")

    def run(workers: int) -> None:
        tcpknee.run(f"repeat = {4 * workers}\n{text}", workers=workers)

    run(2)
    worth = [2 * seconds(lambda: run(1)) / seconds(lambda: run(2)) for _ in range(REPEATS)]
    least, most = min(worth), max(worth)
    print(f"  two processors do {statistics.median(worth):.2f} x the work of one (least {least:.2f}, most {most:.2f})")


def main() -> None:
    load = " ".join(f"{load:.1f}" for load in os.getloadavg())
    print(f"knee run beside the engine alone, one processor, medians of {REPEATS} in turn (load {load})")
    heads = f"  {'cell':<14} {'s':>6} {'packets':>12} {'engine':>8} {'command':>8} {'left':>8}"
    print(f"{heads}   (million data packets per second)")
    for name in ("one-flow", "slow", "hundred-flows"):
        for times in (1, LONGER):
            command(name, times)
    two_processors("one-flow")


if __name__ == "__main__":
    main()

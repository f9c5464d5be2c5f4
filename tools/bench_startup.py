"""What one waits for: from starting `knee` to its end, for the commands that should feel immediate and for a run of a
moment, and from starting a sample of 5,000 measured paths to the first repetition that is kept."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

COMMANDS = (["--help"], ["list"], ["list", "algorithms"])
REPEATS = 15
KNEE = Path(sys.executable).with_name("knee")
# With bytecode, as pip installs it, whatever this shell is set to.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

SMALL = """\
title = "A moment"
duration = "1s"
[path]
rate = "10Mbit/s"
rtt = "40ms"
[[flow]]
algorithm = "cubic"
"""

ROWS = 5_000
SAMPLE = """\
title = "Measured paths"
duration = "1s"
[path]
buffer = "100packets"
[[flow]]
algorithm = "cubic"
[[sample]]
file = "paths.parquet"
"""
SAMPLE_REPEATS = 5


def seconds(*arguments: str, folder: Path | None = None) -> float:
    """Wall time of one run, output thrown away."""
    silent = subprocess.DEVNULL
    begin = time.perf_counter()
    subprocess.run([KNEE, *arguments], check=True, stdout=silent, stderr=silent, cwd=folder, env=ENVIRONMENT)
    return time.perf_counter() - begin


def first_repetition(folder: Path) -> float:
    """Wall time until the first repetition of the sample is in the run folder; the rest is not run."""
    out = Path(tempfile.mkdtemp(dir=folder)) / "run"
    begin = time.perf_counter()
    command = [KNEE, "run", "sample.toml", "--out", out, "-q"]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    while not any(out.glob("parts/*.flows.parquet")):
        if process.poll() is not None:
            raise SystemExit(f"knee run ended with {process.returncode} before a repetition was finished")
        time.sleep(0.001)
    found = time.perf_counter() - begin
    process.send_signal(signal.SIGINT)
    process.wait()
    return found


def write_sample(folder: Path) -> None:
    """The scenario and its table, whose paths are drawn and always the same."""
    rng = np.random.default_rng(1)
    columns = {
        "path.rate": [f"{rate:.4g}Mbit/s" for rate in rng.uniform(1, 1000, ROWS)],
        "path.rtt": [f"{rtt:.4g}ms" for rtt in rng.lognormal(np.log(50), 0.8, ROWS).clip(1, 1000)],
        "path.loss": [f"{loss:.2f}%" for loss in rng.uniform(0, 2, ROWS)],
    }
    parquet.write_table(pa.table(columns), folder / "paths.parquet")
    (folder / "sample.toml").write_text(SAMPLE)


def tell(what: str, measure: Callable[[], float], repeats: int) -> None:
    """One line: median and worst of `repeats` after one to warm the caches."""
    measure()
    times = [measure() for _ in range(repeats)]
    print(f"  {what:<41} median {statistics.median(times) * 1e3:5.0f} ms, worst {max(times) * 1e3:5.0f} ms")


def main() -> None:
    load = " ".join(f"{load:.1f}" for load in os.getloadavg())
    print(
        f"start-up time, {REPEATS} runs each after one to warm the caches, {SAMPLE_REPEATS} of the sample (load {load})"
    )
    for arguments in COMMANDS:
        tell(f"knee {' '.join(arguments)}", lambda arguments=arguments: seconds(*arguments), REPEATS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Each run takes the next free folder, as a user's does.
        (folder / "moment.toml").write_text(SMALL)
        for flags in ([], ["--quiet"]):
            words = ["run", "moment.toml", *flags]
            tell(f"knee {' '.join(words)}", lambda words=words: seconds(*words, folder=folder), REPEATS)
        write_sample(folder)
        dry = ["run", "sample.toml", "--dry-run"]
        tell(f"knee run --dry-run, {ROWS:,} rows of Parquet", lambda: seconds(*dry, folder=folder), SAMPLE_REPEATS)
        tell("  up to the first repetition kept", lambda: first_repetition(folder), SAMPLE_REPEATS)


if __name__ == "__main__":
    main()

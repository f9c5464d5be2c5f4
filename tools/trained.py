"""Trains the compiler: trained.py [CPU]. Writes build/trained.profdata: how often each branch of the engine is taken.

The engine is built with counters, simulates the benchmark's cells and some more (queues, other algorithms, many flows,
hosts with costs), and what it counted is merged by llvm-profdata, which rustup has as the component llvm-tools. `make
tuned` then builds with that for this processor (`native`), and `make wheel` for all. The tables do not depend on it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CELLS = ROOT / "crates/sim/benches/cells"
BUILD = ROOT / "build"
SECONDS = {"slow": 100, "lossy": 150}
"""Of simulated time, where it is not this many: a few hundred thousand packets of each."""
OTHERS = 3
COSTS = '[sender]\ncosts = "published"\n[receiver]\ncosts = "published"\n'
VARIED = (
    *(("cubic", 10, f'queue = "{queue}"\n') for queue in ("fq_codel", "cake", "dualpi2", "pie", "red")),
    *((algorithm, 1, "") for algorithm in ("reno", "bbr1", "bbr3")),
    ("cubic", 1000, ""),
    ("cubic", 1, COSTS),
)
"""Algorithm, number of flows, and what else the scenario says."""


def scenario(algorithm: str, flows: int, more: str) -> str:
    path = '[path]\nrate = "1Gbit/s"\nrtt = "20ms"\nbuffer = "1bdp"\n'
    return f'duration = "30s"\n{path}{more}[[flow]]\nalgorithm = "{algorithm}"\ncount = {flows}\n'


def merger() -> Path:
    """llvm-profdata of the Rust that builds."""
    root = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True).stdout.strip()
    found = sorted(Path(root).glob("lib/rustlib/*/bin/llvm-profdata"))
    if not found:
        sys.exit(
            f"trained.py: got no llvm-profdata in {root}; expected rustup's component llvm-tools. "
            "Install it: rustup component add llvm-tools"
        )
    return found[0]


def main() -> None:
    if len(sys.argv) > 2:
        sys.exit(
            "trained.py: expected nothing, or the processor to build for as rustc's target-cpu: native, x86-64-v3, …"
        )
    merge = merger()
    counted = BUILD / "training"
    shutil.rmtree(counted, ignore_errors=True)
    flags = " ".join([f"-Cprofile-generate={counted}", *(f"-Ctarget-cpu={cpu}" for cpu in sys.argv[1:])])
    words = ["cargo", "build", "--quiet", "--release", "--locked", "-p", "knee-engine", "--example", "packets"]
    target = BUILD / "instrumented"
    subprocess.run([*words, "--target-dir", target], cwd=ROOT, env={**os.environ, "RUSTFLAGS": flags}, check=True)
    packets = target / "release/examples/packets"
    with tempfile.TemporaryDirectory(prefix="tcpknee-") as folder:
        files = sorted(CELLS.glob("*.toml"))
        for number, varied in enumerate(VARIED):
            file = Path(folder) / f"varied-{number}.toml"
            file.write_text(scenario(*varied), encoding="utf-8")
            files.append(file)
        for file in files:
            subprocess.run([packets, file, str(SECONDS.get(file.stem, OTHERS))], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([merge, "merge", "-o", BUILD / "trained.profdata", counted], check=True)
    shutil.rmtree(counted)


if __name__ == "__main__":
    main()

"""A kernel to measure on, and the program that carries flows in it: build.py 6.12 [--force]."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from tcpknee.errors import KernelUnsupported
from tcpknee.kernels import building, cache
from tcpknee.kernels.cache import Kernel
from tcpknee.runs.progress import Phase

SOURCE = Path(__file__).resolve().parent / "guest" / "flow.c"
BUILT = Path(__file__).resolve().parents[1] / "build" / "reference"


def kernel(version: str, *, force: bool = False) -> Kernel:
    """The kernel of that version (`knee kernel add`), which is built when it is not there."""
    try:
        if not force:
            return cache.find(version)
    except KernelUnsupported:
        pass
    return building.add(version, phase=lambda title: Phase(title, lines=True))


def flow() -> Path:
    """The program that carries flows, built when it is older than its source."""
    program = BUILT / "flow"
    if not program.is_file() or program.stat().st_mtime < SOURCE.stat().st_mtime:
        BUILT.mkdir(parents=True, exist_ok=True)
        words = ["cc", "-O2", "-Wall", "-Wextra", "-o", str(program), str(SOURCE)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"build.py: `{' '.join(words)}` failed:\n{done.stderr[-4000:]}")
    return program


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--force", action="store_true", help="build it anew")
    given = parser.parse_args()
    print(kernel(given.version, force=given.force).folder)

"""Time from starting `knee` to its end, for the commands that should feel immediate."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

COMMANDS = (["--help"], ["list"], ["list", "algorithms"])
REPEATS = 15
KNEE = Path(sys.executable).with_name("knee")


def seconds(arguments: list[str]) -> float:
    """Wall time of one run, output thrown away."""
    begin = time.perf_counter()
    subprocess.run([KNEE, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main() -> None:
    print(f"start-up time, {REPEATS} runs each after one to warm the caches")
    for arguments in COMMANDS:
        seconds(arguments)
        times = [seconds(arguments) for _ in range(REPEATS)]
        text = " ".join(arguments)
        print(f"  knee {text:<16} median {statistics.median(times) * 1e3:4.0f} ms, worst {max(times) * 1e3:4.0f} ms")


if __name__ == "__main__":
    main()

"""How far shares of two flows depend on their phase: one flow of 20 ms and one of about 80 ms behind drop-tail
(docs/validation/against-linux.md).

    python tools/phase_cells.py [--noise 0s 20us 300us]

The longer round-trip time takes thirty values from 78 to 82 ms, which should make no difference. A row for each cell
and noise of the hosts: the share of the flow of 20 ms, as least, quartiles, most, mean and standard deviation.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import defaultdict

import tcpknee

CELLS = (
    ("20Mbit/s", "0.5bdp", "cubic"),
    ("20Mbit/s", "2bdp", "cubic"),
    ("50Mbit/s", "2bdp", "cubic"),
    ("20Mbit/s", "0.5bdp", "reno"),
    ("50Mbit/s", "1bdp", "reno"),
)
RTTS = [f"{78_000 + i * 137}us" for i in range(30)]
"""In steps that are no multiple of a packet's time."""
HOST = {"gro": False, "rx_coalesce": "0s"}


def shares(rate: str, buffer: str, algorithm: str, noise: str) -> list[float]:
    """The first flow's share at each round-trip time of the second."""
    run = tcpknee.run(
        duration="60s",
        warmup="15s",
        path={"rate": rate, "rtt": "80ms", "buffer": buffer},
        sender={**HOST, "tcp_limit_output_bytes": "1MiB", "noise": noise},
        receiver={**HOST, "tcp_rmem_max": "6MiB", "noise": noise},
        flow=[
            {"algorithm": algorithm, "rtt": "20ms", "blocking": True},
            {"algorithm": algorithm, "rtt": RTTS, "blocking": True},
        ],
    )
    goodput: dict[int, list[float]] = defaultdict(list)
    for row in run.flows.arrow().to_pylist():
        goodput[row["cell"]].append(row["goodput_bits_per_sec"])
    return sorted(first / (first + second) for first, second in goodput.values())


def main() -> int:
    """Simulates all and prints a table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--noise", nargs="+", default=["0s", "20us", "100us", "300us", "1ms"])
    options = arguments.parse_args()
    print("| cell | noise | least | quartile | median | quartile | most | mean | deviation |\n" + "|---" * 9 + "|")
    for cell in CELLS:
        for noise in options.noise:
            found = shares(*cell, noise)
            figures = [
                found[0],
                *statistics.quantiles(found),
                found[-1],
                statistics.mean(found),
                statistics.stdev(found),
            ]
            told = " | ".join(f"{figure:.2f}" for figure in figures)
            print(f"| {' '.join(cell)} | {noise} | {told} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

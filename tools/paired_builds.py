"""Our build of each algorithm in the kernel against the kernel's own, in pairs on one path.

    python tools/paired_builds.py [PAIRS]

Each pair runs both builds one after the other, in turns first, over the same emulated path with the same losses.
Prints the ratio of ours to the kernel's with its 95 % interval, by metric; 1 within it: no difference shown.
Needs root. `make paired` runs it.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from scipy import stats

import tcpknee
from tcpknee import say

PAIRS = 10
SCENARIO = """
title    = "{algorithm}: our build and the kernel's own"
duration = "10s"
warmup   = "3s"
seed     = {seed}
[path]
rate   = "40Mbit/s"
rtt    = "30ms"
loss   = "0.1%"
buffer = "1bdp"
[[flow]]
algorithm = "{algorithm}"
"""
METRICS = ("goodput_bits_per_sec", "srtt_us_p50", "retransmit_pct")


def measure(algorithm: str, seed: int, *, ours: bool) -> dict[str, float]:
    run = tcpknee.run(SCENARIO.format(algorithm=algorithm, seed=seed), engine="kernel", bpf=ours)
    for doubt in run.doubts:
        print(f"  * {algorithm}, {'ours' if ours else 'own'}, seed {seed}: {doubt.text}", file=sys.stderr)
    return {metric: float(run.flows[metric].to_pylist()[0]) for metric in METRICS}


def row(algorithm: str, metric: str, own: list[float], ours: list[float]) -> list[str]:
    ratios = np.log(np.array(ours) / np.array(own))
    middle = float(ratios.mean())
    half = float(stats.t.ppf(0.975, len(ratios) - 1) * ratios.std(ddof=1) / math.sqrt(len(ratios)))
    low, high = math.exp(middle - half), math.exp(middle + half)
    verdict = "no difference shown" if low <= 1 <= high else "differ"
    interval = f"{math.exp(middle):.4f} [{low:.4f}, {high:.4f}]"
    return [algorithm, metric, f"{np.mean(own):.6g}", f"{np.mean(ours):.6g}", interval, verdict]


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    rows = [["algorithm", "metric", "kernel's own", "ours", "ours / own", "verdict"]]
    for algorithm in ("reno", "cubic", "bbr1"):
        found: dict[bool, list[dict[str, float]]] = {False: [], True: []}
        for pair in range(pairs):
            for ours in (False, True) if pair % 2 == 0 else (True, False):
                found[ours].append(measure(algorithm, pair + 1, ours=ours))
        for metric in METRICS:
            values = [[entry[metric] for entry in found[ours]] for ours in (False, True)]
            rows.append(row(algorithm, metric, *values))
    print("\n".join(say.aligned(rows, left=(True, True, False, False, True, True))))


if __name__ == "__main__":
    main()

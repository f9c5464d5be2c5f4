"""How long the statistics of a fleet take, and how much memory: `.venv/bin/python tools/bench_tallies.py`.

Tallies 5 million connections of two cohorts by 15 metrics, on as many threads as `--threads` says, then computes five
quantiles and the mean of each cohort and metric, their differences and ratios.
"""

from __future__ import annotations

import argparse
import resource
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tcpknee.fleet import statistics
from tcpknee.fleet.statistics import Clusters, Tally, tally

METRICS = 15
PERCENTILES = (0.25, 0.50, 0.75, 0.95, 0.99)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=5_000_000)
    parser.add_argument("--clusters", type=int, default=100_000)
    parser.add_argument("--resamples", type=int, default=400)
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    rng = np.random.default_rng(1)
    size = asked.connections // 2
    keys = rng.integers(0, 1 << 63, asked.clusters, dtype=np.uint64)
    hashes = [keys[(asked.clusters * rng.random(size) ** 2).astype(np.intp)] for _ in range(2)]
    values = rng.lognormal(10, 1.5, size)
    began, busy = time.monotonic(), time.process_time()
    clusters = [Clusters.of(side) for side in hashes]
    with ThreadPoolExecutor(asked.threads) as pool:

        def compare(metric: int) -> int:
            # Another power of the same draws is another distribution, and costs nothing that is measured.
            a, b = (tally(np.roll(values, metric) * (1 + metric), side) for side in clusters)
            return len(list(figures(a, b, asked.resamples)))

        made = sum(pool.map(compare, range(METRICS)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(
        f"{asked.connections} connections, {asked.clusters} clusters, {METRICS} metrics, {asked.resamples} resamples: "
        f"{made} intervals in {time.monotonic() - began:.1f} s, {time.process_time() - busy:.1f} s of processors, "
        f"peak {peak:.2f} GiB"
    )


def figures(a: Tally, b: Tally, resamples: int) -> list[statistics.Interval]:
    found = []
    for p in PERCENTILES:
        found += [statistics.quantile(side, p) for side in (a, b)]
        found += [compare(a, b, p, resamples=resamples) for compare in (statistics.difference, statistics.ratio)]
    found += [statistics.mean(side, resamples=resamples) for side in (a, b)]
    return found + [compare(a, b, resamples=resamples) for compare in (statistics.difference, statistics.ratio)]


if __name__ == "__main__":
    main()

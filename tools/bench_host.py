"""What the instruments of `knee run --measure` cost a flow: a lab with and without them, in turns.

    python tools/bench_host.py [--rate 1Gbit/s] [--rounds 10]

Each round runs the lab once without instruments, once with each of them alone and once with all. The ratios are those
of one round, with their 95 % interval over the rounds. Needs root. On a busy machine the intervals are wide; the load
is printed.
"""

from __future__ import annotations

import argparse
import os

import numpy as np

from tcpknee.evidence import stats
from tcpknee.runs import api, measuring

NONE, ALL = "none", "all"


def main() -> None:
    """Measures and prints a row for each instrument."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rate", default="1Gbit/s")
    arguments.add_argument("--algorithm", default="bbr1")
    arguments.add_argument("--rounds", type=int, default=10)
    arguments.add_argument("--seconds", type=int, default=3)
    given = arguments.parse_args()
    text = (
        f'duration = "{given.seconds + 1}s"\nwarmup = "1s"\n'
        f'[path]\nrate = "{given.rate}"\nrtt = "10ms"\n[[flow]]\nalgorithm = "{given.algorithm}"\n'
    )
    chosen = {NONE: [], **{name: [name] for name in measuring.names()}, ALL: measuring.names()}
    goodput: dict[str, list[float]] = {name: [] for name in chosen}
    per_byte: dict[str, list[float]] = {name: [] for name in chosen}
    own: dict[str, list[float]] = {name: [] for name in chosen}
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors", flush=True)
    for number in range(given.rounds):
        names = list(chosen)
        # Another one comes first each time: what is before and after it may differ.
        for name in names[number % len(names) :] + names[: number % len(names)]:
            run = api.run(text, engine="kernel", measure=chosen[name])
            (total,) = run.summary.totals
            goodput[name].append(float(total.values["goodput_bits_per_sec"][0]))
            per_byte[name].append(float(total.values["cpu_ns_per_byte"][0]))
            own[name].append(own_share(run.meta["repetitions"][0]["measured"].get("instruments")))
        print(f"round {number + 1} of {given.rounds}", flush=True)
    print(f"without: goodput {np.mean(goodput[NONE]) / 1e6:.1f} Mbit/s, {np.mean(per_byte[NONE]):.2f} ns per byte")
    print("instrument  goodput, ratio          CPU per byte, ratio     own programs, % of a processor")
    for name in list(chosen)[1:]:
        ratios = (shown(found[name], found[NONE]) for found in (goodput, per_byte))
        print(f"{name:11} {'  '.join(ratios)}  {100 * np.mean(own[name]):.2f}")
    print(f"load average {os.getloadavg()[0]:.1f}")


def own_share(about: dict[str, object] | None) -> float:
    """What the programs ran, of a processor's time, by the kernel's own count."""
    if about is None:
        return 0.0
    cost, seconds = about["cost"], about["seconds"]
    assert isinstance(cost, dict) and isinstance(seconds, float)
    return sum(one["run_time_ns"] for one in cost["programs"]) / 1e9 / seconds


def shown(with_it: list[float], without: list[float]) -> str:
    """The ratio of pairs with its interval."""
    found = stats.ratio(np.array(with_it) / np.array(without))
    if found is None or found.low is None:
        return f"{np.mean(np.array(with_it) / np.array(without)):.4f}                  "
    return f"{found.mean:.4f} [{found.low:.4f}, {found.high:.4f}]"


if __name__ == "__main__":
    main()

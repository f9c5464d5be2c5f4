"""The story of an experiment on a fleet, told by a simulated one: `make demo-fleet`, or `python tools/demo_fleet.py`.

A naive A/B test says that BBR is much faster, and its comparison warns that arms share bottlenecks. A switchback on the
same paths says what happens when all use it, which two more fleets know for sure: all with BBR, and all with CUBIC.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from tcpknee import fleet
from tcpknee.fleet import Comparison
from tcpknee.fleet.cohorts.verdicts import interval_of

KNEE = [sys.executable, "-m", "tcpknee"]
METRIC = "delivery_rate_bits_per_sec"


def run(*words: str) -> None:
    """A command as a user types it."""
    print(f"\n$ knee {' '.join(words)}", flush=True)
    subprocess.run([*KNEE, *words], check=True)


def synthesize(out: Path, given: argparse.Namespace, design: str, **shares: str) -> Path:
    size = ("--prefixes", str(given.prefixes)) if given.prefixes else ()
    arms = [word for name, share in shares.items() for word in ("--arm", f"{name}={share}")]
    run("fleet", "synthesize", given.mix, "--out", str(out), "--design", design, *arms, *size)
    return out


def means(found: Comparison) -> float:
    """The mean of the metric with BBR over that with CUBIC."""
    return found.values["bbr1"][METRIC]["mean"].value / found.values["cubic"][METRIC]["mean"].value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/demo-fleet"), help="replaced if it is there")
    parser.add_argument("--mix", default="demo", help="a mix of gallery/fleets, or a file (demo)")
    parser.add_argument("--prefixes", type=int, help="how many bottlenecks (as the mix says)")
    given = parser.parse_args()
    shutil.rmtree(given.out, ignore_errors=True)

    print("1. Is bbr1 better than cubic for our users? One connection in ten is treated, and both groups compared.")
    naive = synthesize(given.out / "naive", given, "ab", cubic="90%", bbr1="10%")
    run("fleet", "compare", str(naive), "--by", "arm")

    print("\n2. Both groups share bottlenecks. So the whole fleet alternates between the two, an hour each.")
    switched = synthesize(given.out / "switchback", given, "switchback", cubic="50%", bbr1="50%")
    run("fleet", "compare", str(switched), "--by", "arm", "--cluster", "period")
    page = str(given.out / "report.html")
    run("fleet", "report", str(switched), "--by", "arm", "--cluster", "period", "--out", page)

    print("\n3. The truth, which no experiment on a real network can have: the same clients, all with one algorithm.")
    every = [synthesize(given.out / f"all-{name}", given, "cluster", **{name: "100%"}) for name in ("cubic", "bbr1")]

    told = fleet.compare(switched, by="arm", cluster="period")
    total = next(one.effect.total for one in told.effects if one.metric.name == METRIC)
    print("\nMean delivery rate of a connection, bbr1 over cubic:")
    print(f"  naive, at 10 % adoption  {means(fleet.compare(naive, by='arm')):.2f}")
    print(f"  switchback               {interval_of('', total) if total else '-'}")
    print(f"  true                     {means(fleet.compare(*every, by='algorithm')):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

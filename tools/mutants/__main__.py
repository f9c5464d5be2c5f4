"""Changes one place of the sources at a time and asks whether a test notices.

    python tools/mutants [--count 650] [--seed 1] [--part cc]... [--workers 2] [--list]

A seed draws mutants of constants, comparisons, connectives, sums and conditions of the algorithms in cc/, the
simulator, the queues and the statistics. Each is tried on the quick tests of its part; it is killed when one fails
or hangs. A mutant that compiles to the same machine code, or not at all, does not count. What survives is
named, and makes the exit status 1 unless tests/mutants/equivalent.toml says why no test can tell it from the original.
An interrupted run goes on where it was, as long as sources and tests stay as they are (build/mutants/results.jsonl).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

from equivalent import Equivalents
from judging import Journal, Judge
from mutant import Mutant
from parts import BUILD, PARTS, ROOT, drawn, fingerprint
from run import KILLED, SURVIVED, Result
from tree import BuildFailed

LEAST_KILLED = 0.95


def main() -> None:
    """Draws, judges, sums up."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--count", type=int, default=650, help="how many to draw, from all parts")
    arguments.add_argument("--seed", type=int, default=1)
    names = [part.name for part in PARTS]
    arguments.add_argument("--part", action="append", choices=names, help="only this one (may be given again)")
    arguments.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="mutants at a time")
    arguments.add_argument("--survivors", action="store_true", help="only those that survived the last run")
    arguments.add_argument("--list", action="store_true", help="list the draw and end")
    asked = arguments.parse_args()
    if asked.count < 1 or asked.workers < 1:
        arguments.error("--count and --workers are at least 1")
    draw = {name: found for name, found in drawn(asked.count, asked.seed).items() if name in (asked.part or names)}
    if asked.list:
        for mutants in draw.values():
            for mutant in mutants:
                print(f"{mutant.place}: {mutant.name}")
        return
    table = BUILD / "mutants.json"
    if asked.survivors:
        earlier = json.loads(table.read_text(encoding="utf-8"))
        survived = {e["name"] for e in earlier if e["outcome"] == SURVIVED}
        draw = {name: [m for m in mutants if m.name in survived] for name, mutants in draw.items()}
    equivalents = Equivalents(ROOT / "tests" / "mutants" / "equivalent.toml")
    journal = Journal(fingerprint())
    began = time.monotonic()
    try:
        Judge(journal, asked.workers).all(draw)
    except KeyboardInterrupt:
        print("\ninterrupted; what is judged so far:")
    except BuildFailed as e:
        sys.exit(f"the tests do not build or do not pass without a mutant:\n{e}")
    print(f"{(time.monotonic() - began) / 60:.0f} minutes, load {os.getloadavg()[2]:.1f}, seed {asked.seed}\n")
    results = journal.results
    judged = [entry(part, m, results[m.name]) for part, found in draw.items() for m in found if m.name in results]
    if asked.survivors:
        anew = {e["name"]: e for e in judged}
        judged = [anew.get(e["name"], e) for e in earlier]
    table.write_text(json.dumps(judged, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    is_complete = len(judged) == sum(map(len, draw.values())) or asked.survivors
    sys.exit(not (summed_up(judged, equivalents) and is_complete))


def entry(part: str, mutant: Mutant, result: Result) -> dict[str, str]:
    """A row of the table."""
    return {
        "part": part, "place": mutant.place, "function": mutant.function, "text": mutant.text, "change": mutant.change,
        "outcome": result.outcome, "by": result.by, "name": mutant.name,
    }  # fmt: skip


def summed_up(judged: list[dict[str, str]], equivalents: Equivalents) -> bool:
    """Prints the figures of each part and the survivors; whether all is well."""
    print(f"{'part':<20} {'drawn':>6} {'judged':>7} {'killed':>7} {'survived':>9} {'killed %':>9}")
    rows = [(part.title, [e for e in judged if e["part"] == part.name]) for part in PARTS]
    shares = []
    for title, entries in [*rows, ("in all", judged)]:
        killed = sum(e["outcome"] == KILLED for e in entries)
        survived = sum(e["outcome"] == SURVIVED for e in entries)
        if killed + survived:
            shares.append(killed / (killed + survived))
            print(
                f"{title:<20} {len(entries):>6} {killed + survived:>7} {killed:>7} {survived:>9}"
                f" {100 * shares[-1]:>9.1f}"
            )
    not_listed = 0
    for e in judged:
        reason = equivalents.reason(e)
        if e["outcome"] == SURVIVED:
            not_listed += reason is None
            print(f"\n{e['place']}, {e['function']}(): {e['text']}\n    {e['change']}: {reason or 'SURVIVES'}")
        elif e["outcome"] == KILLED and reason is not None:
            not_listed += 1
            print(f"\n{e['place']}: {e['change']} is listed as equivalent, and is killed by {e['by']}")
    if not_listed:
        print(f"\n{not_listed} to be settled: add a test, or the reason to {equivalents.path.relative_to(ROOT)}")
    return not not_listed and bool(shares) and shares[-1] >= LEAST_KILLED


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)

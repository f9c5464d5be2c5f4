"""Which noise of hosts fits two-flow cells that others measured (docs/validation/against-linux.md).

    python tools/noise_cells.py reference/linux-6.12-two-flows.csv [--noise 0s 20us 1ms] [--repeat 5] [--csv FILE]

Simulates each cell of the file that has no jitter with each noise at both hosts and prints, for each, how far the
shares of the first flow are from the file's: the mean over cells of the difference, the largest, and how many cells are
within 0.05 and 0.1; for all of them, and for flows of one round-trip time and of two.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tcpknee.runs import api
from tcpknee.validation.references import reference
from tcpknee.validation.references.reference import Cell, Reference


def share(goodputs: Sequence[float | None]) -> float:
    """The first of two flows'."""
    first, second = (goodput or 0.0 for goodput in goodputs)
    return first / (first + second)


def measured(cell: Cell) -> list[float]:
    """The first flow's share in each run of the file."""
    return [share([row.metrics["goodput_bits_per_sec"] for row in rows]) for _, rows in sorted(cell.runs.items())]


def simulated(known: Reference, cell: Cell, noise: str, repeat: int) -> list[float]:
    """The first flow's share in each repetition."""
    late = replace(known, settings={**known.settings, "sender.noise": noise, "receiver.noise": noise})
    run = api.run_text(late.scenario(cell, repeat=repeat), known.file, out=None)
    goodput: dict[int, dict[int, float]] = defaultdict(dict)
    for row in run.flows.arrow().to_pylist():
        goodput[row["rep"]][row["group"]] = row["goodput_bits_per_sec"]
    return [share([rep[0], rep[1]]) for _, rep in sorted(goodput.items())]


def main() -> int:
    """Simulates all and prints a table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("file", type=Path)
    arguments.add_argument("--noise", nargs="+", default=["0s", "5us", "20us", "100us", "500us", "2ms"])
    arguments.add_argument("--repeat", type=int, default=5)
    arguments.add_argument("--csv", type=Path, help="every share, besides")
    options = arguments.parse_args()
    known = reference.read(options.file)
    cells = [cell for cell in known.cells() if "path.jitter" not in cell.settings]
    rows = ["noise,first,second,rate,rtt,buffer,start,linux,mean,least,most"]
    print(
        "| noise | flows | cells | mean difference | largest | within 0.05 | within 0.1 |\n"
        "|---|---|---|---|---|---|---|"
    )
    for noise in options.noise:
        apart: dict[str, list[float]] = defaultdict(list)
        for cell in cells:
            theirs, ours = statistics.mean(measured(cell)), simulated(known, cell, noise, options.repeat)
            of_two = any("flow.rtt" in flow for flow in cell.flows)
            for flows in ("all", "of two RTTs" if of_two else "of one RTT"):
                apart[flows].append(abs(statistics.mean(ours) - theirs))
            names = [f"{flow['flow.algorithm']} {flow.get('flow.rtt', '')}".strip() for flow in cell.flows]
            path = [cell.settings[f"path.{key}"] for key in ("rate", "rtt", "buffer")]
            figures = [f"{value:.3f}" for value in (theirs, statistics.mean(ours), min(ours), max(ours))]
            rows.append(",".join([noise, *names, *path, cell.flows[1].get("flow.start", "0s"), *figures]))
        for flows, differences in sorted(apart.items()):
            within = [sum(value <= limit for value in differences) for limit in (0.05, 0.1)]
            found = f"{statistics.mean(differences):.3f} | {max(differences):.3f} | {within[0]} | {within[1]}"
            print(f"| {noise} | {flows} | {len(differences)} | {found} |", flush=True)
        if options.csv:
            options.csv.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Which noise of hosts fits two-flow cells that others measured (docs/simulator.md).

    python tools/noise_cells.py reference/linux-6.12-two-flows.csv [--noise 0s 20us 1ms] [--repeat 5] [--csv FILE]

Simulates each cell of the file with each noise at both hosts and prints, for each, how far the shares of the first
flow are from the file's: the mean over cells of the difference, the largest, and how many cells are within 0.05 and
0.1. The file is what `reference/` measures: lines `# set KEY = VALUE` for all cells, then a row for each flow.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import kneepoint

Cell = tuple[tuple[str, str], ...]


def nested(settings: dict[str, str], flows: list[dict[str, str]]) -> dict[str, Any]:
    """Dotted keys as tables; `flow.` for every flow."""
    found: dict[str, Any] = {"flow": [{} for _ in flows]}
    for i, own in enumerate(flows):
        for key, value in {**settings, **own}.items():
            *tables, name = key.split(".")
            into = found["flow"][i] if tables == ["flow"] else found
            for table in tables if tables != ["flow"] else ():
                into = into.setdefault(table, {})
            into[name] = {"true": True, "false": False}.get(value, value)
    return found


def cells(file: Path) -> dict[Cell, tuple[dict[str, str], list[dict[str, str]], list[float]]]:
    """Settings, those of each flow, and the first flow's share in each run."""
    lines = file.read_text(encoding="utf-8").splitlines()
    common = dict(line[6:].split(" = ", 1) for line in lines if line.startswith("# set "))
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    measured = {"goodput_bits_per_sec", "srtt_us_p50", "retransmit_pct"}
    about = {"suite", "group", "run", "flow", "date", "scripts"}
    of_flow = [key for key in rows[0] if key.startswith("flow.")]
    of_cell = [key for key in rows[0] if key not in measured | about and key not in of_flow]
    found: dict[Cell, tuple[dict[str, str], list[dict[str, str]], list[float]]] = {}
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        pair = (first, second)
        assert [row["flow"] for row in pair] == ["0", "1"], pair
        flows = [{key: row[key] for key in of_flow if row[key]} for row in pair]
        settings = {**common, **{key: first[key] for key in of_cell if first[key]}}
        key = tuple(
            sorted({**settings, **{f"{i}.{k}": v for i, flow in enumerate(flows) for k, v in flow.items()}}.items())
        )
        goodputs = [float(row["goodput_bits_per_sec"]) for row in pair]
        found.setdefault(key, (settings, flows, []))[2].append(goodputs[0] / sum(goodputs))
    return found


def share(settings: dict[str, str], flows: list[dict[str, str]], noise: str, repeat: int) -> list[float]:
    """The first flow's share in each repetition."""
    text = nested({**settings, "sender.noise": noise, "receiver.noise": noise}, flows)
    run = kneepoint.run(**text, repeat=repeat)
    goodput: dict[int, dict[int, float]] = defaultdict(dict)
    for row in run.flows.arrow().to_pylist():
        goodput[row["rep"]][row["group"]] = row["goodput_bits_per_sec"]
    return [rep[0] / (rep[0] + rep[1]) for _, rep in sorted(goodput.items())]


def main() -> int:
    """Simulates all and prints a table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("file", type=Path)
    arguments.add_argument("--noise", nargs="+", default=["0s", "5us", "20us", "100us", "500us", "2ms"])
    arguments.add_argument("--repeat", type=int, default=5)
    arguments.add_argument("--csv", type=Path, help="every share, besides")
    options = arguments.parse_args()
    known = cells(options.file)
    rows = ["noise,first,second,rate,rtt,buffer,start,linux,mean,least,most"]
    print("| noise | cells | mean difference | largest | within 0.05 | within 0.1 |\n|---|---|---|---|---|---|")
    for noise in options.noise:
        apart = []
        for settings, flows, shares in known.values():
            theirs, ours = statistics.mean(shares), share(settings, flows, noise, options.repeat)
            apart.append(abs(statistics.mean(ours) - theirs))
            names = [f"{flow['flow.algorithm']} {flow.get('flow.rtt', '')}".strip() for flow in flows]
            path = [settings[f"path.{key}"] for key in ("rate", "rtt", "buffer")]
            figures = [f"{value:.3f}" for value in (theirs, statistics.mean(ours), min(ours), max(ours))]
            rows.append(",".join([noise, *names, *path, flows[1].get("flow.start", "0s"), *figures]))
        within = [sum(value <= limit for value in apart) for limit in (0.05, 0.1)]
        print(
            f"| {noise} | {len(apart)} | {statistics.mean(apart):.3f} | {max(apart):.3f} | {within[0]} | {within[1]} |",
            flush=True,
        )
        if options.csv:
            options.csv.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

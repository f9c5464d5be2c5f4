"""How far the simulator is from Linux, as the intervals of `knee whatif` take it (`whatif/uncertainty.py`).

    python tools/whatif_transfer.py

Reads reference/linux-6.12.csv and what is kept of the simulator for it, and prints two standard deviations of each
metric: of what all paths may have in common, and of what differs from path to path. Goodput under random loss is left
out: runs of one kernel differ by more there (docs/results.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from tcpknee.say import aligned
from tcpknee.validation.references import beside, reference
from tcpknee.whatif.series import LEAST_DELAY_US

FOLDER = Path(__file__).parents[1] / "reference"
FILE = "linux-6.12.csv"
ALGORITHMS = ("cubic", "bbr1")
"""Those that docs/whatif.md judges."""
GROUPS = (*ALGORITHMS, "policer")
"""Paths that whatif has an explanation for: droptail, random loss and a policer. It knows no AQM."""
METRICS: dict[str, Callable[[Mapping[str, float | None], float], float]] = {
    "goodput_bits_per_sec": lambda flow, rtt_us: math.log(_known(flow, "goodput_bits_per_sec")),
    "srtt_us_p50": lambda flow, rtt_us: math.log(_known(flow, "srtt_us_p50")),
    "queue_delay_us": lambda flow, rtt_us: math.log(max(_known(flow, "srtt_us_p50") - rtt_us, LEAST_DELAY_US)),
    "retransmit_pct": lambda flow, rtt_us: _known(flow, "retransmit_pct"),
}
"""As predictions average them: logarithms, and points."""


def _known(flow: Mapping[str, float | None], name: str) -> float:
    found = flow[name]
    assert found is not None, "tests/python/test_reference_kept.py: every value can be compared"
    return found


def differences() -> dict[str, dict[str, list[float]]]:
    """By metric and algorithm, how far the simulator is from Linux on each path."""
    measured = reference.read(FOLDER / FILE)
    cells = [cell for cell in measured.cells() if cell.group in GROUPS]
    kept = beside.kept(cells, reference.read(FOLDER / "simulated" / FILE))
    found: dict[str, dict[str, list[float]]] = {metric: {name: [] for name in ALGORITHMS} for metric in METRICS}
    for place, cell in enumerate(cells):
        algorithm = cell.flows[0]["flow.algorithm"]
        if algorithm not in ALGORITHMS:
            continue
        rtt_us = measured.parsed(cell, repeat=1).cells[0]["rtt_ns"] / 1e3
        linux = [rows[0].metrics for rows in cell.runs.values()]
        ours = [flows[0] for key, flows in kept.items() if key[0] == place]
        lossy = cell.settings.get("path.loss", "0%") != "0%"
        for metric, value in METRICS.items():
            if not (lossy and metric == "goodput_bits_per_sec"):
                simulated, real = (np.mean([value(flow, rtt_us) for flow in side]) for side in (ours, linux))
                found[metric][algorithm].append(float(simulated - real))
    return found


def deviations(of_algorithms: Iterable[Sequence[float]]) -> tuple[float, float]:
    """(What all paths may have in common, what differs from path to path): root mean squares over the algorithms. The
    first is the mean difference and how little so few paths tell of it."""
    offs = [np.array(cells) for cells in of_algorithms]
    common = np.mean([off.mean() ** 2 + off.var(ddof=1) / len(off) for off in offs])
    return math.sqrt(common), math.sqrt(np.mean([np.mean(off**2) for off in offs]))


def main() -> None:
    rows = [["metric", "common to paths", "from path to path"]]
    for metric, found in differences().items():
        rows.append([metric, *(f"{deviation:.4f}" for deviation in deviations(found.values()))])
    print("\n".join(aligned(rows, left=(True, False, False))))


if __name__ == "__main__":
    main()

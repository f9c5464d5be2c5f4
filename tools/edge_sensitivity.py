"""On which paths do the fleet claims of article C hold? `python tools/edge_sensitivity.py [--prefixes N] [LEVEL...]`.

The mix of gallery/fleets/edge.toml is simulated again and again, each time with one thing changed for all its clients.
For each of them the ratios are printed that the claims are about, with 95 % intervals over client prefixes. Paths,
transfers and the order of the algorithms come from the same seed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from tcpknee import say
from tcpknee.fleet import synthetic
from tcpknee.fleet.statistics import Interval
from tcpknee.validation.claims.checks import fleet

SHORT = "lognormal median 1500kB sigma 0.8 from 200kB to 30MB"
"""Transfers that spend most of their time in STARTUP; those of the mix are of a storage client."""

_OTHER = {"cross.algorithm": "cubic", "cross.workload": "bulk"}

LEVELS: Mapping[str, Mapping[str, str]] = {
    "as it is": {},
    **{f"buffer {bdp} BDP": {"path.buffer": f"{bdp}bdp"} for bdp in ("0.25", "0.5", "1", "2", "4", "8")},
    "no random loss": {"path.loss": "0%"},
    "random loss 1 %": {"path.loss": "1%"},
    "clients' buffers 6 MiB": {"receiver.tcp_rmem_max": "6MiB"},
    "short transfers": {"flow.sizes": SHORT},
    "load 80 %": {"flow.load": "80% of rate"},
    "policed to half the rate": {"path.policer_rate": "50% of rate"},
    "1 other CUBIC flow": _OTHER,
    "4 other CUBIC flows": {**_OTHER, "cross.count": "4"},
    "4 others, no random loss": {**_OTHER, "cross.count": "4", "path.loss": "0%"},
    "4 others, buffer 1 BDP": {**_OTHER, "cross.count": "4", "path.buffer": "1bdp"},
}
"""What is changed, by its name: keys of a mix's clients. A share is of the clients' access rate."""

RATE = "delivery_rate_bits_per_sec"

CELLS: Mapping[str, Callable[[Mapping[str, np.ndarray]], Interval]] = {
    "retransmitted, bbr1 ÷ bbr2": lambda table: fleet.retransmitted(table, "bbr1", "bbr2"),
    "bbr2 ÷ cubic": lambda table: fleet.retransmitted(table, "bbr2", "cubic"),
    "rate at P25, bbr2 ÷ cubic": lambda table: fleet.ratio(table, RATE, 0.25, "bbr2", "cubic"),
    "at P50, bbr2 ÷ cubic": lambda table: fleet.ratio(table, RATE, 0.5, "bbr2", "cubic"),
    "at P50, bbr1 ÷ bbr2": lambda table: fleet.ratio(table, RATE, 0.5, "bbr1", "bbr2"),
    "at P75, bbr1 ÷ bbr2": lambda table: fleet.ratio(table, RATE, 0.75, "bbr1", "bbr2"),
    "in flight, bbr1 ÷ bbr2": lambda table: fleet.ratio(table, "inflight_pkts", 0.5, "bbr1", "bbr2"),
    "packets/ms beyond the BDP, bbr1 - bbr2": lambda table: fleet.inflight_slopes(table, excess=True)[2],
}
"""What is printed of each, over connections of 1 MB or more."""


def changed(mix: synthetic.Mix, settings: Mapping[str, str]) -> synthetic.Mix:
    """The mix with these keys for all clients."""

    def value(text: str, rate: str) -> str | int:
        share, of_rate, _ = text.partition("% of rate")
        if of_rate:
            return f"{float(rate.removesuffix('Mbit/s')) * float(share) / 100:g}Mbit/s"
        return int(text) if text.isdigit() else text

    clients = [
        replace(
            one,
            settings={
                **one.settings,
                **{key: value(text, one.settings["path.rate"]) for key, text in settings.items()},
            },
            drawn={key: value for key, value in one.drawn.items() if key not in settings},
        )
        for one in mix.clients
    ]
    return replace(mix, clients=clients)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("levels", nargs="*", help="which ones; by default all")
    parser.add_argument("--prefixes", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    mix = synthetic.read("edge").changed(seed=asked.seed, prefixes=asked.prefixes)
    say.line(f"| edge.toml with | {' | '.join(CELLS)} |")
    say.line(f"|---|{'---:|' * len(CELLS)}")
    for name in asked.levels or LEVELS:
        began = time.monotonic()
        folder = Path(tempfile.mkdtemp(prefix="edge-"))
        try:
            synthetic.write(changed(mix, LEVELS[name]), folder / "fleet")
            table = fleet.read(folder / "fleet")
            found = [cell(table) for cell in CELLS.values()]
            cells = [f"{one.value:.2f} [{one.low:.2f}, {one.high:.2f}]" for one in found]
            say.line(f"| {' | '.join([name, *cells])} |")
        finally:
            shutil.rmtree(folder)
        say.flush()
        say.warn(f"{name}: {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A scenario's text run once, and what judges need of its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpknee import _core
from tcpknee.algorithms import naming
from tcpknee.errors import ScenarioError
from tcpknee.runs.tables import as_table

from .cases import COLUMNS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpknee.algorithms.naming import Named

    Numbers = NDArray[np.float64]

_OF_FLOWS = (
    "goodput_bits_per_sec",
    "completion_us",
    "transfer_bytes",
    "bytes_read",
    "data_segs_out",
    "total_retrans",
    "path_lost_pkts",
    "queue_dropped_pkts",
)


@dataclass(frozen=True)
class Flow:
    """One connection: what its row says (a null is NaN), and its samples in the order of time."""

    group: str
    row: dict[str, float]
    t_us: Numbers
    samples: dict[str, Numbers]


@dataclass(frozen=True)
class Measured:
    """`queue_us`: the wait at the bottleneck, sampled after the warm-up."""

    flows: list[Flow]
    queue_us: Numbers

    def of(self, *groups: str) -> list[Flow]:
        return [flow for flow in self.flows if flow.group in groups]

    def sum(self, column: str, *groups: str) -> float:
        return float(np.nansum([flow.row[column] for flow in self.of(*groups)]))

    def goodput(self, *groups: str) -> float:
        """bit/s of all these flows. Of a transfer that is complete, its bytes over its time."""
        return sum(_goodput(flow.row) for flow in self.of(*groups))


def _goodput(row: dict[str, float]) -> float:
    if row["completion_us"] > 0:
        return row["transfer_bytes"] * 8e6 / row["completion_us"]
    return row["goodput_bits_per_sec"] if row["goodput_bits_per_sec"] > 0 else 0.0


def measured(text: str, warmup_ms: float, of_files: Sequence[Named] = ()) -> Measured | None:
    """None: the scenario is refused, as one whose buffer has no room for a packet is."""
    files = [naming.load(one).for_core for one in of_files]
    try:
        found = _core.parse(text, "redteam.toml", algorithms=files).run_cell(0, 0)
    except ScenarioError:
        return None
    flows, samples, queue = (as_table(one) for one in (found.flows, found.samples, found.queue))
    place_of = samples["flow"].to_numpy()
    order = np.argsort(place_of, kind="stable")
    edges = np.searchsorted(place_of[order], np.arange(len(flows) + 1))
    columns = {name: _floats(samples, name)[order] for name in ("t_ns", *COLUMNS)}
    rows = {name: _floats(flows, name) for name in _OF_FLOWS}
    groups = flows["name"].to_pylist()
    every = []
    for place, (begin, end) in enumerate(pairwise(edges)):
        own = {name: values[begin:end] for name, values in columns.items()}
        t_us = own.pop("t_ns") / 1e3
        every.append(Flow(groups[place], {name: float(rows[name][place]) for name in _OF_FLOWS}, t_us, own))
    steady = (_floats(queue, "t_ns") >= warmup_ms * 1e6) & (_floats(queue, "hop") == 0)
    return Measured(every, _floats(queue, "queue_delay_us")[steady])


def _floats(table: Any, name: str) -> Numbers:
    found: Numbers = table[name].to_numpy().astype(np.float64)
    return found

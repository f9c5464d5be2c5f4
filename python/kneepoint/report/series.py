"""The time series of a run, thinned to what a page can show.

Series are those of each cell's median repetition. Few flows are drawn one by one;
many are drawn as bands per entrant (least, middle half, median, greatest), with the
single flows kept aside for the reader to call up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kneepoint.report import palette, thin
from kneepoint.report.encode import Block
from kneepoint.report.run import Condition, Entrant, ReportRun

#: Flows of a condition that are still told apart as lines of one panel.
LINES_AT_MOST = 12
#: Wider than the widest panel is in pixels; fewer when there are many series.
COLUMNS_AT_MOST = 1_000
COLUMNS_AT_LEAST = 120
#: Points of single flows in one page: 5.4 bytes each once encoded.
POINTS_AT_MOST = 240_000
#: Linux says "no limit" with the greatest number; no rate we draw comes near.
NO_RATE_ABOVE = 1e15
#: `srtt_us` and `delivery_rate` are 0 before the first measurement.
QUEUE_OF = "queue of "
ZERO_IS_NONE = frozenset({"srtt", "delivery"})


@dataclass(frozen=True)
class Panel:
    """One time series: where it comes from and how it is written."""

    name: str
    title: str
    table: str
    column: str
    scale: float
    unit: str


PANELS = (
    Panel("cwnd", "Congestion window", "samples", "snd_cwnd", 1.0, "segments"),
    Panel("inflight", "In flight", "samples", "inflight", 1.0, "segments"),
    Panel("pacing", "Pacing rate", "samples", "pacing_rate_bits_per_sec", 1e-6, "Mbit/s"),
    Panel("delivery", "Delivery rate", "samples", "delivery_rate_bits_per_sec", 1e-6, "Mbit/s"),
    Panel("srtt", "Smoothed RTT", "samples", "srtt_us", 1e-3, "ms"),
    Panel("queue", "Queue at the bottleneck", "queue", "queue_bytes", 1e-3, "kB"),
)
FLOW_PANELS = tuple(panel for panel in PANELS if panel.table == "samples")

Steps = tuple[NDArray[np.int64], NDArray[np.float64]]


class Series:
    """What the time-series figure and the page draw, computed once."""

    def __init__(self, run: ReportRun) -> None:
        self.run = run

    @cached_property
    def as_bands(self) -> bool:
        """Too many flows in some condition to tell lines apart?"""
        return any(
            sum(len(e.flows) for e in self.run.entrants if e.condition == c.index) > LINES_AT_MOST
            for c in self.run.conditions
        )

    @cached_property
    def kept(self) -> dict[tuple[int, int], str]:
        """(cell, flow) -> label of the flows whose own series stand in the page.

        All, unless they would not fit: then evenly by goodput rank within each entrant.
        """
        total = sum(len(e.flows) for e in self.run.entrants)
        most = POINTS_AT_MOST // (2 * COLUMNS_AT_LEAST * len(FLOW_PANELS))
        kept: dict[tuple[int, int], str] = {}
        for entrant in self.run.entrants:
            flows = self._by_goodput(entrant)
            if total > most:
                share = max(1, most * len(flows) // total)
                picks = np.unique(np.linspace(0, len(flows) - 1, min(share, len(flows))).round().astype(int))
                flows = [flows[k] for k in picks]
            for flow in sorted(flows):
                kept[entrant.cell, flow] = self.label(entrant, flow)
        return dict(list(kept.items())[: max(most, 1)])

    def label(self, entrant: Entrant, flow: int) -> str:
        if len(entrant.flows) == 1:
            return entrant.label
        return f"{entrant.label} #{entrant.flows.index(flow) + 1}"

    @cached_property
    def queue_labels(self) -> list[str]:
        """Labels of queues that are not one flow's own, in the order of the matrix."""
        labels = {self._owner(cell, -1)[1]: None for cell in self.run.cells if self._has_flows(cell)}
        return [label for label in labels if label.startswith(QUEUE_OF)]

    def _has_flows(self, cell: int) -> bool:
        return any(entrant.cell == cell for entrant in self.run.entrants)

    @cached_property
    def columns(self) -> int:
        series = max(len(self.kept) * len(FLOW_PANELS), 1)
        return int(np.clip(POINTS_AT_MOST // (2 * series), COLUMNS_AT_LEAST, COLUMNS_AT_MOST))

    @cached_property
    def edges_ns(self) -> NDArray[np.int64]:
        columns = min(self.columns, 300)  # bands are smooth: one step per two or three pixels
        edges: NDArray[np.int64] = np.linspace(0, self.run.end_ns, columns + 1).round().astype(np.int64)
        return edges

    def lines(self, condition: Condition) -> dict[str, list[Block]]:
        """panel -> a block per series: t in seconds, v in the panel's unit."""
        blocks: dict[str, list[Block]] = {panel.name: [] for panel in PANELS}
        for cell in condition.cells:
            for flow, panel, steps, end_ns in self._cell(cell):
                if flow >= 0 and (cell, flow) not in self.kept:
                    continue
                entrant, label = self._owner(cell, flow)
                t, v = thin.thin(*steps, 0, self.run.end_ns, self.columns)
                if len(v) == 0:
                    continue
                t, v = np.r_[t, max(end_ns, int(t[-1]))], np.r_[v, v[-1]]
                blocks[panel.name].append(
                    Block({"series": label, "entrant": entrant}, {"t": t * 1e-9, "v": v * panel.scale})
                )
        return blocks

    def bands(self, condition: Condition) -> dict[str, list[Block]]:
        """panel -> a block per entrant: t, least, p25, median, p75, greatest over its flows."""
        blocks: dict[str, list[Block]] = {panel.name: [] for panel in FLOW_PANELS}
        inks = {e.label: palette.colour(self.run.slots[e.algorithm]) for e in self.run.entrants}
        for cell in condition.cells:
            gathered: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
            for flow, panel, steps, end_ns in self._cell(cell):
                if panel.table != "samples" or len(steps[1]) == 0:
                    continue
                entrant, _ = self._owner(cell, flow)
                low, high = thin.column_extremes(*steps, self.edges_ns, end_ns)
                mean = thin.column_means(*steps, self.edges_ns, end_ns)
                gathered.setdefault((panel.name, entrant), []).append((low, mean, high))
            scales = {panel.name: panel.scale for panel in PANELS}
            for (name, entrant), parts in gathered.items():
                low, mean, high = (np.array(part) for part in zip(*parts, strict=True))
                alive = np.isfinite(low).any(axis=0) & np.isfinite(mean).any(axis=0)
                if not alive.any():
                    continue
                quartiles = np.nanpercentile(mean[:, alive], (25, 50, 75), axis=0)
                columns = {
                    "t": self.edges_ns[:-1][alive] * 1e-9,
                    "low": np.nanmin(low[:, alive], axis=0) * scales[name],
                    "q1": quartiles[0] * scales[name],
                    "v": quartiles[1] * scales[name],
                    "q3": quartiles[2] * scales[name],
                    "high": np.nanmax(high[:, alive], axis=0) * scales[name],
                }
                blocks[name].append(Block({"entrant": entrant, "ink": inks[entrant]}, columns))
        return blocks

    # --- reading ------------------------------------------------------------

    def _by_goodput(self, entrant: Entrant) -> list[int]:
        rep = self.run.median_rep[entrant.cell]
        rows = [
            (row["goodput_bits_per_sec"] or 0.0, row["flow"])
            for row in self.run.flows
            if row["cell"] == entrant.cell and row["rep"] == rep and row["group"] == entrant.group
        ]
        return [flow for _, flow in sorted(rows)]

    @cached_property
    def _owners(self) -> dict[tuple[int, int], tuple[str, str]]:
        return {(e.cell, flow): (e.label, self.label(e, flow)) for e in self.run.entrants for flow in e.flows}

    def _owner(self, cell: int, flow: int) -> tuple[str, str]:
        """(entrant, series) that a flow's rows belong to; the queue belongs to a lone entrant, or to all."""
        if flow >= 0:
            return self._owners[cell, flow]
        entrants = [e for e in self.run.entrants if e.cell == cell]
        if len(entrants) == 1:
            # A lone flow's queue is its own; that of many is nobody's.
            lone = entrants[0].label
            label = lone if len(entrants[0].flows) == 1 and not self.as_bands else shared_queue([lone])
            return label, label
        label = shared_queue([e.label for e in entrants])
        return label, label

    def _cell(self, cell: int) -> Iterator[tuple[int, Panel, Steps, int]]:
        """(flow, panel, steps, end) of the cell's median repetition; the queue is flow -1 - hop."""
        rep = self.run.median_rep.get(cell)
        if rep is None:
            return
        ends = {
            row["flow"]: row["end_ns"] if row["end_ns"] is not None else self.run.end_ns
            for row in self.run.flows
            if row["cell"] == cell and row["rep"] == rep
        }
        names = ["flow", "t_ns", *(panel.column for panel in FLOW_PANELS)]
        samples = self._columns("samples", names, cell, rep)
        order = np.lexsort((samples["t_ns"], samples["flow"]))
        samples = {name: column[order] for name, column in samples.items()}
        flows, first = np.unique(samples["flow"], return_index=True)
        stops = np.r_[first[1:], len(samples["flow"])][: len(flows)]
        for flow, begin, stop in zip(flows, first, stops, strict=True):
            if (cell, int(flow)) not in self._owners:
                continue
            t_ns = samples["t_ns"][begin:stop]
            for panel in FLOW_PANELS:
                value = samples[panel.column][begin:stop].astype(np.float64)
                if panel.name in ZERO_IS_NONE:
                    value[value == 0] = np.nan
                value[value > NO_RATE_ABOVE] = np.nan
                yield int(flow), panel, thin.steps(t_ns, value), int(ends.get(int(flow), self.run.end_ns))
        yield from self._queue(cell, rep)

    def _queue(self, cell: int, rep: int) -> Iterator[tuple[int, Panel, Steps, int]]:
        names = ["hop", "t_ns", "queue_bytes", "queue_bytes_max"]
        queue = self._columns("queue", names, cell, rep)
        panel = PANELS[-1]
        for hop in np.unique(queue["hop"]):
            here = queue["hop"] == hop
            t_ns = queue["t_ns"][here]
            # A row tells two things: the most within the interval that ends at it, and what waits now.
            most, now = queue["queue_bytes_max"][here], queue["queue_bytes"][here]
            begun = np.r_[t_ns[:1], t_ns[:-1]] if len(t_ns) else t_ns
            both_t = np.stack([(begun + t_ns) // 2, t_ns], axis=1).ravel()
            both_v = np.stack([most, now], axis=1).ravel().astype(np.float64)
            yield -1 - int(hop), panel, thin.steps(both_t, both_v), self.run.end_ns

    def _columns(self, table: str, names: list[str], cell: int, rep: int) -> dict[str, NDArray[Any]]:
        rows = self.run.table(table, names, cell=cell, rep=rep)
        return {name: rows[name].to_numpy() for name in names}


def shared_queue(labels: list[str]) -> str:
    """The queue's label where it is not one flow's own."""
    return QUEUE_OF + " + ".join(dict.fromkeys(labels))

"""The time series of a run, thinned to what a page can show.

Series are those of each cell's median repetition. Few flows are drawn one by one;
many are drawn as bands per entrant (least, middle half, median, greatest), with the
single flows kept aside for the reader to call up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import palette, thin
from .encode import Block
from .sources import QUEUE, SAMPLES, Panel

if TYPE_CHECKING:
    from .run import Beside, Condition, Entrant, ReportRun

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
QUEUE_INK = "#8C8C8C"
ZERO_IS_NONE = frozenset({"srtt", "delivery"})


Steps = tuple[NDArray[np.int64], NDArray[np.float64]]


@dataclass(frozen=True)
class Samples:
    """Rows of `samples` of one repetition, in the order of flows and then of times."""

    rep: int
    flow: NDArray[np.int64]
    t_ns: NDArray[np.int64]
    values: dict[str, NDArray[np.float64]]
    """By panel; NaN where there is none."""
    end_ns: dict[int, int]

    def of(
        self, panel: Panel, own: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Flow, time and value of those rows that have a value."""
        value = self.values[panel.name]
        known = own & np.isfinite(value)
        return self.flow[known], self.t_ns[known], value[known]

    def ends(self, flow: NDArray[np.int64]) -> NDArray[np.int64]:
        """The end of each row's flow."""
        flows, rows = np.unique(flow, return_inverse=True)
        return np.array([self.end_ns[int(flow)] for flow in flows], dtype=np.int64)[rows]


class Series:
    """What the time-series figure and the page draw, computed once."""

    def __init__(self, run: ReportRun) -> None:
        self.run = run
        held = run.run.table("samples").columns
        self.of_flows = tuple(panel for panel in SAMPLES.panels if panel.column in held)
        """Of the columns that the run kept."""
        self.panels = (*self.of_flows, QUEUE)
        self._lines: dict[int, dict[str, list[Block]]] = {}
        self._bands: dict[int, dict[str, list[Block]]] = {}

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
        most = POINTS_AT_MOST // (2 * COLUMNS_AT_LEAST * max(len(self.of_flows), 1))
        kept: dict[tuple[int, int], str] = {}
        for entrant in self.run.entrants:
            flows = self._by_goodput(entrant)
            if total > most:
                share = max(1, most * len(flows) // total)
                picks = np.unique(np.linspace(0, len(flows) - 1, min(share, len(flows))).round().astype(int))
                flows = [flows[k] for k in picks]
            labels = self.labels(entrant)
            for flow in sorted(flows):
                kept[entrant.cell, flow] = labels[flow]
        return dict(list(kept.items())[: max(most, 1)])

    def labels(self, entrant: Entrant) -> dict[int, str]:
        """By flow, in their order."""
        if len(entrant.flows) == 1:
            return {entrant.flows[0]: entrant.label}
        return {flow: f"{entrant.label} #{number}" for number, flow in enumerate(entrant.flows, 1)}

    def looks(self) -> Iterator[tuple[str, str, int]]:
        """(label, its family's colour, place in the palette) of each line or band, in the order of the matrix."""
        for entrant in self.run.entrants:
            slot = self.run.slots[entrant.algorithm]
            for label in [entrant.label] if self.as_bands else self.labels(entrant).values():
                yield label, palette.base(slot), slot
        for one in self._beside:
            slot = self.run.slots[one.algorithm]
            yield one.label, palette.base(slot), slot
        for label in self.queue_labels:
            yield label, QUEUE_INK, 0

    @property
    def _beside(self) -> list[Beside]:
        """What stands beside the run and has lines; among bands there is no room for them."""
        return [] if self.as_bands else [one for one in self.run.beside if one.row.lines]

    @cached_property
    def queue_labels(self) -> list[str]:
        """Labels of queues that are not one flow's own, in the order of the matrix."""
        cells = [cell for cell in self.run.cells.values() if self._has_flows(cell.index)]
        labels = {self._owner(cell.index, -1 - hop)[1]: None for cell in cells for hop in range(cell.hops)}
        return [label for label in labels if label.startswith(QUEUE_OF)]

    def _has_flows(self, cell: int) -> bool:
        return any(entrant.cell == cell for entrant in self.run.entrants)

    @cached_property
    def columns(self) -> int:
        series = max(len(self.kept) * len(self.of_flows), 1)
        return int(np.clip(POINTS_AT_MOST // (2 * series), COLUMNS_AT_LEAST, COLUMNS_AT_MOST))

    @cached_property
    def edges_ns(self) -> NDArray[np.int64]:
        columns = min(self.columns, 300)  # bands are smooth: one step per two or three pixels
        edges: NDArray[np.int64] = np.linspace(0, self.run.end_ns, columns + 1).round().astype(np.int64)
        return edges

    def lines(self, condition: Condition) -> dict[str, list[Block]]:
        """panel -> a block per series: t in seconds, v in the panel's unit."""
        if condition.index not in self._lines:
            self._lines[condition.index] = self._lines_of(condition)
        return self._lines[condition.index]

    def _lines_of(self, condition: Condition) -> dict[str, list[Block]]:
        blocks: dict[str, list[Block]] = {panel.name: [] for panel in self.panels}
        for cell in condition.cells:
            for flow, panel, steps, end_ns in self._drawn(cell):
                entrant, label = self._owner(cell, flow)
                t, v = thin.thin(*steps, 0, self.run.end_ns, self.columns)
                if len(v) == 0:
                    continue
                t, v = np.r_[t, max(end_ns, int(t[-1]))], np.r_[v, v[-1]]
                blocks[panel.name].append(
                    Block({"series": label, "entrant": entrant}, {"t": t * 1e-9, "v": v * panel.scale})
                )
        for one in self._beside:
            for panel in self.of_flows:
                points = np.array(one.row.lines.get(panel.column, ()), dtype=np.float64).reshape(-1, 2)
                points = points[points[:, 0] <= self.run.end_ns * 1e-9]
                if len(points):
                    drawn = {"t": points[:, 0], "v": points[:, 1] * panel.scale}
                    blocks[panel.name].append(Block({"series": one.label, "entrant": one.label}, drawn))
        return blocks

    def bands(self, condition: Condition) -> dict[str, list[Block]]:
        """panel -> a block per entrant: t, least, p25, median, p75, greatest over its flows."""
        if condition.index not in self._bands:
            self._bands[condition.index] = self._bands_of(condition)
        return self._bands[condition.index]

    def _bands_of(self, condition: Condition) -> dict[str, list[Block]]:
        blocks: dict[str, list[Block]] = {panel.name: [] for panel in self.of_flows}
        t_s = self.edges_ns[:-1] * 1e-9
        for cell in condition.cells:
            samples = self._samples(cell)
            if samples is None:
                continue
            for entrant in (e for e in self.run.entrants if e.cell == cell):
                own = np.isin(samples.flow, entrant.flows)
                for panel in self.of_flows:
                    flow, t_ns, value = samples.of(panel, own)
                    found = thin.bands(flow, t_ns, value, self.edges_ns, samples.ends(flow))
                    if len(found.column) == 0:
                        continue
                    columns = np.unique(found.column)
                    names = ("q1", "v", "q3", "low", "high")
                    parts = thin.quantiles_by_column(found.column, found.mean, (0.25, 0.5, 0.75))
                    parts += thin.quantiles_by_column(found.column, found.least, (0.0,))
                    parts += thin.quantiles_by_column(found.column, found.greatest, (1.0,))
                    values = {name: part * panel.scale for name, part in zip(names, parts, strict=True)}
                    order = ("low", "q1", "v", "q3", "high")
                    drawn = {"t": t_s[columns], **{name: values[name] for name in order}}
                    blocks[panel.name].append(Block({"entrant": entrant.label}, drawn))
        return blocks

    # --- reading ------------------------------------------------------------

    def _by_goodput(self, entrant: Entrant) -> list[int]:
        rep = self.run.median_rep[entrant.cell]
        rows = [
            (row["goodput_bits_per_sec"] or 0.0, row["flow"])
            for row in self._rows_of.get((entrant.cell, rep), ())
            if row["group"] == entrant.group
        ]
        return [flow for _, flow in sorted(rows)]

    @cached_property
    def _owners(self) -> dict[tuple[int, int], tuple[str, str]]:
        return {(e.cell, flow): (e.label, label) for e in self.run.entrants for flow, label in self.labels(e).items()}

    def _owner(self, cell: int, flow: int) -> tuple[str, str]:
        """(entrant, series) that a flow's rows belong to; the queue of a lone hop belongs to a lone flow, or to all."""
        if flow >= 0:
            return self._owners[cell, flow]
        entrants = [e for e in self.run.entrants if e.cell == cell]
        has_hops = self.run.cells[cell].hops > 1
        if len(entrants) == 1 and len(entrants[0].flows) == 1 and not self.as_bands and not has_hops:
            return entrants[0].label, entrants[0].label
        names = " + ".join(dict.fromkeys(e.label for e in entrants))
        label = f"{QUEUE_OF}hop {-flow}, {names}" if has_hops else QUEUE_OF + names
        return label, label

    def _drawn(self, cell: int) -> Iterator[tuple[int, Panel, Steps, int]]:
        """(flow, panel, steps, end) of the flows whose own series are drawn; the queue is flow -1 - hop."""
        samples = self._samples(cell)
        if samples is None:
            return
        flows, first = np.unique(samples.flow, return_index=True)
        stops = np.r_[first[1:], len(samples.flow)][: len(flows)]
        for flow, begin, stop in zip(flows.tolist(), first, stops, strict=True):
            if (cell, flow) in self.kept:
                for panel in self.of_flows:
                    value = samples.values[panel.name][begin:stop]
                    yield flow, panel, thin.steps(samples.t_ns[begin:stop], value), samples.end_ns[flow]
        yield from self._queue(cell, samples.rep)

    @cached_property
    def _rows_of(self) -> dict[tuple[int, int], list[dict[str, Any]]]:
        """(cell, repetition) -> rows of `flows`."""
        found: dict[tuple[int, int], list[dict[str, Any]]] = {}
        for row in self.run.flows:
            found.setdefault((row["cell"], row["rep"]), []).append(row)
        return found

    def _samples(self, cell: int) -> Samples | None:
        """Of the cell's median repetition."""
        rep = self.run.median_rep.get(cell)
        if rep is None:
            return None
        found = self._columns("samples", ["flow", "t_ns", *(panel.column for panel in self.of_flows)], cell, rep)
        order = np.lexsort((found["t_ns"], found["flow"]))
        values = {}
        for panel in self.of_flows:
            value = found[panel.column][order].astype(np.float64)
            if panel.name in ZERO_IS_NONE:
                value[value == 0] = np.nan
            value[value > NO_RATE_ABOVE] = np.nan
            values[panel.name] = value
        end_ns = {
            row["flow"]: int(row["end_ns"] if row["end_ns"] is not None else self.run.end_ns)
            for row in self._rows_of.get((cell, rep), ())
        }
        flow = found["flow"][order].astype(np.int64)
        known = np.isin(flow, list(end_ns))
        values = {name: value[known] for name, value in values.items()}
        return Samples(rep, flow[known], found["t_ns"][order][known], values, end_ns)

    def _queue(self, cell: int, rep: int) -> Iterator[tuple[int, Panel, Steps, int]]:
        names = ["hop", "t_ns", "queue_bytes", "queue_bytes_max"]
        queue = self._columns("queue", names, cell, rep)
        panel = QUEUE
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

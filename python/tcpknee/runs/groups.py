"""From rows of flows to one value per group and repetition, column-wise: a row costs no Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tcpknee import workloads
from tcpknee.datasets.table import Table
from tcpknee.evidence.metrics import LIMITS, MEASURED, METRICS, Metric, Sizes
from tcpknee.workloads import Workload

from .arrays import numbers

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Part:
    """One group of one cell (or, with group -1, the whole cell), its values by repetition. A percentile of times that
    falls on a transfer which is not complete is infinite."""

    cell: int
    group: int
    name: str
    algorithm: str
    workload: str
    reps: Indices
    values: Mapping[str, Floats]


OF_QUEUE = ("cell", "rep", "hop", "t_ns", "sent_bytes", "offered_bytes")
"""Columns of `queue` that the use of a link is reckoned of."""


def of_flows(flows: Table, cells: Mapping[int, Mapping[str, Any]], programs: pa.Table | None = None) -> list[Part]:
    """Every (cell, group) of `flows`, in order; external programs of `programs` add what they measured.

    Besides the metrics of `metrics.METRICS`, `values` has the shares `limited_by.*` of the flows' steady parts, the
    number of `members` and of `unfinished` transfers.
    """
    rows = _Rows(flows, ("cell", "group", "rep"))
    if not rows.starts.size:
        return []
    rates = _rates(rows, cells)
    columns = {metric.name: rows.combine(metric, rates.get(metric.column)) for metric in METRICS}
    if programs is not None:
        columns |= _told_by_programs(rows, programs, columns)
    columns |= _limits(rows, cells)
    columns["members"] = rows.sizes.astype(np.float64)
    transfers = _which(rows, lambda workload: workload["counts"] == "completion")
    columns["unfinished"] = rows.sum(transfers * np.isnan(rows.column("completion_us")))
    names, algorithms, loads = (rows.first_texts(name) for name in ("name", "algorithm", "workload"))
    return [
        Part(
            cell=int(rows.keys[0][first]),
            group=int(rows.keys[1][first]),
            name=names[first],
            algorithm=algorithms[first],
            workload=loads[first],
            reps=rows.keys[2][first:end],
            values={name: values[first:end] for name, values in columns.items()},
        )
        for first, end in runs(rows.keys[0], rows.keys[1])
    ]


def of_cells(
    flows: Table,
    queue: Iterable[pa.RecordBatch] | None,
    cells: Mapping[int, Mapping[str, Any]],
) -> list[Part]:
    """Every cell, in order: total goodput, `utilisation` of a limited link, `jain` where flows are several, and the
    `delivered_bytes` and `answered` requests from the end of the warm-up on."""
    rows = _Rows(flows, ("cell", "rep"))
    if not rows.starts.size:
        return []
    goodput = rows.column("goodput_bits_per_sec")
    steady = _steady(rows, cells)
    carried = goodput * _share_of_cell(rows, cells, steady)
    # What comes and goes has no share of the link to compare.
    stays = _which(rows, lambda workload: not workload["draws"])
    shares, members = goodput * stays, rows.sum(stays)
    total, squares = rows.sum(carried), rows.sum(shares**2)
    with np.errstate(divide="ignore", invalid="ignore"):
        jain = np.where((members > 1) & (squares > 0), rows.sum(shares) ** 2 / (members * squares), np.nan)
    steady_ns = _of_cells(rows, cells, "duration_ns") - _of_cells(rows, cells, "warmup_ns")
    delivered = rows.sum(goodput * steady * steady_ns) / 8e9
    requests = rows.column("requests")
    answered = np.where(
        rows.sum((~np.isnan(requests)).astype(np.float64)) > 0, rows.sum(np.nan_to_num(requests)), np.nan
    )
    used = _utilisation(queue, cells) if queue is not None else {}
    parts = []
    for first, end in runs(rows.keys[0]):
        cell, reps = int(rows.keys[0][first]), rows.keys[1][first:end]
        values = {
            "goodput_bits_per_sec": total[first:end],
            "utilisation": np.array([used.get((cell, int(rep)), np.nan) for rep in reps]),
            "jain": jain[first:end],
            "delivered_bytes": delivered[first:end],
            "answered": answered[first:end],
        }
        parts.append(Part(cell, -1, "total", "", "", reps, values))
    return parts


class _Rows:
    """Rows sorted by keys, with the ranges of rows whose keys are equal."""

    def __init__(self, table: Table, keys: tuple[str, ...]) -> None:
        self.table, self.count = table, len(table)
        unsorted = [numbers(table[key]).astype(np.int64) for key in keys]
        self.order: Indices = np.lexsort(unsorted[::-1]) if self.count else np.zeros(0, dtype=np.int64)
        ordered = [key[self.order] for key in unsorted]
        self.starts: Indices = _starts(*ordered) if self.count else np.zeros(0, dtype=np.int64)
        self.sizes: Indices = np.diff(np.append(self.starts, self.count))
        self.keys = [key[self.starts] for key in ordered]

    def column(self, name: str) -> Floats:
        """A column as floats in sorted order; null is NaN, and so is all of one that the run is too old to have."""
        if name not in self.table.columns:
            return np.full(self.count, np.nan)
        return np.asarray(numbers(self.table[name]), dtype=np.float64)[self.order]

    def which(self, name: str, applies: Callable[[str], bool]) -> Floats:
        """1 for each row in sorted order to whose text of that column it applies, 0 for the others."""
        texts = self.table[name].combine_chunks()
        coded = texts if pa.types.is_dictionary(texts.type) else texts.dictionary_encode()
        found = np.array([applies(text) for text in coded.dictionary.to_pylist()], dtype=np.float64)
        of_rows: Floats = found[numbers(coded.indices)]
        return of_rows[self.order]

    def first_texts(self, name: str) -> list[str]:
        """The first text of each range."""
        return self._texts(name, self.order[self.starts])

    def _texts(self, name: str, rows: Indices) -> list[str]:
        found: list[str] = self.table[name].to_pylist()
        return [found[row] for row in rows.tolist()]

    def sum(self, values: Floats) -> Floats:
        return np.add.reduceat(values, self.starts)

    def combine(self, metric: Metric, values: Floats | None = None) -> Floats:
        """The metric's value of each range; NaN where no member has one. `values` takes the column's place."""
        if metric.how == "pooled":
            top, bottom = (self.sum(self.column(name)) for name in metric.column.split("/"))
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.where(bottom > 0, 100 * top / bottom, 0.0)
            return np.where(np.isnan(top) | np.isnan(bottom), np.nan, share)
        if values is None:
            values = self.column(metric.column)
        if metric.how == "count":
            return self._count(values, metric.sizes)
        known = ~np.isnan(values)
        counts = self.sum(known.astype(np.float64))
        if metric.how == "percentile":
            return self._percentile(values, self._within(metric.sizes), metric.percentile)
        if metric.how == "min":
            least = np.minimum.reduceat(np.where(known, values, np.inf), self.starts)
            return np.where(counts > 0, least, np.nan)
        total = self.sum(np.where(known, values, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            combined = total if metric.how == "sum" else total / counts
        return np.where(counts > 0, combined, np.nan)

    def _count(self, values: Floats, sizes: Sizes | None) -> Floats:
        """How many members have a value, of those sizes; NaN where none has one, whatever its size."""
        known = ~np.isnan(values)
        counts = self.sum((known & self._within(sizes)).astype(np.float64))
        return np.where(self.sum(known.astype(np.float64)) > 0, counts, np.nan)

    def _within(self, sizes: Sizes | None) -> npt.NDArray[np.bool_]:
        """Which rows are transfers of those sizes; None: every row."""
        if sizes is None:
            return np.ones(self.count, dtype=bool)
        transfer_bytes = self.column("transfer_bytes")
        return (transfer_bytes >= sizes.low) & (transfer_bytes < sizes.high)

    def _percentile(self, values: Floats, within: npt.NDArray[np.bool_], percent: float) -> Floats:
        """Linear between order statistics. What is not complete is later than all that is: a percentile that falls on
        it is infinite."""
        result = np.full(len(self.starts), np.nan)
        late = np.where(np.isnan(values), np.inf, values)
        for position in np.flatnonzero(self.sum(within.astype(np.float64))):
            result[position] = self._percentile_of(late, within, int(position), percent)
        return result

    def _percentile_of(self, late: Floats, within: npt.NDArray[np.bool_], position: int, percent: float) -> float:
        members = slice(self.starts[position], self.starts[position] + self.sizes[position])
        part = np.sort(late[members][within[members]])
        place = percent / 100 * (len(part) - 1)
        below, above = part[int(np.floor(place))], part[int(np.ceil(place))]
        return float(below + (above - below) * (place - np.floor(place)) if below < above < np.inf else above)


def _told_by_programs(rows: _Rows, programs: pa.Table, columns: Mapping[str, Floats]) -> dict[str, Floats]:
    """`metrics.MEASURED` of each range: what its flows have, else what the group's client printed."""
    told = {(row["cell"], row["group"], row["rep"]): row for row in programs.to_pylist() if row["role"] == "client"}
    keys = list(zip(*(key.tolist() for key in rows.keys), strict=True))
    found = {}
    for name in MEASURED:
        printed = [told.get(key, {}).get(name) for key in keys]
        values = np.array([np.nan if value is None else float(value) for value in printed])
        found[name] = np.where(np.isnan(columns[name]), values, columns[name])
    return found


def _which(rows: _Rows, applies: Callable[[Workload], bool]) -> Floats:
    """1 for each row of a workload to which that applies, 0 for the others."""
    return rows.which("workload", lambda text: applies(workloads.of(text)))


def _times(rows: _Rows, cells: Mapping[int, Mapping[str, Any]]) -> tuple[Floats, Floats, Floats]:
    """Of each row, ns: when it was opened, when the run's steady part had begun and it was open, and when it ended."""
    ends, opened = rows.column("end_ns"), rows.column("start_ns")
    ends = np.where(np.isnan(ends), _of_cells(rows, cells, "duration_ns"), ends)
    return opened, np.maximum(opened, _of_cells(rows, cells, "warmup_ns")), ends


def _of_cells(rows: _Rows, cells: Mapping[int, Mapping[str, Any]], name: str) -> Floats:
    return np.repeat([float(cells[int(cell)][name]) for cell in rows.keys[0]], rows.sizes)


def _rates(rows: _Rows, cells: Mapping[int, Mapping[str, Any]]) -> dict[str, Floats]:
    """Rates of each row that may be added up. Of a flow that stays, its own. Of transfers the bytes of each over the
    time in which any of them was under way, since they need not have shared the link; of those that come and go, what
    each carried in the run's steady part over the whole of that part."""
    opened, _, ends = _times(rows, cells)
    draws = _which(rows, lambda workload: workload["draws"]) > 0
    of_all = _part(ends - opened, _under_way(rows, opened, ends))
    part = np.where(draws, _steady(rows, cells), np.where(_are_transfers(rows), of_all, 1.0))
    names = ("goodput_bits_per_sec", "throughput_bits_per_sec")
    return {name: rows.column(name) * part for name in names}


def _share_of_cell(rows: _Rows, cells: Mapping[int, Mapping[str, Any]], steady: Floats) -> Floats:
    """Of each row, how much of the cell's time its rate was carried: of the steady part, or, where all flows are
    transfers, which have no warm-up, of the time in which any was under way. So no total is more than the link had."""
    opened, _, ends = _times(rows, cells)
    only_transfers = np.repeat(rows.sum((~_are_transfers(rows)).astype(np.float64)) == 0, rows.sizes)
    of_all = _part(ends - opened, _under_way(rows, opened, ends))
    return np.where(only_transfers, of_all, steady)


def _steady(rows: _Rows, cells: Mapping[int, Mapping[str, Any]]) -> Floats:
    """Of each row, how much of the run's steady part its rate was carried. What was under way before is taken to have
    been as fast before as after."""
    opened, _, ends = _times(rows, cells)
    first, last = _of_cells(rows, cells, "warmup_ns"), _of_cells(rows, cells, "duration_ns")
    return _part(np.maximum(np.minimum(ends, last) - np.maximum(opened, first), 0.0), last - first)


def _are_transfers(rows: _Rows) -> npt.NDArray[np.bool_]:
    """Which rows are transfers that the scenario names one by one."""
    return _which(rows, lambda workload: workload["counts"] == "completion" and not workload["draws"]) > 0


def _under_way(rows: _Rows, opened: Floats, ends: Floats) -> Floats:
    """Of each row, how long any of its range was, without the time between them."""
    owner = np.repeat(np.arange(len(rows.starts)), rows.sizes)
    order = np.lexsort((opened, owner))
    # Each range has times of its own, behind those of the one before.
    apart = owner * (int(ends.max()) + 1)
    begins, until = ((times.astype(np.int64) + apart)[order] for times in (opened, ends))
    reached = np.maximum.accumulate(until)
    added = np.maximum(reached - np.maximum(begins, np.r_[-1, reached[:-1]]), 0)
    return np.repeat(rows.sum(added.astype(np.float64)), rows.sizes)


def _part(some: Floats, whole: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > 0, some / whole, 1.0)


def _limits(rows: _Rows, cells: Mapping[int, Mapping[str, Any]]) -> dict[str, Floats]:
    """Shares of the members' steady parts: from the later of warm-up and opening to the end of work or of the run.

    A transfer, and a flow that was done before the warm-up ended, counts from its opening, as in `flows`.
    """
    opened, begins, ends = _times(rows, cells)
    has_steady = np.isnan(rows.column("transfer_bytes")) & (begins < ends)
    steady_us = rows.sum((ends - np.where(has_steady, begins, opened)) / 1e3)
    limited_us = {limit: rows.sum(rows.column(f"{limit}_limited_us")) for limit in LIMITS}
    # Real hosts end a little later than the scenario says, and what they count goes on until then.
    steady_us = np.maximum(steady_us, sum(np.nan_to_num(of_limit) for of_limit in limited_us.values()))
    shares = {}
    with np.errstate(divide="ignore", invalid="ignore"):
        for limit, of_limit in limited_us.items():
            share = of_limit / steady_us
            shares[f"limited_by.{limit}"] = np.where(steady_us > 0, share, np.nan)
    # A kernel that does not tell these (before 4.10) leaves nothing to say of the rest.
    told = [np.nan_to_num(shares[f"limited_by.{limit}"]) for limit in LIMITS]
    rest = np.where(steady_us > 0, np.maximum(1.0 - sum(told), 0.0), np.nan)
    for limit in ("rwnd", "sndbuf", "app"):
        rest = np.where(np.isnan(shares[f"limited_by.{limit}"]), np.nan, rest)
    shares["limited_by.other"] = rest
    return shares


@dataclass
class _Sent:
    """Three rows of a bottleneck's queue: the last of the warm-up, or the run's beginning, the first after it, and the
    last of all. Of each when it was, ns, and the bytes that had left and that could have left until then."""

    warmup_ns: int
    before: tuple[int, int, int] = (0, 0, 0)
    after: tuple[int, int, int] | None = None
    last: tuple[int, int, int] = (-1, 0, 0)

    def share(self) -> float:
        """Of what the link could have sent from the end of the warm-up on; NaN where that is nothing. Between two rows
        bytes are taken to have left evenly. A packet that was on the wire at the first row counts whole among those
        sent, which is no reason to call more than the link sent."""
        (first_ns, *first), (then_ns, *then) = self.before, self.after or self.last
        part = (self.warmup_ns - first_ns) / (then_ns - first_ns) if then_ns > first_ns else 0.0
        base = [start + part * (end - start) for start, end in zip(first, then, strict=True)]
        sent, offered = (last - at_warmup for last, at_warmup in zip(self.last[1:], base, strict=True))
        return min(sent / offered, 1.0) if offered > 0 else float("nan")


def _utilisation(
    queue: Iterable[pa.RecordBatch], cells: Mapping[int, Mapping[str, Any]]
) -> dict[tuple[int, int], float]:
    """What left the narrowest hop between warm-up and the last row, as a share of what its link could have sent; where
    all flows are transfers, which have no warm-up, until the last row."""
    found: dict[tuple[int, int], _Sent] = {}
    for batch in queue:
        # Null, where a link has no rate, is no offer.
        columns = [np.nan_to_num(numbers(batch.column(name))).astype(np.int64) for name in OF_QUEUE]
        numbered, of_cell = np.unique(columns[0], return_inverse=True)
        hops = np.array([int(cells[int(cell)].get("bottleneck_hop", 0)) for cell in numbered], dtype=np.int64)
        cell, rep, _, *counted = (column[columns[2] == hops[of_cell]] for column in columns)
        if not len(cell):
            continue
        order = np.lexsort((counted[0], rep, cell))
        cell, rep, t_ns, sent, offered = (column[order] for column in (cell, rep, *counted))
        for start, end in runs(cell, rep):
            warmup_ns = _warmup_ns(cells[int(cell[start])])
            one = found.setdefault((int(cell[start]), int(rep[start])), _Sent(warmup_ns))
            after = start + int(np.searchsorted(t_ns[start:end], warmup_ns, side="left"))
            first, base, last = (
                (int(t_ns[row]), int(sent[row]), int(offered[row])) if start <= row < end else None
                for row in (after, after - 1, end - 1)
            )
            if base is not None and base[0] >= one.before[0]:
                one.before = base
            if first is not None and (one.after is None or first[0] < one.after[0]):
                one.after = first
            if last is not None and last[0] > one.last[0]:
                one.last = last
    return {key: one.share() for key, one in found.items()}


def _warmup_ns(cell: Mapping[str, Any]) -> int:
    """How much of the beginning does not count for the link."""
    kinds = [workloads.of(flow["workload"]) for flow in cell["flows"]]
    has_only_transfers = all(kind["counts"] == "completion" and not kind["draws"] for kind in kinds)
    return 0 if has_only_transfers else int(cell["warmup_ns"])


def _starts(*keys: Indices) -> Indices:
    changes = np.ones(len(keys[0]), dtype=bool)
    changes[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return np.flatnonzero(changes)


def runs(*keys: Indices) -> Iterator[tuple[int, int]]:
    """Ranges (first, end) of positions with equal, sorted keys."""
    starts = _starts(*keys)
    yield from zip(starts.tolist(), [*starts[1:].tolist(), len(keys[0])], strict=True)

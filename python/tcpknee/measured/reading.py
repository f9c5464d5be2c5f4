"""What `--beside` names, as rows beside a run: a file of iperf3, flent or a capture, or a folder that holds what was
imported of one, a recording, or a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tcpknee import imports
from tcpknee.datasets.dataset import Dataset
from tcpknee.errors import UsageError
from tcpknee.evidence.metrics import BY_NAME
from tcpknee.evidence.stats import Estimate, estimate
from tcpknee.runs import api
from tcpknee.runs.beside import Entry, Row
from tcpknee.whatif import observation
from tcpknee.whatif.series import Series, measured

from . import path, streams

if TYPE_CHECKING:
    import pyarrow as pa

    from tcpknee.runs.summary import Group

Found = TypeVar("Found")

_MOST_ROWS = 4
"""Of one source: what is beyond is said to be there."""
_LEAST_BYTES = 100_000
"""Below this a connection of a capture tells nothing of a path."""
_BIN_SEC = 0.1
_RECKONED_BY_FLENT = {"avg", "sum", "totals", "fairness"}
"""The last words of series that are none of their own."""
_OF_CAPTURE = "a capture does not tell the algorithm, with which a path would be fitted"

Rows = list[dict[str, Any]]


def read(word: str) -> Entry:
    """Raises UsageError, RunFolderError."""
    found = Path(word)
    if found.is_dir():
        return _of_folder(found)
    kind = imports.recognised(found).name
    if kind not in _OF_TABLES:
        raise UsageError(
            f"{word}: is of {kind}; expected a file of {', '.join(_OF_TABLES)}, or a folder with connections over "
            f"time, as `knee import {kind} {word} --out rec` or `knee record` writes it."
        )
    tables = dict(zip((table.name for table in imports.IMPORTERS[kind].tables), imports.read(kind, found), strict=True))
    return _OF_TABLES[kind](found.name, tables)


def _of_folder(folder: Path) -> Entry:
    dataset = Dataset(folder)
    for kind, make in _OF_TABLES.items():
        names = [table.name for table in imports.IMPORTERS[kind].tables]
        if set(names) <= set(dataset.tables):
            return make(folder.name, {name: dataset.table(name).arrow() for name in names})
    return _of_run(folder) if dataset.kind == "run" else _of_recording(folder)


def _of_run(folder: Path) -> Entry:
    run = api.open(folder)
    recording = observation.read([folder])
    most: dict[tuple[str, str], Series] = {}
    for seen in recording.paths:
        cell, _, _ = seen.key.partition("/")
        for series in seen.connections:
            known = most.setdefault((cell, series.algorithm), series)
            if series.segments > known.segments:
                most[cell, series.algorithm] = series
    rows = []
    notes: list[str] = []
    for group in _most(run.summary.groups, "rows of its table, the first", notes):
        drawn = most.get((str(group.cell), group.algorithm))
        rows.append(
            Row(
                ", ".join([folder.name, *_place(group)]),
                group.algorithm,
                "repetition",
                group.metrics,
                streams.lines(drawn) if drawn else {},
            )
        )
    seen = _carried_most(recording, notes)
    return Entry(folder.name, f"run, {run.meta['engine']}", rows, path.fitted(seen), notes)


def _place(group: Group) -> Iterator[str]:
    """In which cell it is, and its name in that; its algorithm is told anyway."""
    own = f"flow.{group.group}.algorithm"
    yield from (f"{key} {value}" for key, value in group.axes.items() if key != own)
    if group.name != group.algorithm:
        yield group.name


def _of_recording(folder: Path) -> Entry:
    notes: list[str] = []
    seen = _carried_most(observation.read([folder]), notes)
    by_algorithm: dict[str, list[Series]] = {}
    for series in sorted(seen.connections, key=lambda series: -series.segments):
        by_algorithm.setdefault(series.algorithm, []).append(series)
    rows = []
    for algorithm, every in _most(
        list(by_algorithm.items()), "algorithms, by what their largest connections sent, the first", notes
    ):
        values = [{**measured(series), "min_rtt_us": series.least_rtt_us} for series in every]
        rows.append(
            Row(
                folder.name,
                algorithm,
                "connection",
                _estimates({name: [one[name] for one in values] for name in values[0]}),
                streams.lines(every[0]),
            )
        )
    return Entry(folder.name, "recording", rows, path.fitted(seen), notes)


def _carried_most(recording: observation.Recording, notes: list[str]) -> observation.Observed:
    seen = max(recording.paths, key=lambda one: sum(series.segments for series in one.connections))
    if len(recording.paths) > 1:
        notes.append(f"The path, of {len(recording.paths)}, is the one that carried most: {seen.key}.")
    return seen


def _most(every: Sequence[Found], which: str, notes: list[str]) -> Sequence[Found]:
    """As many of a source as are shown, and a note where there are more."""
    if len(every) > _MOST_ROWS:
        notes.append(f"Of {len(every)} {which} {_MOST_ROWS}.")
    return every[:_MOST_ROWS]


def _of_iperf3(label: str, tables: dict[str, pa.Table]) -> Entry:
    every = streams.told_once([row for row in tables["iperf3_streams"].to_pylist() if row["protocol"] == "TCP"])
    intervals = tables["iperf3_intervals"].to_pylist()
    rows, rtts_us = [], []
    for sends in (True, False):
        tests: dict[Any, Rows] = {}
        for row in every:
            if row["out"] == sends and (row["goodput_bits_per_sec"] or row["written_bits_per_sec"]):
                tests.setdefault((row["file"], row["test"]), []).append(row)
        if not tests:
            continue
        of_test = {test: [streams.OfIperf3(row, intervals) for row in members] for test, members in tests.items()}
        names = dict.fromkeys(row["algorithm"] for members in tests.values() for row in members)
        algorithm = names.popitem()[0] or "" if len(names) == 1 else ""
        values = [streams.of_iperf3(members) for members in of_test.values()]
        first = next(iter(of_test.values()))
        rows.append(
            Row(
                label if len({row["out"] for row in every}) == 1 else f"{label}, {'out' if sends else 'back'}",
                streams.ours(algorithm),
                "test",
                _estimates({name: [one.get(name, math.nan) for one in values] for name in values[0]}),
                first[0].lines,
            )
        )
        rtts_us += [rtt for members in of_test.values() for one in members for rtt in one.least_rtts_us]
    if not rows:
        raise UsageError(f"{label}: got no finished TCP stream of iperf3; expected one at least.")
    notes = []
    if any(row["goodput_bits_per_sec"] is None for row in every):
        notes.append(
            "Goodput is what the sender wrote, part of which may not have arrived: its receiver was not asked."
        )
    _, rate, retransmit_pct = _of_rows(rows)
    why = "iperf3 tells no least RTT, and how a stream goes on too seldom, for a path to be fitted"
    found = path.bounded(min(rtts_us, default=None), None if notes else rate, retransmit_pct, why)
    return Entry(label, "iperf3", rows, found, notes)


def _of_flent(label: str, tables: dict[str, pa.Table]) -> Entry:
    points: dict[str, Rows] = {}
    for row in tables["flent_points"].to_pylist():
        if row["value"] is not None:
            points.setdefault(row["series"], []).append(row)
    pings: list[float] = []
    sides: dict[str, list[Rows]] = {}
    for name, found in points.items():
        # As in `TCP upload::1`, `TCP upload BE`, `TCP download Torrent::6`, `Ping (ms) ICMP`.
        protocol, side, *rest = [*name.replace("::", " ").split(), "", ""]
        if {side, *rest} & _RECKONED_BY_FLENT or any(word.startswith("tcp_") for word in rest):
            continue
        if protocol == "Ping":
            pings += [1e3 * row["value"] for row in found]
        elif protocol == "TCP" and found[0]["units"] == "Mbits/s":
            sides.setdefault(f"{protocol} {side}", []).append(found)
    if not sides:
        raise UsageError(f"{label}: got no series of TCP in Mbits/s; expected a test of flent with transfers.")
    rows = []
    for side, members in sides.items():
        values = {"goodput_bits_per_sec": [sum(_mean(one) for one in members) * 1e6]}
        if pings:
            p50, p95 = np.percentile(pings, [50, 95])
            values |= {"latency_us_p50": [float(p50)], "latency_us_p95": [float(p95)]}
        drawn = {"delivery_rate_bits_per_sec": [(row["t_ns"] / 1e9, row["value"] * 1e6) for row in members[0]]}
        rows.append(Row(f"{label}, {side}", "", "test", _estimates(values), drawn))
    rate = max(row.metrics["goodput_bits_per_sec"].mean for row in rows)
    seen = path.bounded(min(pings, default=None), rate, None, "flent tells no retransmissions, for a path to be fitted")
    notes = ["Latency is of its pings, beside the transfers."]
    return Entry(label, "flent", _most(rows, "rows, the first", notes), seen, notes)


def _of_pcap(label: str, tables: dict[str, pa.Table]) -> Entry:
    every = [row for row in tables["capture_connections"].to_pylist() if (row["bytes_acked"] or 0) >= _LEAST_BYTES]
    every.sort(key=lambda row: -row["bytes_acked"])
    if not every:
        raise UsageError(
            f"{label}: got no connection that carried {_LEAST_BYTES // 1000} kB; expected one at least, which its path "
            "could hold back."
        )
    acks: dict[int, Rows] = {}
    for row in tables["capture_acks"].to_pylist():
        acks.setdefault(row["connection"], []).append(row)
    names = ("goodput_bits_per_sec", "retransmit_pct")
    others = {"srtt_us_p50": "rtt_us_p50", "srtt_us_p95": "rtt_us_p95", "min_rtt_us": "rtt_us_min"}
    rows = []
    notes = ["RTTs are those of single ACKs, not smoothed."]
    for row in _most(every, "connections, by what they carried, the first", notes):
        values = {**{name: row[name] for name in names}, **{name: row[column] for name, column in others.items()}}
        known = {name: [float(value)] for name, value in values.items() if value is not None}
        number = row["connection"]
        drawn = streams.of_acks(acks.get(number, []), _BIN_SEC)
        rows.append(Row(f"{label} #{number}", "", "connection", _estimates(known), drawn))
    return Entry(label, "capture", rows, path.bounded(*_of_rows(rows), _OF_CAPTURE), notes)


def _of_rows(rows: Sequence[Row]) -> tuple[float | None, float | None, float | None]:
    """Least RTT, greatest goodput and least share of retransmissions."""

    def known(names: Iterable[str], choose: Callable[[list[float]], float]) -> float | None:
        found = [row.metrics[name].mean for row in rows for name in names if name in row.metrics]
        return choose(found) if found else None

    rtts = ("min_rtt_us", "srtt_us_p50")
    return known(rtts, min), known(["goodput_bits_per_sec"], max), known(["retransmit_pct"], min)


def _estimates(values: dict[str, list[float]]) -> dict[str, Estimate]:
    made = {name: estimate(found, BY_NAME[name].bounds) for name, found in values.items()}
    return {name: found for name, found in made.items() if found is not None}


def _mean(rows: Rows) -> float:
    return float(np.mean([row["value"] for row in rows]))


_OF_TABLES = {"iperf3": _of_iperf3, "flent": _of_flent, "pcap": _of_pcap}

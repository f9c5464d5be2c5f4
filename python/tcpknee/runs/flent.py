"""One repetition of a run as a data file of flent, which plots it and `knee import flent` reads back.

The file says what flent's own test `tcp_nup` (uploads with the sender's tcp_info) would, with its names and units, so
that every plot of that test draws. Source: flent 2.3, `resultset.py` (format 4), `runners.py`, `tests/tcp_nup.conf`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tcpknee.errors import RunFolderError, UsageError
from tcpknee.writing import replacing

from . import manifest
from .results import Run

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

STEP = "200ms"
"""Between two points: flent's own default (-s)."""

ENDINGS = (".flent", ".flent.gz")

MOST_VALUES = 20_000_000
"""Some 200 MB of JSON; `knee import flent` reads up to 256 MiB."""

FORMAT = 4

STREAM = "TCP upload"

TCP_INFO: tuple[tuple[str, str, float, str], ...] = (
    ("tcp_cwnd", "snd_cwnd", 1, "packets"),
    ("tcp_rtt", "srtt_us", 1e3, "ms"),
    ("tcp_rtt_var", "rttvar_us", 1e3, "ms"),
    ("tcp_pacing_rate", "pacing_rate_bits_per_sec", 1e6, "Mbits/s"),
    ("tcp_delivery_rate", "delivery_rate_bits_per_sec", 1e6, "Mbits/s"),
    ("tcp_bbr_bw", "bbr_bw_bits_per_sec", 1e6, "Mbits/s"),
    ("tcp_bbr_mrtt", "bbr_min_rtt_us", 1e3, "ms"),
    ("tcp_bbr_pacing_gain", "bbr_pacing_gain", 1, ""),
    ("tcp_bbr_cwnd_gain", "bbr_cwnd_gain", 1, ""),
)
"""flent's name, the column of `samples`, that column's units in one of flent's, flent's unit."""

_OF_SAMPLES = ("flow", "t_ns", "bytes_read", *(column for _, column, _, _ in TCP_INFO))
"""What is asked of `samples`."""

_ZERO_IS_NONE = {
    "rttvar_us": "srtt_us",
    "srtt_us": "srtt_us",
    "delivery_rate_bits_per_sec": "delivery_rate_bits_per_sec",
}
"""Columns without meaning while another is 0: before the first measurement."""

QDISC: tuple[tuple[str, str, float, str], ...] = (
    ("backlog_bytes", "queue_bytes", 1, "bytes"),
    ("backlog_pkts", "queue_pkts", 1, "packets"),
    ("delay", "queue_delay_us", 1e3, "ms"),
)
QDISC_COUNTERS: tuple[tuple[str, str, str], ...] = (
    ("dropped", "dropped_pkts", "packets"),
    ("ecn_mark", "marked_pkts", "packets"),
)
"""flent tells these per step."""


def write(run: Run, cell: int, rep: int, out: Path, step: str = STEP) -> dict[str, Any]:
    """Writes the data file and gives its content; `out` ends with .flent or .flent.gz, as flent demands.

    Raises UsageError (another ending; a step that is finer than the samples, or longer than the run; too many values),
    RunFolderError (cannot be written).
    """
    if not out.name.endswith(ENDINGS):
        raise UsageError(f"{out}: got another ending; expected {' or '.join(ENDINGS)}, by which flent reads a file.")
    found = document(run, cell, rep, step, name=out.name)
    text = json.dumps(found, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    with replacing(out, make=True) as file:
        # Without the time of writing: the same run gives the same bytes.
        file.write(gzip.compress(text, mtime=0) if out.suffix == ".gz" else text)
    return found


def document(run: Run, cell: int, rep: int, step: str = STEP, name: str = "run.flent.gz") -> dict[str, Any]:
    """The object that such a file holds: `metadata`, `x_values`, `results` and `raw_values`.

    At each step a flow has its goodput over that step, `TCP upload::N` in Mbits/s, and what `samples` says then,
    `TCP upload::N::tcp_rtt` and its like; a hop has `qdisc_stats_hopN::…`. N counts flows from 1, hops from 0. Steps in
    which a flow was not open have null. Raises UsageError as `write` does.
    """
    about = run.meta["cells"][cell]
    flows = sorted(run.rows("flows", cell=cell, rep=rep).to_pylist(), key=lambda row: int(row["flow"]))
    queue = run.rows("queue", cell=cell, rep=rep)
    if not flows or not queue.num_rows:
        raise RunFolderError(f"{run.folder}: cell {cell}, repetition {rep} has no flows or no samples; expected both.")
    step_ns = _step_ns(step, queue, int(about["duration_ns"]))
    grid = np.arange(1, int(about["duration_ns"]) // step_ns + 1, dtype=np.int64) * step_ns
    values = len(flows) * len(grid) * (1 + len(TCP_INFO))
    if values > MOST_VALUES:
        raise UsageError(
            f"cell {cell}: {len(flows)} flows at {len(grid)} steps; expected at most {MOST_VALUES:,} values, and got "
            f"{values:,}. Give a longer --step."
        )
    begun = datetime.fromisoformat(run.meta["sessions"][0]["started"]).astimezone(timezone.utc)
    series = _Series(begun, grid)
    _add_flows(series, flows, run.rows("samples", _OF_SAMPLES, cell=cell, rep=rep), queue, about)
    hops = _add_queues(series, queue)
    metadata = _metadata(run.meta, about, rep, begun, step_ns)
    metadata |= {
        "DATA_FILENAME": name,
        "TEST_PARAMETERS": {
            "upload_streams": str(len(flows)),
            "cc_algos": ",".join(row["algorithm"] for row in flows),
            "qdisc_stats_hosts": ",".join(hops),
            "qdisc_stats_interfaces": ",".join(_queues(about, len(hops))),
        },
        "SERIES_META": series.meta,
    }
    return {
        "version": FORMAT,
        "metadata": metadata,
        "x_values": series.x_values,
        "results": series.results,
        "raw_values": series.raw,
    }


class _Series:
    """Series at equal steps, and the same as flent's measurements at wall times."""

    def __init__(self, begun: datetime, grid: Indices) -> None:
        self.grid = grid
        self.x_values = (grid / 1e9).tolist()
        self.times = (begun.timestamp() + grid / 1e9).tolist()
        self.results: dict[str, list[float | None]] = {}
        self.raw: dict[str, list[dict[str, Any]]] = {}
        self.meta: dict[str, dict[str, Any]] = {}

    def add(self, name: str, values: Floats, unit: str, **meta: Any) -> list[float | None]:
        """A series of `results`; NaN becomes null."""
        told = [None if missing else value for value, missing in zip(values.tolist(), np.isnan(values), strict=True)]
        self.results[name] = told
        self.meta[name] = {"UNITS": unit, **meta}
        return told

    def measured(self, name: str, columns: Mapping[str, Sequence[float | None]], **same: float) -> None:
        """A series of `raw_values`, of the steps at which some column has a value."""
        self.raw[name] = [
            {"t": t, **same, **known}
            for t, *row in zip(self.times, *columns.values(), strict=True)
            if (known := {key: value for key, value in zip(columns, row, strict=True) if value is not None})
        ]


def _add_flows(
    series: _Series, flows: Sequence[Mapping[str, Any]], samples: pa.Table, queue: pa.Table, about: Mapping[str, Any]
) -> None:
    grid, interval_ns = series.grid, _interval_ns(queue)
    step_ns = int(grid[0])
    numbers = samples["flow"].to_numpy()
    order = np.lexsort((samples["t_ns"].to_numpy(), numbers))
    columns = {name: _floats(samples, name)[order] for name in _OF_SAMPLES}
    for column, other in _ZERO_IS_NONE.items():
        columns[column][columns[other] == 0] = np.nan
    bounds = np.searchsorted(numbers[order], [[row["flow"], row["flow"] + 1] for row in flows])
    rates = np.full((len(flows), len(grid)), np.nan)
    for position, (row, (first, end)) in enumerate(zip(flows, bounds, strict=True)):
        own = {name: values[first:end] for name, values in columns.items()}
        end_ns = int(about["duration_ns"]) if row["end_ns"] is None else int(row["end_ns"])
        is_open = (grid > row["start_ns"]) & (grid - step_ns < end_ns)
        # Samples are taken as the sender moves, which learns of the last bytes when they have been read.
        early = own["t_ns"] < end_ns
        t_ns = np.r_[row["start_ns"], own["t_ns"][early], end_ns]
        read_bytes = np.r_[0.0, own["bytes_read"][early], row["bytes_read"]]
        read = _counted(t_ns, read_bytes, interval_ns, np.append(0, grid))
        rates[position] = np.where(is_open, np.diff(read) * 8 / step_ns * 1e3, np.nan)
        name = f"{STREAM}::{row['flow'] + 1}"
        told = {"val": series.add(name, rates[position], "Mbits/s", **_told(row, end_ns))}
        for key, column, units, unit in TCP_INFO:
            held = np.where(is_open, _held(own["t_ns"], own[column] / units, grid), np.nan)
            if not np.isnan(held).all():
                told[key] = series.add(f"{name}::{key}", held, unit)
        series.measured(name, told, dur=step_ns / 1e9)
    is_open = ~np.isnan(rates)
    count, total, squares = is_open.sum(axis=0), np.nansum(rates, axis=0), np.nansum(rates**2, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        series.add(f"{STREAM} sum", np.where(count > 0, total, np.nan), "Mbits/s")
        series.add(f"{STREAM} avg", np.where(count > 0, total / count, np.nan), "Mbits/s")
        series.add(f"{STREAM} fairness", np.where(squares > 0, total**2 / (count * squares), np.nan), "Idx")


def _told(row: Mapping[str, Any], end_ns: int) -> dict[str, Any]:
    """What flent's metadata of a stream says, with what it has no word for."""
    length_ns = end_ns - row["start_ns"]
    return {
        "ID": str(row["flow"] + 1),
        "CONG_CONTROL": row["algorithm"],
        "MEAN_VALUE": row["bytes_read"] * 8e3 / length_ns if length_ns > 0 else None,
        "ELAPSED_TIME": length_ns / 1e9,
        "TCP_RETRANSMIT": row["total_retrans"],
        "BYTES_SENT": row["bytes_sent"],
        "NAME": row["name"],
        "WORKLOAD": row["workload"],
    }


def _add_queues(series: _Series, queue: pa.Table) -> list[str]:
    """The series of every hop; their names."""
    hops = []
    of_hop = queue["hop"].to_numpy()
    for hop in np.unique(of_hop).tolist():
        rows = queue.filter(pa.array(of_hop == hop))
        t_ns = _floats(rows, "t_ns")
        hops.append(f"hop{hop}")
        name = f"qdisc_stats_{hops[-1]}"
        told = {
            key: series.add(f"{name}::{key}", _held(t_ns, _floats(rows, column) / units, series.grid), unit)
            for key, column, units, unit in QDISC
        }
        for key, column, unit in QDISC_COUNTERS:
            counted = _counted(t_ns, _floats(rows, column), _interval_ns(queue), np.append(0, series.grid))
            told[key] = series.add(f"{name}::{key}", np.diff(counted), unit)
        for key, column in (("sent_bytes", "sent_bytes"), ("sent_pkts", "sent_pkts")):
            told[key] = _held(t_ns, _floats(rows, column), series.grid).tolist()
        series.measured(name, told)
    return hops


def _metadata(
    meta: Mapping[str, Any], about: Mapping[str, Any], rep: int, begun: datetime, step_ns: int
) -> dict[str, Any]:
    axes = "".join(f", {key} {value}" for key, value in about["axes"])
    time = begun.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    how = {"sim": "Simulated", "hosts": "Run between two hosts"}.get(meta["engine"], "Run in a lab")
    return {
        "NAME": "tcp_nup",
        "TITLE": f"{meta['title']}{axes}, repetition {rep}",
        "NOTE": f"{how} by tcpknee {meta['engine_version']}, "
        f"cell {about['index']}, repetition {rep}, seed {manifest.seed_of(meta, about)}",
        "TIME": time,
        "T0": time,
        "HOST": "receiver",
        "HOSTS": ["receiver"],
        "LOCAL_HOST": "sender",
        "LENGTH": about["duration_ns"] / 1e9,
        "TOTAL_LENGTH": about["duration_ns"] / 1e9,
        "STEP_SIZE": step_ns / 1e9,
        "IP_VERSION": 4,
        "FLENT_VERSION": None,
        "KERNEL_RELEASE": _release(meta, about),
        "BATCH_NAME": None,
        "BATCH_TIME": None,
        "BATCH_UUID": meta["scenario_sha256"],
        "FAILED_RUNNERS": 0,
    }


def _release(meta: Mapping[str, Any], about: Mapping[str, Any]) -> str | None:
    """Of the kernel that carried a cell's flows, of hosts of both; None: it was simulated."""
    if meta["engine"] == "sim":
        return None
    guests = {guest["name"]: str(guest["release"]) for guest in meta.get("guests", ())}
    return guests.get(about.get("kernel")) or manifest.kernel_of(meta).removeprefix("Linux ")


def _queues(about: Mapping[str, Any], hops: int) -> list[str]:
    """The queue of each hop, as `describe` has it: `path.queue`, or `hop.0.queue` and so on."""
    told = [value for key, value, _ in about["describe"] if key.endswith(".queue")]
    return (told + ["queue"] * hops)[:hops]


def _step_ns(step: str, queue: pa.Table, duration_ns: int) -> int:
    from tcpknee import _core

    step_ns, interval_ns = _core.duration_ns("step", step), _interval_ns(queue)
    if not interval_ns <= step_ns <= duration_ns:
        raise UsageError(
            f'step: got "{step}"; expected from {interval_ns / 1e6:g}ms, the interval of the samples, to '
            f"{duration_ns / 1e6:g}ms, the length of the run."
        )
    return step_ns


def _interval_ns(queue: pa.Table) -> int:
    """Between two samples; the queue has one of each, and flows only where something moved."""
    t_ns = np.unique(queue["t_ns"].to_numpy())
    return int(np.median(np.diff(np.append(0, t_ns))))


def _counted(t_ns: Floats, counter: Floats, interval_ns: int, at_ns: Indices) -> Floats:
    """A counter at those times, between rows spread evenly; where rows are missing nothing moved until the last
    interval before the next."""
    idle = np.flatnonzero(np.diff(t_ns) > 1.5 * interval_ns)
    t_ns = np.insert(t_ns, idle + 1, t_ns[idle + 1] - interval_ns)
    return np.interp(at_ns, t_ns, np.insert(counter, idle + 1, counter[idle]))


def _held(t_ns: Floats, values: Floats, at_ns: Indices) -> Floats:
    """The value of the last row at each time, NaN before the first."""
    last = np.searchsorted(t_ns, at_ns, side="right") - 1
    return np.where(last >= 0, values[np.maximum(last, 0)], np.nan) if len(t_ns) else np.full(len(at_ns), np.nan)


def _floats(table: pa.Table, name: str) -> Floats:
    """A column; null is NaN."""
    return np.array(table[name].to_numpy(zero_copy_only=False), dtype=np.float64)

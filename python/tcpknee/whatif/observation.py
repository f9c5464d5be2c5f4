"""Connections of recordings and runs, by the path that they share."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tcpknee import algorithms
from tcpknee.datasets.dataset import Dataset
from tcpknee.errors import MissingColumn, RunFolderError, UsageError

from .losses import Losses
from .series import Series

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

LEAST_SAMPLES = 8
"""Samples below which a connection says nothing of its path."""
LEAST_SEGMENTS = 20.0
"""Segments below which it never left the initial window."""
MOST_SEGMENTS = 500_000
"""Of a path, which all its connections sent together: its first ones tell what the rest would, and each is simulated
some fifty times."""
MOST_COMPARED = 10
"""Connections of a path that a simulation is compared by: more tell the same again, and each may not get through."""
_LEAST_INTERVALS = 24
"""Times between samples that are kept of a path whatever it sent."""
MOST_HOURS = 20
"""Of a path: a scenario lasts a day at most, and simulates a lead besides."""
_MOST_US = MOST_HOURS * 3.6e9

COUNTERS = ("bytes_acked", "delivered", "data_segs_out", "total_retrans", "busy_us")
GAUGES = ("srtt_us", "rttvar_us", "min_rtt_us", "snd_cwnd")
_FRESH_INTERVALS = 2.0
"""In times between samples: a connection that was busy for less than this and a round trip before its first sample
counts as seen from its begin. Its counters say what happened until then, and before its first ACK there is nothing to
sample."""

Left = Literal["short", "impossible"]
"""Why a connection is left out."""
_MOST_COUNTED = 2.0**53
"""Of bytes and us: beyond, a number of 64 bits is no counter that began at 0."""
_MOST_GAUGED = 2.0**32
"""What the kernel's gauges hold."""
_MOST_RTT_US = 2.0**29
"""The kernel keeps eight times the smoothed RTT in 32 bits."""
_MOST_SEGMENT_BYTES = 65_535.0
_MOST_DELIVERED = 4.0
"""Segments for one that was sent: a network may duplicate some."""

_NAMES = ("boot_id", "remote_addr", "algorithm")
_NUMBERS = ("cookie", "t_mono_ns", "final", "snd_mss_bytes", "rwnd_limited_us", "delivery_rate_app_limited")
_OF_SOCKETS = """
select concat_ws('/', boot_id, cookie) as key, concat_ws(' ', boot_id, {netns}) as boot, remote_addr, algorithm,
    t_mono_ns / 1e3 as t_us, final, coalesce(snd_mss_bytes, 1448) as mss_bytes,
    coalesce(rwnd_limited_us, 0) as rwnd_limited_us,
    coalesce(delivery_rate_app_limited, false) as app_limited, {columns}
from sockets where algorithm is not null and data_segs_out > 0 and t_mono_ns is not null
order by key, t_us
"""
_OF_RUNS = """
select concat_ws('/', cell, rep, flow) as key, '' as boot, concat_ws('/', cell, rep) as remote_addr, f.algorithm,
    t_ns / 1e3 as t_us, f.end_ns is not null as final, 1448 as mss_bytes,
    coalesce(rwnd_limited_us, 0) as rwnd_limited_us, delivery_rate_app_limited as app_limited, {columns}
from samples join (select cell, rep, flow, algorithm, end_ns from flows) f using (cell, rep, flow)
where data_segs_out > 0
order by key, t_us
"""


@dataclass(frozen=True)
class Observed:
    """A path as its recorded connections met it."""

    key: str
    connections: tuple[Series, ...]
    interval_us: float
    """Between samples of a connection, the median."""

    @property
    def horizon_us(self) -> float:
        """From the first connection's begin to the last sample."""
        return max(float(series.t_us[-1]) for series in self.connections)

    @cached_property
    def losses(self) -> Losses:
        """Where its connections retransmitted."""
        return Losses(self.connections)

    @cached_property
    def telling(self) -> frozenset[int]:
        """The places of the connections that simulations are compared by: those that sent most. The others are load.

        A transfer of which only the end was seen may be over before, in a simulation, and is compared only if all are
        such."""
        ends = [series.only_its_end for series in self.connections]
        places = [place for place, end in enumerate(ends) if not end or all(ends)]
        return frozenset(sorted(places, key=lambda place: -self.connections[place].segments)[:MOST_COMPARED])

    def beginning(self, segments: float) -> Observed:
        """What was recorded until the connections had sent so many segments together, but some samples at least; of
        connections that say something of the path until then."""
        moments = np.unique(np.concatenate([series.t_us for series in self.connections]))
        sent = np.zeros(len(moments))
        for series in self.connections:
            sent += np.interp(moments, series.t_us, series.data_segs_out - series.data_segs_out[0])
        enough = moments[min(int(np.searchsorted(sent, segments)), len(moments) - 1)]
        end_us = max(float(enough), float(moments[0]) + _LEAST_INTERVALS * self.interval_us)
        end_us = min(end_us, float(moments[0]) + _MOST_US)
        if end_us >= self.horizon_us:
            return self
        cut = tuple(part for series in self.connections if says_something(part := series.until(end_us)))
        return replace(self, connections=cut) if cut else self


@dataclass(frozen=True)
class Recording:
    """What DATA holds."""

    paths: tuple[Observed, ...]
    connections: int
    """All that were recorded."""
    short: int
    """Of these: left out, because they had too few samples or segments to say anything of their path."""
    impossible: int = 0
    """Of these: left out, because no connection can have such samples."""
    late: int = 0
    """Of these: left out, because their path had carried `MOST_SEGMENTS` before, or `MOST_HOURS` had passed."""
    cut: int = 0
    """Of these: with their begin alone, for the same reason."""

    def chosen(self, count: int, seed: int) -> Recording:
        """At most that many paths, drawn at random."""
        if count >= len(self.paths):
            return self
        places = np.sort(np.random.default_rng(seed).choice(len(self.paths), count, replace=False))
        return replace(self, paths=tuple(self.paths[place] for place in places))


def read(folders: Sequence[Path]) -> Recording:
    """The connections of all folders. Raises RunFolderError, UsageError (no connection that says anything)."""
    paths: list[Observed] = []
    seen = impossible = 0
    for place, folder in enumerate(folders):
        dataset = Dataset(folder)
        table = "sockets" if "sockets" in dataset.tables else "samples"
        if table not in dataset.tables:
            raise UsageError(
                f"{folder}: got the tables {', '.join(dataset.tables)}; expected sockets, of a recording, or samples, "
                "of a run. A summary of connections without their samples says too little of the path."
            )
        columns = ", ".join(f"coalesce({name}, 0) as {name}" for name in (*COUNTERS, *GAUGES))
        if table == "sockets":
            netns = "netns" if "netns" in _check_columns(dataset) else "null"
            query = _OF_SOCKETS.format(netns=netns, columns=columns)
        else:
            query = _OF_RUNS.format(columns=columns)
        rows = dataset.sql(query)
        found = _series({name: rows[name].to_numpy() for name in rows.column_names})
        seen += len(found)
        impossible += sum(series == "impossible" for _, series in found)
        paths += _by_path(found, str(place) if len(folders) > 1 else "")
    begun = tuple(one for path in paths if (one := path.beginning(MOST_SEGMENTS)).horizon_us <= _MOST_US)
    if not begun:
        raise UsageError(
            f"{', '.join(map(str, folders))}: got {seen} connections, none with {LEAST_SAMPLES} samples within "
            f"{MOST_HOURS} hours and more than {LEAST_SEGMENTS:.0f} segments{_and_impossible(impossible)}; expected "
            "some that their path could hold back. Record for longer, or with a shorter --every."
        )
    left = sum(len(path.connections) for path in begun)
    whole = {(path.key, series.key): len(series.t_us) for path in paths for series in path.connections}
    cut = sum(len(series.t_us) < whole[path.key, series.key] for path in begun for series in path.connections)
    return Recording(begun, seen, seen - impossible - len(whole), impossible, len(whole) - left, cut)


def _and_impossible(count: int) -> str:
    return f", and {count} whose counters run backwards or are no such numbers" if count else ""


def _check_columns(dataset: Dataset) -> Sequence[str]:
    """Those of `sockets`. Raises MissingColumn, RunFolderError."""
    import pyarrow.types as kinds

    held = dataset.sql("select * from sockets limit 0").schema
    for name in (*_NAMES, *_NUMBERS, *COUNTERS, *GAUGES):
        if name not in held.names:
            raise MissingColumn(f"{dataset.path}: sockets: got no column {name}; expected those of `knee record`.")
        kind = held.field(name).type
        is_number = kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)
        if name not in _NAMES and not is_number:
            raise RunFolderError(f"{dataset.path}: sockets: got {name} as {kind}; expected numbers.")
    names: list[str] = held.names
    return names


def prefix(address: str) -> str:
    """What shares a bottleneck: /24 of IPv4, /48 of IPv6; an anonymised or other name is its own."""
    try:
        known = ip_address(address)
    except ValueError:
        return address
    # Of a socket that takes both families, IPv4 on the wire.
    known = getattr(known, "ipv4_mapped", None) or known
    return str(ip_network(f"{known}/{24 if known.version == 4 else 48}", strict=False))


Shared = tuple[str, str]
"""What connections of a path have in common: the boot of their host, and its network namespace, whose clock is one;
and the far end's prefix."""


def _series(rows: dict[str, NDArray[Any]]) -> list[tuple[Shared, Series | Left]]:
    """Every connection with what it shares, or why it is left out."""
    keys = rows["key"]
    if not len(keys):
        return []
    firsts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    found: list[tuple[Shared, Series | Left]] = []
    for begin, end in zip(firsts, np.r_[firsts[1:], len(keys)], strict=True):
        part = {name: values[begin:end] for name, values in rows.items()}
        found.append(((str(part["boot"][-1]), prefix(str(part["remote_addr"][-1]))), _one(part)))
    return found


def _one(rows: dict[str, NDArray[Any]]) -> Series | Left:
    t_us = rows["t_us"].astype(np.float64)
    arrays = {name: rows[name].astype(np.float64) for name in (*COUNTERS, *GAUGES)}
    if _are_impossible(t_us, arrays, rows["mss_bytes"].astype(np.float64)):
        return "impossible"
    if not _enough(t_us, arrays["data_segs_out"], arrays["srtt_us"]):
        return "short"
    arrays["app_limited"] = rows["app_limited"].astype(np.float64)
    first_ack_us = max(arrays["min_rtt_us"][0], arrays["srtt_us"][0])
    fresh = bool(arrays["busy_us"][0] <= _FRESH_INTERVALS * np.median(np.diff(t_us)) + first_ack_us)
    if fresh:
        # It began as long ago as it has been busy.
        t_us, arrays = from_begin(t_us[0] - max(arrays["busy_us"][0], 1.0), t_us, arrays)
    busy = float(arrays["busy_us"][-1] - arrays["busy_us"][0])
    limited = float(rows["rwnd_limited_us"][-1] - rows["rwnd_limited_us"][0])
    algorithm = str(rows["algorithm"][-1]).removeprefix("knee_")
    return Series(
        key=str(rows["key"][0]),
        algorithm=algorithms.ours(algorithm),
        t_us=t_us,
        mss_bytes=float(rows["mss_bytes"][-1]),
        fresh=fresh,
        final=bool(rows["final"][-1]),
        rwnd_limited_pct=100 * limited / busy if busy > 0 else 0.0,
        **arrays,
    )


def _are_impossible(t_us: Numbers, arrays: dict[str, Numbers], mss_bytes: Numbers) -> bool:
    """Can no connection have such samples? Sockets that are taken for one, counters in another unit, a damaged file."""
    every = np.array([t_us, mss_bytes, *arrays.values()])
    if not np.isfinite(every).all() or (every < 0).any() or (len(t_us) > 1 and t_us[0] == t_us[-1]):
        return True
    counters = np.array([arrays[name] for name in COUNTERS])
    gauges = np.array([arrays[name] for name in GAUGES])
    sent = arrays["data_segs_out"]
    return bool(
        (np.diff(counters) < 0).any()
        or (counters > _MOST_COUNTED).any()
        or (gauges > _MOST_GAUGED).any()
        or (arrays["srtt_us"] > _MOST_RTT_US).any()
        or (mss_bytes > _MOST_SEGMENT_BYTES).any()
        or (arrays["delivered"] > _MOST_DELIVERED * (sent + 1)).any()
        or (arrays["bytes_acked"] > _MOST_SEGMENT_BYTES * (sent + 1)).any()
    )


def says_something(series: Series) -> bool:
    """Does what is recorded of a connection tell anything of its path?"""
    return _enough(series.t_us, series.data_segs_out, series.srtt_us)


def _enough(t_us: Numbers, segments: Numbers, srtt_us: Numbers) -> bool:
    enough = len(t_us) >= LEAST_SAMPLES and segments[-1] - segments[0] >= LEAST_SEGMENTS
    return bool(enough and (srtt_us > 0).any())


def from_begin(begin_us: float, t_us: Numbers, arrays: Mapping[str, Numbers]) -> tuple[Numbers, dict[str, Numbers]]:
    """The same with a sample at the connection's begin, when nothing had been sent or measured."""
    nothing = (*COUNTERS, "srtt_us", "app_limited")
    return np.concatenate(([begin_us], t_us)), {
        name: np.concatenate(([0.0] if name in nothing else values[:1], values)) for name, values in arrays.items()
    }


def _by_path(found: list[tuple[Shared, Series | Left]], folder: str) -> list[Observed]:
    """A path is called by its prefix, and by the boot too where others reach the same."""
    shared: dict[Shared, list[Series]] = defaultdict(list)
    for path, series in found:
        if isinstance(series, Series):
            shared[path].append(series)
    boots = Counter(far for _, far in shared)
    paths = []
    for (boot, far), connections in shared.items():
        name = f"{far} of {boot}" if boots[far] > 1 else far
        key = f"{folder}:{name}" if folder else name
        begin = min(float(series.t_us[0]) for series in connections)
        moved = tuple(replace(series, t_us=series.t_us - begin) for series in connections)
        gaps = np.concatenate([np.diff(series.t_us)[1:] for series in moved])
        paths.append(Observed(key, moved, float(np.median(gaps))))
    return paths

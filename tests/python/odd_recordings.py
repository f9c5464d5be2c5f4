"""Recordings as no kernel should write them, drawn from a seed: for tests that nothing breaks on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tcpknee import _core

Columns = dict[str, list[Any]]
Oddity = Callable[[Columns, np.random.Generator], None]

_TYPES = {"text": pa.string(), "bool": pa.bool_(), "int64": pa.int64(), "int32": pa.int32(), "uint64": pa.uint64()}
_TYPES |= {"float64": pa.float64()}
TYPES = {column["name"]: _TYPES[column["type"]] for column in _core.tables("recording")["sockets"]}
COUNTERS = ("bytes_acked", "bytes_sent", "delivered", "data_segs_out", "total_retrans", "busy_us", "rwnd_limited_us")
GAUGES = ("srtt_us", "rttvar_us", "min_rtt_us", "snd_cwnd", "snd_mss_bytes")
NUMBERS = (*COUNTERS, *GAUGES, "t_mono_ns", "t_unix_ns")
TEXTS = ("host", "boot_id", "remote_addr", "local_addr", "algorithm", "state")
TEN_DAYS_US = 10 * 86_400 * 10**6
HOSTILE = (
    "",
    " ",
    "x" * 5000,
    "'; drop table sockets; --",
    "\x1b[2J\x07\x00\r\n",
    "</script><script>alert(1)</script>",
    "\u202egnp.exe",
    "nan",
    "../../etc/passwd",
    "{columns}%s%n",
    "fe80::1%eth0",
    "::ffff:192.0.2.300",
    "999.1.1.1",
)


def sane(rng: np.random.Generator) -> Columns:
    """A few connections of a few Mbit/s each, in the order of time."""
    columns: Columns = {name: [] for name in TYPES}
    samples, every_ms = int(rng.integers(9, 16)), float(rng.choice([10, 100]))
    for number in range(int(rng.integers(1, 5))):
        address = f"192.0.{rng.integers(1, 3)}.{number + 1}"
        algorithm = str(rng.choice(["cubic", "bbr", "reno"]))
        segments = np.cumsum(rng.integers(3, 20, samples))
        lost = np.cumsum(rng.random(samples) < 0.1)
        for place in range(samples):
            busy_us = int((place + 1) * every_ms * 1e3)
            row = {
                "t_unix_ns": 1_700_000_000 * 10**9 + busy_us * 1000,
                "t_mono_ns": 10**12 + busy_us * 1000,
                "sample": place,
                "host": "edge",
                "boot_id": "boot",
                "netns": "",
                "final": place == samples - 1 and number % 2 == 1,
                "state": "established",
                "local_addr": "10.0.0.1",
                "local_port": 443,
                "remote_addr": address,
                "remote_port": 50_000 + number,
                "cookie": number + 1,
                "algorithm": algorithm,
                "snd_cwnd": int(rng.integers(2, 60)),
                "total_retrans": int(lost[place]),
                "data_segs_out": int(segments[place]),
                "srtt_us": int(rng.integers(20_000, 60_000)),
                "rttvar_us": int(rng.integers(100, 10_000)),
                "min_rtt_us": 20_000,
                "delivered": int(segments[place]),
                "delivery_rate_app_limited": False,
                "bytes_sent": int(segments[place]) * 1448,
                "bytes_acked": int(segments[place]) * 1448,
                "busy_us": busy_us,
                "rwnd_limited_us": 0,
                "snd_mss_bytes": 1448,
            }
            for name, values in columns.items():
                values.append(row.get(name))
    return columns


def _some(names: tuple[str, ...], rng: np.random.Generator) -> list[str]:
    return [str(name) for name in rng.choice(names, int(rng.integers(1, len(names) + 1)), replace=False)]


def _places(columns: Columns, rng: np.random.Generator) -> list[int]:
    """All rows, or some."""
    share = rng.choice([0.2, 1.0])
    return [place for place in range(len(columns["cookie"])) if rng.random() < share]


def _set(columns: Columns, names: list[str], places: list[int], value: Callable[[Any], Any]) -> None:
    for name in names:
        for place in places:
            columns[name][place] = value(columns[name][place])


def keep(columns: Columns, kept: list[int]) -> None:
    """Leaves out the other rows."""
    for name, values in columns.items():
        columns[name] = [values[place] for place in kept]


def one_sample(columns: Columns, rng: np.random.Generator) -> None:
    keep(columns, [place for place, sample in enumerate(columns["sample"]) if sample == 0])


def no_row(columns: Columns, rng: np.random.Generator) -> None:
    keep(columns, [])


def nothing_happened(columns: Columns, rng: np.random.Generator) -> None:
    _set(columns, _some((*COUNTERS, *GAUGES), rng), _places(columns, rng), lambda _: 0)


def backwards(columns: Columns, rng: np.random.Generator) -> None:
    for name in _some((*COUNTERS, "t_mono_ns"), rng):
        columns[name].reverse()


def negative(columns: Columns, rng: np.random.Generator) -> None:
    _set(columns, _some(NUMBERS, rng), _places(columns, rng), lambda value: -value)


def ten_days(columns: Columns, rng: np.random.Generator) -> None:
    _set(columns, _some(("srtt_us", "min_rtt_us", "rttvar_us", "busy_us"), rng), _places(columns, rng), _ten_days)


def _ten_days(_: Any) -> int:
    return TEN_DAYS_US


def one_byte(columns: Columns, rng: np.random.Generator) -> None:
    _set(columns, ["bytes_acked", "bytes_sent"], _places(columns, rng), lambda _: 1)
    _set(columns, _some(("delivered", "data_segs_out", "snd_mss_bytes"), rng), _places(columns, rng), lambda _: 1)


def null(columns: Columns, rng: np.random.Generator) -> None:
    _set(columns, _some((*NUMBERS, *TEXTS, "cookie", "final"), rng)[:4], _places(columns, rng), lambda _: None)


def no_number(columns: Columns, rng: np.random.Generator) -> None:
    value = float(rng.choice([np.nan, np.inf, -np.inf, 1e300, 1e-300]))
    _set(columns, _some(NUMBERS, rng)[:4], _places(columns, rng), lambda _: value)


def one_cookie(columns: Columns, rng: np.random.Generator) -> None:
    value = int(rng.choice([0, 1]))
    _set(columns, ["cookie"], [*range(len(columns["cookie"]))], lambda _: value)


def largest(columns: Columns, rng: np.random.Generator) -> None:
    value = int(rng.choice([2**63 - 1, -(2**63), 2**62, 2**53 + 1]))
    _set(columns, _some(NUMBERS, rng)[:4], _places(columns, rng), lambda _: value)


def other_unit(columns: Columns, rng: np.random.Generator) -> None:
    factor = float(rng.choice([1e-9, 1e-6, 1e-3, 1e3, 1e6]))
    _set(columns, _some(NUMBERS, rng)[:3], _places(columns, rng), lambda value: int(value * factor))


def hostile_names(columns: Columns, rng: np.random.Generator) -> None:
    name = str(rng.choice(HOSTILE))
    _set(columns, _some(TEXTS, rng)[:2], _places(columns, rng), lambda _: name)


def hostile_addresses(columns: Columns, rng: np.random.Generator) -> None:
    name = str(rng.choice(HOSTILE))
    _set(columns, ["remote_addr", "host"], _places(columns, rng), lambda _: name)


def no_time(columns: Columns, rng: np.random.Generator) -> None:
    _set(columns, _some(("t_mono_ns", "t_unix_ns"), rng), _places(columns, rng), lambda _: 5 * 10**9)


def shuffled(columns: Columns, rng: np.random.Generator) -> None:
    keep(columns, [int(place) for place in rng.permutation(len(columns["cookie"]))])


def twice(columns: Columns, rng: np.random.Generator) -> None:
    keep(columns, [*range(len(columns["cookie"]))] * 2)


def missing(columns: Columns, rng: np.random.Generator) -> None:
    for name in _some((*NUMBERS, *TEXTS, "cookie", "final"), rng)[:3]:
        del columns[name]


def words(columns: Columns, rng: np.random.Generator) -> None:
    """Numbers as text, which are no numbers."""
    text = str(rng.choice(["12", "a few", "1e3", ""]))
    _set(columns, _some(NUMBERS, rng)[:2], [*range(len(columns["cookie"]))], lambda _: text)


def ages(columns: Columns, rng: np.random.Generator) -> None:
    """Samples that are days apart."""
    columns["t_mono_ns"] = [value + 86_400 * 10**9 * sample for value, sample in _with_samples(columns)]


def _with_samples(columns: Columns) -> list[tuple[int, int]]:
    return list(zip(columns["t_mono_ns"], columns["sample"], strict=True))


ODDITIES: tuple[Oddity, ...] = (
    one_sample,
    no_row,
    nothing_happened,
    backwards,
    negative,
    ten_days,
    one_byte,
    null,
    no_number,
    one_cookie,
    largest,
    other_unit,
    hostile_names,
    hostile_addresses,
    no_time,
    shuffled,
    twice,
    ages,
    missing,
    words,
)
"""Those that later ones cannot be put upon are the last."""


def write(folder: Path, seed: int) -> list[str]:
    """A recording with one to three oddities, each of which comes first in turn. Their names."""
    rng = generator(seed)
    columns = sane(rng)
    chosen = {seed % len(ODDITIES), *rng.choice(len(ODDITIES), int(rng.integers(0, 3))).tolist()}
    names = []
    for number in sorted(chosen):
        try:
            ODDITIES[number](columns, rng)
        except (TypeError, OverflowError, ValueError, KeyError):
            continue
        names.append(ODDITIES[number].__name__)
    folder.mkdir(parents=True)
    pq.write_table(table(columns), folder / FILE)
    return names


FILE = "sockets-000001.parquet"


def generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def table(columns: Columns) -> pa.Table:
    return pa.table({name: _array(name, values) for name, values in columns.items()})


def _array(name: str, values: list[Any]) -> pa.Array:
    try:
        return pa.array(values, TYPES[name])
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        try:
            return pa.array([None if value is None else float(value) for value in values], pa.float64())
        except (ValueError, OverflowError):
            return pa.array([None if value is None else str(value) for value in values], pa.string())

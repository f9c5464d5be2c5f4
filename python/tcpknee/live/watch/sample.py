"""Samples of every socket, and what changed between two of them. A column at a time: there may be 100,000 rows."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tcpknee.evidence.metrics import LIMITS
from tcpknee.live.record import sockets

from .filters import Wanted

if TYPE_CHECKING:
    import pyarrow

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

COUNTERS = (
    "bytes_sent",
    "bytes_acked",
    "bytes_received",
    "total_retrans",
    "data_segs_out",
    "busy_us",
    "rwnd_limited_us",
    "sndbuf_limited_us",
)
"""Columns that only grow."""

WRAPPING = {"total_retrans", "data_segs_out"}
"""Those that have 32 bits in the kernel."""

GAUGES = (
    "local_port",
    "remote_port",
    "snd_cwnd",
    "inflight",
    "ca_state",
    "srtt_us",
    "min_rtt_us",
    "pacing_rate_bits_per_sec",
    "delivery_rate_bits_per_sec",
    "notsent_bytes",
)

TEXTS = ("state", "algorithm", "local_addr", "remote_addr")

LIMITED = ("", "idle", *LIMITS)
"""What may hold a connection back; the first: not known."""

_CA_RECOVERY = 3

KEPT = ("snd_cwnd", "srtt_us", "acked_bits_per_sec")
"""Columns with a history."""
KEPT_BYTES = 32 << 20
KEPT_SAMPLES = 600


@dataclass(frozen=True)
class Names:
    """A column of few different texts: the number of each row's text, -1 where there is none."""

    codes: NDArray[np.int32]
    texts: list[str]

    def __getitem__(self, row: int) -> str | None:
        code = self.codes[row]
        return self.texts[code] if code >= 0 else None

    def counts(self) -> dict[str, int]:
        """Rows of each text, most first."""
        counted = np.bincount(self.codes[self.codes >= 0], minlength=len(self.texts))
        return {self.texts[code]: int(counted[code]) for code in np.argsort(-counted, kind="stable") if counted[code]}


@dataclass(frozen=True)
class Sample:
    """All sockets at one moment, and how they changed since the sample before.

    `values` has COUNTERS, GAUGES, and of the interval `total_retrans_delta`, `data_segs_out_delta`,
    `acked_bits_per_sec`, `sent_bits_per_sec`, `received_bits_per_sec`, `retransmit_pct`; NaN: not told, or not known
    yet because the socket was not in the sample before.
    """

    ends: pyarrow.Table
    """`local_addr`, `remote_addr`, and `remote_port`, `cookie` to sort by."""
    t_ns: Whole
    cookies: NDArray[np.uint64]
    order: NDArray[np.intp]
    """Of the cookies, so that they can be searched."""
    values: dict[str, Floats]
    states: Names
    algorithms: Names
    limited: NDArray[np.int8]
    """Numbers of LIMITED."""
    elapsed_s: float
    """Since the sample before; NaN: there was none."""
    cost_s: float
    """Processor time of taking the sample."""

    def __len__(self) -> int:
        return len(self.cookies)

    def find(self, cookie: int) -> int | None:
        """The row of this socket."""
        return _find(self.cookies[self.order], cookie, self.order)

    def socket(self, row: int) -> Socket:
        """What finds the socket of that row again."""
        local_port, remote_port = (int(self.values[f"{end}_port"][row]) for end in ("local", "remote"))
        return Socket(int(self.cookies[row]), local_port, remote_port, self.ends["remote_addr"][row].as_py() or "")


def take(wanted: Wanted, before: Sample | None) -> Sample:
    """The sockets as they are now. Raises UsageError, EngineError as `tcpknee.sockets` does."""
    began = time.process_time()
    # A screen is left open for days: columns that it does not show would be the most of what it holds.
    table = sockets(**wanted, columns=("t_mono_ns", "cookie", *TEXTS, *COUNTERS, *GAUGES))
    t_ns = plain(table["t_mono_ns"], np.int64)
    cookies = plain(table["cookie"], np.uint64)
    order = np.argsort(cookies, kind="stable")
    values = {name: plain(table[name], np.float64, np.nan) for name in (*COUNTERS, *GAUGES)}
    states, algorithms = _names(table, "state"), _names(table, "algorithm")
    ends = table.select(["local_addr", "remote_addr", "remote_port", "cookie"])
    del table  # before as much again is made of it
    rows, found = _matched(cookies, before)
    elapsed_s = np.full(len(cookies), np.nan)
    if before is not None:
        elapsed_s[found] = (t_ns[found] - before.t_ns[rows[found]]) / 1e9
    deltas = {}
    for name in COUNTERS:
        delta = np.full(len(cookies), np.nan)
        if before is not None:
            delta[found] = values[name][found] - before.values[name][rows[found]]
        if name in WRAPPING:
            delta[delta < 0] += 1 << 32
        deltas[f"{name}_delta"] = delta
    with np.errstate(divide="ignore", invalid="ignore"):
        for rate, counter in (("acked", "bytes_acked"), ("sent", "bytes_sent"), ("received", "bytes_received")):
            values[f"{rate}_bits_per_sec"] = 8 * deltas[f"{counter}_delta"] / elapsed_s
        pct = 100 * deltas["total_retrans_delta"] / deltas["data_segs_out_delta"]
    values["retransmit_pct"] = np.where(deltas["data_segs_out_delta"] > 0, pct, np.nan)
    values |= {name: deltas[name] for name in ("total_retrans_delta", "data_segs_out_delta")}
    between = np.nan
    if before is not None and len(before) and len(cookies):
        between = float(t_ns.max() - before.t_ns.max()) / 1e9
    return Sample(
        ends=ends,
        t_ns=t_ns,
        cookies=cookies,
        order=order,
        values=values,
        states=states,
        algorithms=algorithms,
        limited=_limited({**values, **deltas}, elapsed_s),
        elapsed_s=between,
        cost_s=time.process_time() - began,
    )


@dataclass(frozen=True)
class Socket:
    """What finds one socket."""

    cookie: int
    local_port: int
    remote_port: int
    remote_addr: str


def whole(wanted: Wanted, socket: Socket) -> pyarrow.Table:
    """Every column of this socket as it is now; no row: it has gone. Raises as `take` does."""
    # Of the two ports that of the client, which few other sockets have; a filter for IPv4 holds for mapped addresses.
    asked = {key: wanted[key] for key in ("states", "netns") if wanted.get(key)}
    address = socket.remote_addr.removeprefix("::ffff:")
    if address not in {"", "*"}:
        asked["addresses"] = [address]
    table = sockets(ports=[max(socket.local_port, socket.remote_port)], **asked)
    rows = np.flatnonzero(plain(table["cookie"], np.uint64) == np.uint64(socket.cookie))
    return table.slice(int(rows[0]), 1) if len(rows) else table.slice(0, 0)


Number = TypeVar("Number", bound=np.generic)


def plain(column: pyarrow.ChunkedArray, kind: type[Number], null: float = 0) -> NDArray[Number]:
    """A column of numbers as NumPy has it.

    Not by `to_numpy`, which imports pandas where there is one: half a second and 50 MB, and Ctrl-C meanwhile is lost.
    """
    whole = np.empty(len(column), kind)
    at = 0
    for chunk in column.chunks:
        valid, numbers = chunk.buffers()
        these = slice(chunk.offset, chunk.offset + len(chunk))
        part = whole[at : at + len(chunk)]
        part[:] = np.frombuffer(numbers, str(chunk.type))[these]
        if chunk.null_count:
            part[np.unpackbits(np.frombuffer(valid, np.uint8), bitorder="little")[these] == 0] = null
        at += len(chunk)
    return whole


def _names(table: pyarrow.Table, name: str) -> Names:
    import pyarrow

    column = table[name].unify_dictionaries()
    if not column.num_chunks or not len(column):
        return Names(np.empty(0, np.int32), [])
    indices = pyarrow.chunked_array([chunk.indices for chunk in column.chunks])
    return Names(plain(indices, np.int32, -1), column.chunk(0).dictionary.to_pylist())


def _matched(cookies: NDArray[np.uint64], before: Sample | None) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The row of each cookie in the sample before, and whether there is one."""
    if before is None or not len(before):
        return np.zeros(len(cookies), np.intp), np.zeros(len(cookies), np.bool_)
    if np.array_equal(cookies, before.cookies):
        return np.arange(len(cookies)), np.ones(len(cookies), np.bool_)
    known = before.cookies[before.order]
    at = np.minimum(np.searchsorted(known, cookies), len(known) - 1)
    return before.order[at], known[at] == cookies


def _limited(values: dict[str, Floats], elapsed_s: Floats) -> NDArray[np.int8]:
    """What held each connection back for the longest part of the interval.

    The kernel times how long data was outstanding and how long the receiver's window or the send buffer was in the
    way. The rest of the busy time goes by the moment of the sample: to the window where it is full, to pacing where
    data waits all the same, else to the application. TSO may leave a third of the window unused on purpose.
    Source: tcp_info; sysctl net.ipv4.tcp_tso_win_divisor, 3 by default.
    """
    elapsed_us = 1e6 * elapsed_s
    busy, rwnd, sndbuf = (values[f"{name}_us_delta"] for name in ("busy", "rwnd_limited", "sndbuf_limited"))
    idle = np.maximum(elapsed_us - busy, 0)
    rest = np.maximum(busy - rwnd - sndbuf, 0)
    known = np.isfinite(elapsed_us) & np.isfinite(rest)
    number = LIMITED.index
    full = (3 * values["inflight"] >= 2 * values["snd_cwnd"]) | (values["ca_state"] >= _CA_RECOVERY)
    waiting = np.where(values["notsent_bytes"] > 0, number("pacing"), number("app"))
    sent = (values["bytes_sent_delta"] > 0) | (busy > 0)
    kinds = np.stack(
        [
            np.where(full, number("cwnd"), waiting),
            np.full(len(busy), number("rwnd")),
            np.full(len(busy), number("sndbuf")),
            np.where(sent, number("app"), number("idle")),
        ]
    )
    longest = np.argmax(np.nan_to_num(np.stack([rest, rwnd, sndbuf, idle])), axis=0)
    chosen = np.take_along_axis(kinds, longest[None, :], axis=0)[0]
    return np.where(known, chosen, 0).astype(np.int8)


@dataclass(frozen=True)
class Group:
    """Sums and percentiles of several connections; NaN: nothing to tell it from."""

    name: str
    connections: int
    acked_bits_per_sec: float
    sent_bits_per_sec: float
    received_bits_per_sec: float
    retransmit_pct: float
    srtt_us_p50: float
    srtt_us_p95: float
    limited_by: dict[str, float]
    """Share of the connections for which it is known, largest first."""


def total(sample: Sample) -> Group:
    """All sockets of the sample."""
    return _group("all", sample, np.ones(len(sample), np.bool_))


def per_algorithm(sample: Sample) -> list[Group]:
    """A group per congestion control, that of most connections first."""
    names = sample.algorithms
    codes = {text: code for code, text in enumerate(names.texts)}
    return [_group(name, sample, names.codes == codes[name]) for name in names.counts()]


def _group(name: str, sample: Sample, rows: NDArray[np.bool_]) -> Group:
    def added(column: str) -> float:
        values = sample.values[column][rows]
        told = values[np.isfinite(values)]
        return float(told.sum()) if len(told) else np.nan

    srtt = sample.values["srtt_us"][rows]
    srtt = srtt[srtt > 0]
    p50, p95 = np.percentile(srtt, [50, 95]) if len(srtt) else (np.nan, np.nan)
    segments = added("data_segs_out_delta")
    counted = np.bincount(sample.limited[rows], minlength=len(LIMITED))[1:]
    shares = {LIMITED[1 + place]: counted[place] / counted.sum() for place in np.argsort(-counted) if counted[place]}
    return Group(
        name=name,
        connections=int(np.count_nonzero(rows)),
        acked_bits_per_sec=added("acked_bits_per_sec"),
        sent_bits_per_sec=added("sent_bits_per_sec"),
        received_bits_per_sec=added("received_bits_per_sec"),
        retransmit_pct=100 * added("total_retrans_delta") / segments if segments > 0 else np.nan,
        srtt_us_p50=float(p50),
        srtt_us_p95=float(p95),
        limited_by={limit: float(share) for limit, share in shares.items()},
    )


class History:
    """The last samples of every connection, as many as KEPT_BYTES hold."""

    def __init__(self) -> None:
        self._samples: deque[tuple[NDArray[np.uint64], NDArray[np.float32]]] = deque(maxlen=KEPT_SAMPLES)
        self._bytes = 0

    def add(self, sample: Sample) -> None:
        """Keeps it and drops the oldest that no longer fit; the newest always stays."""
        values = np.stack([sample.values[name][sample.order] for name in KEPT]).astype(np.float32)
        if len(self._samples) == KEPT_SAMPLES:
            self._drop()
        self._samples.append((sample.cookies[sample.order], values))
        self._bytes += 8 * len(sample) + values.nbytes
        while self._bytes > KEPT_BYTES and len(self._samples) > 1:
            self._drop()

    def _drop(self) -> None:
        cookies, values = self._samples.popleft()
        self._bytes -= cookies.nbytes + values.nbytes

    def of(self, cookie: int) -> dict[str, list[float]]:
        """Each of KEPT, oldest first; samples without the connection are left out."""
        found: list[Any] = []
        for cookies, values in self._samples:
            at = _find(cookies, cookie, None)
            if at is not None:
                found.append(values[:, at])
        return {name: [float(values[place]) for values in found] for place, name in enumerate(KEPT)}


def _find(cookies: NDArray[np.uint64], cookie: int, order: NDArray[np.intp] | None) -> int | None:
    at = int(np.searchsorted(cookies, np.uint64(cookie)))
    if at == len(cookies) or int(cookies[at]) != cookie:
        return None
    return at if order is None else int(order[at])

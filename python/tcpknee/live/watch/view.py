"""Numbers as cells of a terminal: columns of the table of connections, sums, and what fits into a width."""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tcpknee import human, say

from .sample import LIMITED, Group, Sample, plain

if TYPE_CHECKING:
    import pyarrow

NONE = "-"
SHORT_STATES = {
    "SYN-SENT": "SYN-S",
    "SYN-RECV": "SYN-R",
    "FIN-WAIT-1": "FINW1",
    "FIN-WAIT-2": "FINW2",
    "TIME-WAIT": "TIMEW",
    "UNCONN": "UNCON",
    "CLOSE-WAIT": "CLOSW",
    "LAST-ACK": "LACK",
    "LISTEN": "LISTN",
    "CLOSING": "CLOSG",
    "NEW-SYN-RECV": "NSYNR",
}


@dataclass(frozen=True)
class Column:
    """A column of the table; `kind` says how its cell is written."""

    name: str
    title: str
    width: int
    kind: str
    doc: str
    wide: int = 0
    """Its width where there is room."""


COLUMNS = (
    Column("peer", "peer", 21, "peer", "address and port of the far end", 47),
    Column("local_port", "port", 5, "whole", "port of this end"),
    Column("algorithm", "algo", 6, "name", "congestion control", 15),
    Column("state", "state", 5, "name", "as ss names it", 12),
    Column("srtt_us", "srtt ms", 7, "ms", "smoothed round-trip time"),
    Column("snd_cwnd", "cwnd", 5, "count", "congestion window, segments"),
    Column("acked_bits_per_sec", "rate bit/s", 10, "rate", "acknowledged by the far end in the interval"),
    Column("retransmit_pct", "retr %", 6, "pct", "segments sent again, of those sent in the interval"),
    Column("limited_by", "limit", 6, "limit", "what held it back for most of the interval"),
    Column("inflight", "inflight", 8, "count", "segments sent and not yet acknowledged or lost"),
    Column("min_rtt_us", "min_rtt ms", 10, "ms", "least round-trip time of late"),
    Column("pacing_rate_bits_per_sec", "pacing bit/s", 12, "rate", "rate at which the sender paces"),
    Column("received_bits_per_sec", "recv bit/s", 10, "rate", "received in the interval"),
    Column("bytes_sent", "sent B", 7, "bytes", "sent so far, with retransmissions"),
    Column("bytes_received", "recv B", 7, "bytes", "received so far"),
    Column("delivery_rate_bits_per_sec", "delivery bit/s", 14, "rate", "delivery rate as the kernel estimates it"),
    Column("notsent_bytes", "notsent B", 9, "bytes", "written by the application and not yet sent"),
)
"""In the order in which they are given room."""

BY_NAME = {column.name: column for column in COLUMNS}
NEEDED = (
    "peer",
    "srtt_us",
    "acked_bits_per_sec",
    "limited_by",
    "retransmit_pct",
    "snd_cwnd",
    "algorithm",
    "local_port",
)
"""Which of them stay where even 80 columns are not available."""


def fitting(width: int, peer_width: int) -> list[tuple[Column, int]]:
    """The columns that fit, each with the width it gets; a peer needs no more than `peer_width`."""
    chosen: list[Column] = []
    left = width + 1
    ranks = {name: rank for rank, name in enumerate(NEEDED)}
    ranked = sorted(COLUMNS[:9], key=lambda column: ranks.get(column.name, len(NEEDED))) if width < 79 else COLUMNS
    for column in ranked:
        if left < column.width + 1:
            break
        chosen.append(column)
        left -= column.width + 1
    widths = {column.name: column.width for column in chosen}
    for column in chosen:
        wide = min(column.wide, peer_width) if column.kind == "peer" else column.wide
        more = min(left, max(0, wide - column.width))
        widths[column.name] += more
        left -= more
    return [(column, widths[column.name]) for column in COLUMNS if column.name in widths]


def titles(layout: list[tuple[Column, int]]) -> list[str]:
    """The head of each column."""
    return [_aligned(column, column.title, width) for column, width in layout]


def cell(sample: Sample, row: int, column: Column, width: int) -> str:
    """One cell, exactly `width` wide."""
    return _aligned(column, _text(sample, row, column, width), width)


def _text(sample: Sample, row: int, column: Column, width: int) -> str:
    if column.kind == "peer":
        return peer(sample, row, width)
    if column.name == "state":
        state = sample.states[row] or NONE
        return state if len(state) <= width else SHORT_STATES.get(state, state)
    if column.name == "algorithm":
        return sample.algorithms[row] or NONE
    if column.kind == "limit":
        return LIMITED[sample.limited[row]] or NONE
    return number(column.kind, sample.values[column.name][row])


def peer(sample: Sample, row: int, width: int = 0) -> str:
    """The far end; a long address loses its middle, never its port."""
    return _end(sample, row, "remote", width)


def peer_width(sample: Sample) -> int:
    """What the longest address needs, with brackets and a port."""
    import pyarrow.compute

    return int(pyarrow.compute.max(pyarrow.compute.utf8_length(sample.ends["remote_addr"])).as_py() or 0) + 8


def local(sample: Sample, row: int) -> str:
    """This end."""
    return _end(sample, row, "local", 0)


def _end(sample: Sample, row: int, which: str, width: int) -> str:
    address = sample.ends[f"{which}_addr"][row].as_py() or "*"
    if address.startswith("::ffff:"):
        # A mapped address, of a socket that takes both families, is IPv4 on the wire.
        mapped = ipaddress.IPv6Address(address).ipv4_mapped
        address = str(mapped) if mapped else address
    shown = f"[{address}]" if ":" in address else address
    port = f":{int(sample.values[f'{which}_port'][row])}"
    room = width - len(port)
    if width and len(shown) > room:
        half = max(0, room - 1) // 2
        shown = f"{shown[: room - 1 - half]}…{shown[len(shown) - half :]}"
    return f"{shown}{port}"


def number(kind: str, value: float) -> str:
    """A value in as few characters as three digits need; `-` for what is not known."""
    if not math.isfinite(value):
        return NONE
    if kind == "whole":
        return f"{int(value)}"
    if kind == "ms":
        # The kernel counts whole microseconds.
        return f"{value / 1e3:.3f}" if value < 1e3 else human.digits(value / 1e3)
    if kind == "pct":
        return human.digits(value, 2) if value < 99.5 else f"{value:.0f}"
    if kind == "count" and value < 1e5:
        return f"{int(value)}"
    step = 1024.0 if kind == "bytes" else 1e3
    for unit in ("", "k", "M", "G", "T"):
        if abs(value) < 0.9995 * step or unit == "T":
            suffix = f"{unit}i" if unit and kind == "bytes" else unit
            return f"{human.digits(value) if unit else f'{value:.0f}'}{suffix.replace('ki', 'Ki')}"
        value /= step
    raise AssertionError("the last unit takes everything")


def _aligned(column: Column, text: str, width: int) -> str:
    text = say.printable(text)
    if len(text) > width:
        text = text[: width - 1] + "…"
    return text.ljust(width) if column.kind in {"peer", "name", "limit"} else text.rjust(width)


def ordered(sample: Sample, by: str, descending: bool) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """The rows in the order of a column; what is not known comes last, equals by their cookies."""
    import pyarrow.compute

    rows = sample.order
    if by == "peer":
        direction = "descending" if descending else "ascending"
        keys = [("remote_addr", direction), ("remote_port", direction), ("cookie", "ascending")]
        found = pyarrow.compute.sort_indices(sample.ends.select([name for name, _ in keys]), sort_keys=keys)
        return plain(pyarrow.chunked_array([found]), np.intp)
    if by in {"state", "algorithm"}:
        names = sample.states if by == "state" else sample.algorithms
        rank = np.argsort(np.argsort(np.array([*names.texts, "\uffff"])))
        values = rank[names.codes].astype(np.float64)
    elif by == "limited_by":
        values = sample.limited.astype(np.float64)
    else:
        values = sample.values[by]
    values = values[rows]
    unknown = np.isnan(values)
    # Stable, so that rows that are alike do not change places from sample to sample.
    key = np.where(unknown, np.inf, -values if descending else values)
    return rows[np.argsort(key, kind="stable")]


def descends(by: str) -> bool:
    """Texts and ports begin with the least, quantities with the largest."""
    return BY_NAME[by].kind not in {"peer", "name", "limit", "whole"}


def states(sample: Sample, cost: str, width: int) -> str:
    """`2,000 sockets: ESTAB 1,990, CLOSE-WAIT 10`, as many states as fit, and what sampling costs where it fits too."""
    text = f"{len(sample):,} socket{'' if len(sample) == 1 else 's'}"
    tail = f"  {cost}" if cost and len(text) + 2 + len(cost) <= width else ""
    joint = ": "
    for state, count in sample.states.counts().items():
        more = f"{joint}{state} {count:,}"
        if len(text) + len(more) + len(tail) > width:
            break
        text, joint = text + more, ", "
    return text + tail


def sums(group: Group, width: int) -> str:
    """The line of totals, as many as fit."""
    text = f"send {_rate(group.sent_bits_per_sec)}"
    received = f"receive {_rate(group.received_bits_per_sec)}"
    for part in (received, f"retransmit {number('pct', group.retransmit_pct)} %"):
        if len(text) + 2 + len(part) <= width:
            text += f"  {part}"
    return text


def _rate(value: float) -> str:
    return human.quantity("rate", value) if math.isfinite(value) else NONE


def algorithms(groups: list[Group], lines: int, width: int) -> list[str]:
    """A line per algorithm under a head; those that have no room are counted in the last one."""
    if not groups or lines < 2:
        return []
    head = f"{'algorithm':<15} {'conns':>7} {'rate bit/s':>10} {'retr %':>6} {'srtt p50':>8} {'p95 ms':>7}  limited by"
    shown = groups if len(groups) < lines else groups[: lines - 2]
    text = [head]
    for group in shown:
        limits = ", ".join(
            f"{limit} {100 * share:.0f} %" for limit, share in group.limited_by.items() if share >= 0.005
        )
        text.append(
            f"{say.printable(group.name):<15.15} {group.connections:>7,} "
            f"{number('rate', group.acked_bits_per_sec):>10} "
            f"{number('pct', group.retransmit_pct):>6} {number('ms', group.srtt_us_p50):>8} "
            f"{number('ms', group.srtt_us_p95):>7}  {limits or NONE}"
        )
    if len(shown) < len(groups):
        rest = groups[len(shown) :]
        text.append(f"and {len(rest)} more with {sum(group.connections for group in rest):,} connections")
    return [_cut(one, width) for one in text]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: list[float], width: int) -> str:
    """The last values from 0 to their largest, one character each; a blank: not known."""
    shown = values[-width:] if width > 0 else []
    known = [value for value in shown if math.isfinite(value)]
    top = max(known, default=0.0)
    return "".join(
        " " if not math.isfinite(value) else BLOCKS[min(7, int(8 * value / top))] if top > 0 else BLOCKS[0]
        for value in shown
    )


IDENTITY = {
    "t_unix_ns",
    "t_mono_ns",
    "sample",
    "host",
    "boot_id",
    "netns",
    "final",
    "state",
    "local_addr",
    "local_port",
    "remote_addr",
    "remote_port",
    "interface",
    "cookie",
    "uid",
    "inode",
    "cgroup_id",
    "cgroup",
    "mark",
    "process",
    "pid",
    "algorithm",
    "tos",
    "tclass",
    "class_id",
    "v6only",
}
"""Columns that tell when and who, which the page has last."""


_CA_STATES = ("Open", "Disorder", "CWR", "Recovery", "Loss")
"""TCP_CA_*, as the kernel and ss call them."""


def fields(table: pyarrow.Table) -> list[tuple[str, str]]:
    """Every column that is told of the one socket of the table, with its unit: first how it fares, then who it is."""
    values = table.to_pylist()[0].values()
    told: tuple[list[tuple[str, str]], list[tuple[str, str]]] = ([], [])
    for field, value in zip(table.schema, values, strict=True):
        if value is None:
            continue
        unit = (field.metadata or {}).get(b"unit", b"").decode()
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
        text = text.lower() if isinstance(value, bool) else text
        if field.name == "ca_state" and value < len(_CA_STATES):
            text = f"{_CA_STATES[value]} ({value})"
        told[field.name in IDENTITY].append((field.name, say.printable(f"{text} {unit}".strip())))
    return told[0] + told[1]

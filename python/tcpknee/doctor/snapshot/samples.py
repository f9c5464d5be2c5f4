"""Two samples of a snapshot's counters, some seconds apart: what grew in between."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tcpknee.processors import shares

from .tables import TABLES, Column

Row = Mapping[str, Any]
Rows = Mapping[str, Sequence[Row]]

KEYS: Mapping[str, tuple[str, ...]] = {
    "interfaces": ("netns", "interface"),
    "qdiscs": ("netns", "interface", "handle", "parent", "kind"),
    "irqs": ("number",),
    "softnet": ("cpu",),
    "counters": ("netns", "name"),
    "cpus": ("cpu",),
    "nic_stats": ("netns", "interface", "name"),
}
"""Tables that the first sample has, and the columns by which its rows are found again."""

_OF_THE_MOMENT = re.compile(
    r"(sockets|[A-Z0-9]+)\..*|.*\.entries|Tcp\.(CurrEstab|MaxConn|Rto\w+)|Ip\.(Forwarding|DefaultTTL)|"
    r"conntrack_allowance_available|ena_srd_mode"
)
"""Rows of `counters` and `nic_stats` that are no counts: those of sockstat, sizes of tables, settings."""

Combine = Callable[[int, int], int | None]


def counts_of(tables: Rows) -> dict[str, list[dict[str, Any]]]:
    """The rows of a sample with their keys and their counts alone."""
    kept = {}
    for table, key in KEYS.items():
        counting = [column.name for column in _counts(table)]
        kept[table] = [
            {name: row[name] for name in (*key, *counting) if row.get(name) is not None}
            for row in tables.get(table, ())
        ]
    return kept


def window(tables: Rows, earlier: Rows, seconds: float) -> Rows:
    """The tables with what was counted between the samples, as if the host had booted at the first."""
    changed = _combined(tables, earlier, lambda now, before: now - before if now >= before else None)
    [host] = changed["host"] or [{}]
    stolen = shares({name: _sum(changed["cpus"], name) for name in ("time_us", "busy_us", "softirq_us", "steal_us")})
    return {**changed, "host": [{**host, "uptime_sec": seconds, "steal_pct": stolen.get("steal_pct")}]}


def before(tables: Rows, earlier: Rows) -> Rows:
    """The tables as they were at the first sample."""
    return _combined(tables, earlier, lambda now, before: before)


def _counts(table: str) -> list[Column]:
    return [column for column in TABLES[table].columns.values() if column.kind in ("count", "counts")]


def _combined(tables: Rows, earlier: Rows, combine: Combine) -> dict[str, Sequence[Row]]:
    """Each count put together with what the first sample has of it; null where that has none."""
    changed = dict(tables)
    for table, key in KEYS.items():
        counting = _counts(table)
        first = {tuple(row[name] for name in key): row for row in earlier.get(table, ())}
        changed[table] = [
            row
            if _is_of_the_moment(table, row)
            else {**row, **_of_row(row, first.get(tuple(row[name] for name in key)), counting, combine)}
            for row in tables[table]
        ]
    changed["cpus"] = [
        {**row, "busy_pct": None, "softirq_pct": None, "steal_pct": None, **shares(row)} for row in changed["cpus"]
    ]
    return changed


def _is_of_the_moment(table: str, row: Row) -> bool:
    return table in ("counters", "nic_stats") and _OF_THE_MOMENT.fullmatch(row["name"] or "") is not None


def _of_row(row: Row, first: Row | None, counting: Sequence[Column], combine: Combine) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for column in counting:
        now, past = row[column.name], first[column.name] if first is not None else None
        if now is None or past is None:
            found[column.name] = None
        elif column.kind == "count":
            found[column.name] = combine(now, past)
        else:
            each = {name: combine(value, past.get(name, 0)) for name, value in now.items()}
            found[column.name] = {name: value for name, value in each.items() if value}
    return found


def _sum(rows: Sequence[Row], name: str) -> int | None:
    known = [row[name] for row in rows if row[name] is not None]
    return sum(known) if known else None

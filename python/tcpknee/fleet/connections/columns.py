"""Columns of a fleet's tables, as `crates/tables` declares them, and how those of `connections` follow from samples.

An expression is DuckDB's SQL over one row per connection (`samples.py`): `begin_X` and `last_X` are a counter at the
connection's beginning, as far as it was recorded, and at its end; `least_busy_us` is the first sample's.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcpknee import _core

_TYPES = {
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint64": "UBIGINT",
    "float64": "DOUBLE",
    "bool": "BOOLEAN",
    "text": "VARCHAR",
}
"""Types by DuckDB's names."""


@dataclass(frozen=True)
class Column:
    """A column of `connections` or `assignments`."""

    name: str
    type: str
    """DuckDB's name of it."""
    unit: str
    doc: str

    def cast(self, value: str) -> str:
        """The column computed by an expression."""
        return f"cast({value} as {self.type}) as {self.name}"


def _columns(table: str) -> tuple[Column, ...]:
    listed = _core.tables("fleet")[table]
    return tuple(Column(one["name"], _TYPES[one["type"]], one["unit"], one["doc"]) for one in listed)


COLUMNS = _columns("connections")
"""One row per connection."""

ASSIGNMENTS = _columns("assignments")
"""The log of `knee assign`."""


def _share(part: str, whole: str) -> str:
    return f"1e2 * ({part}) / nullif({whole}, 0)"


def _at_least_0(value: str) -> str:
    """Not `greatest`, which passes over null."""
    return f"case when {value} < 0 then 0 else {value} end"


def _at_most_100(value: str) -> str:
    return f"case when {value} > 100 then 100 else {value} end"


def _of(name: str) -> str:
    return f"(last_{name} - begin_{name})"


INITIAL_WINDOW = 10
"""RFC 6928: segments that a connection may send before the first ACK."""

_LEFT = f"(last_data_segs_out > {INITIAL_WINDOW} and (snd_cwnd_max > {INITIAL_WINDOW} or last_total_retrans > 0))"

_COUNTED = (
    "bytes_acked",
    "bytes_sent",
    "bytes_retrans",
    "data_segs_out",
    "total_retrans",
    "delivered",
    "delivered_ce",
    "busy_us",
    "reord_seen",
)
"""Columns that grew by so much while the connection was recorded."""

_VALUES = {
    **{name: _of(name) for name in _COUNTED},
    "duration_us": "(end_t_ns - begin_t_ns) // 1000",
    "retransmit_pct": _at_most_100(_share(_of("total_retrans"), _of("data_segs_out"))),
    "loss_pct": f"coalesce({_share('path_lost', _of('data_segs_out'))}, "
    + _at_most_100(_share(_at_least_0(f"{_of('total_retrans')} - {_of('dsack_dups')}"), _of("data_segs_out")))
    + ")",
    "ce_pct": _share(_of("delivered_ce"), _of("delivered")),
    "goodput_bits_per_sec": f"8e6 * {_of('bytes_acked')} / nullif({_of('busy_us')}, 0)",
    "queue_delay_us": _at_least_0("(srtt_us - min_rtt_us)"),
    "rwnd_limited_pct": _share(_of("rwnd_limited_us"), _of("busy_us")),
    "sndbuf_limited_pct": _share(_of("sndbuf_limited_us"), _of("busy_us")),
    "busy_pct": _at_most_100(_share("last_busy_us - least_busy_us", "(end_t_ns - begin_t_ns) / 1000")),
    "left_initial_window": _LEFT,
    "triggered": f"{_LEFT} and coalesce(app_limited_pct, 0) < 50",
}


def value(column: Column) -> str:
    """How a column of `connections` is computed; the others are those of the row itself."""
    return _VALUES.get(column.name, column.name)

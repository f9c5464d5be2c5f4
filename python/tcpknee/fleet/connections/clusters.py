"""Clusters: what connections are taken to be independent by, as expressions over the table `connections`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

_PERIOD = "concat_ws(' ', host_id, period)"
_IS_PERIOD = "design = 'switchback' and period is not null"

OF = {
    # All connections of a switchback have the arm of their period.
    "unit": f"case when {_IS_PERIOD} then {_PERIOD} else coalesce(unit, remote_prefix, host_id) end",
    "prefix": "coalesce(remote_prefix, host_id)",
    "host": "host_id",
    "day": "cast(begin_unix_ns // 86400000000000 as varchar)",
    "link": "link",
    "period": f"case when period is not null then {_PERIOD} end",
}
"""By name; `unit` is the default: what the experiment drew an arm for, and the client's prefix outside experiments."""

NETWORK = "case when unit like '%/%' then unit else remote_prefix end"
"""The client's network, whose connections may share a bottleneck: where prefixes were drawn, the prefix that was."""

_KIND = f"""
    case when {_IS_PERIOD} then 'period' when unit like '%/%' then split_part(unit, '/', 2)
         when unit is not null then 'host' when remote_prefix is not null then 'prefix' else 'no prefix' end
"""


def units_told(database: duckdb.DuckDBPyConnection, connections: str) -> str:
    """What the clusters `unit` of those connections are, in words."""
    kinds = {row[0] for row in database.execute(f"select distinct {_KIND} from {connections}").fetchall()}
    lengths = sorted(int(kind) for kind in kinds if kind.isdigit())
    told = [f"client prefix of {' or '.join(f'/{bits}' for bits in lengths)}, as assigned"] if lengths else []
    told += [f"{kind}, as assigned" for kind in ("host", "period") if kind in kinds]
    if "prefix" in kinds:
        told.append("client prefix")
    elif not told and kinds:
        told.append("host, as no client prefix is known")
    return ", or ".join(told)

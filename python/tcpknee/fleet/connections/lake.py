"""Samples in a lake, aggregated where they lie, through a connection of Ibis.

    import ibis
    from tcpknee import fleet
    from tcpknee.fleet.connections import Lake
    lake = Lake(ibis.pyspark.connect(session), sockets="edge.sockets", settings="edge.settings")
    print(fleet.compare(lake, min_bytes="1MB"))

The queries are those of folders: Ibis writes DuckDB's SQL in the dialect of its engine. One row per connection comes
back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcpknee.datasets.sql import literal
from tcpknee.errors import MissingColumn, RunFolderError, TcpkneeError

from . import boots, samples
from .assignment import read_log
from .columns import ASSIGNMENTS
from .hosts import hours_of_counters, hours_of_cpu
from .plan import Plan, Relation, Step
from .requests import of_requests, usable

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


@dataclass
class Lake:
    """Tables behind a connection of Ibis, by their names there; their columns are those of folders."""

    connection: Any
    sockets: str = "sockets"
    settings: str | None = None
    assignments: str | None = None
    requests: str | None = None
    """Logs of nginx, as `knee import nginx` writes them."""
    counters: str | None = None
    cpu: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What stands for the host where no table names it."""
        return self.sockets

    def arrow(self, query: str) -> pa.Table:
        """What the engine answers to a query in DuckDB's SQL. Raises RunFolderError."""
        try:
            found: pa.Table = self.connection.sql(query, dialect="duckdb").to_pyarrow()
        except TcpkneeError:
            raise
        # Each engine has errors of its own, which have nothing in common.
        except Exception as error:
            why = " ".join(str(error).split())[:300]
            raise RunFolderError(f"{self.sockets}: the lake refused a query: {type(error).__name__}: {why}") from None
        return found

    def columns(self, table: str) -> list[str]:
        """The columns of a table. Raises RunFolderError."""
        return list(self.arrow(f"select * from {table} limit 0").column_names)

    def ask(self, query: str) -> Sequence[Sequence[Any]]:
        """The same as rows."""
        return [tuple(row.values()) for row in self.arrow(query).to_pylist()]


def open_lake(database: duckdb.DuckDBPyConnection, lake: Lake, notes: list[str]) -> Plan:
    """Asks a lake for its boots and log, and plans how its connections are made.

    Raises RunFolderError, MissingColumn."""
    held = lake.columns(lake.sockets)
    missing = sorted({"t_unix_ns", "cookie", "bytes_acked"} - set(held))
    if missing:
        raise MissingColumn(f"{lake.sockets}: got no column {missing[0]}; expected those of `knee record`.")
    found = boots.of_sockets(lake.ask, lake, lake.sockets, held, lake.settings)
    if not all(boot.has_cookies for boot in found):
        raise RunFolderError(f"{lake.sockets}: has rows without a cookie; expected the cookie of each socket.")
    boots.make_table(database, found)
    notes += lake.doubts
    plan = Plan(found)
    if lake.assignments is not None:
        known = lake.columns(lake.assignments)
        columns = [column.name for column in ASSIGNMENTS if column.name in known]
        casts = ", ".join(column.cast(column.name if column.name in known else "null") for column in ASSIGNMENTS)
        database.register("lake_assignments", lake.arrow(f"select {', '.join(columns)} from {lake.assignments}"))
        database.execute(f"create table assignments as select {casts} from lake_assignments")
        plan.log = read_log(database)
    has_clock = all(boot.has_clock for boot in found)
    boot = boots.expression(lake, held)
    rows = samples.of_sockets(lake.sockets, held, boot, has_cookies=True, has_clock=has_clock)
    seen = samples.aggregated(rows)
    last_ns = max((boot.first_dump_ns for boot in found), default=-1)
    relations = [
        Relation("lake_seen", seen),
        Relation("lake_firsts", samples.of_first_dumps(rows, last_ns, _listed(found))),
    ]
    logs = usable({lake.requests: lake.columns(lake.requests)}, notes) if lake.requests is not None else []
    if logs:
        relations.append(Relation("requests", of_requests(logs, f"({seen})")))
    query = samples.connections("from lake_seen", "from lake_firsts", requests=bool(logs), log=plan.log)
    plan.parts = [[Step(query, relations)]]
    tables = (("lake_counters", lake.counters, hours_of_counters), ("lake_cpu", lake.cpu, hours_of_cpu))
    plan.hours = [Step(f"from {name}", [Relation(name, of(table))]) for name, table, of in tables if table is not None]
    return plan


def _listed(found: Sequence[boots.Boot]) -> str:
    """Boots as a query, for an engine that does not have the table."""
    each = (
        f"select {literal(boot.boot)} as boot, "
        f"cast({literal(boot.netns) if boot.netns is not None else 'null'} as varchar) as netns, "
        f"cast({boot.first_dump_ns} as bigint) as first_dump_ns"
        for boot in found
    )
    return f"({' union all '.join(each)})"

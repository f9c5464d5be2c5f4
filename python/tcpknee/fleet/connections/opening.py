"""From folders to queries: views of their tables, their boots, and how their connections are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tcpknee import _core
from tcpknee.datasets import sql
from tcpknee.errors import MissingColumn, RunFolderError

from . import boots, samples
from .assignment import Log, read_log
from .boots import Boot
from .columns import ASSIGNMENTS
from .folders import Folder
from .hosts import hours_of_counters, hours_of_cpu
from .plan import Plan, Relation, Step
from .requests import of_requests, usable

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from tcpknee.datasets.partitions import Partitions

ROWS_AT_ONCE = 30_000_000
"""Samples that are aggregated at once: some 2 GiB."""

_BESIDE = {
    "sockets": ("settings", "requests", "assignments", "cpu", "counters"),
    "samples": ("runs", "flows", "assignments"),
    "connections": ("assignments", "requests", "cpu", "counters"),
    "assignments": (),
}
"""Tables that are read beside the one that connections come from, where they are."""

_TIMES = ("t_unix_ns", "t_mono_ns")
_NUMBERS = {column["name"] for column in _core.tables("recording")["sockets"] if column["type"] != "text"}


def open_folders(
    database: duckdb.DuckDBPyConnection,
    folders: list[Folder],
    units: pa.Table | None,
    *,
    partial: bool,
    notes: list[str],
) -> Plan:
    """Makes views of the folders' tables and plans how their connections are made. `units` take the place of logs.

    `partial`: folders and files that are damaged or there twice are taken from `folders` and noted.
    Raises RunFolderError, and what DuckDB raises.
    """
    for at, folder in enumerate(folders):
        _make_views(database, folder, f"folder_{at}", partial=partial, notes=notes)
    found = [(folder, _boots(database, folder)) for folder in folders]
    left_out = boots.check_single(found, partial=partial, notes=notes)
    kept = [pair for at, pair in enumerate(found) if at not in left_out]
    folders[:] = [folder for folder, _ in kept]
    notes += [doubt for folder in folders for doubt in folder.doubts]
    log = _make_assignments(database, folders) if units is None else _log_of(database, units)
    boots.make_table(database, [boot for folder, listed in kept if folder.source != "connections" for boot in listed])
    hours = [
        Step(query_of(folder.views[name]))
        for folder in folders
        for name, query_of in (("counters", hours_of_counters), ("cpu", hours_of_cpu))
        if name in folder.views
    ]
    logs = {folder.views["requests"]: folder.columns["requests"] for folder in folders if "requests" in folder.views}
    groups = [group for group in _together(kept) if group[0][0].source != "assignments"]
    is_matched = any(group[0][0].source == "sockets" for group in groups)
    matched = usable(logs, notes) if is_matched else []
    parts = [_part(group, matched, log) for group in groups]
    return Plan([boot for _, listed in kept for boot in listed], log, parts, hours)


def _make_views(
    database: duckdb.DuckDBPyConnection, folder: Folder, prefix: str, *, partial: bool, notes: list[str]
) -> None:
    for name in (folder.source, *_BESIDE[folder.source]):
        table = folder.table(name, partial=partial, notes=notes)
        if table is None:
            continue
        folder.read.append(table)
        folder.views[name] = f"{prefix}_{name}"
        make_view(database, folder, table, partial=partial, notes=notes)


def make_view(
    database: duckdb.DuckDBPyConnection, folder: Folder, table: Partitions, *, partial: bool, notes: list[str]
) -> None:
    """Makes the view of a table anew, of the files that it has now. `partial`: less the files without a footer."""
    import duckdb

    view = folder.views[table.name]
    try:
        database.execute(f"create or replace view {view} as {sql.reading(database, table, f'{view}/')}")
    except duckdb.Error as error:
        damage = sql.damaged_file(error, [table])
        if not (partial and damage and folder.leave_out(damage, notes) and table.whole):
            raise
        make_view(database, folder, table, partial=partial, notes=notes)
    folder.columns[table.name] = [row[0] for row in database.execute(f"describe {view}").fetchall()]


def _boots(database: duckdb.DuckDBPyConnection, folder: Folder) -> list[Boot]:
    view, held = folder.views[folder.source], folder.columns[folder.source]
    if folder.source == "assignments":
        return []
    if folder.source == "connections":
        return boots.of_connections(database, view, held)
    if folder.source == "samples":
        return boots.of_run(database, folder, folder.views.get("runs"), view)
    missing = sorted({"t_unix_ns", "cookie", "bytes_acked"} - set(held))
    if missing:
        raise MissingColumn(f"{folder.path}: sockets: got no column {missing[0]}; expected those of `knee record`.")
    for name, kind, *_ in database.execute(f"describe {view}").fetchall():
        # A float of 64 bits is off by some hundred ns at the times of today.
        if (name in _NUMBERS and kind == "VARCHAR") or (name in _TIMES and kind in ("FLOAT", "DOUBLE")):
            raise RunFolderError(f"{folder.path}: sockets: got {name} as {kind}; expected whole numbers.")
    return boots.of_sockets(
        lambda query: database.execute(query).fetchall(),
        folder,
        view,
        held,
        folder.views.get("settings"),
        has_beginning=(folder.path / "sockets-000001.parquet").exists(),
    )


def _make_assignments(database: duckdb.DuckDBPyConnection, folders: Sequence[Folder]) -> Log | None:
    """The table `assignments` of all logs, if there is one."""
    logs = []
    for folder in folders:
        if "assignments" in folder.views:
            held = folder.columns["assignments"]
            chosen = ", ".join(one.cast(one.name if one.name in held else "null") for one in ASSIGNMENTS)
            logs.append(f"select {chosen} from {folder.views['assignments']}")
    if not logs:
        return None
    # One host's log may be in several folders.
    database.execute(f"create table assignments as {' union '.join(logs)}")
    return read_log(database)


def _log_of(database: duckdb.DuckDBPyConnection, units: pa.Table) -> Log:
    """The table `assignments` of units alone."""
    always = {"t_unix_ns": str(-(1 << 62)), "host_id": "host_id", "unit": "unit"}
    columns = ", ".join(one.cast(always.get(one.name, "null")) for one in ASSIGNMENTS)
    database.register("units", units)
    database.execute(f"create table assignments as select {columns} from units")
    return read_log(database)


def _together(found: Sequence[tuple[Folder, Sequence[Boot]]]) -> list[list[tuple[Folder, Sequence[Boot]]]]:
    """Folders in groups: those that have a boot in common are one, as a connection may go on in the next."""
    groups: list[tuple[set[str], list[tuple[Folder, Sequence[Boot]]]]] = []
    for folder, listed in found:
        own = {boot.boot for boot in listed if folder.source == "sockets"}
        same = [group for group in groups if group[0] & own]
        members = [member for group in same for member in group[1]]
        groups = [group for group in groups if group not in same]
        groups.append((own.union(*(group[0] for group in same)), [*members, (folder, listed)]))
    return [members for _, members in groups]


def _part(group: Sequence[tuple[Folder, Sequence[Boot]]], logs: Sequence[str], log: Log | None) -> list[Step]:
    """The queries for the connections of folders that have boots in common. `logs`: of requests."""
    first = group[0][0]
    if first.source == "connections":
        return [Step(samples.ready(first.views["connections"], first.columns["connections"], log))]
    rows = " union all by name ".join(_rows(folder, listed) for folder, listed in group)
    found = [boot for _, listed in group for boot in listed]
    boots_found = {boot.boot for boot in found}
    one_boot = boots_found.pop() if len(boots_found) == 1 else None
    buckets = 1 + sum(boot.rows for boot in found) // ROWS_AT_ONCE
    is_recorded = first.source == "sockets"
    # A run is recorded from its beginning, and a recording may have no row yet.
    last_ns = max((boot.first_dump_ns for boot in found), default=None) if is_recorded else None
    steps = []
    for bucket in range(buckets):
        some = rows if buckets == 1 else f"select * from ({rows}) as rows where hash(cookie) % {buckets} = {bucket}"
        seen = samples.aggregated(some, one_boot=one_boot)
        firsts = samples.of_first_dumps(some, last_ns) if last_ns is not None else None
        relations: list[Relation] = []
        if is_recorded and logs:
            relations = [Relation("seen", seen), Relation("requests", of_requests(logs, "seen"))]
            seen = "from seen"
        steps.append(Step(samples.connections(seen, firsts, requests=bool(relations), log=log), relations))
    return steps


def _rows(folder: Folder, listed: Sequence[Boot]) -> str:
    view, held = folder.views[folder.source], folder.columns[folder.source]
    if folder.source == "sockets":
        has_cookies = all(boot.has_cookies for boot in listed)
        boot = sql.literal(listed[0].boot) if len(listed) == 1 else boots.expression(folder, held)
        has_clock = all(boot.has_clock for boot in listed)
        return samples.of_sockets(view, held, boot, has_cookies=has_cookies, has_clock=has_clock)
    return samples.of_run(view, folder.views["flows"], held, folder.columns["flows"], folder.name)

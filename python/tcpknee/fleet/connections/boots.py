"""Boots: what each folder's rows say of hosts and their clocks, found before connections are made.

A boot is one uptime of a host: cookies are unique within it. Where rows tell no boot (an import), the host stands for
it, and where they tell no host, the folder does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from tcpknee import human
from tcpknee.datasets.sql import literal
from tcpknee.errors import RunFolderError

from .folders import Folder, tagged
from .samples import boot_of_run

if TYPE_CHECKING:
    import duckdb

CLOCK_STEP_NS = 1_000_000_000
"""By how much a host's wall clock may move against its monotonic one before that is said."""


DUMP_NS = 10_000_000_000
"""A dump takes less than that."""


@dataclass(frozen=True)
class Boot:
    """A boot of a host, as far as one folder and network namespace tell."""

    boot: str
    """What tells it from the others."""
    netns: str | None
    boot_id: str | None
    host_id: str
    host: str | None
    kernel: str | None
    tags: str | None
    first_dump_ns: int
    """When the first dump ended: a connection that it has began before the recording."""
    begin_unix_ns: int | None
    end_unix_ns: int | None
    rows: int
    has_cookies: bool = True
    has_clock: bool = False
    """Every row tells `t_mono_ns`."""


_COLUMNS = (
    "boot varchar, netns varchar, boot_id varchar, host_id varchar, host varchar, kernel varchar, tags varchar, "
    "first_dump_ns bigint"
)
"""Columns of the table `boots`."""


Ask = Callable[[str], Sequence[Sequence[Any]]]
"""Rows of a query."""


class Place(Protocol):
    """Where rows of `sockets` are from: a folder, or a lake."""

    @property
    def name(self) -> str:
        """What stands for the host where no table names it."""

    @property
    def tags(self) -> Mapping[str, str]:
        """Words about all of them."""

    @property
    def doubts(self) -> list[str]:
        """What the rows say against themselves."""


def expression(place: Place, held: Sequence[str]) -> str:
    """The boot of a row of `sockets`."""
    told = [name for name in ("boot_id", "host") if name in held]
    return f"coalesce({', '.join([*told, literal(place.name)])})"


def of_sockets(
    ask: Ask, place: Place, relation: str, held: Sequence[str], settings: str | None, *, has_beginning: bool = False
) -> list[Boot]:
    """Those of a recording or an import. `has_beginning`: of a recording nothing was taken away, so that a host without
    rows of the first dump had no connection then."""
    mono = "t_mono_ns" in held
    time = "coalesce(t_mono_ns, t_unix_ns)" if mono else "t_unix_ns"
    shift = "max(t_unix_ns - t_mono_ns) - min(t_unix_ns - t_mono_ns)" if mono else "0"
    clocks = "count(t_mono_ns)" if mono else "0"
    sampled = "count(sample)" if "sample" in held else "0"
    words = {name: name if name in held else "cast(null as varchar)" for name in ("netns", "boot_id", "host")}
    boot = expression(place, held)
    rows = ask(
        f"select {boot} as boot, {words['netns']} as netns, any_value({words['boot_id']}) as boot_id, "
        f"any_value({words['host']}) as host, min({time}) as first, min(t_unix_ns) as begin_ns, "
        f"max(t_unix_ns) as end_ns, count(*) as n, {shift} as moved, count(cookie) as cookies, "
        f"{clocks} as clocks, {sampled} as sampled "
        f"from {relation} group by 1, 2"
    )
    dumps: dict[tuple[str, str | None], int] = {}
    if "sample" in held:
        dumped = f"select {boot} as boot, {words['netns']} as netns, {time} as t_ns from {relation} where sample = 0"
        dumps = {
            (boot, netns): last
            for boot, netns, last in ask(
                "select boot, netns, max(t_ns) as last from (select *, min(t_ns) over (partition by boot, netns) as "
                f"first from ({dumped}) as dumped) as dumps where t_ns <= first + {DUMP_NS} group by boot, netns"
            )
        }
    told = _settings(ask, settings)
    found = []
    for boot, netns, boot_id, host, first, begin, end, count, moved, cookies, clocks, sampled in rows:
        before = first is not None and has_beginning and sampled > 0
        host_id, kernel = told.get(boot_id, (None, None))
        found.append(
            Boot(
                boot=boot,
                netns=netns,
                boot_id=boot_id or boot,
                host_id=host_id or host or place.name,
                host=host,
                kernel=kernel,
                tags=tagged(place.tags),
                first_dump_ns=dumps.get((boot, netns), -1 if first is None else int(first) - int(before)),
                begin_unix_ns=begin,
                end_unix_ns=end,
                rows=count,
                has_cookies=cookies == count,
                has_clock=clocks == count,
            )
        )
        if moved is not None and moved > CLOCK_STEP_NS:
            place.doubts.append(
                f"{place.name}: the wall clock of {host or boot} was moved by {human.duration(moved)} while it was "
                "recorded; times of day and joins with logs are off by as much."
            )
    return found


def _settings(ask: Ask, settings: str | None) -> dict[str, tuple[str | None, str | None]]:
    """host_id and kernel of each boot_id."""
    if settings is None:
        return {}
    kernel = "case when name = 'kernel.osrelease' then value end"
    rows = ask(f"select boot_id, max(host_id) as host_id, max({kernel}) as kernel from {settings} group by boot_id")
    return {boot_id: (host_id, kernel) for boot_id, host_id, kernel in rows}


def of_run(database: duckdb.DuckDBPyConnection, folder: Folder, runs: str | None, samples: str) -> list[Boot]:
    """Those of a run: each repetition of a cell is a host by itself, as nothing is shared between them."""
    kernel = folder.dataset.provenance.kernel if (folder.dataset.manifest or {}).get("engine") == "kernel" else None
    axes = "any_value(axes)" if runs else "null"
    name = boot_of_run(folder.name)
    rows = database.execute(
        f"select {name} as boot, {axes} from {runs or samples} group by cell, rep, boot order by cell, rep"
    ).fetchall()
    plain = Boot("", None, None, "", None, kernel, None, -1, None, None, 0)
    return [
        replace(plain, boot=boot, boot_id=boot, host_id=boot, host=folder.name, tags=tagged(folder.tags, _axes(told)))
        for boot, told in rows
    ]


def of_connections(database: duckdb.DuckDBPyConnection, view: str, held: Sequence[str]) -> list[Boot]:
    """Those of a ready table, with as much as tells whether it is there twice."""
    words = [name if name in held else "null" for name in ("netns", "host_id", "host", "begin_unix_ns", "end_unix_ns")]
    netns, host_id, host, begin, end = words
    rows = database.execute(
        f"select boot_id, {netns}, any_value({host_id}), any_value({host}), min({begin}), max({end}), count(*) "
        f"from {view} group by 1, 2"
    ).fetchall()
    return [
        Boot(boot or "", netns, boot, host_id or boot or "", host, None, None, -1, begin, end, count)
        for boot, netns, host_id, host, begin, end, count in rows
    ]


def _axes(told: str | None) -> dict[str, Any]:
    try:
        found = json.loads(told or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def make_table(database: duckdb.DuckDBPyConnection, found: Sequence[Boot]) -> None:
    """Makes the table `boots`; of a boot that several folders have, its first dump is that of the first."""
    database.execute(f"create table boots ({_COLUMNS})")
    known: dict[tuple[str, str | None], Boot] = {}
    for boot in found:
        before = known.get((boot.boot, boot.netns), boot)
        known[boot.boot, boot.netns] = min(before, boot, key=lambda one: one.first_dump_ns)
    for boot in known.values():
        row = (boot.boot, boot.netns, boot.boot_id, boot.host_id, boot.host, boot.kernel, boot.tags, boot.first_dump_ns)
        database.execute("insert into boots values (?, ?, ?, ?, ?, ?, ?, ?)", row)


def check_single(found: Sequence[tuple[Folder, Sequence[Boot]]], *, partial: bool, notes: list[str]) -> set[int]:
    """Positions of folders to leave out, because another one has the same boot over the same time.

    Raises RunFolderError where there are such, unless `partial`, which notes them.
    """
    left_out = set()
    seen: dict[tuple[str | None, str | None], list[tuple[int, Boot]]] = {}
    for position, (folder, boots) in enumerate(found):
        for boot in boots:
            others = seen.setdefault((boot.boot_id, boot.netns), [])
            twins = [at for at, other in others if at not in left_out and _overlap(boot, other)]
            if twins and position not in left_out:
                first = found[twins[0]][0].path
                why = (
                    f"{folder.path}: has boot {boot.boot_id} of {boot.host or boot.host_id} over a time that {first} "
                    "has too: the same recording twice would count each connection twice."
                )
                if not partial:
                    raise RunFolderError(f"{why} Leave one of them out; --partial leaves out the second.")
                notes.append(f"left out: {why}")
                left_out.add(position)
            others.append((position, boot))
    return left_out


def in_both(found: Sequence[Boot], others: Sequence[Boot]) -> Boot | None:
    """The first boot that the others have too, over the same time."""
    known: dict[tuple[str | None, str | None], list[Boot]] = {}
    for other in others:
        known.setdefault((other.boot_id, other.netns), []).append(other)
    twins = (one for one in found for other in known.get((one.boot_id, one.netns), ()) if _overlap(one, other))
    return next(twins, None)


def _overlap(one: Boot, other: Boot) -> bool:
    times = (one.begin_unix_ns, one.end_unix_ns, other.begin_unix_ns, other.end_unix_ns)
    if None in times:
        # Without times nothing says that they differ.
        return True
    begin, end, other_begin, other_end = (int(time) for time in times if time is not None)
    return begin <= other_end and other_begin <= end

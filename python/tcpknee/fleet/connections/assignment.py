"""SQL that finds each connection's arm, and what the arm was drawn for as a whole, in the log of `knee assign`.

The log names the connection by its cookie, or only its unit: a prefix of clients, of any length, or the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpknee import human

if TYPE_CHECKING:
    import duckdb

_WORDS = ("arm", "design", "allocation_pct", "period", "link")
ARMS = (*_WORDS, "unit")
"""Columns of `connections` that come from the log."""

UNASSIGNED = dict.fromkeys(ARMS, "cast(null as varchar)") | {
    "allocation_pct": "cast(null as double)",
    "period": "cast(null as bigint)",
}
"""The same where there is no log."""

_LATEST = ", ".join(f"arg_max({name}, t_unix_ns) as {name}" for name in _WORDS)
# Where the unit is the connection, its cookie stands there, and where it is the host, the word host.
_UNIT = "case when unit like '%/%' then unit when unit = 'host' then host_id end"
_BY_COOKIE = f"""
    select boot_id, cookie, {_LATEST}, arg_max({_UNIT}, t_unix_ns) as unit
    from assignments where cookie is not null group by boot_id, cookie
"""
_BY_HOST = f"""
    select host_id, t_unix_ns, {", ".join(_WORDS)}, host_id as unit
    from assignments where cookie is null and unit not like '%/%'
"""
_IS_PREFIX = "cookie is null and unit like '%/%'"
_ADDRESS, _BITS = "split_part(unit, '/', 1)", "try_cast(split_part(unit, '/', 2) as utinyint)"
_FAMILY = f"case when {_ADDRESS} like '%.%' then 4 else 6 end"

_WIDTH = {4: 32, 6: 128}
"""Bits of an address of each family of IP."""

_HEX = "0123456789abcdef"
_HASHED = "h[0-9a-f]{16}"
"""An id of a boot in a recording with `--anonymize` (crates/store/src/anonymise.rs)."""


@dataclass(frozen=True)
class Log:
    """What decides how connections are joined with the table `assignments`."""

    prefixes: tuple[tuple[int, int], ...]
    """Family and length of the prefixes that stand there without a cookie; the table `assigned_prefixes` has them."""

    def joined(self, address: str, known_bits: dict[int, int] = _WIDTH) -> tuple[dict[str, str], str]:
        """An expression for each of `ARMS`, and the joins that rows `counted` need for them.

        An assignment of the connection itself counts, else the last one before it of a prefix that its client is in,
        else of its host. `address`: the client's, as an expression; of each family only `known_bits` of it are known.
        """
        usable = [(family, bits) for family, bits in self.prefixes if bits <= known_bits[family]]
        joins = f"left join ({_BY_COOKIE}) as log using (boot_id, cookie)"
        for at, (family, bits) in enumerate(usable):
            of_length = f"select * from assigned_prefixes where family = {family} and bits = {bits}"
            joins += f"""
                asof left join ({of_length}) as prefix_{at}
                    on counted.host_id = prefix_{at}.host_id and {network(address, family, bits)} = prefix_{at}.network
                       and counted.begin_unix_ns >= prefix_{at}.t_unix_ns
            """
        joins += f"""
            asof left join ({_BY_HOST}) as by_host
                on counted.host_id = by_host.host_id and counted.begin_unix_ns >= by_host.t_unix_ns
        """
        found = [f"prefix_{at}" for at in range(len(usable))]
        return {name: f"coalesce(log.{name}, {_last_of(found, name)}, by_host.{name})" for name in ARMS}, joins


def _last_of(prefixes: list[str], name: str) -> str:
    """A column of the prefix that was assigned last."""
    if not prefixes:
        return "null"
    last = f"greatest({', '.join(f'{one}.t_unix_ns' for one in prefixes)})"
    return f"case {last} {' '.join(f'when {one}.t_unix_ns then {one}.{name}' for one in prefixes)} end"


def read_log(database: duckdb.DuckDBPyConnection) -> Log:
    """Reads the table `assignments` of the database, and makes `assigned_prefixes`."""
    found = database.execute(
        f"select distinct {_FAMILY} as family, {_BITS} as bits from assignments where {_IS_PREFIX} "
        "and bits is not null order by family, bits desc"
    ).fetchall()
    prefixes = tuple((family, bits) for family, bits in found if bits <= _WIDTH[family])
    each = [
        f"select host_id, t_unix_ns, {family} as family, {bits} as bits, {network(_ADDRESS, family, bits)} as network, "
        f"{', '.join(ARMS)} from assignments where {_IS_PREFIX} and {_FAMILY} = {family} and {_BITS} = {bits}"
        for family, bits in prefixes
    ]
    if each:
        database.execute(f"create table assigned_prefixes as {' union all '.join(each)}")
    return Log(prefixes)


def unjoined(database: duckdb.DuckDBPyConnection, table: str, *, is_filtered: bool) -> str | None:
    """Why no connection of the table has an arm, and what to do. None: one has, the log is empty, or connections were
    filtered that may have had one."""
    [(rows,)] = database.execute("select count(*) from assignments").fetchall()
    [(armed, known, hashed)] = database.execute(
        f"""
        select count(arm),
               count(*) filter (where boot_id in (select boot_id from assignments)
                                or host_id in (select host_id from assignments)),
               count(*) filter (where regexp_full_match(boot_id, '{_HASHED}'))
        from {table}
        """
    ).fetchall()
    if armed or not rows or (known and is_filtered):
        return None
    found = f"no connection has an arm, though the assignment log has {human.counted(rows, 'row')}"
    if known:
        return f"{found}: the log is of other connections of these hosts. Give what was recorded meanwhile"
    if hashed:
        return (
            f"{found}: the recording has hashes for the ids of boots (`--anonymize`), and the log has the ids. Record "
            "without --anonymize: what `knee fleet connections` makes of that has clients' prefixes, and no address"
        )
    return f"{found}: the log is of other hosts or boots. Give the recordings of those"


def network(address: str, family: int, bits: int) -> str:
    """The first bits of an address, as text that is equal for equal networks; null for anything else.

    DuckDB computes with networks in an extension only, which would be fetched.
    """
    digits = _digits_v4(address) if family == 4 else _digits_v6(address)
    whole, rest = divmod(bits, 4)
    if not rest:
        return f"left({digits}, {whole})"
    # The last digit is part of the network only in its upper bits.
    last = f"(instr('{_HEX}', substr({digits}, {whole + 1}, 1)) - 1) >> {4 - rest}"
    return f"left({digits}, {whole}) || ({last})"


def _digits_v4(address: str) -> str:
    """The hexadecimal digits of an IPv4 address, also of one mapped into IPv6."""
    plain = f"replace(lower({address}), '::ffff:', '')"
    octets = ", ".join(f"try_cast(split_part({plain}, '.', {k}) as utinyint)" for k in (1, 2, 3, 4))
    return f"case when {address} like '%.%' then format('{'{:02x}' * 4}', {octets}) end"


def _digits_v6(address: str) -> str:
    """The hexadecimal digits of an IPv6 address."""
    plain = f"split_part(lower({address}), '%', 1)"
    first, last = (_groups(f"split_part({plain}, '::', {k})") for k in (1, 2))
    zeros = f"repeat('0', 32 - length({first}) - length({last}))"
    return f"case when {address} like '%:%' and {address} not like '%.%' then {first} || {zeros} || {last} end"


def _groups(text: str) -> str:
    """The digits of groups between colons."""
    each = f"[lpad(one, 4, '0') for one in string_split({text}, ':')]"
    return f"case when {text} = '' then '' else array_to_string({each}, '') end"

"""SQL that makes connections of samples: of `sockets` as `knee record` and `knee import` write it, and of `samples` and
`flows` of a run.

It is DuckDB's SQL, kept to what sqlglot can write for other engines: one text serves here and on a lake.
"""

from __future__ import annotations

from collections.abc import Collection

from tcpknee.datasets.sql import literal

from .assignment import UNASSIGNED, Log
from .columns import COLUMNS, Column, value

COUNTERS = (
    "bytes_acked",
    "bytes_sent",
    "bytes_retrans",
    "data_segs_out",
    "total_retrans",
    "delivered",
    "delivered_ce",
    "busy_us",
    "rwnd_limited_us",
    "sndbuf_limited_us",
    "reord_seen",
    "dsack_dups",
)
"""Columns of samples that only grow."""

ECN, ECN_SEEN = 8, 16
"""Bits of tcpi_options."""

_WORDS = {"netns": "VARCHAR", "process": "VARCHAR", "cgroup": "VARCHAR", "mark": "BIGINT", "local_port": "INTEGER"}
"""Columns of samples that stay as they are."""

_STATES = "('LISTEN', 'TIME-WAIT', 'NEW-SYN-RECV')"
"""Sockets that are no connections, or of which the kernel keeps no figures."""

_TYPES = {
    **_WORDS,
    "algorithm": "VARCHAR",
    "remote_addr": "VARCHAR",
    "remote_port": "INTEGER",
    "final": "BOOLEAN",
    "delivery_rate_app_limited": "BOOLEAN",
    "path_lost": "BIGINT",
}
"""Of the columns of `rows`; all others are BIGINT."""

_VALUES = (
    *_WORDS,
    "algorithm",
    "remote_addr",
    "remote_port",
    "final",
    "srtt_us",
    "min_rtt_us",
    "rttvar_us",
    "inflight",
    "unacked",
    "snd_cwnd",
    "snd_mss_bytes",
    "delivery_rate_bits_per_sec",
    "delivery_rate_app_limited",
    "path_lost",
    "options",
    "bbr_bw_bits_per_sec",
    "bbr_min_rtt_us",
    *COUNTERS,
)


def of_sockets(relation: str, held: Collection[str], boot: str, *, has_cookies: bool, has_clock: bool) -> str:
    """Rows of `sockets`, each with its `boot`, which is an expression over its columns. Where cookies are missing,
    ends stand for them. `has_clock`: every row tells `t_mono_ns`."""
    time = "coalesce(t_mono_ns, t_unix_ns)" if "t_mono_ns" in held else "t_unix_ns"
    if has_clock:
        # Of a plain column the engine knows which parts of a file are later than the first dump, and skips them.
        time = "t_mono_ns"
    ends = "local_addr, local_port, remote_addr, remote_port"
    cookie = "cookie" if has_cookies else f"coalesce(cookie, hash({ends}))"
    columns = [f"{boot} as boot", f"{cookie} as cookie", f"{time} as t_ns", "t_unix_ns", *_plain(held)]
    state = f" where state is null or state not in {_STATES}" if "state" in held else ""
    return f"select {', '.join(columns)} from {relation}{state}"


def of_run(samples: str, flows: str, held: Collection[str], of_flows: Collection[str], name: str) -> str:
    """Rows of a run's `samples`, as of `sockets`; each repetition is a host and boot of its own."""
    taken = {"algorithm", "path_lost", *_WORDS, "remote_addr", "remote_port", "final"}
    plain = [
        f"samples.{column}" if column in held else column
        for column in _plain(held)
        if column.rpartition(" ")[2] not in taken
    ]
    lost = " + ".join(f"flows.{one}" for one in ("path_lost_pkts", "queue_dropped_pkts") if one in of_flows)
    others = [f"cast(null as {_TYPES[column]}) as {column}" for column in (*_WORDS, "remote_addr", "remote_port")]
    columns = [
        f"{boot_of_run(name)} as boot",
        "cast(flow as ubigint) as cookie",
        "t_ns",
        "t_ns as t_unix_ns",
        *others,
        "flows.algorithm as algorithm",
        "flows.end_ns is not null and flows.end_ns <= t_ns as final",
        f"cast({lost or 'null'} as bigint) as path_lost",
        *plain,
    ]
    return f"select {', '.join(columns)} from {samples} as samples join {flows} as flows using (cell, rep, flow)"


def boot_of_run(name: str) -> str:
    """What stands for the boot of a repetition, as an expression over `cell` and `rep`."""
    return f"{literal(name)} || ' cell ' || cell || ' repetition ' || rep"


def _plain(held: Collection[str]) -> list[str]:
    """Columns as they are, and null in place of those that the table lacks."""
    return [name if name in held else f"cast(null as {_TYPES.get(name, 'BIGINT')}) as {name}" for name in _VALUES]


def aggregated(rows: str, *, one_boot: str | None = None) -> str:
    """One row per connection of such rows. `one_boot`: all of them are of that one, so that cookies tell them apart.

    What an aggregate passes over is null in its argument: FILTER takes several times as long. Medians are grouped by
    themselves: so the states of all groups in a chunk of rows fit the processor's cache, which saves more than reading
    the cookies twice costs.
    """
    words = [f"any_value({name}) as {name}" for name in (*_WORDS, "remote_addr", "remote_port")]
    free = "not coalesce(delivery_rate_app_limited, false) and delivery_rate_bits_per_sec > 0"
    values = [
        "boot" if one_boot is None else f"{literal(one_boot)} as boot",
        "cookie",
        "min(t_ns) as begin_t_ns, max(t_ns) as end_t_ns",
        "min(t_unix_ns) as begin_unix_ns, max(t_unix_ns) as end_unix_ns",
        "count(*) - coalesce(sum(cast(final as integer)), 0) as samples",
        "coalesce(bool_or(final), false) as final",
        "arg_max(algorithm, case when algorithm is not null then t_ns end) as algorithm",
        *words,
        *(f"max({name}) as last_{name}" for name in COUNTERS),
        "min(busy_us) as least_busy_us",
        "max(path_lost) as path_lost",
        "max(snd_cwnd) as snd_cwnd_max",
        "max(snd_mss_bytes) as snd_mss_bytes",
        f"bool_or(options & {ECN} > 0) as ecn, bool_or(options & {ECN_SEEN} > 0) as ecn_seen",
        *(
            f"cast(arg_max({name}, case when {name} > 0 then t_ns end) as double) as {name}"
            for name in ("bbr_bw_bits_per_sec", "bbr_min_rtt_us")
        ),
        "cast(min(case when min_rtt_us > 0 then min_rtt_us end) as double) as min_rtt_us",
        "avg(case when srtt_us > 0 then rttvar_us end) as rttvar_us",
        "1e2 * avg(cast(delivery_rate_app_limited as integer)) as app_limited_pct",
    ]
    medians = {
        "srtt_us": "case when srtt_us > 0 then cast(srtt_us as integer) end",
        "inflight_pkts": "case when coalesce(unacked, inflight) > 0 then cast(inflight as integer) end",
        "delivery_rate_bits_per_sec": f"case when {free} then cast(delivery_rate_bits_per_sec as real) end",
    }
    middle = [f"cast(median({value}) as double) as {name}" for name, value in medians.items()]
    keys = ["cookie"] if one_boot is not None else ["boot", "cookie"]
    by = ", ".join(keys)
    return f"""
        select plain.*, {", ".join(f"middle.{name}" for name in medians)}
        from (select {", ".join(values)} from ({rows}) as rows group by {by}) as plain
        join (select {", ".join([*keys, *middle])} from ({rows}) as rows group by {by}) as middle
             on {" and ".join(f"plain.{key} = middle.{key}" for key in keys)}
    """


def of_first_dumps(rows: str, last_ns: int, boots: str = "boots") -> str:
    """Counters of the connections that were there when the recording began, as its first dump tells them.

    `last_ns`: when the last of the boots' first dumps ended, so that later rows are not read. `boots`: the table of
    that name, or a query that has its `boot`, `netns` and `first_dump_ns`.
    """
    counters = ", ".join(f"min({name}) as first_{name}" for name in COUNTERS)
    return f"""
        select rows.boot, rows.cookie, {counters}
        from (select * from ({rows}) as all_rows where t_ns <= {last_ns}) as rows
        join {boots} as boots on rows.boot = boots.boot and rows.netns is not distinct from boots.netns
        where rows.t_ns <= boots.first_dump_ns and not coalesce(rows.final, false)
        group by rows.boot, rows.cookie
    """


def connections(seen: str, firsts: str | None, *, requests: bool, log: Log | None) -> str:
    """The table `connections` of such rows, of the table `boots` and, where they are, `requests` and `assignments`.

    Counters of a connection that the first dump of a recording has already are differences; of others they are whole.
    """
    begins = ", ".join(f"{f'coalesce(first_{name}, 0)' if firsts else '0'} as begin_{name}" for name in COUNTERS)
    early = f"left join ({firsts}) as firsts on seen.boot = firsts.boot and seen.cookie = firsts.cookie"
    throughput = "requests.app_throughput_bits_per_sec" if requests else "cast(null as double)"
    told, assigned = log.joined("counted.remote_addr") if log else (UNASSIGNED, "")
    arms = ", ".join(f"{value} as {name}" for name, value in told.items())
    joined = f"""
        select counted.*, {throughput} as app_throughput_bits_per_sec, {arms}
        from (
            select seen.*, boots.boot_id, boots.host_id, boots.host, boots.kernel, boots.tags, {begins},
                   {_PREFIX} as remote_prefix
            from ({seen}) as seen
            join boots on seen.boot = boots.boot and seen.netns is not distinct from boots.netns
            {early if firsts else ""}
        ) as counted
    """
    if requests:
        joined += " left join requests using (boot, cookie)"
    joined += assigned
    values = ", ".join(column.cast(value(column)) for column in COLUMNS)
    return f"select {values} from ({joined}) as joined"


def ready(relation: str, held: Collection[str], log: Log | None) -> str:
    """A table `connections` that is there already; columns that it lacks are null."""
    chosen = [column.cast(_known(column) if column.name in held else "null") for column in COLUMNS]
    found = f"select {', '.join(chosen)} from {relation}"
    if log is None:
        return found
    told, assigned = log.joined("split_part(counted.remote_prefix, '/', 1)", PREFIX_BITS)
    values = (
        f"coalesce(counted.{name}, {told[name]}) as {name}" if name in told else f"counted.{name} as {name}"
        for name in (column.name for column in COLUMNS)
    )
    return f"select {', '.join(values)} from ({found}) as counted {assigned}"


def _known(column: Column) -> str:
    """NaN is what some tools write for null."""
    if column.type != "DOUBLE":
        return column.name
    return f"case when isnan(cast({column.name} as double)) then null else {column.name} end"


_HEAD = "split_part(remote_addr, '::', 1)"
_GROUPS = ", ".join(f"coalesce(nullif(split_part({_HEAD}, ':', {k}), ''), '0')" for k in (1, 2, 3))
_PREFIX = f"""
    case when remote_addr like '%.%' then
             regexp_replace(replace(remote_addr, '::ffff:', ''), '[.][0-9]+$', '.0/24')
         when remote_addr like '::%' then '::/48'
         when remote_addr like '%:%' then regexp_replace(concat_ws(':', {_GROUPS}), '(:0)+$', '') || '::/48'
         else remote_addr end
"""
"""The client's network. A hash of an address has neither dots nor colons, and stays."""

PREFIX_BITS = {4: 24, 6: 48}
"""Bits of an address that are in it."""

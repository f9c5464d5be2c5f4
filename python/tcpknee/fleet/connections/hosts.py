"""The table `hosts`: what hosts count of themselves, hour by hour."""

from __future__ import annotations

from collections.abc import Sequence

HOUR_NS = 3_600_000_000_000

_BUSY = ("user_us", "nice_us", "system_us", "irq_us", "softirq_us", "steal_us")
_IDLE = ("idle_us", "iowait_us")


def hours_of_counters(relation: str) -> str:
    """The query for what a host's `counters` grew by in each hour."""
    return f"""
        select boot_id, t_unix_ns // {HOUR_NS} as hour, min(t_unix_ns) as begin_ns, max(t_unix_ns) as end_ns,
               {_grown("Tcp.RetransSegs")} as retransmitted, {_grown("Tcp.OutSegs")} as sent,
               {_grown("IpExt.OutOctets")} as bytes_sent, cast(null as double) as busy, cast(null as bigint) as idle
        from {relation} where cpu is null group by 1, 2
    """


def hours_of_cpu(relation: str) -> str:
    """The query for how long a host's processors were busy and idle in each hour."""
    nothing = ", ".join(f"cast(null as bigint) as {name}" for name in ("retransmitted", "sent", "bytes_sent"))
    return f"""
        select boot_id, hour, min(begin_ns) as begin_ns, max(end_ns) as end_ns, {nothing}, sum(busy) as busy,
               sum(idle) as idle
        from (select boot_id, cpu, t_unix_ns // {HOUR_NS} as hour, min(t_unix_ns) as begin_ns,
                     max(t_unix_ns) as end_ns, {_sum(_BUSY)} as busy, {_sum(_IDLE)} as idle
              from {relation} group by 1, 2, 3) as each_one
        group by boot_id, hour
    """


def of_hours(hours: Sequence[str]) -> str:
    """The query for the table, by queries for hours, of the hosts whose connections stand in `observed`."""
    return f"""
        select boots.host_id, boots.boot_id, min(begin_ns) as begin_unix_ns, max(end_ns) as end_unix_ns,
               100.0 * sum(retransmitted) / nullif(sum(sent), 0) as retrans_segs_pct,
               1e9 * sum(busy) / nullif(sum(bytes_sent), 0) as cpu_us_per_gb,
               100.0 * sum(idle) / nullif(sum(idle) + sum(busy), 0) as idle_cpu_pct,
               cast(sum(bytes_sent) as bigint) as bytes_sent
        from ({" union all ".join(hours)}) as hours
        join (select distinct boot_id, host_id from observed) as boots using (boot_id)
        group by boots.host_id, boots.boot_id, hour
    """


def _grown(counter: str) -> str:
    return f"max(value) filter (where name = '{counter}') - min(value) filter (where name = '{counter}')"


def _sum(columns: tuple[str, ...]) -> str:
    return " + ".join(f"max({name}) - min({name})" for name in columns)

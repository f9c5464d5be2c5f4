"""Requests of nginx's log matched to connections: by the client's address and port, and by time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

SLACK_NS = 2_000_000_000
"""A request may end this long after its connection's last sample, or before the first: clocks of logs have
milliseconds at best, and samples are a second apart."""

NEEDED = {
    "t_unix_ns": "$msec",
    "remote_addr": "$remote_addr",
    "remote_port": "$remote_port",
    "bytes_sent": "$bytes_sent",
    "request_time_us": "$request_time",
}
"""Columns, and what nginx calls each."""


def usable(logs: Mapping[str, Collection[str]], notes: list[str]) -> list[str]:
    """Of logs, by relation their columns, those that can be matched; that others cannot is noted."""
    lacking = {log: [name for name in NEEDED if name not in columns] for log, columns in logs.items()}
    missing = list(dict.fromkeys(NEEDED[name] for names in lacking.values() for name in names))
    if missing:
        count = sum(map(bool, lacking.values()))
        note = (
            f"requests: {count} of {len(logs)} logs say nothing of connections; their log_format lacks "
            f"{' and '.join(missing)}."
        )
        if note not in notes:
            notes.append(note)
    return [log for log, names in lacking.items() if not names]


def of_requests(logs: Sequence[str], seen: str) -> str:
    """The query for boot, cookie and app_throughput_bits_per_sec of the connections in `seen` that logs tell of."""
    asked = " union all ".join(f"select {', '.join(NEEDED)} from {log}" for log in logs)
    return f"""
        select seen.boot, seen.cookie, 8e6 * sum(asked.bytes_sent) / nullif(sum(asked.request_time_us), 0)
               as app_throughput_bits_per_sec
        from ({asked}) as asked
        join {seen} as seen on seen.remote_addr = asked.remote_addr and seen.remote_port = asked.remote_port
             and asked.t_unix_ns between seen.begin_unix_ns - {SLACK_NS} and seen.end_unix_ns + {SLACK_NS}
        group by seen.boot, seen.cookie
    """

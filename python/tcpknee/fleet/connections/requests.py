"""Requests of nginx's log matched to connections: by the client's address and port, and by time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

SLACK_NS = 2_000_000_000
"""A request may end this long after its connection's last sample, or before the first: clocks of logs have
milliseconds at best, and samples are a second apart."""

NEEDED = ("t_unix_ns", "remote_addr", "remote_port", "bytes_sent", "request_time_us")


def usable(logs: Mapping[str, Collection[str]], notes: list[str]) -> list[str]:
    """Of logs, by relation their columns, those that can be matched; that others cannot is noted."""
    found = [log for log, columns in logs.items() if set(NEEDED) <= set(columns)]
    if len(found) < len(logs):
        note = (
            f"requests: {len(logs) - len(found)} of {len(logs)} logs lack one of {', '.join(NEEDED)} and say nothing "
            "of connections; add $remote_port, $msec and $request_time to the log_format."
        )
        if note not in notes:
            notes.append(note)
    return found


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

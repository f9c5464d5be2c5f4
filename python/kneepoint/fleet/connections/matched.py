"""Requests of nginx's log matched to connections: by the client's address and port, and by time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .gather import Fleet

SLACK_NS = 2_000_000_000
"""A request may end this long after its connection's last sample, or before the first: clocks of logs have
milliseconds at best, and samples are a second apart."""

NEEDED = ("t_unix_ns", "remote_addr", "remote_port", "bytes_sent", "request_time_us")


def match_requests(fleet: Fleet, logs: Sequence[str]) -> None:
    """Makes the table `requests` (boot, cookie, app_throughput_bits_per_sec) of the connections in `seen`."""
    usable = [
        f"select {', '.join(NEEDED)} from {log}"
        for log in logs
        if set(NEEDED) <= {row[0] for row in fleet.database.execute(f"describe {log}").fetchall()}
    ]
    nothing = "select null as t_unix_ns, null as remote_addr, null as remote_port, null as bytes_sent, "
    asked = " union all ".join(usable) or f"{nothing} null as request_time_us where false"
    fleet.database.execute(f"""
        create or replace temp table requests as
        select boot, cookie, 8e6 * sum(asked.bytes_sent) / nullif(sum(asked.request_time_us), 0)
               as app_throughput_bits_per_sec
        from ({asked}) as asked
        join seen on seen.remote_addr = asked.remote_addr and seen.remote_port = asked.remote_port
             and asked.t_unix_ns between seen.begin_unix_ns - {SLACK_NS} and seen.end_unix_ns + {SLACK_NS}
        group by boot, cookie
    """)
    if len(usable) < len(logs):
        note = (
            f"requests: {len(logs) - len(usable)} of {len(logs)} logs lack one of {', '.join(NEEDED)} and say nothing "
            "of connections; add $remote_port, $msec and $request_time to the log_format."
        )
        if note not in fleet.notes:
            fleet.notes.append(note)

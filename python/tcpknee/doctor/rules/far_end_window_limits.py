"""The far end's receive window limits connections.

What it sees: busy connections that spent more than 20 % of their busy time with the far end's window full.
Why it matters: no setting of this host changes it. The far end reads too slowly, or its tcp_rmem is too small for the
rate times the round-trip time.
"""

from __future__ import annotations

from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

SHARE = 0.2


def _check(snapshot: Snapshot) -> list[Finding]:
    rows = [row for row in snapshot.rows("sockets") if row["remote"] != "loopback"]
    busy = sum(row["busy_connections"] or 0 for row in rows)
    limited = sum(row["rwnd_limited_connections"] or 0 for row in rows)
    if not limited or limited < SHARE * busy:
        return []
    wait = "waits" if busy == 1 else "wait"
    return [
        RULE.found(
            "advice",
            "far ends",
            f"{limited} of {busy} busy connections {wait} for the receiver's window.",
            {"rwnd_limited_connections": limited, "busy_connections": busy},
            confirm=["ss -tin state established | grep -o rwnd_limited.*"],
            advice="Take a snapshot at the far end, if it is yours, and look at tcp_rmem and the program there.",
            gain="These connections send up to what the path gives, once the far end lets them.",
        )
    ]


RULE = Rule(
    name="far-end-window-limits",
    group="buffers",
    summary="the receive window of the far end limits busy connections",
    source="tcp_info.tcpi_rwnd_limited (Linux 4.10)",
    manual=__doc__,
    check=_check,
    needs=("sockets",),
)

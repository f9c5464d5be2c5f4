"""Connections begin anew after each pause.

What it sees: tcp_slow_start_after_idle is on, and ten or more busy connections go over 10 ms and more with an
algorithm that keeps a window.
Why it matters: after a pause of one retransmission timeout the window falls back to ten segments. A kept-open
connection that answers now and then pays slow start for each answer.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

LEAST_BUSY = 10


def _check(snapshot: Snapshot) -> list[Finding]:
    if facts.number(snapshot, "net.ipv4.tcp_slow_start_after_idle") != 1:
        return []
    rows = [
        row
        for row in snapshot.rows("sockets")
        if row["rtt_band"] in ("10-50ms", "above-50ms") and not facts.BBR.match(row["algorithm"] or "")
    ]
    busy = sum(row["busy_connections"] or 0 for row in rows)
    if busy < LEAST_BUSY:
        return []
    rtt_us = max(row["srtt_us_p50"] or 0 for row in rows)
    return [
        RULE.found(
            "advice",
            "net.ipv4.tcp_slow_start_after_idle",
            f"{busy} busy connections over 10 ms and more start slowly again after each pause.",
            {"busy_connections": busy, "srtt_us_p50": rtt_us},
            confirm=["sysctl net.ipv4.tcp_slow_start_after_idle"],
            changes=[Sysctl("net.ipv4.tcp_slow_start_after_idle", "0", netns=snapshot.netns)],
            gain=f"Up to some round-trip times of {rtt_us / 1000:.0f} ms for each large answer after a pause; more "
            "losses where the path has become slower meanwhile.",
        )
    ]


RULE = Rule(
    name="slow-start-after-idle",
    group="buffers",
    summary="kept-open connections over long paths start slowly after each pause",
    source="Documentation/networking/ip-sysctl.rst, tcp_slow_start_after_idle; RFC 2861, RFC 5681 section 4.1",
    manual=__doc__,
    check=_check,
    needs=("sockets", "sysctls"),
)

"""BBR has the connections inside the data centre.

What it sees: most busy connections of BBR go to private addresses less than 1 ms away.
Why it matters: there the queue is in a switch with deep buffers for such a round-trip time, and losses mean
congestion. BBR's pacing timers cost processor time for each of many small requests, and its probing gains nothing;
CUBIC, or DCTCP where switches mark, does as well for less.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

MOST = 0.5
LEAST_BUSY = 10


def _check(snapshot: Snapshot) -> list[Finding]:
    rows = [
        row
        for row in snapshot.rows("sockets")
        if facts.BBR.match(row["algorithm"] or "") and row["remote"] != "loopback"
    ]
    busy = sum(row["busy_connections"] or 0 for row in rows)
    near = sum(
        row["busy_connections"] or 0 for row in rows if row["remote"] == "private" and row["rtt_band"] == "below-1ms"
    )
    if near < LEAST_BUSY or near <= MOST * busy:
        return []
    return [
        RULE.found(
            "advice",
            "bbr",
            f"{near} of {busy} busy connections of BBR stay within 1 ms.",
            {"busy_connections": busy, "below_1ms": near, "kernel": snapshot.host["kernel"]},
            confirm=["ss -tin state established"],
            changes=[Sysctl("net.ipv4.tcp_congestion_control", "cubic", netns=snapshot.netns)] if near == busy else [],
            advice=""
            if near == busy
            else "Give these far ends another algorithm by route (ip route … congctl cubic), and leave the others.",
            gain="Less processor time per request; `knee recommend` says how much here.",
        )
    ]


RULE = Rule(
    name="bbr-inside-data-centre",
    group="algorithm",
    summary="BBR has connections that stay inside the data centre",
    source="Cao et al., When to use and when not to use BBR, IMC 2019; docs/claims.md (articles A and E)",
    manual=__doc__,
    check=_check,
    needs=("sockets", "host"),
)

"""DCTCP leaves the data centre.

What it sees: connections of DCTCP to public addresses.
Why it matters: DCTCP reacts to marks of switches that are set for it. Where nobody marks it behaves as Reno; where
others share the queue it takes more than its share.
"""

from __future__ import annotations

from tcpknee.doctor.changes import Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule


def _check(snapshot: Snapshot) -> list[Finding]:
    rows = [row for row in snapshot.rows("sockets") if row["algorithm"] == "dctcp" and row["remote"] == "public"]
    count = sum(row["connections"] or 0 for row in rows)
    if not count:
        return []
    return [
        RULE.found(
            "warning",
            "dctcp",
            f"{count} connections of DCTCP go to public addresses.",
            {"connections": count, "delivered_ce": sum(row["delivered_ce"] or 0 for row in rows)},
            confirm=["ss -tin state established | grep -B1 dctcp"],
            changes=[Sysctl("net.ipv4.tcp_congestion_control", "cubic", netns=snapshot.netns)],
            advice="Give DCTCP by route to the networks whose switches mark (ip route … congctl dctcp).",
            gain="Fairness to others, and CUBIC's growth on long paths.",
        )
    ]


RULE = Rule(
    name="dctcp-outside",
    group="algorithm",
    summary="DCTCP has connections to public addresses",
    source="RFC 8257, section 1 (it must not be deployed over the public Internet without additional measures)",
    manual=__doc__,
    check=_check,
    needs=("sockets",),
)

"""Connections are forgotten before their time.

What it sees: TIME_WAIT sockets that were destroyed because there were tcp_max_tw_buckets of them.
Why it matters: a late segment of such a connection meets a new one with the same ports, or is answered with a reset.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

TODAY = 262_144


def _check(snapshot: Snapshot) -> list[Finding]:
    overflows = facts.counted(snapshot, "TcpExt.TCPTimeWaitOverflow")
    most = facts.number(snapshot, "net.ipv4.tcp_max_tw_buckets")
    if not overflows or most is None:
        return []
    return [
        RULE.found(
            "warning",
            "net.ipv4.tcp_max_tw_buckets",
            f"{overflows:,} TIME_WAIT sockets found no place among {most:,}.",
            {"time_wait_overflows": overflows, "tcp_max_tw_buckets": most},
            confirm=["nstat -az TcpExtTCPTimeWaitOverflow", "ss -s"],
            changes=[Sysctl("net.ipv4.tcp_max_tw_buckets", str(max(TODAY, 2 * most)), netns=snapshot.netns)],
            gain="Closed connections end as they should.",
            events=overflows,
            of=facts.counted(snapshot, "Tcp.PassiveOpens", "Tcp.ActiveOpens"),
        )
    ]


RULE = Rule(
    name="time-wait-overflow",
    group="limits",
    summary="more connections are in TIME_WAIT than may be",
    source="Documentation/networking/ip-sysctl.rst, tcp_max_tw_buckets (it must not be lowered artificially)",
    manual=__doc__,
    check=_check,
    needs=("counters", "sysctls"),
    counts=("time_wait_overflows",),
)

"""TCP options are turned off.

What it sees: window scaling, SACK, timestamps or receive buffer autotuning is off.
Why it matters: without window scaling a connection has at most 64 KiB in flight, so 5 Mbit/s at 100 ms. Without SACK
it repairs about one loss for each round trip. Without timestamps it cannot tell an ACK of a retransmission from that
of the original. Without autotuning every connection keeps the buffer that it began with.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Sysctl
from tcpknee.doctor.finding import Finding, Severity
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

OPTIONS: dict[str, Severity] = {
    "net.ipv4.tcp_window_scaling": "critical",
    "net.ipv4.tcp_sack": "warning",
    "net.ipv4.tcp_moderate_rcvbuf": "warning",
    "net.ipv4.tcp_timestamps": "advice",
}


def _check(snapshot: Snapshot) -> list[Finding]:
    return [
        RULE.found(
            severity,
            name,
            f"{name} is off.",
            {"value": 0, "connections": sum(facts.connections(snapshot).values())},
            confirm=[f"sysctl {name}"],
            changes=[Sysctl(name, "1", netns=snapshot.netns)],
            gain="New connections use the option where the far end does too.",
        )
        for name, severity in OPTIONS.items()
        if facts.number(snapshot, name) == 0
    ]


RULE = Rule(
    name="options-off",
    group="buffers",
    summary="window scaling, SACK, timestamps or autotuning is off",
    source="RFC 7323 (scaling, timestamps), RFC 2018 (SACK); Documentation/networking/ip-sysctl.rst",
    manual=__doc__,
    check=_check,
    needs=("sysctls",),
)

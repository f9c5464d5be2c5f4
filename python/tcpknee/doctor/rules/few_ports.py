"""Few ports are left for outgoing connections.

What it sees: a host that opens more connections than it accepts, with more of them open or in TIME_WAIT than half of
ip_local_port_range.
Why it matters: a connection to the same address and port needs a local port of its own. When none is free, connect()
fails, and before that it searches long.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

SHARE = 0.5
WIDE = (1024, 65535)


def _check(snapshot: Snapshot) -> list[Finding]:
    ports = facts.vector(snapshot, "net.ipv4.ip_local_port_range")
    if ports is None or len(ports) != 2:
        return []
    size = ports[1] - ports[0] + 1
    # TIME_WAIT has one count for both families, what is open has one for each.
    open_now, waiting = facts.counted(snapshot, "TCP.inuse", "TCP6.inuse"), facts.counted(snapshot, "TCP.tw")
    used = open_now + waiting
    outward = facts.counted(snapshot, "Tcp.ActiveOpens") > facts.counted(snapshot, "Tcp.PassiveOpens")
    if not outward or size <= 0 or used < SHARE * size:
        return []
    return [
        RULE.found(
            "warning",
            "net.ipv4.ip_local_port_range",
            f"{used:,} connections are open or in TIME_WAIT, with {size:,} local ports.",
            {
                "in_use": open_now,
                "time_wait": waiting,
                "ports": size,
                "active_opens": facts.counted(snapshot, "Tcp.ActiveOpens"),
            },
            confirm=["ss -s", "ss -tn | awk '{print $5}' | sort | uniq -c | sort -n | tail -3"],
            changes=[
                Sysctl("net.ipv4.ip_local_port_range", f"{WIDE[0]} {WIDE[1]}", netns=snapshot.netns),
            ]
            if size < WIDE[1] - WIDE[0]
            else [],
            advice="Keep connections open (keep-alive, pools), or spread them over more addresses. Reserve ports of "
            "listeners with ip_local_reserved_ports.",
            gain="connect() finds a port at once.",
        )
    ]


RULE = Rule(
    name="few-ports",
    group="limits",
    summary="local ports for outgoing connections run out",
    source="Documentation/networking/ip-sysctl.rst, ip_local_port_range",
    manual=__doc__,
    check=_check,
    needs=("sysctls", "counters"),
)

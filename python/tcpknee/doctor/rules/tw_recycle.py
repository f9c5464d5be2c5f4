"""tcp_tw_recycle drops clients behind NAT.

What it sees: net.ipv4.tcp_tw_recycle is on.
Why it matters: the kernel then takes timestamps of one address for those of one host. Several clients behind one
address have several clocks: SYNs of those whose clock is behind are dropped. Linux 4.12 took the setting away.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule


def _check(snapshot: Snapshot) -> list[Finding]:
    if not facts.number(snapshot, "net.ipv4.tcp_tw_recycle"):
        return []
    return [
        RULE.found(
            "critical",
            "net.ipv4.tcp_tw_recycle",
            "net.ipv4.tcp_tw_recycle is on: clients behind NAT are refused at random.",
            {
                "tcp_tw_recycle": 1,
                "kernel": snapshot.host["kernel"],
                "refused_by_timestamp": facts.counted(snapshot, "TcpExt.PAWSPassive"),
            },
            confirm=["sysctl net.ipv4.tcp_tw_recycle", "nstat -az TcpExtPAWSPassive"],
            changes=[Sysctl("net.ipv4.tcp_tw_recycle", "0", netns=snapshot.netns)],
            gain="Clients behind NAT connect at the first attempt.",
        )
    ]


RULE = Rule(
    name="tw-recycle",
    group="limits",
    summary="tcp_tw_recycle drops clients behind NAT",
    source="Linux 4396e46187ca (4.12, tcp_tw_recycle removed)",
    manual=__doc__,
    check=_check,
    needs=("sysctls",),
)

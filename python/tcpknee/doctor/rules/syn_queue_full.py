"""Handshakes overflow the queue for them.

What it sees: SYN cookies were sent, or requests dropped because the queue was full, for at least one accepted
connection in 1,000.
Why it matters: a cookie keeps no state, so the connection has no window scaling and no SACK unless the client sends
timestamps. Without cookies the SYN is dropped. The cause is load, or an attack.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Change, Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

SHARE = 1e-3
LARGER = 8192


def _check(snapshot: Snapshot) -> list[Finding]:
    cookies = facts.counted(snapshot, "TcpExt.TCPReqQFullDoCookies")
    drops = facts.counted(snapshot, "TcpExt.TCPReqQFullDrop")
    opened = facts.counted(snapshot, "Tcp.PassiveOpens")
    if not cookies + drops or cookies + drops < SHARE * opened:
        return []
    backlog = facts.number(snapshot, "net.ipv4.tcp_max_syn_backlog")
    changes: list[Change] = []
    if backlog is not None and backlog < LARGER:
        changes.append(Sysctl("net.ipv4.tcp_max_syn_backlog", str(LARGER), netns=snapshot.netns))
    if facts.number(snapshot, "net.ipv4.tcp_syncookies") == 0:
        changes.append(Sysctl("net.ipv4.tcp_syncookies", "1", netns=snapshot.netns))
    return [
        RULE.found(
            "critical" if drops else "warning",
            "net.ipv4.tcp_max_syn_backlog",
            f"The queue of handshakes was full {cookies + drops:,} times: {cookies:,} cookies, {drops:,} drops.",
            {"cookies": cookies, "drops": drops, "passive_opens": opened, "tcp_max_syn_backlog": backlog},
            confirm=["nstat -az TcpExtTCPReqQFullDoCookies TcpExtTCPReqQFullDrop", "ss -tn state syn-recv | wc -l"],
            changes=changes,
            advice="Look whether this is an attack: a longer queue does not help then.",
            gain="Connections keep their options, and no SYN is dropped.",
            events=cookies + drops,
            of=opened,
        )
    ]


RULE = Rule(
    name="syn-queue-full",
    group="limits",
    summary="the queue of handshakes overflows",
    source="Documentation/networking/ip-sysctl.rst, tcp_max_syn_backlog and tcp_syncookies",
    manual=__doc__,
    check=_check,
    needs=("counters", "sysctls"),
    counts=("cookies", "drops"),
)

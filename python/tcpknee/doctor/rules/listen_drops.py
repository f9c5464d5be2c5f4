"""A listener refuses connections because its queue is full.

What it sees: a listener whose queue is full now, or at least one in 10,000 accepted connections found one full since
boot.
Why it matters: the SYN or the last ACK of the handshake is dropped. The client waits a second and more before it
tries again. The queue's length is the smaller of what the program asks for and net.core.somaxconn.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Change, Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

SHARE = 1e-4
TODAY = 4096


def _check(snapshot: Snapshot) -> list[Finding]:
    overflows = facts.counted(snapshot, "TcpExt.ListenOverflows")
    opened = facts.counted(snapshot, "Tcp.PassiveOpens")
    full = [
        row
        for row in snapshot.rows("listeners")
        if row["backlog"] is not None and row["queued"] and row["queued"] > row["backlog"]
    ]
    if not full and (not overflows or overflows < SHARE * opened):
        return []
    most = facts.number(snapshot, "net.core.somaxconn")
    changes: list[Change] = []
    if most is not None and most < TODAY:
        changes = [Sysctl("net.core.somaxconn", str(TODAY), netns=snapshot.netns)]
    ports = ", ".join(str(row["local_port"]) for row in full[:8])
    return [
        RULE.found(
            "critical" if full else "warning",
            f"port {ports}" if full else "listeners",
            f"The accept queue of port {ports} is full now."
            if full
            else f"{overflows:,} connections found the accept queue full, {opened:,} were accepted.",
            {
                "listen_overflows": overflows,
                "listen_drops": facts.counted(snapshot, "TcpExt.ListenDrops"),
                "passive_opens": opened,
                "somaxconn": most,
                "uptime_sec": snapshot.host["uptime_sec"],
            },
            confirm=["ss -ltn", "nstat -az TcpExtListenOverflows TcpExtListenDrops"],
            changes=changes,
            advice="Let the program accept faster, and ask for a longer queue in listen(): it is restarted for that.",
            gain="Clients that found the queue full no longer wait 1 s and more.",
            events=None if full else overflows,
            of=opened,
        )
    ]


RULE = Rule(
    name="listen-drops",
    group="limits",
    summary="connections are refused because a listener's queue is full",
    source="Documentation/networking/ip-sysctl.rst, somaxconn; listen(2)",
    manual=__doc__,
    check=_check,
    needs=("counters", "listeners"),
    counts=("listen_overflows",),
)

"""A listener refuses connections because its queue is full.

What it sees: a listener whose queue is full now, or queues that were full at least once in 10,000 accepted
connections since boot. The kernel counts attempts: a connection that tries again and finds it full counts again.
Why it matters: the SYN or the last ACK of the handshake is dropped. The client waits a second and more before it
tries again. The queue's length is the smaller of what the program asks for in listen() and net.core.somaxconn: a
longer somaxconn helps only where the queue's length (Send-Q of `ss -ltn`) equals it.
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
    # Which queues were full before is not known: any of them may have been.
    asked = [row["backlog"] for row in full or snapshot.rows("listeners") if row["backlog"] is not None]
    is_bound = most is not None and most in asked
    if most is not None and is_bound and most < TODAY:
        changes = [Sysctl("net.core.somaxconn", str(TODAY), netns=snapshot.netns)]
    ports = ", ".join(str(row["local_port"]) for row in full[:8])
    return [
        RULE.found(
            "critical" if full else "warning",
            f"port {ports}" if full else "listeners",
            f"The accept queue of port {ports} is full now."
            if full
            else f"An accept queue was full {overflows:,} times, retries included; {opened:,} connections were "
            "accepted.",
            {
                "listen_overflows": overflows,
                "listen_drops": facts.counted(snapshot, "TcpExt.ListenDrops"),
                "passive_opens": opened,
                "somaxconn": most,
                "backlog": min(asked, default=None),
                "uptime_sec": snapshot.host["uptime_sec"],
            },
            confirm=["ss -ltn", "nstat -az TcpExtListenOverflows TcpExtListenDrops"],
            changes=changes,
            advice=_advice(most, is_bound=is_bound, is_changed=bool(changes), is_now=bool(full)),
            gain="Clients that found the queue full no longer wait 1 s and more.",
            events=None if full else overflows,
            of=opened,
        )
    ]


def _advice(most: int | None, *, is_bound: bool, is_changed: bool, is_now: bool) -> str:
    if is_changed:
        return "Let the program accept faster. Restart it: a listener keeps the bound that it began with."
    faster = "Let the program accept faster, and"
    if is_bound:
        return f"{faster} raise both net.core.somaxconn and what it asks for in listen(): it is restarted for that."
    of_which = "its queue is not" if is_now else "no listener's queue is"
    why = "" if most is None else f" A larger net.core.somaxconn does nothing: {of_which} bounded by it ({most:,})."
    return f"{faster} ask for a longer queue in listen(): it is restarted for that.{why}"


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

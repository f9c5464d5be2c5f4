"""Received data is dropped because a socket's buffer is full.

What it sees: segments pruned from receive queues, or dropped at a full backlog, for at least one received in 100,000.
Why it matters: the data had arrived and is sent once more. Its program reads too slowly for the buffer that it has,
or small packets take more memory than the window allowed for.
"""

from __future__ import annotations

from kneepoint.doctor import facts
from kneepoint.doctor.finding import Finding
from kneepoint.doctor.snapshot import Snapshot

from .rule import Rule

SHARE = 1e-5
COUNTERS = ("TcpExt.PruneCalled", "TcpExt.RcvPruned", "TcpExt.TCPBacklogDrop", "TcpExt.TCPRcvQDrop")


def _check(snapshot: Snapshot) -> list[Finding]:
    counts = {name.partition(".")[2]: facts.counted(snapshot, name) for name in COUNTERS}
    received = facts.counted(snapshot, "Tcp.InSegs")
    total = sum(counts.values())
    if not total or total < SHARE * received:
        return []
    return [
        RULE.found(
            "warning",
            "receive buffers",
            f"Receive queues overflowed {total:,} times in {received:,} segments.",
            {**counts, "in_segs": received},
            confirm=["nstat -az TcpExtPruneCalled TcpExtRcvPruned TcpExtTCPBacklogDrop TcpExtTCPRcvQDrop", "ss -tnm"],
            advice="Look for the program whose Recv-Q stands, and for SO_RCVBUF that it sets; then for tcp_rmem.",
            gain="These segments need not be sent again.",
        )
    ]


RULE = Rule(
    name="receive-queue-pruned",
    group="limits",
    summary="received data is dropped because sockets' buffers are full",
    source="Documentation/networking/snmp_counter.rst, TcpExtPruneCalled, TcpExtTCPRcvQDrop, TcpExtTCPBacklogDrop",
    manual=__doc__,
    check=_check,
    needs=("counters",),
    counts=tuple(name.partition(".")[2] for name in COUNTERS),
)

"""Received data is dropped because a socket's buffer is full.

What it sees: segments dropped because a receive queue or a backlog was full, at least one of 100,000 received.
Why it matters: the data had arrived and is sent once more. Its program reads too slowly for the buffer that it has,
or small packets take more memory than the window allowed for.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

SHARE = 1e-5
DROPS = ("TCPRcvQDrop", "TCPOFODrop", "TCPBacklogDrop")
"""A segment raises one of them: meant for the receive queue, for the queue of those out of order, for the backlog."""
PRUNES = ("PruneCalled", "RcvPruned", "OfoPruned")
"""Attempts to make room, failures of them, and queues out of order that were thrown away for it. A failure raises
PruneCalled, RcvPruned and one of `DROPS`; an attempt that makes room drops nothing that comes (tcp_try_rmem_schedule()
and tcp_prune_queue() in net/ipv4/tcp_input.c)."""


def _check(snapshot: Snapshot) -> list[Finding]:
    counts = {name: facts.counted(snapshot, f"TcpExt.{name}") for name in (*DROPS, *PRUNES)}
    received = facts.counted(snapshot, "Tcp.InSegs")
    dropped = sum(counts[name] for name in DROPS)
    if snapshot.counter("TcpExt.TCPRcvQDrop") is None:
        # Before Linux 4.19 only failures of pruning tell of drops at the receive queue; some are drops out of order.
        dropped = max(counts["RcvPruned"], counts["TCPOFODrop"]) + counts["TCPBacklogDrop"]
    if not dropped or dropped < SHARE * received:
        return []
    return [
        RULE.found(
            "warning",
            "receive buffers",
            f"Sockets without room dropped {dropped:,} of {received:,} received segments.",
            {**counts, "in_segs": received},
            confirm=[f"nstat -az {' '.join(f'TcpExt{name}' for name in counts)}", "ss -tnm"],
            advice="`ss -tnm` shows the program whose Recv-Q stays above zero: it reads too slowly. See whether it "
            "sets SO_RCVBUF; then look at tcp_rmem.",
            gain="These segments need not be sent again.",
            events=dropped,
            of=received,
        )
    ]


RULE = Rule(
    name="receive-queue-pruned",
    group="limits",
    summary="received data is dropped because sockets' buffers are full",
    source="Linux 6cce09f87a04 (2.6.34, TCPBacklogDrop), a6df1ae93836 (3.6, TCPOFODrop), ea5d0c32498e (4.19, "
    "TCPRcvQDrop); Documentation/networking/snmp_counter.rst, TcpExtPruneCalled, TcpExtRcvPruned",
    manual=__doc__,
    check=_check,
    needs=("counters",),
    counts=(*DROPS, "RcvPruned"),
)

"""Much is retransmitted that had arrived.

What it sees: far ends reported at least 30 % of the retransmitted segments as duplicates.
Why it matters: packets are reordered or delayed, not lost. TCP slows down and sends twice. Reordering within this
host comes from several queues for one connection, round-robin bonding, or the fast path of fq.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

SHARE = 0.3
LEAST = 10_000
NOTABLE = 1e-3


def _check(snapshot: Snapshot) -> list[Finding]:
    again = facts.counted(snapshot, "Tcp.RetransSegs")
    # OutSegs leaves out what is sent again.
    sent = facts.counted(snapshot, "Tcp.OutSegs") + again
    twice = facts.counted(snapshot, "TcpExt.TCPDSACKRecv")
    if again < LEAST or again < NOTABLE * sent or twice < SHARE * again:
        return []
    return [
        RULE.found(
            "warning",
            "retransmissions",
            f"{100 * twice / again:.0f} % of {again:,} retransmitted segments had arrived before.",
            {
                "retransmitted": again,
                "dsack_received": twice,
                "retransmit_pct": round(100 * again / sent, 2),
                "reordering_seen": facts.counted(snapshot, "TcpExt.TCPSACKReorder", "TcpExt.TCPTSReorder"),
                "spurious_timeouts": facts.counted(snapshot, "TcpExt.TCPSpuriousRTOs"),
            },
            confirm=["nstat -az TcpExtTCPDSACKRecv TcpRetransSegs TcpExtTCPSACKReorder"],
            advice="`knee trace` on a connection shows when; `knee doctor --explain fq-fast-path-reorders` is a cause.",
            gain="Up to that share of retransmissions, and the windows that they cost.",
        )
    ]


RULE = Rule(
    name="spurious-retransmissions",
    group="limits",
    summary="many retransmitted segments had arrived before",
    source="RFC 3708 (duplicate SACK); Documentation/networking/snmp_counter.rst, TcpExtTCPDSACKRecv",
    manual=__doc__,
    check=_check,
    needs=("counters",),
    counts=("dsack_received",),
)

"""This kernel drops what a receive buffer has room for, and shrinks the buffer.

What it sees: Linux 6.17, 6.18 before 6.18.17 or 6.19 before 6.19.7, with connections that received 1 MB or more. It is
a warning where receive queues dropped segments, at least 100 and one of 10,000, as the defect makes them do.
Why it matters: since 6.17 a segment counts with its own length before it is queued. A large one that arrives while a
buffer of the default size is not read yet is dropped, and the buffer shrinks to what it holds. Repeated, this leaves a
window of a few KiB, and the sender goes on by timeouts. It was seen over loopback and with large segments.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

FIRST = (6, 17)
FIXED_IN = {(6, 18): 17, (6, 19): 7}
"""Stable releases that took the fix over; 6.17 ended before it, and 7.0 began with it."""
FIXED = (7, 0)
LEAST_BYTES = 1_000_000
"""The report is of connections that had exchanged more than that."""


def _check(snapshot: Snapshot) -> list[Finding]:
    version = facts.kernel(snapshot)
    if version is None or not FIRST <= version < FIXED:
        return []
    if version in FIXED_IN and facts.patch_level(snapshot) >= FIXED_IN[version]:
        return []
    receiving = [row for row in snapshot.rows("sockets") if (row["bytes_received"] or 0) >= LEAST_BYTES]
    dropped, received = (facts.counted(snapshot, name) for name in ("TcpExt.TCPRcvQDrop", "Tcp.InSegs"))
    if not receiving:
        return []
    shown = f"; receive queues dropped {dropped:,} of {received:,} segments" if dropped else ""
    return [
        RULE.found(
            "warning",
            "kernel",
            f"Linux {version[0]}.{version[1]} drops what fits a receive buffer, and shrinks the buffer{shown}.",
            {
                "kernel": snapshot.host["kernel"],
                "rcvq_drops": dropped,
                "in_segs": received,
                "connections": sum(row["connections"] or 0 for row in receiving),
                "bytes_received": sum(row["bytes_received"] for row in receiving),
            },
            confirm=["nstat -az TcpExtTCPRcvQDrop TcpInSegs", "ss -tnmi state established"],
            advice="Update the kernel to 6.18.17, 6.19.7 or 7.0, or later, unless the distribution says that it has "
            "026dfef287c0. In ss, a socket that suffers has d above 0 and a small rb (skmem).",
            gain="Uploads over one connection no longer wait for timeouts. Expect nothing where rcvq_drops stays 0.",
            events=dropped,
            of=received,
        )
    ]


RULE = Rule(
    name="receive-buffer-shrinks",
    group="buffers",
    summary="this kernel drops what fits a receive buffer, and shrinks the buffer",
    source="Linux 1d2fbaad7cd8 (6.17, the check), f017c1f768b6 (6.18, relaxed), 026dfef287c0 (7.0, taken back; stable "
    "6.18.17 and 6.19.7)",
    manual=__doc__,
    check=_check,
    needs=("host", "sockets"),
    counts=("rcvq_drops",),
)

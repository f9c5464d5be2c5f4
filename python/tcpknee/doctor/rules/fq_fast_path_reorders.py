"""The fast path of fq reorders packets.

What it sees: Linux 6.7 to 6.12 with packets through the fast path of fq, and a release from before the fix.
Why it matters: a packet may take the fast path while earlier packets of its connection are due but not sent yet. It
overtakes them, the far end reports a hole, and TCP retransmits for nothing.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

FIRST, LAST = (6, 7), (6, 12)
FIXED_IN = {(6, 11): 11, (6, 12): 2}
"""Stable releases that have the fix, both of 2024-12-05; 6.7 to 6.10 were no longer made then."""


def _check(snapshot: Snapshot) -> list[Finding]:
    version = facts.kernel(snapshot)
    if version is None or not FIRST <= version <= LAST:
        return []
    patch = facts.patch_level(snapshot)
    if version in FIXED_IN and patch >= FIXED_IN[version]:
        return []
    fast = sum(leaf["fastpath_pkts"] or 0 for leaf in snapshot.rows("qdiscs") if leaf["kind"] == "fq")
    if not fast:
        return []
    return [
        RULE.found(
            "warning",
            "kernel",
            f"Linux {version[0]}.{version[1]} has a defect in fq's fast path, which {fast:,} packets took.",
            {
                "kernel": snapshot.host["kernel"],
                "fastpath_pkts": fast,
                "dsack_received": facts.counted(snapshot, "TcpExt.TCPDSACKRecv"),
                "retransmitted": facts.counted(snapshot, "Tcp.RetransSegs"),
            },
            confirm=["nstat -az TcpExtTCPDSACKRecv TcpRetransSegs", "tc -s qdisc show"],
            advice="Update the kernel to 6.12.2 or later, unless the distribution says that it has 122aba8c8061.",
            gain="The fix shows 2,300 to 2,800 retransmissions per second at 19 Gbit/s before it.",
            events=fast,
        )
    ]


RULE = Rule(
    name="fq-fast-path-reorders",
    group="pacing",
    summary="fq of this kernel sends packets out of order",
    source="Linux 076433bd78d7 (6.7, fast path), 122aba8c8061 (6.13, the fix), stable reviews of 6.11.11 and 6.12.2, "
    "which took it over (lore.kernel.org, 2024-12-03)",
    manual=__doc__,
    check=_check,
    needs=("host", "qdiscs"),
    counts=("fastpath_pkts",),
)

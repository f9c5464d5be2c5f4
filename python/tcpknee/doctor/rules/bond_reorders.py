"""A bond sends packets of one connection by several links.

What it sees: a bond of mode balance-rr.
Why it matters: packets of a connection overtake each other. TCP takes that for loss, retransmits and slows down; the
kernel's documentation says that it seldom gets more than one link's rate.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule


def _check(snapshot: Snapshot) -> list[Finding]:
    return [
        RULE.found(
            "warning",
            row["interface"],
            f"{row['interface']} deals packets out to its links in turn (balance-rr).",
            {
                "bond_mode": row["bond_mode"],
                "members": len(facts.members(snapshot).get(row["interface"], [])),
                "reordering_seen": facts.counted(snapshot, "TcpExt.TCPSACKReorder", "TcpExt.TCPTSReorder"),
            },
            confirm=[f"cat /proc/net/bonding/{row['interface']}", "nstat -az TcpExtTCPSACKReorder"],
            advice="802.3ad with xmit_hash_policy layer3+4 keeps a connection on one link; the switch has to agree.",
            gain="Fewer retransmissions; one connection then has one link's rate.",
        )
        for row in snapshot.rows("interfaces")
        if row["kind"] == "bond" and row["bond_mode"] == "balance-rr"
    ]


RULE = Rule(
    name="bond-reorders",
    group="cloud",
    summary="a bond sends packets of one connection by several links in turn",
    source="Documentation/networking/bonding.rst, Maximum Throughput in a Single Switch Topology, balance-rr",
    manual=__doc__,
    check=_check,
    needs=("interfaces",),
)

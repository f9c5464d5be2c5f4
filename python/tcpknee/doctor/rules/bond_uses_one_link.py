"""A bond chooses its link by the neighbour's address.

What it sees: a bond of mode 802.3ad or balance-xor with the hash layer2, and a default route through it.
Why it matters: all that goes to other networks goes to one neighbour, the router, and so by one link.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule


def _check(snapshot: Snapshot) -> list[Finding]:
    findings = []
    by_master = facts.members(snapshot)
    for row in snapshot.rows("interfaces"):
        members = by_master.get(row["interface"], [])
        if (
            row["bond_mode"] not in ("802.3ad", "balance-xor")
            or row["bond_xmit_hash_policy"] != "layer2"
            or not row["default_route"]
            or len(members) < 2
        ):
            continue
        findings.append(
            RULE.found(
                "warning",
                row["interface"],
                f"{row['interface']} sends all that leaves its network by one of {len(members)} links.",
                {
                    "bond_mode": row["bond_mode"],
                    "xmit_hash_policy": row["bond_xmit_hash_policy"],
                    **{f"{one['interface']} tx_bytes": one["tx_bytes"] for one in members[:8]},
                },
                confirm=[f"cat /proc/net/bonding/{row['interface']}", "ip -s link"],
                advice="Set xmit_hash_policy to layer3+4 where the bond is configured.",
                gain=f"Up to {len(members)} links' rate for several connections.",
            )
        )
    return findings


RULE = Rule(
    name="bond-uses-one-link",
    group="cloud",
    summary="a bond's hash sends everything to the router by one link",
    source="Documentation/networking/bonding.rst, xmit_hash_policy (layer2)",
    manual=__doc__,
    check=_check,
    needs=("interfaces",),
)

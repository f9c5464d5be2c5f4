"""Interfaces that belong together have different MTUs.

What it sees: members of a bridge or bond with different MTUs, or a VLAN whose packets are larger than its device
takes.
Why it matters: within one network nobody reports that a packet is too big. Small packets pass, large ones vanish.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule


def _check(snapshot: Snapshot) -> list[Finding]:
    by_name = {row["interface"]: row for row in snapshot.rows("interfaces")}
    by_master = facts.members(snapshot)
    findings = []
    for name, row in by_name.items():
        members = [one for one in by_master.get(name, []) if one["mtu_bytes"] and one["operstate"] in facts.UP]
        sizes = {one["mtu_bytes"] for one in members}
        if row["kind"] in ("bridge", "bond", "team") and len(sizes) > 1:
            findings.append(
                _found(
                    name,
                    f"Members of {name} take {min(sizes)} to {max(sizes)} bytes.",
                    {one["interface"]: one["mtu_bytes"] for one in members[:8]},
                )
            )
        below = by_name.get(row["lower"])
        if row["kind"] == "vlan" and below is not None and (row["mtu_bytes"] or 0) > (below["mtu_bytes"] or 1 << 31):
            findings.append(
                _found(
                    name,
                    f"{name} sends {row['mtu_bytes']} bytes through {row['lower']}, which takes {below['mtu_bytes']}.",
                    {name: row["mtu_bytes"], row["lower"]: below["mtu_bytes"]},
                )
            )
    return findings


def _found(name: str, told: str, evidence: dict[str, int]) -> Finding:
    return RULE.found(
        "warning",
        name,
        told,
        {f"{interface} mtu_bytes": size for interface, size in evidence.items()},
        confirm=["ip link show", f"ping -M do -s SIZE DESTINATION -I {name}"],
        advice="Give all of them the same MTU, by what configures them.",
        gain="Large packets arrive.",
    )


RULE = Rule(
    name="mtu-mismatch",
    group="cloud",
    summary="interfaces that belong together have different MTUs",
    source="RFC 2923; ip-link(8), mtu; net/bridge/br_if.c (the bridge takes the least of its members)",
    manual=__doc__,
    check=_check,
    needs=("interfaces",),
)

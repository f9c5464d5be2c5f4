"""A VLAN cannot use the segmentation offload of the device below it.

What it sees: a VLAN without TCP segmentation offload on a device that has it.
Why it matters: the VLAN's packets are cut into segments of 1,500 bytes by the processor, although the device could do
it. A VLAN inherits only what the driver lists as possible with a tag, and keeps what somebody turned off.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Offload
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Row, Snapshot

from .rule import Rule

NAME = "tcp-segmentation-offload"


def _check(snapshot: Snapshot) -> list[Finding]:
    by_name = {row["interface"]: row for row in snapshot.rows("interfaces")}
    findings = []
    for interface in snapshot.rows("interfaces"):
        lower = by_name.get(interface["lower"])
        if interface["kind"] != "vlan" or lower is None or interface["operstate"] not in facts.UP:
            continue
        own, below = _segmentation(snapshot, interface), _segmentation(snapshot, lower)
        if own is None or below is None or own["on"] is not False or below["on"] is not True:
            continue
        name = interface["interface"]
        fixed = own["fixed"] is not False
        findings.append(
            RULE.found(
                "advice" if fixed else "warning",
                name,
                f"{name} sends without the segmentation offload that {lower['interface']} has.",
                {"lower": lower["interface"], "driver": lower["driver"], "fixed": fixed},
                confirm=[f"ethtool -k {name} | grep tcp-segmentation"],
                changes=[] if fixed else [Offload(name, "tso", True, netns=snapshot.netns)],
                advice="The driver does not offer it with a tag. Look whether it inserts tags itself (ethtool -k, "
                "tx-vlan-offload, on the device below), or for a later driver."
                if fixed
                else "",
                gain="Less processor time per byte for bulk transfers through this VLAN.",
            )
        )
    return findings


def _segmentation(snapshot: Snapshot, interface: Row) -> Row | None:
    return next((row for row in snapshot.of_interface("offloads", interface) if row["name"] == NAME), None)


RULE = Rule(
    name="vlan-without-segmentation",
    group="cloud",
    summary="a VLAN lacks the segmentation offload of its device",
    source="Documentation/networking/netdev-features.rst (vlan_features, which VLANs inherit); ethtool(8), -K",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "offloads"),
)

"""LRO merges packets that are forwarded.

What it sees: large receive offload is on in a device of a host that forwards, or that is in a bridge.
Why it matters: LRO merges packets for good: headers are lost, and what is too large for the next link cannot be cut
again. GRO does the same for a host's own connections and can be undone.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Offload
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule


def _check(snapshot: Snapshot) -> list[Finding]:
    kinds = {row["interface"]: row["kind"] for row in snapshot.rows("interfaces")}
    forwards = facts.forwards(snapshot)
    findings = []
    for interface in facts.devices(snapshot):
        bridged = kinds.get(interface["master"]) in ("bridge", "openvswitch")
        merged = any(
            row["name"] == "large-receive-offload" and row["on"] for row in snapshot.of_interface("offloads", interface)
        )
        if not merged or not (forwards or bridged):
            continue
        name = interface["interface"]
        findings.append(
            RULE.found(
                "critical",
                name,
                f"{name} merges packets by LRO, and this host passes packets on.",
                {"forwarding": forwards, "bridged": bridged, "driver": interface["driver"]},
                confirm=[f"ethtool -k {name} | grep large-receive", "sysctl net.ipv4.ip_forward"],
                changes=[Offload(name, "lro", False, netns=snapshot.netns)],
                gain="Forwarded connections no longer stall.",
            )
        )
    return findings


RULE = Rule(
    name="lro-where-forwarded",
    group="nic",
    summary="LRO is on where packets are forwarded or bridged",
    source="Documentation/networking/device_drivers/ethernet/intel/ixgbe.rst (LRO and forwarding); net/core/dev.c, "
    "dev_disable_lro",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "offloads", "sysctls"),
)

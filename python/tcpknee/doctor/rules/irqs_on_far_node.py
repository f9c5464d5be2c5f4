"""Interrupts come to processors of another NUMA node than the device's.

What it sees: a host of several nodes where more than half of a device's interrupts came to another node.
Why it matters: the device writes packets into memory of its node. Each access from another node goes over the link
between them.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Change, IrqAffinity
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

SHARE = 0.5


def _check(snapshot: Snapshot) -> list[Finding]:
    if (snapshot.host["numa_nodes"] or 1) < 2:
        return []
    nodes = {str(row["cpu"]): row["numa_node"] for row in snapshot.rows("cpus") if row["cpu"] is not None}
    findings = []
    for interface in facts.devices(snapshot):
        node = interface["numa_node"]
        near = [int(cpu) for cpu, its in nodes.items() if its == node]
        if node is None or node < 0 or not near:
            continue
        irqs = facts.interrupts(snapshot, interface)
        whole = sum(sum(row["counts"].values()) for row in irqs)
        far = sum(count for row in irqs for cpu, count in row["counts"].items() if nodes.get(cpu) != node)
        if whole < facts.LEAST_INTERRUPTS or far <= SHARE * whole:
            continue
        name = interface["interface"]
        changes: list[Change] = [
            IrqAffinity(row["number"], (near[at % len(near)],))
            for at, row in enumerate(irqs)
            if row["number"] is not None
        ]
        findings.append(
            RULE.found(
                "advice",
                name,
                f"{100 * far / whole:.0f} % of the interrupts came to another node than {node}, which {name} is on.",
                {"numa_node": node, "interrupts": whole, "elsewhere": far},
                confirm=[f"cat /sys/class/net/{name}/device/numa_node", f"grep {name} /proc/interrupts", "lscpu"],
                changes=changes,
                gain="Fewer accesses between nodes; more where the programs run on the other node.",
            )
        )
    return findings


RULE = Rule(
    name="irqs-on-far-node",
    group="nic",
    summary="interrupts come to another NUMA node than the device's",
    source="fasterdata.es.net/host-tuning/linux/100g-tuning/interrupt-binding (down to half the rate on the wrong "
    "socket); mlnx_tune (NUMA)",
    manual=__doc__,
    check=_check,
    needs=("irqs", "cpus", "interfaces", "host"),
    counts=("elsewhere",),
)

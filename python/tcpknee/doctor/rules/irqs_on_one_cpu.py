"""Interrupts of several queues come to one processor.

What it sees: a device with several interrupts of which at least 80 % came to one processor, while others are there.
Why it matters: the device spreads packets over its queues, and one processor empties them all.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Change, IrqAffinity
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

SHARE = 0.8


def _check(snapshot: Snapshot) -> list[Finding]:
    cpus = [row["cpu"] for row in snapshot.rows("cpus") if row["cpu"] is not None and not row["isolated"]]
    if len(cpus) < 2:
        return []
    balancing = facts.runs(snapshot, "irqbalance")
    findings = []
    for interface in facts.devices(snapshot):
        # A device of one queue may have an interrupt for each direction.
        if facts.receive_queues(snapshot, interface) < 2:
            continue
        whole, active = facts.busy_interrupts(snapshot, interface)
        if not active:
            continue
        by_cpu: dict[str, int] = {}
        for row in active:
            for cpu, count in row["counts"].items():
                by_cpu[cpu] = by_cpu.get(cpu, 0) + count
        one, most = max(by_cpu.items(), key=lambda item: item[1])
        if len(active) < 2 or most < SHARE * whole:
            continue
        name = interface["interface"]
        changes: list[Change] = [
            IrqAffinity(row["number"], (cpus[at % len(cpus)],))
            for at, row in enumerate(active)
            if row["number"] is not None
        ]
        findings.append(
            RULE.found(
                "warning",
                name,
                f"{100 * most / whole:.0f} % of the interrupts of {len(active)} queues came to processor {one}.",
                {"interrupts": whole, "queues": len(active), "cpu": one, "cpus": len(cpus), "irqbalance": balancing},
                confirm=[f"grep {name} /proc/interrupts", "systemctl is-active irqbalance"],
                changes=[] if balancing else changes,
                advice="irqbalance runs and would undo a change of affinity: look why it leaves these interrupts "
                "together (IRQBALANCE_BANNED_CPULIST, a hint of the driver)."
                if balancing
                else "Or start irqbalance, which spreads them and goes on doing so.",
                gain=f"Receiving is spread over {min(len(active), len(cpus))} processors.",
            )
        )
    return findings


RULE = Rule(
    name="irqs-on-one-cpu",
    group="nic",
    summary="interrupts of several queues come to one processor",
    source="Documentation/networking/scaling.rst, RSS IRQ Configuration; Documentation/core-api/irq/irq-affinity.rst",
    manual=__doc__,
    check=_check,
    needs=("irqs", "cpus", "interfaces"),
)

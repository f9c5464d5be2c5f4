"""Nothing spreads the interrupts of a driver that leaves that to irqbalance.

What it sees: the ENA driver, irqbalance not running, and two of its queues that interrupt the same processor while
there are at least as many processors as queues.
Why it matters: drivers differ. Those of fast cards place each queue's interrupt themselves; ENA gives no hint, and
after a reset of the device its interrupts may come to one processor and stay there.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

UNPLACED = {"ena": "Amazon"}
"""Drivers whose vendors advise to keep irqbalance."""


def _check(snapshot: Snapshot) -> list[Finding]:
    if facts.runs(snapshot, "irqbalance"):
        return []
    # Within a container the host's programs are not seen.
    if snapshot.host["container"] not in (None, "none"):
        return []
    cpus = snapshot.host["cpus"] or 0
    findings = []
    for interface in facts.devices(snapshot):
        if interface["driver"] not in UNPLACED:
            continue
        places = [tuple(row["effective"]) for row in facts.interrupts(snapshot, interface) if row["effective"]]
        if len(places) < 2 or len(set(places)) == len(places) or len(places) > cpus:
            continue
        name = interface["interface"]
        findings.append(
            RULE.found(
                "advice",
                name,
                f"{len(places)} interrupts of {name} come to {len(set(places))} processors; irqbalance does not run.",
                {
                    "driver": interface["driver"],
                    "interrupts": len(places),
                    "processors": len(set(places)),
                    "cpus": cpus,
                },
                confirm=["systemctl is-active irqbalance", f"grep {name} /proc/interrupts"],
                advice="systemctl enable --now irqbalance: "
                f"{UNPLACED[interface['driver']]} advises to keep it with this driver.",
                gain=f"Each queue has a processor of its own, of {cpus}.",
            )
        )
    return findings


RULE = Rule(
    name="irqbalance-missing",
    group="nic",
    summary="irqbalance does not run beside a driver that needs it",
    source="github.com/amzn/amzn-drivers, kernel/linux/ena/ENA_Linux_Best_Practices.rst, CPU starvation (do not "
    "disable irqbalance)",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "irqs", "host"),
)

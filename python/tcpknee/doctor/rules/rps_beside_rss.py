"""RPS repeats what the device does.

What it sees: RPS on an interface that has as many queues as processors.
Why it matters: the device has spread the packets already. RPS moves them once more, at the cost of an interrupt
between processors and of a cold cache.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Change, Rps
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule


def _check(snapshot: Snapshot) -> list[Finding]:
    cpus = snapshot.host["cpus"] or 0
    # RFS needs the masks: it chooses the processor where the program runs.
    if cpus < 2 or facts.number(snapshot, "net.core.rps_sock_flow_entries"):
        return []
    findings = []
    for interface in facts.devices(snapshot):
        queues = [row for row in snapshot.of_interface("queues", interface) if row["direction"] == "rx"]
        on = [row for row in queues if row["rps_cpus"] and len(row["rps_cpus"]) > 1]
        if not on or len(queues) < cpus:
            continue
        name = interface["interface"]
        changes: list[Change] = [
            Rps(name, row["number"], (), netns=snapshot.netns) for row in on if row["number"] is not None
        ]
        findings.append(
            RULE.found(
                "advice",
                name,
                f"RPS is on in {len(on)} of {len(queues)} queues, with {cpus} processors.",
                {"queues": len(queues), "queues_with_rps": len(on), "cpus": cpus},
                confirm=[f"grep . /sys/class/net/{name}/queues/rx-*/rps_cpus"],
                changes=changes,
                gain="One interrupt between processors less for each batch.",
            )
        )
    return findings


RULE = Rule(
    name="rps-beside-rss",
    group="nic",
    summary="RPS is on although the device has a queue for each processor",
    source="Documentation/networking/scaling.rst, RPS, Suggested Configuration (probably redundant and unnecessary)",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "queues", "host", "sysctls"),
)

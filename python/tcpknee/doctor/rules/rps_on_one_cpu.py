"""RPS sends all packets of an interface to one processor.

What it sees: an RPS mask, or the masks of all queues together, that names a single processor of several.
Why it matters: the mask is a hexadecimal number, in which 1 is processor 0, 2 is processor 1 and 3 is both. All
packets of the interface wait for that one processor, and each costs an interrupt between processors besides.
"""

from __future__ import annotations

from tcpknee.doctor.changes import Change, Rps
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

MOST_CPUS = 8


def _check(snapshot: Snapshot) -> list[Finding]:
    cpus = snapshot.host["cpus"] or 0
    if cpus < 2:
        return []
    known = [row["cpu"] for row in snapshot.rows("cpus") if row["cpu"] is not None] or list(range(cpus))
    findings = []
    for interface in snapshot.rows("interfaces"):
        queues = [
            row for row in snapshot.of_interface("queues", interface) if row["direction"] == "rx" and row["rps_cpus"]
        ]
        reached = {cpu for row in queues for cpu in row["rps_cpus"]}
        if len(reached) != 1 or interface["operstate"] == "down":
            continue
        name, one = interface["interface"], next(iter(reached))
        changes: list[Change] = [
            Rps(name, row["number"], tuple(known[:MOST_CPUS]), netns=snapshot.netns)
            for row in queues[:MOST_CPUS]
            if row["number"] is not None
        ]
        findings.append(
            RULE.found(
                "warning",
                name,
                f"The RPS mask of {name} names processor {one} alone, of {cpus}.",
                {"rps_cpus": str(one), "queues": len(queues), "cpus": cpus, "rx_packets": interface["rx_packets"]},
                confirm=[f"cat /sys/class/net/{name}/queues/rx-0/rps_cpus", "mpstat -P ALL 1 3"],
                changes=changes,
                gain=f"Receiving is spread over {min(cpus, MOST_CPUS)} processors.",
            )
        )
    return findings


RULE = Rule(
    name="rps-on-one-cpu",
    group="nic",
    summary="an RPS mask names a single processor",
    source="Documentation/networking/scaling.rst, RPS configuration",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "queues", "host"),
)

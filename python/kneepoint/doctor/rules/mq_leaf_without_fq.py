"""A multi-queue interface of which only some queues have fq.

What it sees: an mq or mqprio whose leaves are of different kinds, fq among them.
Why it matters: which queue a packet takes depends on the processor or the hash. The same connection is paced by fq in
one queue and leaves in a burst through another, because TCP stops pacing once fq has seen the connection.
"""

from __future__ import annotations

from kneepoint.doctor import facts
from kneepoint.doctor.finding import Finding
from kneepoint.doctor.snapshot import Snapshot

from .rule import Rule


def _check(snapshot: Snapshot) -> list[Finding]:
    findings = []
    for interface in facts.senders(snapshot):
        leaves = facts.leaves(snapshot, interface)
        bare = [leaf for leaf in leaves if leaf["kind"] != "fq"]
        if not bare or len(bare) == len(leaves):
            continue
        kinds = sorted({leaf["kind"] for leaf in bare})
        findings.append(
            Finding(
                rule=RULE.name,
                severity="warning",
                subject=interface["interface"],
                told=f"{len(bare)} of {len(leaves)} queues have {', '.join(kinds)} and not fq.",
                evidence={
                    "queues": len(leaves),
                    "queues_without_fq": len(bare),
                    "parents": ", ".join(leaf["parent"] or "" for leaf in bare[:8]),
                },
                why="TCP leaves pacing to fq once fq has seen a connection. What then takes a queue without fq is not "
                "paced at all.",
                confirm=[f"tc -s qdisc show dev {interface['interface']}"],
                source=RULE.source,
                gain="Bursts of paced connections disappear.",
                namespace=interface["netns"] or "",
            )
        )
    return findings


RULE = Rule(
    name="mq-leaf-without-fq",
    group="pacing",
    summary="Only some queues of a multi-queue interface have fq.",
    source="net/sched/sch_fq.c (SK_PACING_FQ is set at the first packet), net/ipv4/tcp_output.c (tcp_needs_internal_"
    "pacing)",
    check=_check,
    needs=("interfaces", "qdiscs"),
)

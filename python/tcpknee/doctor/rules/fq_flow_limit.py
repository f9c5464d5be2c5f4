"""fq drops packets of single flows.

What it sees: fq leaves that dropped at least one packet in 100,000 because its flow had too many waiting.
Why it matters: fq holds 100 packets of a flow. TCP stays below that by itself; tunnels, forwarded traffic and UDP do
not, and lose what comes after.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Qdisc
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

SHARE = 1e-5
LARGER_PKTS = 1_000


def _check(snapshot: Snapshot) -> list[Finding]:
    findings = []
    for interface in snapshot.rows("interfaces"):
        leaves = [leaf for leaf in facts.leaves(snapshot, interface) if leaf["kind"] == "fq"]
        dropped = sum(leaf["flows_plimit"] or 0 for leaf in leaves)
        packets = sum(leaf["packets"] or 0 for leaf in leaves)
        if not dropped or dropped < SHARE * packets:
            continue
        name = interface["interface"]
        limit = max((leaf["options"] or {}).get("flow_limit_pkts", 100) for leaf in leaves)
        findings.append(
            RULE.found(
                "warning",
                name,
                f"fq dropped {dropped:,} packets because their flow had {limit} waiting.",
                {"flows_plimit": dropped, "packets": packets, "flow_limit_pkts": limit},
                confirm=[f"tc -s qdisc show dev {name}"],
                changes=[
                    Qdisc(
                        name,
                        "fq",
                        (("flow_limit", LARGER_PKTS),),
                        leaves=facts.leaf_count(interface),
                        netns=snapshot.netns,
                    )
                ]
                if limit < LARGER_PKTS
                else [],
                advice="Find the flow that sends faster than it is drained." if limit >= LARGER_PKTS else "",
                gain="These packets are not lost on this host.",
                events=dropped,
                of=packets,
            )
        )
    return findings


RULE = Rule(
    name="fq-flow-limit",
    group="pacing",
    summary="fq drops packets because a flow has more of them waiting than its limit",
    source="net/sched/sch_fq.c (fq_enqueue, flow_plimit 100); tc-fq(8)",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "qdiscs"),
    counts=("flows_plimit",),
)

"""Only some queues of an interface have fq.

What it sees: an interface whose leaf qdiscs are of different kinds, fq among them.
Why it matters: TCP leaves pacing to fq once fq has seen a connection. What then takes a queue without fq is not paced
at all.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Qdisc
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule


def _check(snapshot: Snapshot) -> list[Finding]:
    findings = []
    for interface in facts.senders(snapshot):
        leaves = facts.leaves(snapshot, interface)
        bare = [leaf for leaf in leaves if leaf["kind"] != "fq"]
        if not bare or len(bare) == len(leaves):
            continue
        name = interface["interface"]
        findings.append(
            RULE.found(
                "warning",
                name,
                f"{len(bare)} of {len(leaves)} queues have {', '.join(sorted({str(leaf['kind']) for leaf in bare}))} "
                "and not fq.",
                {
                    "queues": len(leaves),
                    "queues_without_fq": len(bare),
                    "parents": ", ".join(leaf["parent"] or "" for leaf in bare[:8]),
                },
                confirm=[f"tc -s qdisc show dev {name}"],
                changes=[Qdisc(name, "fq", leaves=facts.leaf_count(interface), netns=snapshot.netns)],
                gain="Bursts of paced connections disappear.",
            )
        )
    return findings


RULE = Rule(
    name="mq-leaf-without-fq",
    group="pacing",
    summary="only some queues of a multi-queue interface have fq",
    source="net/sched/sch_fq.c (fq_classify sets SK_PACING_FQ), net/ipv4/tcp_output.c (tcp_update_skb_after_send)",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "qdiscs"),
)

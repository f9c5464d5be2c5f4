"""The default qdisc was set after the interface had come up.

What it sees: net.core.default_qdisc names fq, fq_codel or cake, and an interface has another default kind.
Why it matters: the default holds for qdiscs that are made later. An interface that is up keeps what it has until its
qdisc is replaced, or until the next boot.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Qdisc
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

WANTED = {"fq", "fq_codel"}
DEFAULTS = {"pfifo_fast", "fq_codel", "fq", "pfifo"}
"""Kinds that a kernel or a distribution gives an interface by default; others somebody chose for it."""


def _check(snapshot: Snapshot) -> list[Finding]:
    wanted = snapshot.sysctl("net.core.default_qdisc")
    if wanted not in WANTED:
        return []
    findings = []
    for interface in facts.senders(snapshot):
        leaves = facts.leaves(snapshot, interface)
        kinds = {str(leaf["kind"]) for leaf in leaves}
        # A qdisc that the kernel made by itself has the handle 0; one that was made by name has another.
        if not kinds or wanted in kinds or not kinds <= DEFAULTS or any(leaf["handle"] != "0:" for leaf in leaves):
            continue
        name = interface["interface"]
        findings.append(
            RULE.found(
                "advice",
                name,
                f"net.core.default_qdisc is {wanted}, and {name} still has {', '.join(sorted(kinds))}.",
                {"default_qdisc": wanted, "qdiscs": ", ".join(sorted(kinds))},
                confirm=["sysctl net.core.default_qdisc", f"tc qdisc show dev {name}"],
                changes=[Qdisc(name, wanted, leaves=facts.leaf_count(interface), netns=snapshot.netns)],
                gain="The interface is what the next boot would make it; until then it is not.",
            )
        )
    return findings


RULE = Rule(
    name="default-qdisc-not-applied",
    group="pacing",
    summary="an interface does not have the default qdisc that is set",
    source="Documentation/admin-guide/sysctl/net.rst, default_qdisc; net/sched/sch_generic.c (attach_default_qdiscs)",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "qdiscs", "sysctls"),
)

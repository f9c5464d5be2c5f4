"""fq drops packets whose departure time is too far off.

What it sees: fq leaves with a count of `horizon_drops`.
Why it matters: fq drops what wants to leave more than 10 s from now. TCP never asks for that. Forwarded packets do,
when their time stamp of arrival, on another clock, is taken for a departure time; all of such a flow is then lost.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Qdisc
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule


def _check(snapshot: Snapshot) -> list[Finding]:
    findings = []
    for interface in snapshot.rows("interfaces"):
        leaves = [leaf for leaf in facts.leaves(snapshot, interface) if leaf["kind"] == "fq"]
        dropped = sum(leaf["horizon_drops"] or 0 for leaf in leaves)
        packets = sum(leaf["packets"] or 0 for leaf in leaves)
        if not dropped:
            continue
        name = interface["interface"]
        sends = facts.is_sender(snapshot, interface)
        findings.append(
            RULE.found(
                "critical",
                name,
                f"fq dropped {dropped:,} packets because their departure time lay beyond its horizon.",
                {
                    "horizon_drops": dropped,
                    "packets": packets,
                    "forwarding": facts.forwards(snapshot),
                },
                confirm=[f"tc -s qdisc show dev {name}"],
                changes=[]
                if sends
                else [Qdisc(name, "fq_codel", leaves=facts.leaf_count(interface), netns=snapshot.netns)],
                advice="Find what stamps packets that are forwarded here (PTP, a capture, SO_TIMESTAMPING), or update "
                "what forwards them."
                if sends
                else "",
                gain="These packets arrive. One load balancer counted 201 million drops before, 341 after.",
                events=dropped,
                of=packets,
            )
        )
    return findings


RULE = Rule(
    name="fq-horizon-drops",
    group="pacing",
    summary="fq drops packets whose time stamps it takes for departure times",
    source="Linux 39d010504e6b (horizon); github.com/NICMx/Jool/issues/400; github.com/siderolabs/talos/issues/13745; "
    "github.com/github/glb-director/pull/85",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "qdiscs"),
    counts=("horizon_drops",),
)

"""fq stands where packets of others are forwarded.

What it sees: forwarding is on, and an interface of a virtual machine or container (tap, tun, veth) has fq as its
qdisc.
Why it matters: fq takes the time stamp of a packet for its departure time. Packets that come from a network may bear
the time of their arrival on another clock, and are dropped. fq helps only where connections of this host leave it.
"""

from __future__ import annotations

from kneepoint.doctor import facts
from kneepoint.doctor.changes import Qdisc, Sysctl
from kneepoint.doctor.finding import Finding
from kneepoint.doctor.snapshot import Snapshot

from .rule import Rule

KINDS = {"tun", "tap", "veth", "macvtap"}


def _check(snapshot: Snapshot) -> list[Finding]:
    if not facts.forwards(snapshot):
        return []
    hit = [
        row
        for row in snapshot.rows("interfaces")
        if row["kind"] in KINDS
        and not facts.is_sender(snapshot, row)
        and any(leaf["kind"] == "fq" for leaf in facts.leaves(snapshot, row))
    ]
    if not hit:
        return []
    default = snapshot.sysctl("net.core.default_qdisc")
    netns = snapshot.netns
    changes = [Qdisc(row["interface"], "fq_codel", leaves=facts.leaf_count(row), netns=netns) for row in hit]
    return [
        RULE.found(
            "warning",
            hit[0]["interface"] if len(hit) == 1 else f"{len(hit)} interfaces",
            f"{', '.join(row['interface'] for row in hit[:4])}{' and others' if len(hit) > 4 else ''}: fq, with "
            "forwarding on.",
            {"interfaces": len(hit), "default_qdisc": default, "kernel": snapshot.host["kernel"]},
            confirm=["tc -s qdisc show | grep -A3 fq", "sysctl net.core.default_qdisc net.ipv4.ip_forward"],
            changes=[*([Sysctl("net.core.default_qdisc", "fq_codel")] if default == "fq" else []), *changes],
            advice="Set fq by name on the interface that sends to the network; the default is for all that come later.",
            gain="Virtual machines and containers cannot lose what they receive to fq's horizon.",
        )
    ]


RULE = Rule(
    name="fq-where-forwarded",
    group="pacing",
    summary="fq on interfaces of containers or virtual machines, where forwarded packets may be dropped",
    source="github.com/siderolabs/talos/issues/13745; github.com/NICMx/Jool/issues/400; Linux 39d010504e6b",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "qdiscs", "sysctls"),
)

"""fq stands where packets of others are forwarded.

What it sees: an interface of a virtual machine or container (tap, tun, veth) has fq as its qdisc, and gets packets of
others: forwarding is on, or it belongs to a bridge, or packets are redirected from or to it.
Why it matters: fq takes the time stamp of a packet for its departure time. While any program asks for arrival times
(a time daemon, a capture), packets from the network bear that time, on another clock: fq takes it for decades ahead
and drops them. fq helps only where connections of this host leave it.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Qdisc, Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Row, Snapshot

from .rule import Rule

KINDS = {"tun", "tap", "veth", "macvtap"}


def _check(snapshot: Snapshot) -> list[Finding]:
    forwards = facts.forwards(snapshot)
    hit = [
        row
        for row in snapshot.rows("interfaces")
        if row["kind"] in KINDS
        and (forwards or row["master"] is not None or _redirects(snapshot, row))
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
            f"{'forwarding on' if forwards else 'packets of others'}.",
            {
                "interfaces": len(hit),
                "default_qdisc": default,
                "kernel": snapshot.host["kernel"],
                "forwarding": forwards,
                "may_stamp_packets": ", ".join(snapshot.host["stamping"] or []) or None,
            },
            confirm=["tc -s qdisc show | grep -A3 fq", "sysctl net.core.default_qdisc net.ipv4.ip_forward"],
            changes=[*([Sysctl("net.core.default_qdisc", "fq_codel")] if default == "fq" else []), *changes],
            advice="Set fq by name on the interface that sends to the network; the default is for all that come later.",
            gain="Virtual machines and containers cannot lose what they receive to fq's horizon.",
        )
    ]


def _redirects(snapshot: Snapshot, interface: Row) -> bool:
    """Whether packets may be sent from it to another interface, or back, before routing: tc filters hang there."""
    return any(row["kind"] in ("ingress", "clsact") for row in snapshot.of_interface("qdiscs", interface))


RULE = Rule(
    name="fq-where-forwarded",
    group="pacing",
    summary="fq on interfaces of containers or virtual machines, where forwarded packets may be dropped",
    source="github.com/siderolabs/talos/issues/13745 (taps, redirected packets); github.com/NICMx/Jool/issues/400 and "
    "420 (default_qdisc=fq); Linux 39d010504e6b (5.8, horizon), 8203e2d844d3 (4.20, IP forwarding clears the "
    "time stamp; other ways do not)",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "qdiscs", "sysctls"),
)

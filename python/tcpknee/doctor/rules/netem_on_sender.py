"""netem stands on the host that sends.

What it sees: netem as a qdisc of a device, or of a container's own interface, and TCP that sends through it.
Why it matters: there netem sees TSO packets before the device cuts them. One draw of its loss takes up to 64 KiB, so
that losses are fewer and larger than on a router: loss-based algorithms look faster than they are. And what it delays
no longer counts for TCP small queues, so that more waits in the host than would on a path.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule


def _check(snapshot: Snapshot) -> list[Finding]:
    if facts.forwards(snapshot):
        return []
    names = [
        interface["interface"]
        for interface in facts.senders(snapshot)
        if any(row["kind"] == "netem" for row in snapshot.of_interface("qdiscs", interface))
    ]
    return [
        RULE.found(
            "advice",
            name,
            f"netem emulates a path on {name}, on the host that sends.",
            {"interface": name},
            confirm=[f"tc -s qdisc show dev {name}"],
            advice="Put netem on a router between the hosts, or on the receiver's ingress; a simulation of what this "
            f'one does has path.loss = "super-packets 1.5%". When the test is over: tc qdisc del dev {name} root.',
            gain="Losses of single packets, as a path has them: in the model 1.5 % at 100 ms costs CUBIC more then "
            "(claim loss-1.5).",
        )
        for name in names
    ]


RULE = Rule(
    name="netem-on-sender",
    group="pacing",
    summary="netem emulates a path on the host that sends, where it loses whole TSO packets",
    source="tc-netem(8); net/sched/sch_netem.c; docs/claims.md (article D, loss-1.5)",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "qdiscs"),
)

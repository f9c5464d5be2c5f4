"""A shaper by departure times has become one large FIFO.

What it sees: programs that set departure times (clsact with fq behind it), and a leaf with thousands of packets
waiting, or with drops at its limit.
Why it matters: such a shaper writes each packet's time and lets fq hold it. A connection that nobody slows down fills
that queue, which drops only at its limit: latency grows to the limit over the rate.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

WAITING_PKTS = 1_000
DROPPED_SHARE = 1e-4


def _check(snapshot: Snapshot) -> list[Finding]:
    findings = []
    for interface in facts.devices(snapshot):
        rows = snapshot.of_interface("qdiscs", interface)
        leaves = [leaf for leaf in facts.leaves(snapshot, interface) if leaf["kind"] == "fq"]
        if not leaves or not any(row["kind"] == "clsact" for row in rows):
            continue
        waiting = max(leaf["backlog_pkts"] or 0 for leaf in leaves)
        dropped = sum(max((leaf["drops"] or 0) - (leaf["horizon_drops"] or 0), 0) for leaf in leaves)
        throttled = sum(leaf["throttled"] or 0 for leaf in leaves)
        packets = sum(leaf["packets"] or 0 for leaf in leaves)
        drops_while_held = throttled > 0 and dropped > DROPPED_SHARE * packets
        if waiting < WAITING_PKTS and not drops_while_held:
            continue
        name = interface["interface"]
        findings.append(
            RULE.found(
                "advice",
                name,
                f"fq behind a program on clsact holds {waiting:,} packets and dropped {dropped:,}.",
                {"backlog_pkts": waiting, "drops": dropped, "packets": packets, "throttled": throttled},
                confirm=[f"tc -s qdisc show dev {name}", f"tc filter show dev {name} egress"],
                advice="Let the shaper mark or drop early, or limit the queue of each flow.",
                gain="Latency behind the shaper falls to what the drop or mark threshold allows.",
            )
        )
    return findings


RULE = Rule(
    name="departure-times-in-one-fifo",
    group="pacing",
    summary="a shaper by departure times holds a long queue that nothing bounds early",
    source="Saeed et al., Carousel, SIGCOMM 2017; net/sched/sch_fq.c; docs.cilium.io, Bandwidth Manager",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "qdiscs"),
)

"""The qdisc of this host drops packets.

What it sees: a leaf qdisc that dropped at least one packet in 1,000, for another reason than fq's limits.
Why it matters: these packets never reach the network. TCP takes each for congestion of the path and slows down.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Change, TxQueueLen
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

SHARE = 1e-3
USUAL_PKTS = 1_000
FIFOS = {"pfifo_fast", "pfifo", "bfifo"}
OF_THEIR_OWN = {"cake", "codel", "fq_codel", "red", "pie", "fq_pie", "netem", "tbf", "htb", "ingress", "clsact"}
"""Kinds that drop on purpose: to signal congestion, or to hold a rate."""


def _check(snapshot: Snapshot) -> list[Finding]:
    findings = []
    for interface in facts.devices(snapshot):
        for leaf in facts.leaves(snapshot, interface):
            drops, packets = leaf["drops"] or 0, leaf["packets"] or 0
            drops -= (leaf["horizon_drops"] or 0) + (leaf["flows_plimit"] or 0)
            if leaf["kind"] in OF_THEIR_OWN or drops <= 0 or drops < SHARE * packets:
                continue
            name, length = interface["interface"], interface["txqueuelen_pkts"]
            changes: list[Change] = []
            if leaf["kind"] in FIFOS and length is not None and length < USUAL_PKTS:
                changes = [TxQueueLen(name, USUAL_PKTS, netns=snapshot.netns)]
            findings.append(
                RULE.found(
                    "warning",
                    name,
                    f"{leaf['kind']} {leaf['handle']} dropped {drops:,} of {packets + drops:,} packets.",
                    {"drops": drops, "packets": packets, "txqueuelen_pkts": length, "qdisc": leaf["kind"]},
                    confirm=[f"tc -s qdisc show dev {name}"],
                    changes=changes,
                    advice="" if changes else "Pace or shape what sends in bursts; fq does both.",
                    gain=f"Up to {100 * drops / (packets + drops):.2g} % fewer losses.",
                    events=drops,
                    of=packets,
                )
            )
    return findings


RULE = Rule(
    name="qdisc-drops",
    group="pacing",
    summary="the qdisc drops packets before they leave the host",
    source="tc(8), statistics; fasterdata.es.net, Other Tuning (txqueuelen)",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "qdiscs"),
    counts=("drops",),
)

"""A qdisc of this host drops packets because it is full.

What it sees: a qdisc without others below it that dropped at least one packet in 1,000, for another reason than fq's
limits: FIFOs, sfq, and shapers (tbf, htb, hfsc), whose queue is a FIFO too; of a shaper with qdiscs below it, what
it dropped itself. Devices and virtual interfaces alike. Left out is what drops on purpose: cake, codel, fq_codel,
pie, fq_pie, dualpi2, red and their like, to signal congestion; netem, because it was told to; ifb, which holds what
arrives; and lo.
Why it matters: these packets get no farther. TCP takes each for congestion of the path and slows down.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcpknee import human
from tcpknee.doctor import facts
from tcpknee.doctor.changes import Change, TxQueueLen
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Row, Snapshot

from .rule import Rule

SHARE = 1e-3
USUAL_PKTS = 1_000
ON_PURPOSE = {
    "cake",
    "cake_mq",
    "choke",
    "codel",
    "dualpi2",
    "fq_codel",
    "fq_pie",
    "gred",
    "netem",
    "pie",
    "red",
    "sfb",
}
"""Kinds that drop before they are full: AQMs signal congestion so, and netem drops what it is told to. That netem is
full is not told apart from its loss; `netem-on-sender` speaks of it."""
SHAPERS = {"tbf", "htb", "hfsc", "cbq"}
"""Kinds that hold a rate. What they hold back waits in FIFOs that the kernel makes and does not list (tc(8), tbf's
`limit`, htb's and hfsc's leaves of txqueuelen packets), and is dropped where these are full."""
NO_QUEUES = {"mq", "mqprio", "ingress", "clsact"}
"""Kinds that hold no packets: their counts are sums of what is below them, or of filters."""


def _check(snapshot: Snapshot) -> list[Finding]:
    findings = []
    for interface in filter(_is_judged, snapshot.rows("interfaces")):
        for qdisc, drops in _own_drops(snapshot, interface):
            packets = qdisc["packets"] or 0
            if drops <= 0 or drops < SHARE * packets:
                continue
            lost = human.digits(100 * drops / (packets + drops), 2)
            name, length, kind = interface["interface"], interface["txqueuelen_pkts"], qdisc["kind"]
            changes: list[Change] = []
            # The length of others is their own: it was chosen when they were made.
            if kind == "pfifo_fast" and length is not None and length < USUAL_PKTS:
                changes = [TxQueueLen(name, USUAL_PKTS, netns=snapshot.netns)]
            findings.append(
                RULE.found(
                    "warning",
                    name,
                    f"{kind} {qdisc['handle']} dropped {drops:,} of {packets + drops:,} packets.",
                    {"drops": drops, "packets": packets, "txqueuelen_pkts": length, "qdisc": kind},
                    confirm=[f"tc -s qdisc show dev {name}"],
                    changes=changes,
                    advice="" if changes else _advice(kind),
                    gain=f"Up to {lost} % of the packets are no longer lost here.",
                    events=drops,
                    of=packets,
                )
            )
    return findings


def _is_judged(row: Row) -> bool:
    """Virtual interfaces have no queue unless somebody gives them one (noqueue). What is dropped there never comes to
    the device below, so that nothing is counted twice."""
    return not row["loopback"] and row["kind"] != "ifb" and row["operstate"] in facts.UP


def _own_drops(snapshot: Snapshot, interface: Row) -> Iterator[tuple[Row, int]]:
    """The qdiscs of an interface that drop at their limit, each with what it dropped so."""
    listed = snapshot.of_interface("qdiscs", interface)
    last = facts.leaves(snapshot, interface)
    for qdisc in listed:
        kind, drops = qdisc["kind"], qdisc["drops"] or 0
        if kind in ON_PURPOSE | NO_QUEUES:
            continue
        if any(qdisc is one for one in last):
            yield qdisc, drops - (qdisc["horizon_drops"] or 0) - (qdisc["flows_plimit"] or 0)
        elif kind in SHAPERS:
            # A drop below counts at each qdisc above, too (qdisc_tree_reduce_backlog() in net/sched/sch_api.c).
            major = (qdisc["handle"] or "").partition(":")[0]
            below = [one for one in listed if one["parent"] and one["parent"].partition(":")[0] == major]
            yield qdisc, drops - sum(one["drops"] or 0 for one in below)


def _advice(kind: str | None) -> str:
    if kind in SHAPERS:
        return (
            f"Give {kind} the rate that is needed, or a longer queue (tbf: limit or latency). Or hang fq_codel below "
            "it: what sends slows down before the queue is full."
        )
    if kind in ("pfifo", "bfifo"):
        return f"Give {kind} a longer queue (tc qdisc change … {kind} limit N), or fq in its place: it paces."
    return "Pace or shape what sends in bursts; fq does both."


RULE = Rule(
    name="qdisc-drops",
    group="pacing",
    summary="a qdisc drops packets because it is full",
    source="tc(8), statistics; tc-tbf(8), limit; fasterdata.es.net, Other Tuning (txqueuelen)",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "qdiscs"),
    counts=("drops",),
)

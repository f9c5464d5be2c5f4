"""One qdisc stands before all queues of a fast interface.

What it sees: an interface of 10 Gbit/s or more, or of unknown speed, with several transmit queues, whose root qdisc
is not mq.
Why it matters: every processor that sends takes the lock of that one qdisc. With mq each queue has a qdisc and a lock
of its own.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Qdisc
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

FAST_BITS_PER_SEC = 10_000_000_000
PER_QUEUE = {"fq", "fq_codel"}
"""Kinds that do the same for each queue; shapers hold a rate for the whole interface and cannot."""
SHAPERS = {"htb", "tbf", "hfsc", "cbq", "cake"}


def _check(snapshot: Snapshot) -> list[Finding]:
    findings = []
    for interface in facts.devices(snapshot):
        root = facts.root_qdisc(snapshot, interface)
        speed = interface["speed_bits_per_sec"]
        if root is None or not facts.leaf_count(interface) or (speed or FAST_BITS_PER_SEC) < FAST_BITS_PER_SEC:
            continue
        kind = root["kind"]
        if kind not in PER_QUEUE | SHAPERS:
            continue
        name = interface["interface"]
        findings.append(
            RULE.found(
                "warning" if speed else "advice",
                name,
                f"{kind} is one queue with one lock for {interface['tx_queues']} transmit queues.",
                {
                    "root": kind,
                    "tx_queues": interface["tx_queues"],
                    "speed_bits_per_sec": speed,
                    "requeues": root["requeues"],
                },
                confirm=[f"tc -s qdisc show dev {name}", f"ls /sys/class/net/{name}/queues"],
                changes=[Qdisc(name, kind, leaves=facts.leaf_count(interface), netns=snapshot.netns)]
                if kind in PER_QUEUE
                else [],
                advice="A shaper that works by departure times (fq with BPF) needs no common lock."
                if kind in SHAPERS
                else "",
                gain="Processors no longer wait for each other to send.",
            )
        )
    return findings


RULE = Rule(
    name="one-root-for-many-queues",
    group="pacing",
    summary="one qdisc and its lock serve all transmit queues of a fast interface",
    source="net/sched/sch_mq.c; docs.cilium.io, Bandwidth Manager (one TBF does not scale on multi-queue interfaces); "
    "Saeed et al., Carousel, SIGCOMM 2017",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "qdiscs"),
)

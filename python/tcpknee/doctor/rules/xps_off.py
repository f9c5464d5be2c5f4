"""Which queue a packet leaves by is left to chance.

What it sees: a device of 10 Gbit/s or more with several transmit queues of which none names processors.
Why it matters: without XPS the queue comes from a hash. Several processors then take the lock of one queue, and
completions come to another processor than the one that sent.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Change, Xps
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

FAST_BITS_PER_SEC = 10_000_000_000


def _check(snapshot: Snapshot) -> list[Finding]:
    cpus = [row["cpu"] for row in snapshot.rows("cpus") if row["cpu"] is not None]
    findings = []
    for interface in facts.devices(snapshot):
        queues = [row for row in snapshot.of_interface("queues", interface) if row["direction"] == "tx"]
        # Null: the kernel does not let it be read, or has no XPS.
        if len(queues) < 2 or any(row["xps_cpus"] is None or row["xps_cpus"] for row in queues) or len(cpus) < 2:
            continue
        if (interface["speed_bits_per_sec"] or 0) < FAST_BITS_PER_SEC:
            continue
        name = interface["interface"]
        changes: list[Change] = [
            Xps(name, row["number"], tuple(cpus[row["number"] :: len(queues)]), netns=snapshot.netns)
            for row in queues[: len(cpus)]
            if row["number"] is not None and row["number"] < len(cpus)
        ]
        findings.append(
            RULE.found(
                "advice",
                name,
                f"None of {len(queues)} transmit queues names its processors.",
                {"tx_queues": len(queues), "cpus": len(cpus), "driver": interface["driver"]},
                confirm=[f"grep . /sys/class/net/{name}/queues/tx-*/xps_cpus"],
                changes=changes,
                gain="No contention for locks of queues, where there are as many queues as processors.",
            )
        )
    return findings


RULE = Rule(
    name="xps-off",
    group="nic",
    summary="no transmit queue of a fast device names its processors",
    source="Documentation/networking/scaling.rst, XPS, Suggested Configuration",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "queues", "cpus"),
)

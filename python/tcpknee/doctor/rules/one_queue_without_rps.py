"""One processor receives for all, because the device has one queue.

What it sees: a device that can have only one queue, RPS off, four processors or more, and one of them that spends at
least 25 % of its time in soft interrupts.
Why it matters: more queues are not supported here, which no setting mends. RPS spreads the work behind the queue over
other processors in software.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Rps
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

LEAST_CPUS = 4
BUSY_PCT = 25.0
MOST_CPUS = 8


def _check(snapshot: Snapshot) -> list[Finding]:
    rows = snapshot.rows("cpus")
    cpus = snapshot.host["cpus"] or 0
    busiest = max(rows, key=lambda row: row["softirq_pct"] or 0.0, default=None)
    if cpus < LEAST_CPUS or busiest is None or (busiest["softirq_pct"] or 0.0) < BUSY_PCT:
        return []
    findings = []
    for interface in facts.devices(snapshot):
        channels = next(iter(snapshot.of_interface("channels", interface)), None)
        most = max(channels["combined_max"] or 0, channels["rx_max"] or 0) if channels is not None else 1
        queues = [row for row in snapshot.of_interface("queues", interface) if row["direction"] == "rx"]
        if len(queues) != 1 or most > 1 or queues[0]["rps_cpus"] is None or queues[0]["rps_cpus"]:
            continue
        name = interface["interface"]
        # The one that takes the interrupts has enough to do (scaling.rst, "Suggested Configuration").
        others = tuple(row["cpu"] for row in rows if row["cpu"] is not None and row is not busiest)[:MOST_CPUS]
        findings.append(
            RULE.found(
                "warning",
                name,
                f"{name} has one queue and can have no more; processor {busiest['cpu']} spends "
                f"{busiest['softirq_pct']:.0f} % on it.",
                {"queues": 1, "queues_max": most, "softirq_pct": busiest["softirq_pct"], "cpus": cpus},
                confirm=[f"cat /sys/class/net/{name}/queues/rx-0/rps_cpus", "mpstat -P ALL 1 3"],
                changes=[Rps(name, 0, others, netns=snapshot.netns)],
                gain="fec5e652e58f measured 303,000 instead of 104,000 requests per second with RPS and RFS, on a "
                "device of one queue.",
            )
        )
    return findings


RULE = Rule(
    name="one-queue-without-rps",
    group="nic",
    summary="a device with a single queue loads one processor, and RPS is off",
    source="Documentation/networking/scaling.rst, RPS; Linux fec5e652e58f (2.6.35)",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "queues", "cpus", "host"),
)

"""The device has more queues than it uses.

What it sees: fewer queues than the device has and than there are cores, and one processor that spends at least 25 % of
its time in soft interrupts, or a link of 25 Gbit/s and more.
Why it matters: a queue is emptied by one processor. The others cannot help with receiving, whatever they have to
spare. More queues than cores bring nothing: two threads of a core share it.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Channels
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

BUSY_PCT = 25.0
FAST_BITS_PER_SEC = 25_000_000_000
ENOUGH = 16
"""More queues than that bring little: each is another interrupt, ring and cache footprint."""


def _check(snapshot: Snapshot) -> list[Finding]:
    cpus, cores = snapshot.host["cpus"], facts.cores(snapshot)
    if not cpus or not cores:
        return []
    busiest = max((row["softirq_pct"] or 0.0 for row in snapshot.rows("cpus")), default=0.0)
    findings = []
    for interface in facts.devices(snapshot):
        channels = next(iter(snapshot.of_interface("channels", interface)), None)
        if channels is None:
            continue
        combined = "combined" if channels["combined_max"] else "rx"
        now, most = channels[combined] or 0, channels[f"{combined}_max"] or 0
        wanted = min(most, cores, ENOUGH)
        fast = (interface["speed_bits_per_sec"] or 0) >= FAST_BITS_PER_SEC
        if now >= wanted or (busiest < BUSY_PCT and not fast):
            continue
        name = interface["interface"]
        findings.append(
            RULE.found(
                "warning" if busiest >= BUSY_PCT else "advice",
                name,
                f"{now} of {most} queues are in use, with {cpus} processors.",
                {
                    "queues": now,
                    "queues_max": most,
                    "cpus": cpus,
                    "cores": cores,
                    "softirq_pct_of_busiest": busiest,
                    "speed_bits_per_sec": interface["speed_bits_per_sec"],
                },
                confirm=[f"ethtool -l {name}", "mpstat -P ALL 1 3"],
                changes=[
                    Channels(name, combined=wanted, netns=snapshot.netns)
                    if combined == "combined"
                    else Channels(name, rx=wanted, netns=snapshot.netns)
                ],
                gain=f"Receiving is spread over {wanted} processors instead of {now}.",
            )
        )
    return findings


RULE = Rule(
    name="few-queues",
    group="nic",
    summary="a device uses fewer queues than it has and the processors could serve",
    source="Documentation/networking/scaling.rst, RSS Configuration and RSS IRQ Configuration (as many as cores)",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "channels", "host"),
)

"""The device interrupts for each packet.

What it sees: a device of 10 Gbit/s or more without a wait before its receive interrupt, and without an adaptive one.
Why it matters: interrupts take processor time that packets would need, and GRO has nothing to merge. A wait of some
microseconds changes no round-trip time that leaves the rack.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Coalesce
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

FAST_BITS_PER_SEC = 10_000_000_000


def _check(snapshot: Snapshot) -> list[Finding]:
    findings = []
    for interface in facts.devices(snapshot):
        row = next(iter(snapshot.of_interface("coalescing", interface)), None)
        speed = interface["speed_bits_per_sec"] or 0
        if row is None or speed < FAST_BITS_PER_SEC or row["adaptive_rx"] or row["rx_us"] is None:
            continue
        if row["rx_us"] or (row["rx_pkts"] or 0) > 1:
            continue
        name = interface["interface"]
        findings.append(
            RULE.found(
                "advice",
                name,
                f"{name} interrupts for each packet, at {speed / 1e9:.0f} Gbit/s.",
                {"rx_us": row["rx_us"], "rx_pkts": row["rx_pkts"], "adaptive_rx": row["adaptive_rx"]},
                confirm=[f"ethtool -c {name}", "vmstat 1 5"],
                changes=[Coalesce(name, (("adaptive_rx", 1),), netns=snapshot.netns)],
                gain="Less processor time per packet under load; some microseconds more when idle.",
            )
        )
    return findings


RULE = Rule(
    name="interrupt-per-packet",
    group="nic",
    summary="a fast device interrupts for each packet",
    source="ethtool(8), -c; fasterdata.es.net, Other Tuning (interrupt coalescence)",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "coalescing"),
)

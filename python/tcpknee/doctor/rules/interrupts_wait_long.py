"""The device's wait is longer than the path.

What it sees: a fixed wait before receive interrupts that is at least half of the round-trip time of connections
within the data centre.
Why it matters: each request and each answer waits for it. Adaptive coalescing waits long under load only.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Coalesce
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

SHARE = 0.5
LEAST_US = 50
LEAST_CONNECTIONS = 10


def _check(snapshot: Snapshot) -> list[Finding]:
    near = [
        row
        for row in snapshot.rows("sockets")
        if row["rtt_band"] == "below-1ms" and row["remote"] == "private" and row["min_rtt_us_p50"]
    ]
    if sum(row["connections"] or 0 for row in near) < LEAST_CONNECTIONS:
        return []
    rtt_us = min(row["min_rtt_us_p50"] for row in near)
    findings = []
    for interface in facts.devices(snapshot):
        row = next(iter(snapshot.of_interface("coalescing", interface)), None)
        if row is None or row["adaptive_rx"] or (row["rx_us"] or 0) < max(LEAST_US, SHARE * rtt_us):
            continue
        name = interface["interface"]
        findings.append(
            RULE.found(
                "advice",
                name,
                f"{name} waits {row['rx_us']} us before it interrupts; connections take {rtt_us} us for a round trip.",
                {"rx_us": row["rx_us"], "min_rtt_us_p50": rtt_us, "adaptive_rx": row["adaptive_rx"]},
                confirm=[f"ethtool -c {name}", "ss -tin state established | grep -o minrtt.*"],
                changes=[Coalesce(name, (("adaptive_rx", 1),), netns=snapshot.netns)],
                gain=f"Up to {row['rx_us']} us less for each answer; more interrupts.",
            )
        )
    return findings


RULE = Rule(
    name="interrupts-wait-long",
    group="nic",
    summary="a fixed interrupt wait is long against the round-trip time",
    source="ethtool(8), -c",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "coalescing", "sockets"),
)

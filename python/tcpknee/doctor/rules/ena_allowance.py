"""The instance is over its network allowance.

What it sees: counters of the ENA driver for packets that were queued or dropped because the instance was over its
allowance for bandwidth, packets, tracked connections or link-local services.
Why it matters: these losses happen outside the machine, at bursts that averages of a minute do not show. No setting
within the machine raises the allowance.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

MEANS = {
    "bw_in_allowance_exceeded": "inbound bandwidth",
    "bw_out_allowance_exceeded": "outbound bandwidth",
    "pps_allowance_exceeded": "packets per second",
    "conntrack_allowance_exceeded": "tracked connections",
    "linklocal_allowance_exceeded": "link-local services (DNS, metadata, time)",
}
SHARE = 1e-6
LOST = {"conntrack_allowance_exceeded", "linklocal_allowance_exceeded"}
"""These packets are dropped; the others may only have been queued."""


def _check(snapshot: Snapshot) -> list[Finding]:
    findings = []
    for interface in facts.devices(snapshot):
        packets = (interface["rx_packets"] or 0) + (interface["tx_packets"] or 0)
        over = {
            row["name"]: row["value"]
            for row in snapshot.of_interface("nic_stats", interface)
            if row["name"] in MEANS and row["value"] and row["value"] >= SHARE * packets
        }
        if not over:
            continue
        name = interface["interface"]
        findings.append(
            RULE.found(
                "critical" if LOST & over.keys() else "warning",
                name,
                f"Over the allowance for {', '.join(MEANS[one] for one in over)}.",
                {**over, "packets": packets, "instance_type": snapshot.host["instance_type"]},
                confirm=[f"ethtool -S {name} | grep allowance"],
                advice="Pace what sends in bursts (fq), avoid connection tracking by security groups, or "
                "take a larger instance type.",
                gain="Losses outside the machine end.",
                events=sum(over.values()),
                # What is lost begins connections or asks for names, which few of all packets do.
                of=None if LOST & over.keys() else packets,
            )
        )
    return findings


RULE = Rule(
    name="ena-allowance",
    group="cloud",
    summary="the instance is over its network allowance",
    source="repost.aws/knowledge-center/ec2-instance-exceeding-network-limits; AWS, Monitor network performance for "
    "your EC2 instance",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "nic_stats"),
    counts=tuple(MEANS),
)

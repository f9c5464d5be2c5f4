"""The device drops packets because its ring is full.

What it sees: packets that the device had no descriptor for, at least one in a million received.
Why it matters: a burst arrived faster than the host emptied the ring. A longer ring holds more of it; where it has
its full length, more queues, or a processor that is not busy with something else, help.
"""

from __future__ import annotations

import re

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Change, Ring
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Row, Snapshot

from .rule import Rule

SHARE = 1e-6
LARGEST = 8192
NO_DESCRIPTOR = re.compile(
    r"rx_(out_of_buffer|discards_phy|missed_errors|no_buffer_count|no_dma_resources|buff_alloc_err)|"
    r"port\.rx_(dropped|discards)"
)
"""Counters of mlx5, ixgbe, igb, i40e, ice and others for the same thing."""


def _check(snapshot: Snapshot) -> list[Finding]:
    findings = []
    for interface in facts.devices(snapshot):
        dropped = _dropped(snapshot, interface)
        received = interface["rx_packets"] or 0
        if not dropped or dropped < SHARE * received:
            continue
        name = interface["interface"]
        ring = next(iter(snapshot.of_interface("rings", interface)), None)
        changes: list[Change] = []
        if ring is not None and ring["rx"] and ring["rx_max"] and ring["rx"] < ring["rx_max"]:
            changes = [Ring(name, rx=min(ring["rx_max"], max(4 * ring["rx"], 2048), LARGEST), netns=snapshot.netns)]
        length = f"{ring['rx']} of {ring['rx_max']}" if ring is not None else "unknown"
        findings.append(
            RULE.found(
                "warning",
                name,
                f"{dropped:,} of {received:,} packets found no descriptor in the ring ({length}).",
                {
                    "dropped_pkts": dropped,
                    "rx_packets": received,
                    "ring_rx": ring["rx"] if ring is not None else None,
                    "ring_rx_max": ring["rx_max"] if ring is not None else None,
                },
                confirm=[f"ethtool -S {name} | grep -iE 'drop|miss|out_of'", f"ethtool -g {name}"],
                changes=changes,
                advice=""
                if changes
                else "The ring has its full length: look at queues against processors, and at softnet_stat.",
                gain="Fewer losses in bursts: of 1,024 packets within 300 us a ring of 256 dropped some 260 and one of "
                "2,048 none (claim ring-size). A long ring costs cache and, when it stands, latency.",
                events=dropped,
                of=received,
            )
        )
    return findings


def _dropped(snapshot: Snapshot, interface: Row) -> int:
    """The larger of what the kernel and the driver count: mostly they count the same packets."""
    own = sum(
        row["value"] or 0
        for row in snapshot.of_interface("nic_stats", interface)
        if NO_DESCRIPTOR.fullmatch(row["name"] or "")
    )
    return max(own, (interface["rx_missed_errors"] or 0) + (interface["rx_fifo_errors"] or 0))


RULE = Rule(
    name="rx-ring-drops",
    group="nic",
    summary="the device drops packets because its receive ring is full",
    source="Documentation/networking/statistics.rst, rx_missed_errors; ethtool(8), -g; fasterdata.es.net, Other Tuning",
    manual=__doc__,
    check=_check,
    needs=("interfaces",),
    counts=("dropped_pkts",),
)

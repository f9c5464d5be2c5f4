"""The table of RSS leads to a part of the queues.

What it sees: a device whose table of RSS names fewer queues than it has.
Why it matters: a queue that no hash leads to receives nothing. `ethtool -X equal N` does it, and so does a table that
was set while there were fewer queues: the kernel keeps a table that somebody set.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule


def _check(snapshot: Snapshot) -> list[Finding]:
    findings = []
    for interface in facts.devices(snapshot):
        channels = next(iter(snapshot.of_interface("channels", interface)), None)
        queues = facts.receive_queues(snapshot, interface)
        if channels is None or not channels["rss_queues"] or len(channels["rss_queues"]) >= min(queues, MOST_QUEUES):
            continue
        name, used = interface["interface"], len(channels["rss_queues"])
        findings.append(
            RULE.found(
                "advice",
                name,
                f"RSS spreads what {name} receives over {used} of {queues} queues.",
                {"rss_queues": used, "queues": queues, "driver": interface["driver"]},
                confirm=[f"ethtool -x {name}", f"ethtool -l {name}"],
                advice=f"ethtool -X {name} default, unless the others are left out on purpose (flow steering, XDP, a "
                "context of its own).",
                gain=f"Receiving is spread over {queues} queues.",
            )
        )
    return findings


MOST_QUEUES = 16
"""Devices have tables of 16 entries and more (ixgbe's virtual functions 64, virtio's 128); drivers leave queues out
that do not fit."""

RULE = Rule(
    name="rss-leaves-queues-out",
    group="nic",
    summary="the table of RSS leads to a part of a device's queues",
    source="Documentation/networking/scaling.rst, RSS Configuration (indirection table); ethtool(8), -X",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "channels"),
)

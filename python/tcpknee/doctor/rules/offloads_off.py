"""Offloads that TCP depends on are off.

What it sees: a device that can do segmentation, checksums, scatter-gather or GRO, and has them off.
Why it matters: each packet of 1,500 bytes then goes through the whole stack by itself, where one of 64 KiB would do.
Offloads that the device cannot do are not reported.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Offload
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

WANTED = {
    "generic-receive-offload": "gro",
    "generic-segmentation-offload": "gso",
    "tcp-segmentation-offload": "tso",
    "scatter-gather": "sg",
    "tx-checksumming": "tx",
    "rx-checksumming": "rx",
}


def _check(snapshot: Snapshot) -> list[Finding]:
    findings = []
    for interface in facts.senders(snapshot):
        off = [
            row["name"]
            for row in snapshot.of_interface("offloads", interface)
            if row["name"] in WANTED and row["on"] is False and row["fixed"] is False
        ]
        if not off:
            continue
        name = interface["interface"]
        findings.append(
            RULE.found(
                "warning",
                name,
                f"{name} can do {', '.join(sorted(off))}, and has {'it' if len(off) == 1 else 'them'} off.",
                {"off": ", ".join(sorted(off)), "driver": interface["driver"]},
                confirm=[f"ethtool -k {name}"],
                # Segmentation needs checksums and scatter-gather: those come first.
                changes=[
                    Offload(name, WANTED[one], True, netns=snapshot.netns)
                    for one in sorted(off, key=list(WANTED).index, reverse=True)
                ],
                gain="Several times less processor time per byte for bulk transfers.",
            )
        )
    return findings


RULE = Rule(
    name="offloads-off",
    group="nic",
    summary="segmentation, checksum or GRO offloads are off although the device has them",
    source="Documentation/networking/segmentation-offloads.rst; ethtool(8), -K",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "offloads"),
)

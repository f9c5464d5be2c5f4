"""The link damages packets.

What it sees: packets with a wrong checksum of the link, at least one in a million, or a link in half duplex.
Why it matters: the device drops them. Cables, optics or a wrong pair of settings do that, and congestion control
takes it for a full path.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

SHARE = 1e-6


def _check(snapshot: Snapshot) -> list[Finding]:
    findings = []
    for interface in facts.devices(snapshot):
        damaged, received = interface["rx_crc_errors"] or 0, interface["rx_packets"] or 0
        half = interface["duplex"] == "half"
        if not half and (not damaged or damaged < SHARE * received):
            continue
        name = interface["interface"]
        findings.append(
            RULE.found(
                "critical",
                name,
                f"{name} works in half duplex." if half else f"{damaged:,} of {received:,} packets came damaged.",
                {
                    "rx_crc_errors": damaged,
                    "rx_packets": received,
                    "duplex": interface["duplex"],
                    "carrier_changes": interface["carrier_changes"],
                },
                confirm=[f"ethtool -S {name} | grep -i -E 'crc|symbol|fcs'", f"ethtool -m {name}", f"ethtool {name}"],
                advice="Negotiate speed and duplex automatically on both ends." if half else "Change cable or optics.",
                gain="These losses end; a loss-based algorithm gains most.",
                events=None if half else damaged,
                of=received,
            )
        )
    return findings


RULE = Rule(
    name="link-errors",
    group="nic",
    summary="the link damages packets or works in half duplex",
    source="Documentation/networking/statistics.rst, rx_crc_errors",
    manual=__doc__,
    check=_check,
    needs=("interfaces",),
    counts=("rx_crc_errors",),
)

"""The device's slot is slower than its link.

What it sees: a PCIe link with fewer lanes or a lower speed than the device has, which carries less than the network
link.
Why it matters: packets wait for the slot. No setting of the kernel changes that: the card sits in the wrong slot, or
the slot's speed is set down.
"""

from __future__ import annotations

from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

ENCODED = {2.5: 0.8, 5.0: 0.8}
"""8b/10b up to PCIe 2; later 128b/130b and better."""
PAYLOAD = 0.85
"""What headers of transactions leave, with payloads of 256 bytes."""


def _check(snapshot: Snapshot) -> list[Finding]:
    speeds = {row["interface"]: row["speed_bits_per_sec"] for row in snapshot.rows("interfaces")}
    findings = []
    for row in snapshot.rows("pci"):
        values = (row["speed_gt_per_sec"], row["width"], row["max_speed_gt_per_sec"], row["max_width"])
        link = speeds.get(row["interface"])
        if None in values or not link:
            continue
        speed, width, most, widest = values
        carries = speed * 1e9 * width * ENCODED.get(speed, 128 / 130) * PAYLOAD
        if carries <= 0 or (speed >= most and width >= widest) or carries >= link:
            continue
        findings.append(
            RULE.found(
                "warning",
                row["interface"],
                f"The slot of {row['interface']} carries {carries / 1e9:.0f} of {link / 1e9:.0f} Gbit/s: "
                f"x{width} at {speed:g} GT/s, the device has x{widest} at {most:g}.",
                {
                    "speed_gt_per_sec": speed,
                    "width": width,
                    "max_speed_gt_per_sec": most,
                    "max_width": widest,
                    "speed_bits_per_sec": link,
                },
                confirm=["lspci -vv | grep -E 'Ethernet|LnkCap|LnkSta'"],
                advice="Move the card to a slot with more lanes, or look at the firmware's setting of the slot.",
                gain=f"Up to {link / carries:.1f} times the rate.",
            )
        )
    return findings


RULE = Rule(
    name="pcie-too-narrow",
    group="nic",
    summary="the PCIe slot carries less than the network link",
    source="mlnx_tune (PCI width and speed); Documentation/ABI/testing/sysfs-bus-pci, current_link_width",
    manual=__doc__,
    check=_check,
    needs=("pci", "interfaces"),
)

"""An IOMMU translates every packet's address.

What it sees: a bare-metal host with a device of 40 Gbit/s or more in an IOMMU group of the type DMA, which is strict.
Why it matters: each buffer is mapped and unmapped, and with the strict type every unmapping waits for the IOMMU.
"""

from __future__ import annotations

from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

FAST_BITS_PER_SEC = 40_000_000_000


def _check(snapshot: Snapshot) -> list[Finding]:
    if snapshot.host["hypervisor"] != "none":
        return []
    speeds = {row["interface"]: row["speed_bits_per_sec"] or 0 for row in snapshot.rows("interfaces")}
    return [
        RULE.found(
            "advice",
            row["interface"],
            f"{row['interface']} is behind an IOMMU that translates strictly.",
            {
                "iommu_type": row["iommu_type"],
                "speed_bits_per_sec": speeds[row["interface"]],
                "boot_parameters": ", ".join(snapshot.host["boot_parameters"] or []) or "none that matter",
            },
            confirm=["cat /sys/class/net/*/device/iommu_group/type", "cat /proc/cmdline"],
            advice="Boot with iommu=pt, or with iommu.strict=0; either lets a faulty device reach more memory.",
            gain="Less processor time per packet; fasterdata.es.net names it for 40 Gbit/s and more.",
        )
        for row in snapshot.rows("pci")
        if row["iommu_type"] == "DMA" and speeds.get(row["interface"], 0) >= FAST_BITS_PER_SEC
    ]


RULE = Rule(
    name="iommu-translates",
    group="nic",
    summary="an IOMMU translates strictly for a fast device",
    source="fasterdata.es.net, 100G tuning (iommu=pt); Documentation/admin-guide/kernel-parameters.txt, iommu.strict",
    manual=__doc__,
    check=_check,
    needs=("pci", "interfaces", "host"),
)

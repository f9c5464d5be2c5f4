"""irqbalance moves the interrupts of a fast device.

What it sees: irqbalance runs, and a device of 40 Gbit/s or more whose vendor advises against it.
Why it matters: vendors disagree, because it depends on the driver. Those of fast devices place each queue's interrupt
themselves; irqbalance moves it while traffic flows, away from its cache and at times to another node.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

FAST_BITS_PER_SEC = 40_000_000_000
PLACED = {"mlx5_core": "NVIDIA", "mlx4_en": "NVIDIA", "ice": "Intel", "i40e": "Intel"}
"""Drivers whose vendors advise to stop irqbalance, and place interrupts by a script."""


def _check(snapshot: Snapshot) -> list[Finding]:
    if not facts.runs(snapshot, "irqbalance"):
        return []
    return [
        RULE.found(
            "advice",
            interface["interface"],
            f"irqbalance runs beside {interface['driver']} at {interface['speed_bits_per_sec'] / 1e9:.0f} Gbit/s.",
            {"driver": interface["driver"], "speed_bits_per_sec": interface["speed_bits_per_sec"]},
            confirm=["systemctl is-active irqbalance", f"grep {interface['interface']} /proc/interrupts"],
            advice=f"{PLACED[interface['driver']]} advises to stop it and to place the interrupts once. Measure before "
            "and after: clouds and distributions advise to keep it.",
            gain="Steadier rates of single connections; none where irqbalance leaves the interrupts where they are.",
        )
        for interface in facts.devices(snapshot)
        if interface["driver"] in PLACED and (interface["speed_bits_per_sec"] or 0) >= FAST_BITS_PER_SEC
    ]


RULE = Rule(
    name="irqbalance-beside-fast-nic",
    group="nic",
    summary="irqbalance moves interrupts of a fast device, whose vendor places them",
    source="fasterdata.es.net/host-tuning/linux/100g-tuning/interrupt-binding; Intel, 800 Series Linux Performance "
    "Tuning Guide; mlnx_tune",
    manual=__doc__,
    check=_check,
    needs=("owners", "interfaces"),
)

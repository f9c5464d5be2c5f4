"""Processors are not allowed their speed.

What it sees: a governor that keeps the frequency low (powersave of acpi-cpufreq, conservative, userspace), or a bound
below what the processor can do.
Why it matters: one connection is one processor's work on each side. A processor at half its speed halves its rate.
"""

from __future__ import annotations

from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

SLOW = {"powersave", "conservative", "userspace"}
SCALING = {"intel_pstate", "amd-pstate-epp"}
"""Drivers whose `powersave` goes up and down with the load."""
BOUND = 0.8


def _check(snapshot: Snapshot) -> list[Finding]:
    rows = snapshot.rows("cpus")
    slow = [row for row in rows if row["governor"] in SLOW and row["driver"] not in SCALING]
    bound = [
        row
        for row in rows
        if row["max_khz"] and row["hardware_max_khz"] and row["max_khz"] < BOUND * row["hardware_max_khz"]
    ]
    if not slow and not bound:
        return []
    one = (slow or bound)[0]
    return [
        RULE.found(
            "advice",
            "processors",
            f"{len(slow)} of {len(rows)} processors have the governor {one['governor']}."
            if slow
            else f"{len(bound)} of {len(rows)} processors may go up to {one['max_khz'] / 1e6:.1f} of "
            f"{one['hardware_max_khz'] / 1e6:.1f} GHz.",
            {
                "governor": one["governor"],
                "driver": one["driver"],
                "max_khz": one["max_khz"],
                "hardware_max_khz": one["hardware_max_khz"],
                "cpus": len(slow or bound),
            },
            confirm=["grep . /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor", "cpupower frequency-info"],
            advice="cpupower frequency-set -g performance, by tuned or a unit so that it holds after a boot.",
            gain="Up to the ratio of the frequencies, where one connection keeps a processor busy.",
        )
    ]


RULE = Rule(
    name="cpu-frequency-low",
    group="nic",
    summary="processors are kept below their frequency",
    source="fasterdata.es.net, 100G tuning (governor performance); tuned, profile throughput-performance",
    manual=__doc__,
    check=_check,
    needs=("cpus",),
)

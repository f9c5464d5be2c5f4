"""The clock is slow to read.

What it sees: a clock source other than the processor's own counter, where one of those is available.
Why it matters: TCP reads the clock for each packet and each ACK, pacing more often. hpet and acpi_pm take about a
microsecond, and xen a call of the kernel.
"""

from __future__ import annotations

from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

SLOW = {"hpet", "acpi_pm", "xen", "jiffies", "refined-jiffies"}
FAST = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter")


def _check(snapshot: Snapshot) -> list[Finding]:
    clock = snapshot.host["clocksource"]
    better = next((one for one in FAST if one in (snapshot.host["clocksources"] or [])), None)
    if clock not in SLOW:
        return []
    return [
        RULE.found(
            "warning",
            "clock",
            f"The clock is {clock}" + (f", and {better} is available." if better else "."),
            {"clocksource": clock, "available": ", ".join(snapshot.host["clocksources"] or [])},
            confirm=["cat /sys/devices/system/clocksource/clocksource0/current_clocksource", "dmesg | grep -i tsc"],
            advice=f"Boot with clocksource={better}."
            if better
            else "The kernel took the counter for unstable: dmesg says why. Newer instance types have a better clock.",
            gain="Less processor time per packet, most of it for paced connections.",
        )
    ]


RULE = Rule(
    name="slow-clock",
    group="nic",
    summary="the clock source is slow to read",
    source="AWS knowledge centre, Manage the clock source for EC2 Linux instances; Documentation/virt/kvm/x86/"
    "timekeeping.rst",
    manual=__doc__,
    check=_check,
    needs=("host",),
)

"""One large flow may crowd out the small ones.

What it sees: backlogs overflowed, RPS hands packets on, and flow limit is off.
Why it matters: when a backlog is more than half full, flow limit drops packets of the flow that fills it, and lets
small flows through. Without it all lose alike. It acts on the processor that hands packets on, not on the one whose
backlog is full.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Sysctl
from tcpknee.doctor.cpus import mask_like
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot
from tcpknee.human import counted

from .rule import Rule

SHARE = 1e-5
MOST_CPUS = 8_192
"""The most that a kernel can be built for (CONFIG_NR_CPUS of x86)."""


def _check(snapshot: Snapshot) -> list[Finding]:
    rows = snapshot.rows("softnet")
    dropped = sum(row["dropped"] or 0 for row in rows)
    processed = sum(row["processed"] or 0 for row in rows)
    mask = snapshot.sysctl("net.core.flow_limit_cpu_bitmap")
    handed_on = sum(row["received_rps"] or 0 for row in rows)
    overflowed = [row["cpu"] for row in rows if row["dropped"]]
    if mask is None or mask.strip("0,") or not overflowed or dropped < SHARE * processed or not handed_on:
        return []
    interrupted = {
        int(cpu)
        for interface in facts.devices(snapshot)
        for row in facts.interrupts(snapshot, interface)
        for cpu in row["counts"]
        if cpu.isdigit() and int(cpu) < MOST_CPUS
    }
    wanted = mask_like("", interrupted)
    return [
        RULE.found(
            "advice",
            "net.core.flow_limit_cpu_bitmap",
            f"Flow limit is off, and backlogs of {counted(len(overflowed), 'processor')} overflowed.",
            {"dropped_pkts": dropped, "flow_limit_cpu_bitmap": mask, "received_rps": handed_on},
            confirm=["sysctl net.core.flow_limit_cpu_bitmap", "cat /proc/net/softnet_stat"],
            changes=[Sysctl("net.core.flow_limit_cpu_bitmap", wanted)] if interrupted else [],
            advice=""
            if interrupted
            else "Name the processors that receive the interrupts of the network devices (/proc/interrupts).",
            gain="Small flows keep their packets while a large one overflows.",
            events=dropped,
            of=processed,
        )
    ]


RULE = Rule(
    name="flow-limit-off",
    group="nic",
    summary="backlogs overflow without flow limit, so that small flows lose with the large",
    source="Documentation/networking/scaling.rst, RPS Flow Limit; Linux 99bbc7074190",
    manual=__doc__,
    check=_check,
    needs=("softnet", "sysctls", "interfaces", "irqs"),
    counts=("dropped_pkts",),
)

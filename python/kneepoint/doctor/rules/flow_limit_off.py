"""One large flow may crowd out the small ones.

What it sees: backlogs overflowed, RPS hands packets on, and flow limit is off.
Why it matters: when a backlog is more than half full, flow limit drops packets of the flow that fills it, and lets
small flows through. Without it all lose alike.
"""

from __future__ import annotations

from kneepoint.doctor.changes import Sysctl
from kneepoint.doctor.finding import Finding
from kneepoint.doctor.snapshot import Snapshot

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
    cpus = [row["cpu"] for row in rows if row["dropped"] and row["cpu"] is not None and 0 <= row["cpu"] < MOST_CPUS]
    if mask is None or mask.strip("0,") or not cpus or dropped < SHARE * processed or not handed_on:
        return []
    wanted = sum(1 << cpu for cpu in cpus)
    words = f"{wanted:x}"
    words = words.zfill(-(-len(words) // 8) * 8)
    return [
        RULE.found(
            "advice",
            "net.core.flow_limit_cpu_bitmap",
            f"Flow limit is off on {len(cpus)} processors whose backlog overflowed.",
            {"dropped_pkts": dropped, "flow_limit_cpu_bitmap": mask, "received_rps": handed_on},
            confirm=["sysctl net.core.flow_limit_cpu_bitmap", "cat /proc/net/softnet_stat"],
            changes=[
                Sysctl("net.core.flow_limit_cpu_bitmap", ",".join(words[at : at + 8] for at in range(0, len(words), 8)))
            ],
            gain="Small flows keep their packets while a large one overflows.",
        )
    ]


RULE = Rule(
    name="flow-limit-off",
    group="nic",
    summary="backlogs overflow without flow limit, so that small flows lose with the large",
    source="Documentation/networking/scaling.rst, RPS Flow Limit",
    manual=__doc__,
    check=_check,
    needs=("softnet", "sysctls"),
    counts=("dropped_pkts",),
)

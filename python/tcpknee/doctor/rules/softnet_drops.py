"""Packets are dropped between the device and TCP.

What it sees: at least one packet in 100,000 dropped because a processor's backlog was full.
Why it matters: packets that RPS, loopback or veth hand to a processor wait in its backlog, of netdev_max_backlog.
What finds it full is lost, on a host that may have other processors idle.
"""

from __future__ import annotations

from tcpknee import human
from tcpknee.doctor import facts
from tcpknee.doctor.changes import Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

SHARE = 1e-5
MOST = 16_384


def _check(snapshot: Snapshot) -> list[Finding]:
    rows = snapshot.rows("softnet")
    dropped = sum(row["dropped"] or 0 for row in rows)
    processed = sum(row["processed"] or 0 for row in rows)
    # What finds no room is not processed.
    came = processed + dropped
    backlog = facts.number(snapshot, "net.core.netdev_max_backlog")
    if not dropped or not processed or dropped < SHARE * came:
        return []
    worst = max(rows, key=lambda row: row["dropped"] or 0)
    return [
        RULE.found(
            "warning",
            f"processor {worst['cpu']}",
            f"{dropped:,} of {came:,} packets found the backlog of their processor full.",
            {
                "dropped_pkts": dropped,
                "processed_pkts": processed,
                "netdev_max_backlog": backlog,
                "worst_cpu": worst["cpu"],
                "dropped_there": worst["dropped"],
            },
            confirm=["cat /proc/net/softnet_stat", "mpstat -P ALL 1 3"],
            changes=[Sysctl("net.core.netdev_max_backlog", str(min(max(4 * backlog, 4_000), MOST)))]
            if backlog is not None and backlog < MOST
            else [],
            advice="Where one processor has most of the drops, spread its work first: RPS mask, interrupts, queues.",
            gain=f"Up to {human.digits(100 * dropped / came, 2)} % of the packets are no longer lost here.",
            events=dropped,
            of=came,
        )
    ]


RULE = Rule(
    name="softnet-drops",
    group="nic",
    summary="processors' backlogs overflow",
    source="Documentation/admin-guide/sysctl/net.rst, netdev_max_backlog; Documentation/networking/scaling.rst, RPS",
    manual=__doc__,
    check=_check,
    needs=("softnet", "sysctls"),
    counts=("dropped_pkts",),
)

"""The bound of listening queues is that of old kernels.

What it sees: net.core.somaxconn below 4,096, listeners whose queue is bounded by it, and more than 20 accepted
connections a second since boot.
Why it matters: 128 waiting connections are 6 s of work at 20 a second, and 13 ms at 10,000. A pause of the program,
as for garbage, fills the queue.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

TODAY = 4096
BUSY_PER_SEC = 20


def _check(snapshot: Snapshot) -> list[Finding]:
    most = facts.number(snapshot, "net.core.somaxconn")
    uptime = snapshot.host["uptime_sec"]
    opened = facts.counted(snapshot, "Tcp.PassiveOpens")
    if most is None or most >= TODAY or not uptime or opened < BUSY_PER_SEC * uptime:
        return []
    bound = [row for row in snapshot.rows("listeners") if row["backlog"] == most]
    if not bound:
        return []
    return [
        RULE.found(
            "advice",
            "net.core.somaxconn",
            f"{len(bound)} listeners may have {most} connections waiting, at {opened / uptime:.0f} new ones a second.",
            {"somaxconn": most, "listeners": len(bound), "passive_opens_per_sec": round(opened / uptime, 1)},
            confirm=["ss -ltn", "sysctl net.core.somaxconn"],
            changes=[Sysctl("net.core.somaxconn", str(TODAY), netns=snapshot.netns)],
            advice="Restart the programs: a listener keeps the bound that it began with.",
            gain="A pause of the program no longer costs clients a second.",
        )
    ]


RULE = Rule(
    name="short-backlog",
    group="limits",
    summary="somaxconn bounds busy listeners to the queue of old kernels",
    source="Linux 19f92a030ca6 (5.4, SOMAXCONN 128 to 4096)",
    manual=__doc__,
    check=_check,
    needs=("sysctls", "listeners", "counters", "host"),
)

"""Receiving stops before the work is done.

What it sees: in at least one of 10,000 packets the processor left work when its budget of packets or of time was used
up.
Why it matters: what is left waits for the next turn, behind programs when ksoftirqd takes it over. The ring fills up
meanwhile.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Change, Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

SHARE = 1e-4
LEAST_PKTS = 10_000_000
BUDGET_PKTS = 600
BUDGET_US = 8_000


def _check(snapshot: Snapshot) -> list[Finding]:
    rows = snapshot.rows("softnet")
    squeezed = sum(row["squeezed"] or 0 for row in rows)
    processed = sum(row["processed"] or 0 for row in rows)
    if processed < LEAST_PKTS or squeezed < SHARE * processed:
        return []
    budget = facts.number(snapshot, "net.core.netdev_budget")
    time_us = facts.number(snapshot, "net.core.netdev_budget_usecs")
    changes: list[Change] = []
    if budget is not None and budget < BUDGET_PKTS:
        changes.append(Sysctl("net.core.netdev_budget", str(BUDGET_PKTS)))
    if time_us is not None and time_us < BUDGET_US:
        changes.append(Sysctl("net.core.netdev_budget_usecs", str(BUDGET_US)))
    return [
        RULE.found(
            "advice",
            "receive budget",
            f"Processors left packets waiting {squeezed:,} times in {processed:,} packets.",
            {
                "squeezed": squeezed,
                "processed_pkts": processed,
                "netdev_budget": budget,
                "netdev_budget_usecs": time_us,
            },
            confirm=["cat /proc/net/softnet_stat"],
            changes=changes,
            advice="" if changes else "The budget is large already: spread the work over more processors.",
            gain="Shorter waits in the ring; programs on these processors wait longer.",
        )
    ]


RULE = Rule(
    name="softnet-squeezed",
    group="nic",
    summary="processors stop receiving before their rings are empty",
    source="Documentation/admin-guide/sysctl/net.rst, netdev_budget and netdev_budget_usecs",
    manual=__doc__,
    check=_check,
    needs=("softnet", "sysctls"),
    counts=("squeezed",),
)

"""The table of tracked connections is full, or nearly.

What it sees: nf_conntrack_count at 80 % of nf_conntrack_max or more, or entries dropped since boot.
Why it matters: a packet of a new connection that gets no entry is dropped. To a client the host looks dead.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

NEARLY = 0.8


def _check(snapshot: Snapshot) -> list[Finding]:
    count = facts.number(snapshot, "net.netfilter.nf_conntrack_count")
    most = facts.number(snapshot, "net.netfilter.nf_conntrack_max")
    if count is None or not most:
        return []
    dropped = facts.counted(snapshot, "nf_conntrack.drop", "nf_conntrack.early_drop")
    if count < NEARLY * most and not dropped:
        return []
    full = count >= 0.95 * most or dropped > 0
    return [
        RULE.found(
            "critical" if full else "warning",
            "net.netfilter.nf_conntrack_max",
            f"{count:,} of {most:,} tracked connections, {dropped:,} dropped since boot.",
            {"nf_conntrack_count": count, "nf_conntrack_max": most, "dropped": dropped},
            confirm=["sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max", "conntrack -S"],
            changes=[Sysctl("net.netfilter.nf_conntrack_max", str(2 * most), netns=snapshot.netns)],
            advice="Traffic that needs no tracking can be left out of it (nft … notrack).",
            gain="New connections are no longer dropped. An entry takes some 300 bytes of memory.",
            events=None if count >= NEARLY * most else dropped,
        )
    ]


RULE = Rule(
    name="conntrack-full",
    group="limits",
    summary="the table of tracked connections is full, or nearly",
    source="Documentation/networking/nf_conntrack-sysctl.rst",
    manual=__doc__,
    check=_check,
    needs=("sysctls", "counters"),
    counts=("dropped",),
)

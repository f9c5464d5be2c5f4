"""The table of neighbours is full, or nearly.

What it sees: ARP or neighbour entries at 80 % of gc_thresh3 or more, or overflows since boot.
Why it matters: a neighbour without an entry cannot be reached. Large flat networks and hosts of thousands of
containers come to more than the 1,024 entries of the default.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

NEARLY = 0.8
FILES = {"arp_cache": "net.ipv4.neigh.default", "ndisc_cache": "net.ipv6.neigh.default"}


def _check(snapshot: Snapshot) -> list[Finding]:
    findings = []
    for file, place in FILES.items():
        most = facts.number(snapshot, f"{place}.gc_thresh3")
        entries = facts.counted(snapshot, f"{file}.entries")
        overflows = facts.counted(snapshot, f"{file}.table_fulls")
        if not most or (entries < NEARLY * most and not overflows):
            continue
        wanted = 4 * max(most, entries)
        findings.append(
            RULE.found(
                "critical" if overflows or entries >= most else "warning",
                f"{place}.gc_thresh3",
                f"{entries:,} of {most:,} neighbours, {overflows:,} found the table full since boot.",
                {"entries": entries, "gc_thresh3": most, "table_fulls": overflows},
                confirm=["ip neigh | wc -l", f"sysctl {place}.gc_thresh3"],
                changes=[
                    Sysctl(f"{place}.gc_thresh{number}", str(wanted * share // 4))
                    for number, share in ((3, 4), (2, 2), (1, 1))
                ],
                gain="All neighbours can be reached.",
                events=None if entries >= NEARLY * most else overflows,
            )
        )
    return findings


RULE = Rule(
    name="neighbour-table-full",
    group="limits",
    summary="the table of neighbours is full, or nearly",
    source="Documentation/networking/ip-sysctl.rst, neigh/default/gc_thresh3 (1,024)",
    manual=__doc__,
    check=_check,
    needs=("sysctls", "counters"),
    counts=("table_fulls",),
)

"""TCP is short of memory.

What it sees: TCP has more pages than tcp_mem's second value, or was under pressure or gave up connections since boot.
Why it matters: under pressure the kernel shrinks windows and buffers of all connections; above the third value it
drops segments and closes connections.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Change, Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

SHARE_OF_MEMORY = 4
"""At most a fourth of the memory; the kernel's own default is about a ninth."""


def _check(snapshot: Snapshot) -> list[Finding]:
    bounds = facts.vector(snapshot, "net.ipv4.tcp_mem")
    pages = facts.counted(snapshot, "TCP.mem")
    pressures = facts.counted(snapshot, "TcpExt.TCPMemoryPressures")
    aborted = facts.counted(snapshot, "TcpExt.TCPAbortOnMemory")
    if bounds is None or len(bounds) != 3 or (pages < bounds[1] and not pressures and not aborted):
        return []
    memory, page = snapshot.host["memory_bytes"], snapshot.host["page_bytes"]
    changes: list[Change] = []
    if memory and page and 2 * bounds[2] <= memory // page // SHARE_OF_MEMORY:
        changes = [Sysctl("net.ipv4.tcp_mem", " ".join(str(2 * bound) for bound in bounds))]
    return [
        RULE.found(
            "critical" if aborted or pages >= bounds[2] else "warning",
            "net.ipv4.tcp_mem",
            f"TCP has {pages:,} pages, and moderates itself from {bounds[1]:,} on; it has done so {pressures:,} times.",
            {
                "tcp_mem_pages": pages,
                "pressure_pages": bounds[1],
                "max_pages": bounds[2],
                "memory_pressures": pressures,
                "aborted": aborted,
                "memory_available_bytes": snapshot.host["memory_available_bytes"],
            },
            confirm=["cat /proc/net/sockstat", "nstat -az TcpExtTCPMemoryPressures TcpExtTCPAbortOnMemory"],
            changes=changes,
            advice="Look for connections whose program does not read: ss -tnm shows what each holds.",
            gain="Windows and buffers are what each connection needs.",
            events=None if pages >= bounds[1] else pressures + aborted,
        )
    ]


RULE = Rule(
    name="tcp-memory-pressure",
    group="limits",
    summary="TCP's memory is at its bound, or was",
    source="Documentation/networking/ip-sysctl.rst, tcp_mem",
    manual=__doc__,
    check=_check,
    needs=("sysctls", "counters", "host"),
    counts=("memory_pressures", "aborted"),
)

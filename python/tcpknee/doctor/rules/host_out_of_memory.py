"""Tasks wait for memory.

What it sees: in the last minute some task waited for memory in more than 10 % of the time.
Why it matters: buffers of connections are memory as others. A host that swaps answers late, whatever its network
does.
"""

from __future__ import annotations

from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

WAITING_PCT = 10.0


def _check(snapshot: Snapshot) -> list[Finding]:
    host = snapshot.host
    waiting = host["memory_pressure_pct"]
    if waiting is None or waiting < WAITING_PCT:
        return []
    return [
        RULE.found(
            "warning",
            "memory",
            f"Tasks waited for memory in {waiting:.0f} % of the last minute.",
            {
                "memory_pressure_pct": waiting,
                "memory_available_bytes": host["memory_available_bytes"],
                "memory_bytes": host["memory_bytes"],
            },
            confirm=["cat /proc/pressure/memory", "free -m"],
            advice="Find what takes the memory before any buffer is made larger.",
            gain="Answers in time.",
        )
    ]


RULE = Rule(
    name="host-out-of-memory",
    group="limits",
    summary="tasks of this host wait for memory",
    source="Documentation/accounting/psi.rst",
    manual=__doc__,
    check=_check,
    needs=("host",),
)

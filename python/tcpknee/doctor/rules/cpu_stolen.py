"""The hypervisor gives this machine's time to others.

What it sees: at least 5 % of the processor time since boot was stolen.
Why it matters: packets and ACKs wait until the machine runs again. Round-trip times rise and vary, and no setting
within the machine changes it.
"""

from __future__ import annotations

from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

STOLEN_PCT = 5.0


def _check(snapshot: Snapshot) -> list[Finding]:
    host = snapshot.host
    stolen = host["steal_pct"]
    if stolen is None or stolen < STOLEN_PCT:
        return []
    return [
        RULE.found(
            "warning",
            "processors",
            f"{stolen:.1f} % of the processor time since boot went to others.",
            {"steal_pct": stolen, "hypervisor": host["hypervisor"], "instance_type": host["instance_type"]},
            confirm=["vmstat 1 5", "grep ^cpu /proc/stat"],
            advice="Take a machine with processors of its own, or one that has not used up its credits.",
            gain="Latency without these pauses.",
        )
    ]


RULE = Rule(
    name="cpu-stolen",
    group="cloud",
    summary="the hypervisor gives processor time to others",
    source="proc_stat(5), steal; arXiv 2601.05665",
    manual=__doc__,
    check=_check,
    needs=("host",),
    counts=("steal_pct",),
)

"""Processors sleep deeper than the path is long.

What it sees: idle states that take at least 100 us to leave, on a host whose connections have round-trip times below
1 ms.
Why it matters: the first packet after a pause waits until its processor is awake.
"""

from __future__ import annotations

from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

DEEP_US = 100
LEAST_CONNECTIONS = 10


def _check(snapshot: Snapshot) -> list[Finding]:
    deep = [row for row in snapshot.rows("cpus") if (row["idle_exit_us"] or 0) >= DEEP_US]
    near = sum(
        row["connections"] or 0
        for row in snapshot.rows("sockets")
        if row["rtt_band"] == "below-1ms" and row["remote"] == "private"
    )
    if not deep or near < LEAST_CONNECTIONS:
        return []
    return [
        RULE.found(
            "advice",
            "processors",
            f"{len(deep)} processors may sleep in {deep[0]['idle_state']}, which takes {deep[0]['idle_exit_us']} us to "
            "leave.",
            {"idle_state": deep[0]["idle_state"], "idle_exit_us": deep[0]["idle_exit_us"], "near_connections": near},
            confirm=["cpupower idle-info"],
            advice="tuned's profile network-latency holds processors in shallow states; it takes power all the time.",
            gain=f"Up to {deep[0]['idle_exit_us']} us for the first packet after a pause; nothing under load.",
        )
    ]


RULE = Rule(
    name="deep-sleep",
    group="nic",
    summary="idle states are deep against the round-trip times",
    source="tuned, profiles network-latency and latency-performance (force_latency); Documentation/admin-guide/pm/"
    "cpuidle.rst",
    manual=__doc__,
    check=_check,
    needs=("cpus", "sockets"),
)

"""Large send buffers without a bound on unsent data.

What it sees: tcp_notsent_lowat is unlimited, send buffers may grow to 16 MiB and more, and busy connections go over
10 ms and more.
Why it matters: a program fills the buffer far ahead of what is sent. What it decides later (a better stream, a lower
rate of a video, an answer of higher priority) waits behind megabytes that it can no longer take back.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

UNLIMITED = (1 << 31) - 1
LARGE_BYTES = 16 << 20
BOUND_BYTES = 131_072
LEAST_BUSY = 10


def _check(snapshot: Snapshot) -> list[Finding]:
    bound = facts.number(snapshot, "net.ipv4.tcp_notsent_lowat")
    wmem = facts.vector(snapshot, "net.ipv4.tcp_wmem")
    # -1 is how older kernels print the largest unsigned number.
    if bound is None or 0 <= bound < UNLIMITED or wmem is None or len(wmem) != 3 or wmem[2] < LARGE_BYTES:
        return []
    busy = sum(
        row["busy_connections"] or 0
        for row in snapshot.rows("sockets")
        if row["remote"] == "public" and row["rtt_band"] in ("10-50ms", "above-50ms")
    )
    if busy < LEAST_BUSY:
        return []
    return [
        RULE.found(
            "advice",
            "net.ipv4.tcp_notsent_lowat",
            f"Each of {busy} busy connections may hold up to {wmem[2] >> 20} MiB that is not sent yet.",
            {"tcp_notsent_lowat_bytes": bound, "tcp_wmem_max_bytes": wmem[2], "busy_connections": busy},
            confirm=["sysctl net.ipv4.tcp_notsent_lowat", "ss -tin state established | grep -o notsent.*"],
            changes=[Sysctl("net.ipv4.tcp_notsent_lowat", str(BOUND_BYTES), netns=snapshot.netns)],
            gain="Less memory, and answers that are decided later; throughput stays where programs wake in time.",
        )
    ]


RULE = Rule(
    name="unsent-data-piles-up",
    group="buffers",
    summary="nothing bounds unsent data in large send buffers",
    source="Documentation/networking/ip-sysctl.rst, tcp_notsent_lowat; Linux c9bee3b7fdec (3.12)",
    manual=__doc__,
    check=_check,
    needs=("sockets", "sysctls"),
)

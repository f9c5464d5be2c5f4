"""The send buffer limits connections.

What it sees: busy connections that spent more than 20 % of their busy time with a full send buffer.
Why it matters: the window can be no larger than what the buffer holds. tcp_wmem's third value bounds what autotuning
may give; a program that sets SO_SNDBUF turns autotuning off.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Change, Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

SHARE = 0.05
MOST_BYTES = 256 << 20
"""More is no rate × RTT that one connection of today reaches, and memory that many could take."""


def _check(snapshot: Snapshot) -> list[Finding]:
    rows = [row for row in snapshot.rows("sockets") if row["remote"] != "loopback"]
    busy = sum(row["busy_connections"] or 0 for row in rows)
    limited = sum(row["sndbuf_limited_connections"] or 0 for row in rows)
    wmem = facts.vector(snapshot, "net.ipv4.tcp_wmem")
    if not limited or limited < SHARE * busy or wmem is None or len(wmem) != 3:
        return []
    # A buffer that limits also bounds the rate that is seen: what would be needed is more.
    needed = max(
        2 * (row["delivery_rate_bits_per_sec_max"] or 0) // 8 * (row["srtt_us_p50"] or 0) // 1_000_000
        for row in rows
        if row["sndbuf_limited_connections"]
    )
    wanted = min(1 << max(2 * wmem[2], 2 * needed).bit_length() - 1, MOST_BYTES)
    changes: list[Change] = []
    if wanted > wmem[2] and needed > wmem[2] // 2:
        changes = [Sysctl("net.ipv4.tcp_wmem", f"{wmem[0]} {wmem[1]} {wanted}", netns=snapshot.netns)]
    return [
        RULE.found(
            "warning",
            "net.ipv4.tcp_wmem",
            f"{limited} of {busy} busy connections wait for room in their send buffer.",
            {
                "sndbuf_limited_connections": limited,
                "busy_connections": busy,
                "tcp_wmem_max_bytes": wmem[2],
                "rate_times_rtt_bytes": needed // 2,
            },
            confirm=["ss -tin state established | grep -o sndbuf_limited.*"],
            changes=changes,
            advice=""
            if changes
            else "The bound is not reached: look for programs that set SO_SNDBUF, or for a small tcp_notsent_lowat.",
            gain="These connections send up to what the path gives.",
        )
    ]


RULE = Rule(
    name="send-buffer-limits",
    group="buffers",
    summary="the send buffer limits busy connections",
    source="tcp_info.tcpi_sndbuf_limited; Documentation/networking/ip-sysctl.rst, tcp_wmem",
    manual=__doc__,
    check=_check,
    needs=("sockets", "sysctls"),
)

"""The receive buffer is smaller than what the path holds.

What it sees: connections that received much from 10 ms and more away, and a tcp_rmem whose third value, less the half
that the kernel keeps for overhead, is below the interface's rate times their round-trip time.
Why it matters: the window that is offered bounds the sender: rate = window / round-trip time.
"""

from __future__ import annotations

from tcpknee import human
from tcpknee.doctor import facts
from tcpknee.doctor.changes import Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

RECEIVED_BYTES = 1_000_000_000
FAR_US = 10_000
MOST_BYTES = 256 << 20
MOST_BITS_PER_SEC = 10_000_000_000
"""One connection rarely gets more, whatever the interface has."""


def _check(snapshot: Snapshot) -> list[Finding]:
    rmem = facts.vector(snapshot, "net.ipv4.tcp_rmem")
    speeds = [row["speed_bits_per_sec"] for row in facts.devices(snapshot) if row["speed_bits_per_sec"]]
    if rmem is None or len(rmem) != 3 or min(rmem) <= 0 or not speeds:
        return []
    speed = min(max(speeds), MOST_BITS_PER_SEC)
    far = [
        row
        for row in snapshot.rows("sockets")
        if (row["min_rtt_us_p50"] or 0) >= FAR_US and (row["bytes_received"] or 0) >= RECEIVED_BYTES
    ]
    if not far:
        return []
    rtt_us = max(row["min_rtt_us_p50"] for row in far)
    path = speed // 8 * rtt_us // 1_000_000
    if rmem[2] // 2 >= path or rmem[2] >= MOST_BYTES:
        return []
    wanted = min(1 << (2 * path - 1).bit_length(), MOST_BYTES)
    times = min(path, wanted / 2) / (rmem[2] / 2)
    return [
        RULE.found(
            "advice",
            "net.ipv4.tcp_rmem",
            f"One connection from {rtt_us / 1000:.0f} ms away can get {8 * (rmem[2] // 2) / rtt_us:.0f} of "
            f"{speed / 1e6:,.0f} Mbit/s.",
            {
                "tcp_rmem_max_bytes": rmem[2],
                "rate_times_rtt_bytes": path,
                "min_rtt_us_p50": rtt_us,
                "bytes_received": sum(row["bytes_received"] for row in far),
            },
            confirm=["sysctl net.ipv4.tcp_rmem", "ss -tin state established | grep -o rcv_space.*"],
            changes=[Sysctl("net.ipv4.tcp_rmem", f"{rmem[0]} {rmem[1]} {wanted}", netns=snapshot.netns)],
            gain=f"Up to {human.digits(times)} times the rate, where this bound is the one that holds.",
        )
    ]


RULE = Rule(
    name="receive-buffer-below-path",
    group="buffers",
    summary="tcp_rmem bounds one connection below the interface's rate at its round-trip time",
    source="Documentation/networking/ip-sysctl.rst, tcp_rmem and tcp_adv_win_scale; fasterdata.es.net, Linux tuning",
    manual=__doc__,
    check=_check,
    needs=("sockets", "sysctls", "interfaces"),
)

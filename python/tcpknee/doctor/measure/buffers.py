"""What buffers, windows and options of TCP cost, on paths of the round-trip time that was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tcpknee.doctor.changes import RouteWindow, Sysctl
from tcpknee.doctor.finding import Finding

from .experiment import Arm, Experiment, setting, with_programs
from .plan import Plan, goal, number, of_kind
from .quantities import AGE, ANSWER, COMPLETION, STREAM, TIME_PER_BYTE

LEAST_BITS_PER_SEC, MOST_BITS_PER_SEC = 1_000_000, 1_000_000_000
"""Bounds of the path's rate. Above, the link of a lab on two cores is late (docs/link.md)."""
RTT_US = 50_000
"""Round-trip time of the path where the finding tells none."""
ROUNDS = 60
"""Round trips that a transfer gets: slow start, autotuning of buffers, and a steady part."""
LEAST_MS, MOST_MS = 2_000, 6_000

IDLE_MS = 500
"""Longer than a retransmission timeout, after which a window is given up."""

MOST_ON_MS = 800
"""So that three pairs of runs of five such periods fit into the time of a finding."""

MSS_BYTES = 1448


@dataclass(frozen=True)
class _Path:
    rate_bits_per_sec: int
    rtt_us: int

    def __str__(self) -> str:
        return f"{self.rate_bits_per_sec / 1e6:,.0f} Mbit/s and {self.rtt_us / 1000:.3g} ms"

    def settings(self) -> dict[str, str]:
        """As a scenario has it."""
        return {"rate": f"{self.rate_bits_per_sec}bit/s", "rtt": f"{self.rtt_us}us", "buffer": "1bdp"}


def _of_bdp(bdp_bytes: int, rtt_us: int) -> _Path:
    """A path of that rate × RTT, which is what a buffer bounds. Its round-trip time is longer than the one that was
    found where the rate would be too high."""
    rate = min(max(8 * bdp_bytes * 1_000_000 // rtt_us, LEAST_BITS_PER_SEC), MOST_BITS_PER_SEC)
    return _Path(rate, max(8 * bdp_bytes * 1_000_000 // rate, rtt_us))


def _bounded(side: str, name: str, most: int, wanted: int, path: _Path) -> Experiment:
    """A transfer with a buffer of up to `most` and one of up to `wanted` bytes."""
    duration_ms = min(max(ROUNDS * path.rtt_us // 1000, LEAST_MS), MOST_MS)

    def arm(bytes_: int) -> Arm:
        keys: Mapping[str, Any] = {f"{name}_max": f"{bytes_}B", f"{name}_default": f"{min(bytes_, 65536)}B"}
        label = f"{name} up to {bytes_ / (1 << 20):,.3g} MiB"
        return Arm(label, sender=keys) if side == "sender" else Arm(label, receiver=keys)

    return Experiment(
        f"one transfer over {path}",
        TIME_PER_BYTE,
        {"workload": "bulk"},
        arm(most),
        arm(wanted),
        path=path.settings(),
        # The far end's buffers are no limit.
        host={"tcp_rmem_max": "256MiB", "tcp_wmem_max": "256MiB"},
        where=("kernel", "simulator"),
        duration_ms=duration_ms,
        warmup_ms=duration_ms // 2,
    )


def _send_buffer(finding: Finding) -> Sequence[Experiment]:
    most, needed = number(finding, "tcp_wmem_max_bytes"), number(finding, "rate_times_rtt_bytes")
    wanted = goal(finding, "net.ipv4.tcp_wmem")
    if most is None or needed is None or not wanted:
        return []
    # The limit held down the rate that was found, so the path has more.
    return [_bounded("sender", "tcp_wmem", most, wanted[2], _of_bdp(2 * needed, RTT_US))]


def _receive_buffer(finding: Finding) -> Sequence[Experiment]:
    most, needed = number(finding, "tcp_rmem_max_bytes"), number(finding, "rate_times_rtt_bytes")
    rtt_us, wanted = number(finding, "min_rtt_us_p50"), goal(finding, "net.ipv4.tcp_rmem")
    if most is None or needed is None or rtt_us is None or not wanted:
        return []
    return [_bounded("receiver", "tcp_rmem", most, wanted[2], _of_bdp(needed, rtt_us))]


def _after_idle(finding: Finding) -> Sequence[Experiment]:
    rtt_us = number(finding, "srtt_us_p50") or RTT_US
    path = _Path(100_000_000, rtt_us)
    on_ms = min(max(8 * rtt_us // 1000, 100), MOST_ON_MS)
    return [
        Experiment(
            f"{on_ms} ms of data after each pause of {IDLE_MS} ms, over {path}",
            TIME_PER_BYTE,
            {"workload": "on-off", "on": f"{on_ms}ms", "off": f"{IDLE_MS}ms"},
            Arm("slow start after idle", sender={"tcp_slow_start_after_idle": True}),
            Arm("the window as it was", sender={"tcp_slow_start_after_idle": False}),
            path=path.settings(),
            duration_ms=5 * (on_ms + IDLE_MS),
            warmup_ms=on_ms + IDLE_MS,
            where=("kernel", "simulator"),
        )
    ]


def _initial_window(finding: Finding) -> Sequence[Experiment]:
    change = of_kind(finding, RouteWindow)
    segments = number(finding, "initcwnd_pkts")
    if change is None or change.initcwnd is None or segments is None:
        return []
    wanted = change.initcwnd
    # A first answer that fills the larger window.
    size = max(segments, wanted) * MSS_BYTES
    path = _Path(20_000_000, RTT_US)
    return [
        Experiment(
            f"a first answer of {max(segments, wanted)} segments over {path}",
            COMPLETION,
            {"workload": "transfer", "bytes": f"{size}B"},
            Arm(f"initcwnd {segments}", sender={"initcwnd": segments}),
            Arm(f"initcwnd {wanted}", sender={"initcwnd": wanted}),
            path=path.settings(),
            duration_ms=3000,
            warmup_ms=0,
            where=("kernel", "simulator"),
        )
    ]


OPTIONS: Mapping[str, tuple[str, str]] = {
    "net.ipv4.tcp_window_scaling": ("100Mbit/s", "0%"),
    "net.ipv4.tcp_moderate_rcvbuf": ("100Mbit/s", "0%"),
    "net.ipv4.tcp_sack": ("20Mbit/s", "1%"),
    "net.ipv4.tcp_timestamps": ("20Mbit/s", "1%"),
}
"""Rate and loss of the path on which an option matters: windows bound a fast path, losses need SACK."""


def _options(finding: Finding) -> Sequence[Experiment]:
    name = finding.subject
    if name not in OPTIONS:
        return []
    rate, loss = OPTIONS[name]
    short = name.rpartition(".")[2]
    return [
        with_programs(
            f"one transfer over {rate}, 40 ms and {loss} loss",
            STREAM,
            Arm(f"{short} off", ends=(*setting({name: 0}), "stream")),
            Arm(f"{short} on", ends=(*setting({name: 1}), "stream")),
            {"rate": rate, "rtt": "40ms", "loss": loss, "buffer": "1bdp"},
        )
    ]


def _timeouts(finding: Finding) -> Sequence[Experiment]:
    """The settings that the finding changes, first off and then as it wants them."""
    wanted = {change.name: change.value for change in finding.changes if isinstance(change, Sysctl)}
    if not wanted:
        return []
    short = " and ".join(name.rpartition(".")[2] for name in wanted)
    off = dict.fromkeys(wanted, "0")
    return [
        with_programs(
            "answers of 20 kB over 20 Mbit/s, 20 ms and 2 % loss",
            ANSWER,
            Arm(f"{short} 0", ends=(*setting(off), "ask")),
            Arm(f"{short} {' and '.join(wanted.values())}", ends=(*setting(wanted), "ask")),
            {"rate": "20Mbit/s", "rtt": "20ms", "loss": "2%", "buffer": "1bdp"},
        )
    ]


def _unsent(finding: Finding) -> Sequence[Experiment]:
    [wanted] = goal(finding, "net.ipv4.tcp_notsent_lowat") or [0]
    most = number(finding, "tcp_wmem_max_bytes")
    if not wanted or most is None:
        return []

    def arm(bytes_: int, label: str) -> Arm:
        return Arm(
            label,
            sender={"tcp_wmem_max": f"{most}B"},
            ends=(*setting({"net.ipv4.tcp_notsent_lowat": bytes_}), "age"),
        )

    return [
        with_programs(
            "a stream over 20 Mbit/s and 40 ms",
            AGE,
            arm((1 << 32) - 1, "unsent data without a bound"),
            arm(wanted, f"at most {wanted >> 10} KiB of it"),
            {"rate": "20Mbit/s", "rtt": "40ms", "buffer": "1bdp"},
        )
    ]


PLANS = {
    "send-buffer-limits": Plan(
        "one transfer over a path of twice the rate × RTT that was found: time per byte with both sizes", _send_buffer
    ),
    "receive-buffer-below-path": Plan(
        "one transfer over a path of the rate × RTT that was found: time per byte with both sizes",
        _receive_buffer,
    ),
    "slow-start-after-idle": Plan(
        "data after pauses at the RTT that was found: time per byte with and without", _after_idle
    ),
    "initial-window": Plan("a first answer: time to its last byte with both windows", _initial_window),
    "options-off": Plan("one transfer with the option off and on: time per byte", _options),
    "losses-found-by-timeout": Plan(
        "where RACK or probes are off: answers over a lossy path, time until each with them off and on", _timeouts
    ),
    "unsent-data-piles-up": Plan("a stream: age of the data on arrival with and without the bound", _unsent),
}

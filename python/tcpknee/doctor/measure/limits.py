"""What short queues of handshakes and of connections cost when many come at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tcpknee.doctor.finding import Finding

from .experiment import VETH, Arm, Experiment, setting, with_programs
from .plan import Plan, goal, number
from .quantities import WAIT

LEAST, MOST = 200, 3000
"""Bounds of how many connections are opened at once: twice what the queue holds."""


def _burst(now: dict[str, int], wanted: dict[str, int], path: Mapping[str, Any]) -> Experiment:
    count = min(max(2 * max(now.values()), LEAST), MOST)

    def arm(settings: dict[str, int]) -> Arm:
        label = ", ".join(f"{name.rpartition('.')[2]} {value}" for name, value in settings.items())
        return Arm(label, ends=(*setting(settings), "burst", str(count)))

    work = f"{count} connections at once to a server that pauses"
    return with_programs(work, WAIT, arm(now), arm(wanted), path, duration_ms=12_000)


def _backlog(finding: Finding) -> Sequence[Experiment]:
    name = "net.core.somaxconn"
    most, wanted = number(finding, "somaxconn"), goal(finding, name)
    if most is None or not wanted:
        return []
    return [_burst({name: most}, {name: wanted[0]}, VETH)]


def _handshakes(finding: Finding) -> Sequence[Experiment]:
    name, cookies = "net.ipv4.tcp_max_syn_backlog", "net.ipv4.tcp_syncookies"
    most, wanted = number(finding, name.rpartition(".")[2]), goal(finding, name)
    if most is None or not finding.changes:
        return []
    off = bool(goal(finding, cookies))
    now, other = {name: most, cookies: int(not off)}, {name: wanted[0] if wanted else most, cookies: 1}
    # Handshakes are open for a round trip.
    return [_burst(now, other, {"rate": "1Gbit/s", "rtt": "100ms", "buffer": "10MB"})]


_ACCEPT = Plan("many connections at once: time until each is served, with both lengths of the queue", _backlog)

PLANS = {
    "short-backlog": _ACCEPT,
    "listen-drops": _ACCEPT,
    "syn-queue-full": Plan(
        "many connections at once over 100 ms: time until each is served, with the settings before and after",
        _handshakes,
    ),
}

"""A setting that this kernel no longer heeds.

What it sees: a sysctl of TCP that somebody changed from its default, and a kernel on which it does nothing.
Why it matters: whoever set it believes that something is on or off which is not. Old advice outlives what it was for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule


@dataclass(frozen=True)
class Dead:
    """A sysctl below net.ipv4 that does nothing from a release on."""

    name: str
    default: int
    is_dead: Callable[[Snapshot], bool]
    told: str
    bits: int = -1
    """Those of its value that do nothing."""

    def back(self, value: int) -> int:
        """The value with the default of what does nothing."""
        return (value & ~self.bits) | (self.default & self.bits)


def _since(release: tuple[int, int]) -> Callable[[Snapshot], bool]:
    return lambda snapshot: (facts.kernel(snapshot) or (0, 0)) >= release


DEAD = (
    Dead(
        "tcp_recovery",
        1,
        lambda snapshot: facts.rule_of(snapshot, "tcp_recovery = 0") == "nothing",
        "RACK cannot be turned off since 6.17 (1c120191dcec)",
        bits=1,
    ),
    Dead(
        "tcp_adv_win_scale",
        1,
        lambda snapshot: facts.rule_of(snapshot, "rcvbuf_share") not in (None, "half"),
        "since 6.6 the window follows from what packets take (dfa2f0483360)",
    ),
    # ip-sysctl.rst of 6.12 and 7.2 says so; since when, it does not.
    Dead("tcp_fack", 0, _since((6, 12)), "forward acknowledgment is no longer there"),
    Dead("tcp_low_latency", 0, _since((6, 12)), "there is no prequeue any more"),
)


def _check(snapshot: Snapshot) -> list[Finding]:
    found = []
    for dead in DEAD:
        name = f"net.ipv4.{dead.name}"
        value = facts.number(snapshot, name)
        if value is not None and dead.back(value) != value and dead.is_dead(snapshot):
            found.append(
                RULE.found(
                    "advice",
                    name,
                    f"{name} = {value} does nothing on this kernel: {dead.told}.",
                    {dead.name: value, "kernel": snapshot.host["kernel"]},
                    confirm=[f"sysctl {name}"],
                    changes=[Sysctl(name, str(dead.back(value)), netns=snapshot.netns)],
                    gain="Nobody goes by a setting that has no effect.",
                )
            )
    return found


RULE = Rule(
    name="settings-without-effect",
    group="ownership",
    summary="a sysctl of TCP is set that this kernel does not heed",
    source="Linux 1c120191dcec (6.17, tcp_recovery), dfa2f0483360 (6.6, tcp_adv_win_scale); 7.2, "
    "Documentation/networking/ip-sysctl.rst (tcp_fack, tcp_low_latency)",
    manual=__doc__,
    check=_check,
    needs=("host", "sysctls"),
)

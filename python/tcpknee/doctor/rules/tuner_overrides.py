"""A tuner changes settings while the host runs.

What it sees: bpftune runs.
Why it matters: it raises buffers and chooses algorithms by what it sees. Two measurements of this host may have been
taken with different settings, and a change made by hand makes it withdraw from that setting.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule


def _check(snapshot: Snapshot) -> list[Finding]:
    if not facts.runs(snapshot, "bpftune"):
        return []
    names = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_congestion_control")
    return [
        RULE.found(
            "advice",
            "bpftune",
            "bpftune runs and changes buffers and algorithms by itself.",
            {name: snapshot.sysctl(name) for name in names if snapshot.sysctl(name) is not None},
            confirm=["systemctl status bpftune", "journalctl -u bpftune | tail"],
            advice="Record the settings with a measurement (`knee record` does), or stop bpftune while measuring.",
            gain="Measurements that can be compared.",
        )
    ]


RULE = Rule(
    name="tuner-overrides",
    group="ownership",
    summary="bpftune changes settings while the host runs",
    source="github.com/oracle/bpftune, README",
    manual=__doc__,
    check=_check,
    needs=("owners",),
)

"""Losses are found by timeouts instead of by ACKs.

What it sees: at least one segment in 1,000 is retransmitted, and at least half of that after a timeout, handshakes
left out; or TCP's means against it (RACK, tail loss probes) are off.
Why it matters: a timeout takes 200 ms and more and sends the window back to one segment. An ACK shows a loss within a
round trip. RACK and probes at the tail of a transfer make timeouts rare.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Change, Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

NOTABLE = 1e-3
HALF = 0.5
LEAST = 1_000
RACK = 1
"""Bit of tcp_recovery."""
PROBES = (3, 4)
"""Values of tcp_early_retrans with tail loss probes."""


def _check(snapshot: Snapshot) -> list[Finding]:
    recovery = facts.number(snapshot, "net.ipv4.tcp_recovery")
    probes = facts.number(snapshot, "net.ipv4.tcp_early_retrans")
    changes: list[Change] = []
    off = []
    if recovery is not None and not recovery & RACK and facts.rule_of(snapshot, "tcp_recovery = 0") != "nothing":
        changes.append(Sysctl("net.ipv4.tcp_recovery", str(recovery | RACK), netns=snapshot.netns))
        off.append("RACK")
    if probes is not None and probes not in PROBES:
        changes.append(Sysctl("net.ipv4.tcp_early_retrans", "3", netns=snapshot.netns))
        off.append("tail loss probes")
    again = facts.counted(snapshot, "Tcp.RetransSegs")
    # OutSegs leaves out what is sent again.
    sent = facts.counted(snapshot, "Tcp.OutSegs") + again
    handshakes = facts.counted(snapshot, "TcpExt.TCPSynRetrans")
    timeouts = max(0, facts.counted(snapshot, "TcpExt.TCPTimeouts") - handshakes)
    often = timeouts >= LEAST and again >= NOTABLE * sent and timeouts >= HALF * max(1, again - handshakes)
    if not often and not off:
        return []
    told = [f"{' and '.join(off)} {'is' if off == ['RACK'] else 'are'} off."] if off else []
    evidence = {"tcp_recovery": recovery, "tcp_early_retrans": probes}
    if often:
        told.append(f"{timeouts:,} timeouts; {again:,} of {sent:,} segments sent were retransmissions.")
        evidence = {
            "timeouts": timeouts,
            "retransmitted": again,
            "sent_segs": sent,
            "handshakes_repeated": handshakes,
            "spurious_timeouts": facts.counted(snapshot, "TcpExt.TCPSpuriousRTOs"),
            "probes": facts.counted(snapshot, "TcpExt.TCPLossProbes"),
            **evidence,
        }
    return [
        RULE.found(
            "warning" if often else "advice",
            "retransmissions" if often else "loss detection",
            " ".join(told),
            evidence,
            confirm=[
                "nstat -az TcpExtTCPTimeouts TcpExtTCPSynRetrans TcpExtTCPLossProbes TcpRetransSegs",
                "sysctl net.ipv4.tcp_recovery net.ipv4.tcp_early_retrans",
            ],
            changes=changes,
            advice=""
            if changes
            else "Far ends that vanish, policers that drop whole windows, and connections of few "
            "segments do this: `knee watch` and `knee trace` show which.",
            gain="Up to a round trip instead of 200 ms and more for each loss that an ACK can show.",
        )
    ]


RULE = Rule(
    name="losses-found-by-timeout",
    group="limits",
    summary="segments are retransmitted after timeouts, or what avoids that is off",
    source="RFC 8985 (RACK-TLP), section 1; Documentation/networking/ip-sysctl.rst, tcp_recovery and "
    "tcp_early_retrans; Documentation/networking/snmp_counter.rst, TcpExtTCPTimeouts, TcpExtTCPSynRetrans",
    manual=__doc__,
    check=_check,
    needs=("counters", "sysctls"),
    counts=("timeouts",),
)

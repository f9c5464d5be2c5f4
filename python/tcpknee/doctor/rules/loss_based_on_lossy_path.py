"""A loss-based algorithm on a path that loses packets without being full.

What it sees: busy connections of CUBIC, Reno or the like to far ends 10 ms and more away, which together sent at
least 1,000 segments of data, and sent more than one in 64 again. With fewer than 100 sent again it is advice.
Why it matters: such an algorithm takes each loss for congestion: its window falls to what the loss rate allows,
however much room the path has. BBR goes by the rate that arrives.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Change, Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

LOSS_BASED = {"cubic", "reno", "bic", "htcp", "highspeed", "scalable", "hybla"}
LOSSY = 1 / 64
"""bpftune goes over to BBR above 1 %; a little more, since BBR takes room from others in small buffers."""
LEAST_SEGMENTS = 1_000
"""At LOSSY about 16 of them are sent again, and four standard deviations below that is none (Poisson: 16 ± 4). A flow
that loss holds at 1.5 Mbit/s sends them in 8 s. One slow start that overran a buffer may send as many again: below
rule.FEW it is advice."""
FAR = {"10-50ms", "above-50ms"}


def _check(snapshot: Snapshot) -> list[Finding]:
    findings = []
    for algorithm in sorted(LOSS_BASED):
        rows = [
            row
            for row in snapshot.rows("sockets")
            if row["algorithm"] == algorithm and row["rtt_band"] in FAR and row["busy_connections"]
        ]
        sent = sum(row["data_segs_out"] or 0 for row in rows)
        again = sum(row["retrans_segs"] or 0 for row in rows)
        if sent < LEAST_SEGMENTS or again < LOSSY * sent:
            continue
        available = "bbr" in (snapshot.host["algorithms"] or [])
        near = any(row["remote"] == "private" and row["rtt_band"] == "below-1ms" for row in snapshot.rows("sockets"))
        default = facts.default_algorithm(snapshot)
        changes: list[Change] = []
        if available and not near and default == algorithm:
            changes = [Sysctl("net.ipv4.tcp_congestion_control", "bbr", netns=snapshot.netns)]
        findings.append(
            RULE.found(
                "warning",
                algorithm,
                f"{algorithm} retransmits {100 * again / sent:.1f} % of what it sends to far ends over 10 ms away.",
                {
                    "retransmit_pct": round(100 * again / sent, 2),
                    "data_segs_out": sent,
                    "busy_connections": sum(row["busy_connections"] for row in rows),
                    "srtt_us_p50": max(row["srtt_us_p50"] or 0 for row in rows),
                    "near_connections_too": near,
                    "default_algorithm": default,
                },
                confirm=["ss -tin state established", "nstat -az TcpRetransSegs TcpOutSegs"],
                changes=changes,
                advice="" if changes else _advice(algorithm, default, available=available, near=near),
                gain="At 1.5 % loss and 100 ms our simulator gives BBR about 9 times the rate of CUBIC on a path of "
                "10 Mbit/s, and 100 times on one of 200 Mbit/s; `knee recommend` computes it for this host's mix.",
                events=again,
            )
        )
    return findings


def _advice(algorithm: str, default: str | None, *, available: bool, near: bool) -> str:
    if not available:
        return "Load BBR first: modprobe tcp_bbr."
    if default is not None and facts.BBR.match(default):
        return (
            f"New connections get {default} already. These were opened before, or their program (TCP_CONGESTION) or "
            f"route (congctl) asks for {algorithm}: restart the program, or take that out."
        )
    if near:
        return "Give BBR to these connections alone (ip route … congctl bbr): others of this host stay near."
    return "Give BBR to these connections: by their route (ip route … congctl bbr), or in their program."


RULE = Rule(
    name="loss-based-on-lossy-path",
    group="algorithm",
    summary="a loss-based algorithm sends to far ends over paths that lose packets",
    source="github.com/oracle/bpftune, docs/bpftune-tcp-cong.rst (BBR above 1 % retransmitted); README.md, demo",
    manual=__doc__,
    check=_check,
    needs=("sockets", "sysctls", "host"),
)

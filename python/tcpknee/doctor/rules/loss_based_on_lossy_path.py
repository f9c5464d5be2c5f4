"""A loss-based algorithm on a path that loses packets without being full.

What it sees: busy connections of CUBIC, Reno or the like to far ends 10 ms and more away, of which more than one
segment in 64 is retransmitted.
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
LEAST_SEGMENTS = 10_000
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
        changes: list[Change] = []
        if available and not near and facts.default_algorithm(snapshot) == algorithm:
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
                },
                confirm=["ss -tin state established", "nstat -az TcpRetransSegs TcpOutSegs"],
                changes=changes,
                advice=""
                if changes
                else "Load BBR first: modprobe tcp_bbr."
                if not available
                else "Give BBR to these connections alone (ip route … congctl bbr): others of this host stay near.",
                gain="At 1.5 % loss and 100 ms our simulator gives BBR about 100 times the rate of CUBIC; "
                "`knee recommend` computes it for this host's mix.",
            )
        )
    return findings


RULE = Rule(
    name="loss-based-on-lossy-path",
    group="algorithm",
    summary="a loss-based algorithm sends to far ends over paths that lose packets",
    source="github.com/oracle/bpftune, docs/bpftune-tcp-cong.rst (BBR above 1 % retransmitted); README.md, demo",
    manual=__doc__,
    check=_check,
    needs=("sockets", "sysctls", "host"),
)

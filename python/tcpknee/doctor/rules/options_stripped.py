"""Something on the way takes TCP options away.

What it sees: this host offers window scaling and SACK, and at least 5 % of its connections have not got them.
Why it matters: nearly every system offers both. Where many connections lack them, a firewall or a balancer on the way
removes them, or the far ends have them off; each such connection is held to 64 KiB in flight, or repairs losses
slowly.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

SHARE = 0.05
LEAST = 20
OPTIONS = (
    ("net.ipv4.tcp_window_scaling", "no_scaling_connections", "window scaling"),
    ("net.ipv4.tcp_sack", "no_sack_connections", "SACK"),
)


def _check(snapshot: Snapshot) -> list[Finding]:
    rows = [row for row in snapshot.rows("sockets") if row["remote"] in ("public", "private")]
    whole = sum(row["connections"] or 0 for row in rows)
    findings = []
    for sysctl, column, option in OPTIONS:
        without = sum(row[column] or 0 for row in rows)
        if facts.number(snapshot, sysctl) != 1 or without < max(LEAST, SHARE * whole):
            continue
        cookies = facts.counted(snapshot, "TcpExt.SyncookiesRecv")
        findings.append(
            RULE.found(
                "warning",
                option,
                f"{without} of {whole} connections have no {option}, although this host offers it.",
                {"connections_without": without, "connections": whole, "syncookies_received": cookies},
                confirm=["ss -tin state established | grep -vc wscale", "nstat -az TcpExtSyncookiesRecv"],
                advice="Look at firewalls and balancers on the way. SYN cookies take options away too, unless the far "
                "end sends timestamps.",
                gain="These connections can have more than 64 KiB in flight."
                if option != "SACK"
                else "Several losses are repaired in one round trip.",
            )
        )
    return findings


RULE = Rule(
    name="options-stripped",
    group="buffers",
    summary="many connections lack options that this host offers",
    source="RFC 7323, RFC 2018; Documentation/networking/ip-sysctl.rst, tcp_syncookies",
    manual=__doc__,
    check=_check,
    needs=("sockets", "sysctls"),
)

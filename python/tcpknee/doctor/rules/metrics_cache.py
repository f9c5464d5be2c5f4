"""New connections inherit what an earlier one measured.

What it sees: tcp_no_metrics_save is off, with many connections to public addresses.
Why it matters: the kernel keeps the last ssthresh, window and round-trip time of a destination. One bad connection,
as over a phone's link behind a carrier's NAT, makes the next ones to that address leave slow start early.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

LEAST = 100


def _check(snapshot: Snapshot) -> list[Finding]:
    if facts.number(snapshot, "net.ipv4.tcp_no_metrics_save") != 0:
        return []
    # Since 65e6d90168f3 (Linux 5.6) ssthresh, which hurts most, is not kept by default.
    if facts.number(snapshot, "net.ipv4.tcp_no_ssthresh_metrics_save") == 1:
        return []
    public = sum(row["connections"] or 0 for row in snapshot.rows("sockets") if row["remote"] == "public")
    if public < LEAST:
        return []
    return [
        RULE.found(
            "advice",
            "net.ipv4.tcp_no_metrics_save",
            f"{public} connections to public addresses begin with what earlier ones measured.",
            {"public_connections": public, "kernel": snapshot.host["kernel"]},
            confirm=["ip tcp_metrics show | head", "sysctl net.ipv4.tcp_no_metrics_save"],
            changes=[Sysctl("net.ipv4.tcp_no_metrics_save", "1", netns=snapshot.netns)],
            gain="Connections no longer start at the rate of the worst before them.",
        )
    ]


RULE = Rule(
    name="metrics-cache",
    group="buffers",
    summary="the cache of metrics makes new connections start as the last one ended",
    source="Documentation/networking/ip-sysctl.rst, tcp_no_metrics_save and tcp_no_ssthresh_metrics_save; "
    "fasterdata.es.net, Linux tuning",
    manual=__doc__,
    check=_check,
    needs=("sockets", "sysctls"),
)

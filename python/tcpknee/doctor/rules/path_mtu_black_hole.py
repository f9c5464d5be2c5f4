"""Large packets may vanish without a word.

What it sees: packets larger than 1,500 bytes towards a default route, with probing of the path MTU off; or path MTU
discovery off altogether.
Why it matters: where a link on the way takes 1,500 bytes and its "too big" does not come back, a connection stands
after its handshake. tcp_mtu_probing=1 finds a size that passes once that happens.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Change, Sysctl
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import FEW, Rule

USUAL_BYTES = 1500


def _check(snapshot: Snapshot) -> list[Finding]:
    probing = facts.number(snapshot, "net.ipv4.tcp_mtu_probing")
    if probing != 0:
        return []
    bounded = {row["interface"] for row in snapshot.rows("routes") if row["default"] and row["mtu_bytes"]}
    large = [
        row
        for row in snapshot.rows("interfaces")
        if row["default_route"] and (row["mtu_bytes"] or 0) > USUAL_BYTES and row["interface"] not in bounded
    ]
    if not large:
        return []
    holes = facts.counted(snapshot, "TcpExt.TCPMTUPFail")
    changes: list[Change] = [Sysctl("net.ipv4.tcp_mtu_probing", "1", netns=snapshot.netns)]
    return [
        RULE.found(
            "warning" if holes >= FEW else "advice",
            large[0]["interface"],
            f"The default route leads through {large[0]['interface']} with {large[0]['mtu_bytes']} bytes, and "
            "tcp_mtu_probing is off.",
            {
                "mtu_bytes": large[0]["mtu_bytes"],
                "tcp_mtu_probing": probing,
                "black_holes_seen": holes,
            },
            confirm=["tracepath -n DESTINATION", "sysctl net.ipv4.tcp_mtu_probing"],
            changes=changes,
            advice="Or give the default route an mtu of 1500, and keep the large one for the networks that take it.",
            gain="Connections through such a link no longer stand still.",
        )
    ]


RULE = Rule(
    name="path-mtu-black-hole",
    group="cloud",
    summary="large packets leave by the default route, and nothing notices if they vanish",
    source="RFC 4821, RFC 2923; fasterdata.es.net, Linux tuning (tcp_mtu_probing=1 with jumbo frames); "
    "Documentation/networking/ip-sysctl.rst",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "sysctls"),
)

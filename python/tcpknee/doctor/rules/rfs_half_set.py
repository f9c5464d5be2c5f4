"""RFS is set in one of its two places.

What it sees: rps_flow_cnt of queues without net.core.rps_sock_flow_entries, or the reverse.
Why it matters: the global table says where programs run, the tables of queues where packets of a flow are. With one
of them empty RFS does nothing.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Change, RfsEntries, RpsFlows
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

ENTRIES = 32_768


def _check(snapshot: Snapshot) -> list[Finding]:
    entries = facts.number(snapshot, "net.core.rps_sock_flow_entries")
    queues = [
        (interface, row)
        for interface in facts.devices(snapshot)
        for row in snapshot.of_interface("queues", interface)
        if row["direction"] == "rx" and row["rps_flow_cnt"] is not None and row["number"] is not None
    ]
    if entries is None or not queues:
        return []
    flows = sum(row["rps_flow_cnt"] for _, row in queues)
    if bool(entries) == bool(flows):
        return []
    changes: list[Change] = (
        [RpsFlows(i["interface"], row["number"], entries // len(queues), netns=snapshot.netns) for i, row in queues]
        if entries >= len(queues)
        else [RfsEntries(max(ENTRIES, flows))]
    )
    return [
        RULE.found(
            "advice",
            "RFS",
            f"net.core.rps_sock_flow_entries is {entries:,}, and the queues follow {flows:,} flows.",
            {"rps_sock_flow_entries": entries, "rps_flow_cnt": flows, "queues": len(queues)},
            confirm=["sysctl net.core.rps_sock_flow_entries", "grep . /sys/class/net/*/queues/rx-*/rps_flow_cnt"],
            changes=changes,
            gain="Packets are handled where their program runs, with its data in the cache.",
        )
    ]


RULE = Rule(
    name="rfs-half-set",
    group="nic",
    summary="RFS is set in one of its two places and does nothing",
    source="Documentation/networking/scaling.rst, RFS configuration (both need to be set); Linux fec5e652e58f",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "queues", "sysctls"),
)

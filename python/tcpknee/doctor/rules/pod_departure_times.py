"""Departure times are cleared where packets leave a container.

What it sees: Linux before 5.18, and paced connections in a container, or a host of containers with fq on its way out.
Why it matters: until 5.18 the kernel clears a packet's time stamp when it passes from one network namespace to
another. fq of the host then finds no departure time: BBR and SO_MAX_PACING_RATE run at rates that nobody asked for.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Snapshot

from .rule import Rule

FIXED = (5, 18)


def _check(snapshot: Snapshot) -> list[Finding]:
    version = facts.kernel(snapshot)
    used = facts.uses_bbr(snapshot)
    if version is None or version >= FIXED or not used:
        return []
    senders = facts.senders(snapshot)
    inside = [row for row in senders if row["kind"] in facts.SMALL_CONTAINER]
    # Seen from the host: a namespace gets the host's algorithm, and fq stands where its packets leave.
    hosting = [
        row
        for row in snapshot.rows("interfaces")
        if row["kind"] in facts.SMALL_CONTAINER and row["peer_elsewhere"] and row["operstate"] == "up"
    ]
    paced = any(leaf["kind"] == "fq" for row in senders for leaf in facts.leaves(snapshot, row))
    if not inside and not (hosting and paced and version >= (4, 15)):
        return []
    first = (inside or hosting)[0]
    return [
        RULE.found(
            "warning",
            first["interface"],
            f"{', '.join(used)} in a network namespace of its own, on Linux {version[0]}.{version[1]}."
            if inside
            else f"{', '.join(used)} in {len(hosting)} other network namespaces, which fq of this host shall pace, on "
            f"Linux {version[0]}.{version[1]}.",
            {
                "kernel": snapshot.host["kernel"],
                "container": snapshot.host["container"],
                "algorithms": ", ".join(used),
                "kind": first["kind"],
            },
            confirm=["uname -r", f"ip -d link show dev {first['interface']}"],
            advice="Update the kernel to 5.18 or later, or use an algorithm that is not paced in these containers.",
            gain="Pods that were to send 4 Gbit/s sent 655 to 1,519 Mbit/s before.",
        )
    ]


RULE = Rule(
    name="pod-departure-times",
    group="pacing",
    summary="paced connections of containers lose their departure times on this kernel",
    source="Linux a1ac9c8acec1, de799101519a (5.18, a departure time outlives forwarding); 6670e1524477 (4.15, a "
    "namespace begins with the first one's algorithm); github.com/cilium/cilium/pull/15324 and 19287 (the figures are "
    "of its commit 215613462cfa, which we did not find again); docs.cilium.io, Bandwidth Manager (BBR for Pods needs "
    "5.18)",
    manual=__doc__,
    check=_check,
    needs=("host", "interfaces", "sysctls"),
)

"""Offloads that TCP depends on are off.

What it sees: a device that can do segmentation, checksums, scatter-gather or GRO, and has them off.
GRO that is off counts only where it has work: not where what is received has more than two MTUs on average, as of
a veth whose far end sends whole TSO packets. The kernel has GRO off on veth by itself: there it counts only where
1,000 packets or more came, of half an MTU to two on average.
Why it matters: each packet of 1,500 bytes then goes through the whole stack by itself, where one of 64 KiB would do.
Offloads that the device cannot do are not reported.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.changes import Offload
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Row, Snapshot

from .rule import Rule

GRO = "generic-receive-offload"
WANTED = {
    GRO: "gro",
    "generic-segmentation-offload": "gso",
    "tcp-segmentation-offload": "tso",
    "scatter-gather": "sg",
    "tx-checksumming": "tx",
    "rx-checksumming": "rx",
}

PAIRS = {"veth", "netkit"}
"""What the far end sends is received as it is, in TSO packets of up to 64 KiB. GRO is a feature of
veth since Linux d3256efd8e8b (5.13), and off unless somebody turns it on."""
MERGED_MTUS = 2
"""More than one MTU on average is merged by somebody already; twice leaves room for headers and VLAN tags."""
LEAST_MTUS = 0.5
"""Less on average is mostly acknowledgements and small requests, which GRO does not merge."""
LEAST_PKTS = 1_000
"""Fewer are the neighbours' and the handshakes' rather than a transfer's, which has 700 packets for 1 MB."""


def _received_bytes(interface: Row) -> float | None:
    """Of a received packet on average, since boot."""
    packets, octets = interface["rx_packets"], interface["rx_bytes"]
    return octets / packets if packets and octets is not None else None


def _has_work_for_gro(interface: Row) -> bool:
    mean, mtu = _received_bytes(interface), interface["mtu_bytes"]
    if interface["kind"] not in PAIRS:
        return mean is None or mtu is None or mean <= MERGED_MTUS * mtu
    if mean is None or mtu is None or interface["rx_packets"] < LEAST_PKTS:
        return False
    return bool(LEAST_MTUS * mtu <= mean <= MERGED_MTUS * mtu)


def _check(snapshot: Snapshot) -> list[Finding]:
    findings = []
    for interface in facts.senders(snapshot):
        off = [
            row["name"]
            for row in snapshot.of_interface("offloads", interface)
            if row["name"] in WANTED
            and row["on"] is False
            and row["fixed"] is False
            and (row["name"] != GRO or _has_work_for_gro(interface))
        ]
        if not off:
            continue
        name = interface["interface"]
        findings.append(
            RULE.found(
                "warning",
                name,
                f"{name} can do {', '.join(sorted(off))}, and has {'it' if len(off) == 1 else 'them'} off.",
                {"off": ", ".join(sorted(off)), "driver": interface["driver"]}
                | ({"rx_bytes_per_pkt": round(mean)} if GRO in off and (mean := _received_bytes(interface)) else {}),
                confirm=[f"ethtool -k {name}"],
                # Segmentation needs checksums and scatter-gather: those come first.
                changes=[
                    Offload(name, WANTED[one], True, netns=snapshot.netns)
                    for one in sorted(off, key=list(WANTED).index, reverse=True)
                ],
                gain="Several times less processor time per byte for bulk transfers.",
            )
        )
    return findings


RULE = Rule(
    name="offloads-off",
    group="nic",
    summary="segmentation, checksum or GRO offloads are off although the device has them",
    source="Documentation/networking/segmentation-offloads.rst; ethtool(8), -K",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "offloads"),
)

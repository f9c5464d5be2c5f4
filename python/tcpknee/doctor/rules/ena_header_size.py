"""ENA's low-latency queue takes fewer bytes of a header than are sent, or more than ENA Express wants.

What it sees: the ENA driver with 96 bytes for headers where the device could take more, on a host of which at least
one packet in 100 is IPv6; or with more than 96 bytes beside ENA Express.
Why it matters: Ethernet, IPv6 and TCP take 74 bytes, timestamps 12 and each block of SACK up to 12 more: an ACK of
IPv6 that reports a loss has more than 96. Amazon's guide says that such packets are dropped. A larger entry halves the
transmit ring, and ENA Express works best without it.
"""

from __future__ import annotations

from tcpknee.doctor import facts
from tcpknee.doctor.finding import Finding
from tcpknee.doctor.snapshot import Row, Snapshot

from .rule import Rule

USUAL_BYTES = 96
"""LLQ_ENTRY_SIZE - DESCRIPTORS_NUM_BEFORE_HEADER * 16 = 128 - 2 * 16 (Linux 273a2397fc91)."""
SHARE = 0.01
EXPRESS_OF_TCP = (1, 3)
"""Values of `ena_srd_mode` with which TCP goes by ENA Express."""


def _check(snapshot: Snapshot) -> list[Finding]:
    return [
        finding
        for interface in facts.devices(snapshot)
        if interface["driver"] == "ena"
        for ring in snapshot.of_interface("rings", interface)
        if (finding := _of_ring(snapshot, interface, ring)) is not None
    ]


def _of_ring(snapshot: Snapshot, interface: Row, ring: Row) -> Finding | None:
    now, most = ring["tx_push_bytes"], ring["tx_push_max_bytes"]
    if not now or not most:
        return None
    stats = {row["name"]: row["value"] for row in snapshot.of_interface("nic_stats", interface)}
    express = stats.get("ena_srd_mode") in EXPRESS_OF_TCP
    name = interface["interface"]
    evidence = {"header_bytes": now, "header_max_bytes": most, "tx_ring": ring["tx"], "ena_express": express}
    confirm = [f"ethtool -g {name}", f"ethtool -S {name} | grep -e ena_srd_mode -e llq_buffer_copy"]
    if express and now > USUAL_BYTES:
        return RULE.found(
            "advice",
            name,
            f"{name} has entries for headers of {now} bytes beside ENA Express.",
            evidence,
            confirm=confirm,
            advice=f"ethtool -G {name} tx-push-buf-len {USUAL_BYTES}. With drivers of Amazon's own: modprobe ena "
            "force_large_llq_header=0.",
            gain="The whole transmit ring; Amazon names it for ENA Express.",
        )
    out6 = facts.counted(snapshot, "Ip6.OutRequests")
    out = out6 + facts.counted(snapshot, "Ip.OutRequests")
    if express or now > USUAL_BYTES or most <= USUAL_BYTES or not out6 or out6 < SHARE * out:
        return None
    return RULE.found(
        "warning",
        name,
        f"{name} takes headers of {now} bytes, and {100 * out6 / out:.0f} % of the packets sent are IPv6.",
        {**evidence, "ipv6_packets_sent": out6, "packets_sent": out},
        confirm=confirm,
        advice=f"ethtool -G {name} tx-push-buf-len {most}, with Linux 6.4 and later; it resets the device. With "
        "drivers of Amazon's own: modprobe ena force_large_llq_header=1. The transmit ring is halved.",
        gain="Packets with long headers are sent. None where the instance sends them already: AWS does not say which.",
    )


RULE = Rule(
    name="ena-header-size",
    group="cloud",
    summary="ENA's space for headers does not fit what is sent",
    source="github.com/amzn/amzn-drivers, kernel/linux/ena/ENA_Linux_Best_Practices.rst (96 and 224 bytes); Linux "
    "233eb4e786b5 (6.4, ethtool tells it), 273a2397fc91; AWS, ENA Express (wide LLQ not recommended)",
    manual=__doc__,
    check=_check,
    needs=("interfaces", "rings", "counters"),
)

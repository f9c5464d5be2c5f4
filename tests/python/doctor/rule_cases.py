"""For each rule a host on which it fires, and one so near to it that it must not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from made import Difference, qdiscs


@dataclass(frozen=True)
class Case:
    fires: Difference
    quiet: Difference
    told: str
    """Part of the sentence that the finding says."""


def leaf(kind: str = "fq", **values: Any) -> Difference:
    """eth0 with the first of its four leaves so."""
    rows = qdiscs("eth0", *[kind] * 4)
    rows[1].update(values)
    return {"without": ["qdiscs"], "qdiscs": rows}


BBR = {"net.ipv4.tcp_congestion_control": "bbr"}
POD = {
    "without": ["interfaces", "qdiscs", "rings", "channels", "offloads", "coalescing", "queues", "irqs", "pci"],
    "interfaces": [
        {
            "interface": "eth0",
            "ifindex": 3,
            "kind": "veth",
            "operstate": "up",
            "loopback": False,
            "mtu_bytes": 1500,
            "peer_elsewhere": True,
            "default_route": True,
            "rx_queues": 4,
            "tx_queues": 4,
        }
    ],
    "qdiscs": [{"interface": "eth0", "kind": "noqueue", "handle": "0:", "parent": "root", "options": {}}],
}
"""What a container sees of its interfaces."""

TAP = {"interface": "tap0", "ifindex": 9, "kind": "tun", "operstate": "up", "loopback": False, "mtu_bytes": 1500}
"""The interface of a virtual machine."""

PACING = {
    "bbr-without-fq": Case(
        fires={"sysctls": BBR, "without": ["qdiscs"], "qdiscs": qdiscs("eth0", *["fq_codel"] * 4)},
        quiet={"sysctls": BBR},
        told="bbr sends through fq_codel",
    ),
    "mq-leaf-without-fq": Case(
        fires={"without": ["qdiscs"], "qdiscs": qdiscs("eth0", "fq", "fq", "pfifo_fast", "fq")},
        quiet={"without": ["qdiscs"], "qdiscs": qdiscs("eth0", *["pfifo_fast"] * 4)},
        told="1 of 4 queues have pfifo_fast",
    ),
    "fq-horizon-drops": Case(
        fires=leaf(horizon_drops=201_276_670, packets=8_448_638),
        quiet=leaf(horizon_drops=0, horizon_caps=12, packets=8_448_638),
        told="fq dropped 201,276,670 packets",
    ),
    "fq-flow-limit": Case(
        fires=leaf(flows_plimit=19_492, packets=8_448_638),
        quiet=leaf(flows_plimit=10, packets=8_448_638),
        told="because their flow had 100 waiting",
    ),
    "fq-fast-path-reorders": Case(
        fires={"host": {"kernel": "6.8.0-45-generic"}, **leaf(fastpath_pkts=1_000_000)},
        quiet={"host": {"kernel": "6.12.2"}, **leaf(fastpath_pkts=1_000_000)},
        told="Linux 6.8 has a defect in fq's fast path",
    ),
    "fq-where-forwarded": Case(
        fires={
            "sysctls": {"net.ipv4.ip_forward": "1"},
            "interfaces": [TAP],
            "qdiscs": qdiscs("tap0", "fq", root=None),
        },
        quiet={
            "sysctls": {"net.ipv4.ip_forward": "1"},
            "interfaces": [TAP],
            "qdiscs": qdiscs("tap0", "fq_codel", root=None),
        },
        told="tap0: fq, with forwarding on",
    ),
    "pod-departure-times": Case(
        fires={"host": {"kernel": "5.15.0", "container": "kubernetes"}, "sysctls": BBR, **POD},
        quiet={"host": {"kernel": "5.18.0", "container": "kubernetes"}, "sysctls": BBR, **POD},
        told="bbr in a network namespace of its own, on Linux 5.15",
    ),
    "one-root-for-many-queues": Case(
        fires={"without": ["qdiscs"], "qdiscs": qdiscs("eth0", "htb", root=None)},
        quiet={
            "without": ["qdiscs"],
            "qdiscs": qdiscs("eth0", "htb", root=None),
            "interfaces": [{"interface": "eth0", "speed_bits_per_sec": 1_000_000_000}],
        },
        told="htb is one queue with one lock for 4 transmit queues",
    ),
    "departure-times-in-one-fifo": Case(
        fires={
            "qdiscs": [
                {"interface": "eth0", "kind": "clsact", "handle": "ffff:", "parent": "ingress", "options": {}},
                {"interface": "eth0", "kind": "fq", "handle": "8001:", "parent": "1:1", "backlog_pkts": 9_800},
            ]
        },
        quiet={"qdiscs": [{"interface": "eth0", "kind": "fq", "handle": "8001:", "parent": "1:1", "backlog_pkts": 9}]},
        told="holds 9,800 packets",
    ),
    "default-qdisc-not-applied": Case(
        fires={
            "without": ["qdiscs"],
            "qdiscs": [{"interface": "eth0", "kind": "pfifo_fast", "handle": "0:", "parent": "root", "options": {}}],
        },
        quiet={
            "without": ["qdiscs"],
            "qdiscs": [{"interface": "eth0", "kind": "pfifo_fast", "handle": "8001:", "parent": "root"}],
        },
        told="net.core.default_qdisc is fq, and eth0 still has pfifo_fast",
    ),
    "qdisc-drops": Case(
        fires=leaf("pfifo_fast", drops=5_000, packets=1_000_000) | {"interfaces": [{"interface": "eth0"}]},
        quiet=leaf("pfifo_fast", drops=500, packets=1_000_000),
        told="pfifo_fast 8001: dropped 5,000 of 1,005,000 packets",
    ),
}

CASES: dict[str, Case] = PACING

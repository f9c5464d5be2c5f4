"""For each rule a host on which it fires, and one so near to it that it must not."""

from __future__ import annotations

from dataclasses import dataclass

from made import Difference, qdiscs


@dataclass(frozen=True)
class Case:
    fires: Difference
    quiet: Difference
    told: str
    """Part of the sentence that the finding says."""


CASES: dict[str, Case] = {
    "bbr-without-fq": Case(
        fires={
            "sysctls": {"net.ipv4.tcp_congestion_control": "bbr"},
            "without": ["qdiscs"],
            "qdiscs": qdiscs("eth0", *["fq_codel"] * 4),
        },
        quiet={"sysctls": {"net.ipv4.tcp_congestion_control": "bbr"}},
        told="bbr sends through fq_codel",
    ),
    "mq-leaf-without-fq": Case(
        fires={"without": ["qdiscs"], "qdiscs": qdiscs("eth0", "fq", "fq", "pfifo_fast", "fq")},
        quiet={"without": ["qdiscs"], "qdiscs": qdiscs("eth0", *["pfifo_fast"] * 4)},
        told="1 of 4 queues have pfifo_fast",
    ),
}

"""What figures of a fleet show of its connections, and how it is written on an axis."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Quantity:
    """A column of `connections` and how it is written."""

    name: str
    title: str
    column: str
    scale: float
    unit: str

    @property
    def axis(self) -> str:
        return f"{self.title} ({self.unit})"


THROUGHPUT = Quantity("throughput", "Delivery rate", "delivery_rate_bits_per_sec", 1e-6, "Mbit/s")
RETRANSMITTED = Quantity("retransmitted", "Segments retransmitted", "retransmit_pct", 1.0, "%")
SRTT = Quantity("srtt", "Smoothed RTT", "srtt_us", 1e-3, "ms")
MIN_RTT = Quantity("min_rtt", "Least RTT", "min_rtt_us", 1e-3, "ms")
QUEUE_DELAY = Quantity("queue_delay", "Queueing delay", "queue_delay_us", 1e-3, "ms")
INFLIGHT = Quantity("inflight", "In flight", "inflight_pkts", 1.0, "packets")
RWND_LIMITED = Quantity("rwnd_limited", "Time limited by the receive window", "rwnd_limited_pct", 1.0, "%")
REORDERING = Quantity("reordering", "Reordering events", "reord_seen", 1.0, "events")
BBR_BW = Quantity("bbr_bw", "Bandwidth that BBR knows", "bbr_bw_bits_per_sec", 1e-6, "Mbit/s")
BBR_MIN_RTT = Quantity("bbr_min_rtt", "Least RTT that BBR knows", "bbr_min_rtt_us", 1e-3, "ms")
NGINX = Quantity("nginx", "Throughput of requests", "app_throughput_bits_per_sec", 1e-6, "Mbit/s")

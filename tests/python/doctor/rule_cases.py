"""For each rule a host on which it fires, and one so near to it that it must not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from host_parts import POD
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
TAP = {"interface": "tap0", "ifindex": 9, "kind": "tun", "operstate": "up", "loopback": False, "mtu_bytes": 1500}
"""The interface of a virtual machine."""

PACING = {
    "bbr-without-fq": Case(
        fires={"sysctls": BBR, "without": ["qdiscs"], "qdiscs": qdiscs("eth0", *["fq_codel"] * 4)},
        quiet={"sysctls": BBR},
        told="bbr would send through fq_codel, which does not pace. No connection with it was seen.",
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
    "netem-on-sender": Case(
        fires={
            "without": ["qdiscs"],
            "qdiscs": [{"interface": "eth0", "kind": "netem", "handle": "8001:", "parent": "root", "options": {}}],
        },
        quiet={
            "without": ["qdiscs"],
            "qdiscs": [{"interface": "eth0", "kind": "netem", "handle": "8001:", "parent": "root", "options": {}}],
            "sysctls": {"net.ipv4.ip_forward": "1"},
        },
        told="on the host that sends",
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


def sockets(**values: Any) -> dict[str, Any]:
    """A group of connections."""
    return {"algorithm": "cubic", "remote": "public", "rtt_band": "10-50ms", "connections": 100, **values}


def near(**values: Any) -> dict[str, Any]:
    """A group of connections within the data centre."""
    row = {"remote": "private", "rtt_band": "below-1ms", "srtt_us_p50": 120, "min_rtt_us_p50": 90}
    return sockets(**{**row, "busy_connections": 80, **values})


ALGORITHM = {
    "loss-based-on-lossy-path": Case(
        fires={"sockets": [sockets(data_segs_out=1_000_000, retrans_segs=20_000)]},
        quiet={"sockets": [sockets(data_segs_out=1_000_000, retrans_segs=15_000)]},
        told="cubic retransmits 2.0 %",
    ),
    "bbr-inside-data-centre": Case(
        fires={"sockets": [near(algorithm="bbr")]},
        quiet={"sockets": [near(algorithm="bbr"), sockets(algorithm="bbr", busy_connections=90)]},
        told="80 of 80 busy connections of BBR stay within 1 ms",
    ),
    "bbr-where-cpu-is-stolen": Case(
        fires={"sysctls": BBR, "host": {"hypervisor": "kvm", "steal_pct": 3.2}},
        quiet={"sysctls": BBR, "host": {"hypervisor": "kvm", "steal_pct": 0.2}},
        told="whose hypervisor gave 3.2 %",
    ),
    "algorithm-defect": Case(
        fires={"host": {"kernel": "3.10.0-1160.el7.x86_64"}},
        quiet={"host": {"kernel": "5.6.0"}},
        told="CUBIC grows its window by ACKs",
    ),
    "dctcp-outside": Case(
        fires={"sockets": [sockets(algorithm="dctcp", connections=3)]},
        quiet={"sockets": [near(algorithm="dctcp")]},
        told="3 connections of DCTCP go to public addresses",
    ),
}

SMALL_BUFFERS = {"net.ipv4.tcp_wmem": "4096 16384 4194304", "net.ipv4.tcp_rmem": "4096 131072 6291456"}
"""What the kernel sets by default on hosts with 4 GiB and more."""

BUFFERS = {
    "send-buffer-limits": Case(
        fires={
            "sysctls": SMALL_BUFFERS,
            "sockets": [sockets(sndbuf_limited_connections=20, delivery_rate_bits_per_sec_max=2_000_000_000)],
        },
        quiet={"sysctls": SMALL_BUFFERS, "sockets": [sockets(sndbuf_limited_connections=1)]},
        told="20 of 40 busy connections wait for room in their send buffer",
    ),
    "receive-buffer-below-path": Case(
        fires={"sysctls": SMALL_BUFFERS, "sockets": [sockets(bytes_received=5_000_000_000)]},
        quiet={"sysctls": SMALL_BUFFERS, "sockets": [sockets(bytes_received=5_000_000)]},
        told="One connection from 18 ms away can get 1398 of 10,000 Mbit/s",
    ),
    "receive-buffer-shrinks": Case(
        fires={"host": {"kernel": "6.17.4-2-pve"}, "counters": {"TcpExt.TCPRcvQDrop": 9_000_000}},
        quiet={"host": {"kernel": "6.18.17"}},
        told="Linux 6.17 drops what fits a receive buffer, and shrinks the buffer; receive queues dropped 9,000,000",
    ),
    "far-end-window-limits": Case(
        fires={"sockets": [sockets(rwnd_limited_connections=10)]},
        quiet={"sockets": [sockets(rwnd_limited_connections=5)]},
        told="10 of 40 busy connections wait for the receiver's window",
    ),
    "buffer-trap": Case(
        fires={"sysctls": {"net.ipv4.tcp_rmem": "4096 87380 -2126562996"}},
        quiet={"sysctls": {"net.ipv4.tcp_rmem": "4096 87380 1073741824"}},
        told="net.ipv4.tcp_rmem has a value that is not positive",
    ),
    "unsent-data-piles-up": Case(
        fires={"sysctls": {"net.ipv4.tcp_notsent_lowat": "4294967295"}},
        quiet={"sysctls": {"net.ipv4.tcp_notsent_lowat": "4294967295"} | SMALL_BUFFERS},
        told="may hold up to 64 MiB that is not sent yet",
    ),
    "slow-start-after-idle": Case(
        fires={"sysctls": {"net.ipv4.tcp_slow_start_after_idle": "1"}},
        quiet={"sysctls": {"net.ipv4.tcp_slow_start_after_idle": "1"}, "sockets": [sockets(busy_connections=2)]},
        told="40 busy connections over 10 ms",
    ),
    "initial-window": Case(
        fires={"routes": [{"interface": "eth0", "default": True, "initcwnd_pkts": 4}]},
        quiet={"routes": [{"interface": "eth0", "default": True, "initcwnd_pkts": 32}]},
        told="set initcwnd 4",
    ),
    "metrics-cache": Case(
        fires={"host": {"kernel": "4.19.0"}, "sysctls": {"net.ipv4.tcp_no_metrics_save": "0"}},
        quiet={"sysctls": {"net.ipv4.tcp_no_metrics_save": "0", "net.ipv4.tcp_no_ssthresh_metrics_save": "1"}},
        told="400 connections to public addresses",
    ),
    "options-off": Case(
        fires={"sysctls": {"net.ipv4.tcp_window_scaling": "0"}},
        quiet={"sysctls": {"net.ipv4.tcp_timestamps": "2"}},
        told="net.ipv4.tcp_window_scaling is off",
    ),
    "options-stripped": Case(
        fires={"sockets": [sockets(connections=400, no_sack_connections=40)]},
        quiet={"sockets": [sockets(connections=400, no_sack_connections=19)]},
        told="40 of 400 connections have no SACK",
    ),
}

LIMITS = {
    "losses-found-by-timeout": Case(
        fires={"counters": {"Tcp.RetransSegs": 20_000_000, "TcpExt.TCPTimeouts": 15_000_000}},
        quiet={
            "counters": {
                "Tcp.RetransSegs": 20_000_000,
                "TcpExt.TCPTimeouts": 15_000_000,
                "TcpExt.TCPSynRetrans": 14_000_000,
            },
            "sysctls": {"net.ipv4.tcp_recovery": "1", "net.ipv4.tcp_early_retrans": "3"},
        },
        told="15,000,000 timeouts; 20,000,000 of 10,020,000,000 segments sent were retransmissions.",
    ),
    "listen-drops": Case(
        fires={
            "sysctls": {"net.core.somaxconn": "128"},
            "listeners": [{"local_port": 443, "queued": 129, "backlog": 128}],
        },
        quiet={"counters": {"TcpExt.ListenOverflows": 900}},
        told="The accept queue of port 443 is full now",
    ),
    "short-backlog": Case(
        fires={
            "sysctls": {"net.core.somaxconn": "128"},
            "listeners": [{"local_port": 443, "queued": 0, "backlog": 128}],
            "counters": {"Tcp.PassiveOpens": 50_000_000},
        },
        quiet={
            "sysctls": {"net.core.somaxconn": "128"},
            "listeners": [{"local_port": 443, "queued": 0, "backlog": 128}],
        },
        told="1 listeners may have 128 connections waiting, at 50 new ones a second",
    ),
    "syn-queue-full": Case(
        fires={"counters": {"TcpExt.TCPReqQFullDoCookies": 20_000}},
        quiet={"counters": {"TcpExt.TCPReqQFullDoCookies": 2_000}},
        told="20,000 cookies, 0 drops",
    ),
    "conntrack-full": Case(
        fires={"sysctls": {"net.netfilter.nf_conntrack_count": "262000", "net.netfilter.nf_conntrack_max": "262144"}},
        quiet={"sysctls": {"net.netfilter.nf_conntrack_count": "2000", "net.netfilter.nf_conntrack_max": "262144"}},
        told="262,000 of 262,144 tracked connections",
    ),
    "neighbour-table-full": Case(
        fires={"counters": {"arp_cache.entries": 1_000}},
        quiet={"counters": {"arp_cache.entries": 100}},
        told="1,000 of 1,024 neighbours",
    ),
    "few-ports": Case(
        fires={"counters": {"Tcp.ActiveOpens": 90_000_000, "TCP.tw": 20_000}},
        quiet={"counters": {"TCP.tw": 20_000}},
        told="20,420 connections are open or in TIME_WAIT, with 28,232 local ports",
    ),
    "time-wait-overflow": Case(
        fires={"counters": {"TcpExt.TCPTimeWaitOverflow": 7}},
        quiet={"counters": {"TcpExt.TCPTimeWaitOverflow": 0}},
        told="7 TIME_WAIT sockets",
    ),
    "tw-recycle": Case(
        fires={"host": {"kernel": "4.4.0"}, "sysctls": {"net.ipv4.tcp_tw_recycle": "1"}},
        quiet={"host": {"kernel": "5.7.0"}, "sysctls": {"net.ipv4.tcp_tw_recycle": "0"}},
        told="clients behind NAT are refused",
    ),
    "settings-without-effect": Case(
        fires={"host": {"kernel": "6.18.3"}, "sysctls": {"net.ipv4.tcp_recovery": "2"}},
        quiet={"host": {"kernel": "6.16.3"}, "sysctls": {"net.ipv4.tcp_recovery": "2", "net.ipv4.tcp_fack": "0"}},
        told="net.ipv4.tcp_recovery = 2 does nothing on this kernel: RACK cannot be turned off since 6.17",
    ),
    "bbr-is-another-version": Case(
        fires={"host": {"kernel": "6.14.4-xanmod1", "bbr_version": "3"}, "sysctls": BBR},
        quiet={"host": {"kernel": "6.14.4", "bbr_version": "1"}, "sysctls": BBR},
        told="bbr is version 3 on this host, not 1",
    ),
    "tcp-memory-pressure": Case(
        fires={"counters": {"TCP.mem": 1_600_000, "TcpExt.TCPMemoryPressures": 4}},
        quiet={"counters": {"TCP.mem": 900_000}},
        told="TCP has 1,600,000 pages",
    ),
    "receive-queue-pruned": Case(
        fires={
            "counters": {
                "TcpExt.TCPRcvQDrop": 120_000,
                "TcpExt.TCPOFODrop": 50_000,
                "TcpExt.TCPBacklogDrop": 30_000,
                "TcpExt.PruneCalled": 500_000,
                "TcpExt.RcvPruned": 170_000,
            }
        },
        quiet={"counters": {"TcpExt.TCPRcvQDrop": 20_000, "TcpExt.PruneCalled": 900_000, "TcpExt.RcvPruned": 20_000}},
        told="dropped 200,000 of 10,000,000,000 received segments",
    ),
    "spurious-retransmissions": Case(
        fires={"counters": {"Tcp.RetransSegs": 50_000_000, "TcpExt.TCPDSACKRecv": 25_000_000}},
        quiet={"counters": {"TcpExt.TCPDSACKRecv": 2_500_000}},
        told="50 % of 50,000,000 retransmitted segments had arrived before",
    ),
    "host-out-of-memory": Case(
        fires={"host": {"memory_pressure_pct": 31.0}},
        quiet={"host": {"memory_pressure_pct": 3.0}},
        told="in 31 % of the last minute",
    ),
}

ETH0 = {"interface": "eth0"}
ONE_CPU = {"cpu": 0, "softirq_pct": 60.0}


def rows_of(direction: str, **values: Any) -> list[dict[str, Any]]:
    """The four queues of eth0 in a direction, alike."""
    return [{**ETH0, "direction": direction, "number": number, **values} for number in range(4)]


def interrupts(cpus: tuple[int, ...]) -> list[dict[str, Any]]:
    """The four interrupts of eth0, by the processor that they came to."""
    return [
        {"number": 40 + at, "interface": "eth0", "counts": {str(cpu): 1_000_000_000}} for at, cpu in enumerate(cpus)
    ]


ONE_QUEUE = {
    "without": ["queues", "channels"],
    "channels": [{**ETH0, "combined": 1, "combined_max": 1}],
    "queues": [{**ETH0, "direction": "rx", "number": 0, "rps_cpus": [], "rps_flow_cnt": 0}],
}
TWO_NODES = {
    "host": {"numa_nodes": 2},
    "cpus": [{"cpu": 2, "numa_node": 1}, {"cpu": 3, "numa_node": 1}],
}

THREADS = [{"cpu": cpu, "siblings": [cpu % 2, cpu % 2 + 2]} for cpu in range(4)]
"""Two cores with two threads each."""

NIC = {
    "queues-on-siblings": Case(
        fires={"cpus": THREADS, "without": ["irqs"], "irqs": interrupts((0, 2))},
        quiet={"cpus": THREADS, "without": ["irqs"], "irqs": interrupts((0, 3))},
        told="1 cores serve two queues of eth0 with their two threads, and 1 cores none",
    ),
    "rss-leaves-queues-out": Case(
        fires={"channels": [{**ETH0, "rss_queues": [0, 1]}]},
        quiet={"channels": [{**ETH0, "rss_queues": [0, 1, 2, 3]}]},
        told="RSS spreads what eth0 receives over 2 of 4 queues",
    ),
    "irqbalance-missing": Case(
        fires={
            "interfaces": [{**ETH0, "driver": "ena"}],
            "irqs": [{"number": 41, **ETH0, "effective": [0]}],
        },
        quiet={
            "interfaces": [{**ETH0, "driver": "ena"}],
            "irqs": [{"number": 41, **ETH0, "effective": [0]}],
            "owners": [{"owner": "irqbalance", "kind": "running"}],
        },
        told="4 interrupts of eth0 come to 3 processors; irqbalance does not run",
    ),
    "rx-ring-drops": Case(
        fires={"interfaces": [{**ETH0, "rx_missed_errors": 500_000}], "rings": [{**ETH0, "rx": 512}]},
        quiet={"interfaces": [{**ETH0, "rx_missed_errors": 500}], "rings": [{**ETH0, "rx": 512}]},
        told="500,000 of 10,000,000,000 packets found no descriptor in the ring (512 of 8160)",
    ),
    "few-queues": Case(
        fires={"channels": [{**ETH0, "combined": 1, "combined_max": 8}]},
        quiet={"channels": [{**ETH0, "combined": 1, "combined_max": 1}]},
        told="1 of 8 queues are in use, with 4 processors",
    ),
    "one-queue-without-rps": Case(
        fires={**ONE_QUEUE, "cpus": [ONE_CPU]},
        quiet=ONE_QUEUE,
        told="eth0 has one queue and can have no more; processor 0 spends 60 %",
    ),
    "rps-on-one-cpu": Case(
        fires={"queues": rows_of("rx", rps_cpus=[1])},
        quiet={"queues": rows_of("rx", rps_cpus=[])},
        told="The RPS mask of eth0 names processor 1 alone, of 4",
    ),
    "rps-beside-rss": Case(
        fires={"queues": rows_of("rx", rps_cpus=[0, 1, 2, 3])},
        quiet={"queues": rows_of("rx", rps_cpus=[0, 1, 2, 3]), "sysctls": {"net.core.rps_sock_flow_entries": "32768"}},
        told="RPS is on in 4 of 4 queues",
    ),
    "rfs-half-set": Case(
        fires={"queues": rows_of("rx", rps_flow_cnt=4096)},
        quiet={
            "queues": rows_of("rx", rps_flow_cnt=4096),
            "sysctls": {"net.core.rps_sock_flow_entries": "16384"},
        },
        told="net.core.rps_sock_flow_entries is 0, and the queues follow 16,384 flows",
    ),
    "xps-off": Case(
        fires={"queues": rows_of("tx", xps_cpus=[])},
        quiet={"queues": rows_of("tx", xps_cpus=None)},
        told="None of 4 transmit queues names its processors",
    ),
    "irqs-on-one-cpu": Case(
        fires={"irqs": interrupts((0, 0, 0, 0))},
        quiet={"irqs": interrupts((0, 1, 0, 1))},
        told="100 % of the interrupts of 4 queues came to processor 0",
    ),
    "irqs-on-far-node": Case(
        fires={**TWO_NODES, "irqs": interrupts((2, 3, 2, 3))},
        quiet={**TWO_NODES, "irqs": interrupts((0, 1, 0, 2))},
        told="100 % of the interrupts came to another node than 0",
    ),
    "irqbalance-beside-fast-nic": Case(
        fires={
            "owners": [{"owner": "irqbalance", "kind": "running"}],
            "interfaces": [{**ETH0, "driver": "mlx5_core", "speed_bits_per_sec": 100_000_000_000}],
        },
        quiet={"owners": [{"owner": "irqbalance", "kind": "running"}]},
        told="irqbalance runs beside mlx5_core at 100 Gbit/s",
    ),
    "softnet-drops": Case(
        fires={"softnet": [{"cpu": 0, "dropped": 5_000_000}]},
        quiet={"softnet": [{"cpu": 0, "dropped": 5_000}]},
        told="5,000,000 of 8,005,000,000 packets found the backlog",
    ),
    "softnet-squeezed": Case(
        fires={"softnet": [{"cpu": 0, "squeezed": 5_000_000}]},
        quiet={"softnet": [{"cpu": 0, "squeezed": 50_000}]},
        told="Processors left packets waiting 5,000,300 times",
    ),
    "flow-limit-off": Case(
        fires={"softnet": [{"cpu": 2, "dropped": 5_000_000, "received_rps": 9}]},
        quiet={
            "softnet": [{"cpu": 2, "dropped": 5_000_000, "received_rps": 9}],
            "sysctls": {"net.core.flow_limit_cpu_bitmap": "00000004"},
        },
        told="Flow limit is off, and backlogs of 1 processor overflowed",
    ),
    "offloads-off": Case(
        fires={"offloads": [{**ETH0, "name": "generic-receive-offload", "on": False}]},
        quiet={"offloads": [{**ETH0, "name": "generic-receive-offload", "on": False, "fixed": True}]},
        told="eth0 can do generic-receive-offload, and has it off",
    ),
    "lro-where-forwarded": Case(
        fires={
            "sysctls": {"net.ipv4.ip_forward": "1"},
            "offloads": [{**ETH0, "name": "large-receive-offload", "on": True}],
        },
        quiet={"offloads": [{**ETH0, "name": "large-receive-offload", "on": True}]},
        told="eth0 merges packets by LRO",
    ),
    "interrupt-per-packet": Case(
        fires={"coalescing": [{**ETH0, "rx_us": 0, "rx_pkts": 1, "adaptive_rx": False}]},
        quiet={"coalescing": [{**ETH0, "rx_us": 0, "rx_pkts": 64, "adaptive_rx": False}]},
        told="eth0 interrupts for each packet, at 25 Gbit/s",
    ),
    "interrupts-wait-long": Case(
        fires={"sockets": [near()], "coalescing": [{**ETH0, "rx_us": 125, "adaptive_rx": False}]},
        quiet={"coalescing": [{**ETH0, "rx_us": 125, "adaptive_rx": False}]},
        told="eth0 waits 125 us before it interrupts; connections take 90 us",
    ),
    "pcie-too-narrow": Case(
        fires={"pci": [{**ETH0, "speed_gt_per_sec": 8.0, "width": 2}]},
        quiet={"pci": [{**ETH0, "speed_gt_per_sec": 8.0, "width": 8}]},
        told="The slot of eth0 carries 13 of 25 Gbit/s: x2 at 8 GT/s, the device has x8 at 16",
    ),
    "iommu-translates": Case(
        fires={
            "interfaces": [{**ETH0, "speed_bits_per_sec": 100_000_000_000}],
            "pci": [{**ETH0, "iommu_group": True, "iommu_type": "DMA"}],
        },
        quiet={
            "interfaces": [{**ETH0, "speed_bits_per_sec": 100_000_000_000}],
            "pci": [{**ETH0, "iommu_group": True, "iommu_type": "identity"}],
        },
        told="eth0 is behind an IOMMU that translates strictly",
    ),
    "cpu-frequency-low": Case(
        fires={"cpus": [{"cpu": 1, "governor": "powersave", "driver": "acpi-cpufreq"}]},
        quiet={"cpus": [{"cpu": 1, "governor": "powersave", "driver": "intel_pstate"}]},
        told="1 of 4 processors have the governor powersave",
    ),
    "deep-sleep": Case(
        fires={"sockets": [near()], "cpus": [{"cpu": 0, "idle_state": "C6", "idle_exit_us": 133}]},
        quiet={"cpus": [{"cpu": 0, "idle_state": "C6", "idle_exit_us": 133}]},
        told="1 processors may sleep in C6, which takes 133 us",
    ),
    "slow-clock": Case(
        fires={"host": {"clocksource": "hpet"}},
        quiet={"host": {"clocksource": "kvm-clock"}},
        told="The clock is hpet, and tsc is available",
    ),
    "link-errors": Case(
        fires={"interfaces": [{**ETH0, "rx_crc_errors": 1_000_000}]},
        quiet={"interfaces": [{**ETH0, "rx_crc_errors": 100}]},
        told="1,000,000 of 10,000,000,000 packets came damaged",
    ),
}


def bond(**values: Any) -> dict[str, Any]:
    """eth0 and eth1 in a bond that has the default route."""
    return {
        "interfaces": [
            {"interface": "bond0", "kind": "bond", "operstate": "up", "loopback": False, "mtu_bytes": 1500}
            | {"default_route": True, **values},
            {**ETH0, "master": "bond0", "default_route": False, "mtu_bytes": 1500},
            {"interface": "eth1", "operstate": "up", "loopback": False, "master": "bond0", "mtu_bytes": 1500},
        ]
    }


def vlan(mtu_bytes: int) -> dict[str, Any]:
    """A VLAN on eth0, which takes 9,000 bytes."""
    return {
        "interfaces": [
            {"interface": "eth0.7", "kind": "vlan", "operstate": "up", "lower": "eth0", "mtu_bytes": mtu_bytes}
        ]
    }


ENA = {**ETH0, "driver": "ena"}
NO_PROBING = {"net.ipv4.tcp_mtu_probing": "0"}

TSO = {"name": "tcp-segmentation-offload", "fixed": False}

HEADERS = {
    "interfaces": [ENA],
    "rings": [{**ETH0, "tx_push_bytes": 96, "tx_push_max_bytes": 224}],
    "counters": {"Ip.OutRequests": 8_000_000_000, "Ip6.OutRequests": 2_000_000_000},
}
"""What Linux 6.4 tells of ENA's low-latency queue."""

CLOUD = {
    "ena-header-size": Case(
        fires=HEADERS,
        quiet={**HEADERS, "counters": {"Ip.OutRequests": 8_000_000_000, "Ip6.OutRequests": 2_000_000}},
        told="eth0 takes headers of 96 bytes, and 20 % of the packets sent are IPv6",
    ),
    "cpu-stolen": Case(
        fires={"host": {"hypervisor": "kvm", "steal_pct": 12.5}},
        quiet={"host": {"hypervisor": "kvm", "steal_pct": 2.5}},
        told="12.5 % of the processor time since boot went to others",
    ),
    "ena-allowance": Case(
        fires={"interfaces": [ENA], "nic_stats": [{**ETH0, "name": "pps_allowance_exceeded", "value": 1_000_000}]},
        quiet={"interfaces": [ENA], "nic_stats": [{**ETH0, "name": "pps_allowance_exceeded", "value": 100}]},
        told="Over the allowance for packets per second",
    ),
    "ena-single-flow": Case(
        fires={"interfaces": [ENA], "sockets": [sockets(delivery_rate_bits_per_sec_max=4_900_000_000)]},
        quiet={"interfaces": [ENA], "sockets": [sockets(delivery_rate_bits_per_sec_max=4_000_000_000)]},
        told="The fastest connection has 4.9 Gbit/s, near the bound of 5",
    ),
    "virtio-one-queue": Case(
        fires={"interfaces": [{**ETH0, "driver": "virtio_net"}], "channels": [{**ETH0, "combined_max": 1}]},
        quiet={"interfaces": [{**ETH0, "driver": "virtio_net"}]},
        told="eth0 has one queue for 4 processors, and cannot be given more from within",
    ),
    "path-mtu-black-hole": Case(
        fires={"sysctls": NO_PROBING},
        quiet={"sysctls": NO_PROBING, "routes": [{**ETH0, "default": True, "mtu_bytes": 1500}]},
        told="The default route leads through eth0 with 9000 bytes",
    ),
    "vlan-without-segmentation": Case(
        fires={**vlan(9000), "offloads": [{**TSO, "interface": "eth0.7", "on": False}]},
        quiet={**vlan(9000), "offloads": [{**TSO, "interface": "eth0.7", "on": False}, {**TSO, **ETH0, "on": False}]},
        told="eth0.7 sends without the segmentation offload that eth0 has",
    ),
    "mtu-mismatch": Case(fires=vlan(9004), quiet=vlan(9000), told="eth0.7 sends 9004 bytes through eth0"),
    "bond-reorders": Case(
        fires=bond(bond_mode="balance-rr"),
        quiet=bond(bond_mode="active-backup"),
        told="bond0 deals packets out to its links in turn",
    ),
    "bond-uses-one-link": Case(
        fires=bond(bond_mode="802.3ad", bond_xmit_hash_policy="layer2"),
        quiet=bond(bond_mode="802.3ad", bond_xmit_hash_policy="layer3+4"),
        told="bond0 sends all that leaves its network by one of 2 links",
    ),
}


def setting(owner: str, value: str) -> dict[str, Any]:
    """A line for tcp_rmem in a file of the owner."""
    path = f"/etc/{owner}/99-tcp.conf"
    return {"owner": owner, "kind": "setting", "path": path, "name": "net.ipv4.tcp_rmem", "value": value}


RUNS = "4096 131072 67108864"
BPFTUNE = {"owner": "bpftune", "kind": "running"}

OWNERSHIP = {
    "setting-drift": Case(
        fires={"owners": [setting("sysctl.d", "4096 87380 16777216")]},
        quiet={"owners": [setting("sysctl.d", "4096 87380 16777216"), setting("tuned", RUNS)]},
        told="/etc/sysctl.d/99-tcp.conf sets 4096 87380 16777216",
    ),
    "two-owners": Case(
        fires={"owners": [setting("sysctl.d", "4096 87380 16777216"), setting("tuned", RUNS)]},
        quiet={"owners": [setting("sysctl.d", RUNS), setting("tuned", RUNS)]},
        told="/etc/sysctl.d/99-tcp.conf sets 4096 87380 16777216, /etc/tuned/99-tcp.conf sets",
    ),
    "tuner-overrides": Case(
        fires={"owners": [BPFTUNE]},
        quiet={"owners": [{**BPFTUNE, "owner": "tuned"}]},
        told="bpftune runs",
    ),
}

CASES: dict[str, Case] = {**PACING, **ALGORITHM, **BUFFERS, **LIMITS, **NIC, **CLOUD, **OWNERSHIP}

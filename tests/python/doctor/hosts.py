"""Hosts made from public facts: what distributions, clouds and kernels set by default, and what people have got wrong.

Each is the well-tuned host of `made.py` with a difference; `expected` has the rules that must find something, and no
others may.
"""

from __future__ import annotations

from host_parts import (
    BBR,
    GIGABIT,
    IP_SYSCTL,
    NO_SOCKETS,
    SCALING,
    SYSTEMD,
    Host,
    host,
    kernel,
    leaves,
    quiet_web,
    rack,
)
from made import Difference, qdiscs
from virtual_hosts import VIRTUAL

FAST: Difference = {
    "interfaces": [{"interface": "eth0", "driver": "mlx5_core", "speed_bits_per_sec": 100_000_000_000}],
    "pci": [{"interface": "eth0", "width": 16, "max_width": 16, "vendor": "0x15b3"}],
}
"""A 100 Gbit/s device in a slot that carries it."""

HOSTS: tuple[Host, ...] = (
    host("well-tuned", "As fasterdata.es.net advises for a server, with fq.", "fasterdata.es.net, Linux tuning"),
    host(
        "well-tuned-64-processors",
        "The same with 64 queues and processors.",
        "fasterdata.es.net, Linux tuning",
        cpus=64,
    ),
    host("well-tuned-quiet", "The same without a connection.", "fasterdata.es.net, Linux tuning", NO_SOCKETS),
    host(
        "debian-13",
        "Linux 6.12 with systemd's fq_codel and the kernel's own buffers; 1 Gbit/s.",
        f"{IP_SYSCTL}; systemd, sysctl.d/50-default.conf",
        kernel("6.12.48", "debian", "13"),
        SYSTEMD,
        GIGABIT,
        leaves("fq_codel"),
        quiet_web(),
    ),
    host(
        "debian-13-bulk",
        "The same with 40 busy connections over 20 ms and 1 GB received: its 6 MiB are enough at 1 Gbit/s.",
        f"{IP_SYSCTL}, tcp_rmem and tcp_slow_start_after_idle",
        kernel("6.12.48", "debian", "13"),
        SYSTEMD,
        GIGABIT,
        leaves("fq_codel"),
        expected="slow-start-after-idle",
    ),
    host(
        "debian-12-25-gigabit",
        "Linux 6.1 as it comes, on 25 Gbit/s with jumbo frames and far connections.",
        f"{IP_SYSCTL}; fasterdata.es.net, Linux tuning",
        kernel("6.1.0-40-amd64", "debian", "12"),
        SYSTEMD,
        leaves("fq_codel"),
        expected="slow-start-after-idle receive-buffer-below-path path-mtu-black-hole",
    ),
    host(
        "ubuntu-22.04-bbr",
        "BBR by sysctl, fq by default_qdisc, but never rebooted: the interface kept fq_codel.",
        "Documentation/admin-guide/sysctl/net.rst, default_qdisc",
        kernel("5.15.0-91-generic", "ubuntu", "22.04"),
        {"sysctls": {"net.core.default_qdisc": "fq"}},
        BBR,
        GIGABIT,
        leaves("fq_codel"),
        quiet_web("bbr"),
        expected="bbr-without-fq default-qdisc-not-applied",
    ),
    host(
        "ubuntu-24.04-fq",
        "Linux 6.8 has the fast path of fq and not its fix, unless the distribution took it over.",
        "Linux 076433bd78d7, 122aba8c8061",
        kernel("6.8.0-45-generic", "ubuntu", "24.04"),
        {"sysctls": {"net.core.default_qdisc": "fq"}},
        GIGABIT,
        leaves("fq"),
        {"qdiscs": [{"interface": "eth0", "parent": ":1", "handle": "0:", "fastpath_pkts": 1_000_000}]},
        quiet_web(),
        expected="fq-fast-path-reorders",
    ),
    host(
        "centos-7",
        "Linux 3.10: pfifo_fast, a backlog of 128, buffers from 87,380 bytes.",
        f"{IP_SYSCTL}, somaxconn (was 128 before linux-5.4); Linux e73ebb0881ea",
        kernel("3.10.0-1160.el7.x86_64", "centos", "7"),
        GIGABIT,
        leaves("pfifo_fast"),
        quiet_web(),
        {"listeners": [{"local_port": 443, "queued": 0, "backlog": 128}], "counters": {"Tcp.PassiveOpens": 50_000_000}},
        expected="algorithm-defect short-backlog",
    ),
    host(
        "centos-7-tw-recycle",
        "The advice of many web pages of that time: tcp_tw_recycle.",
        "Linux 4396e46187ca (4.12 took it away)",
        kernel("3.10.0-1160.el7.x86_64", "centos", "7"),
        {"sysctls": {"net.ipv4.tcp_tw_recycle": "1"}},
        GIGABIT,
        leaves("pfifo_fast"),
        quiet_web(),
        expected="algorithm-defect tw-recycle",
    ),
    host(
        "debian-9-bbr",
        "Linux 4.9: BBR is there, and only fq paces.",
        "Linux 218af599fa63 (4.13); 78dc70ebaa38 (5.1)",
        kernel("4.9.0-19-amd64", "debian", "9"),
        BBR,
        GIGABIT,
        leaves("pfifo_fast"),
        quiet_web("bbr"),
        expected="bbr-without-fq algorithm-defect",
    ),
    host(
        "debian-10-bbr",
        "Linux 4.19: paced by TCP, with a timer after every packet.",
        "Linux 864e5c090749 (4.20)",
        kernel("4.19.0-27-amd64", "debian", "10"),
        BBR,
        SYSTEMD,
        GIGABIT,
        leaves("fq_codel"),
        quiet_web("bbr"),
        expected="bbr-without-fq",
    ),
    host(
        "rhel-8-busy",
        "Linux 4.18 with hundreds of connections: metrics of earlier connections are kept with their ssthresh.",
        "Linux 65e6d90168f3 (5.6); Linux ede656e84658 (5.6)",
        kernel("4.18.0-553.el8.x86_64", "rhel", "8.10"),
        GIGABIT,
        leaves("fq"),
        expected="metrics-cache slow-start-after-idle algorithm-defect",
    ),
    host(
        "rhel-9-tuned",
        "tuned's network-throughput sets four sysctls; one of them a file of sysctl.d sets too.",
        "tuned, profiles/network-throughput/tuned.conf",
        kernel("5.14.0-427.el9.x86_64", "rhel", "9.4"),
        SYSTEMD,
        GIGABIT,
        leaves("fq_codel"),
        quiet_web(),
        {
            "sysctls": {"net.ipv4.tcp_rmem": "4096 131072 16777216"},
            "owners": [
                {"owner": "tuned", "kind": "running"},
                {"owner": "tuned", "kind": "profile", "value": "network-throughput"},
                {
                    "owner": "tuned",
                    "kind": "setting",
                    "path": "/usr/lib/tuned/network-throughput/tuned.conf",
                    "name": "net.ipv4.tcp_rmem",
                    "value": "4096 131072 16777216",
                },
                {
                    "owner": "sysctl.d",
                    "kind": "setting",
                    "path": "/etc/sysctl.d/90-net.conf",
                    "name": "net.ipv4.tcp_rmem",
                    "value": "4096 87380 33554432",
                },
            ],
        },
        expected="two-owners",
    ),
    host(
        "client-of-a-vpn",
        "A tunnel that only this host sends through: fq paces its connections there, and nobody's packets are lost.",
        "tc-fq(8)",
        {
            "host": {"stamping": ["systemd-timesyn"]},
            "interfaces": [{"interface": "tun0", "ifindex": 9, "kind": "tun", "operstate": "up", "loopback": False}],
            "qdiscs": qdiscs("tun0", "fq", root=None),
        },
    ),
    host(
        "load-balancer-before-its-fix",
        "A director on Linux 5.4 with fq: 201 million packets dropped.",
        "github.com/github/glb-director/pull/85",
        {"host": {"kernel": "5.4.0"}},
        {
            "qdiscs": [
                {
                    "interface": "eth0",
                    "parent": "1:1",
                    "handle": "8001:",
                    "horizon_drops": 201_276_670,
                    "drops": 201_276_670,
                    "packets": 8_448_638,
                }
            ]
        },
        expected="fq-horizon-drops algorithm-defect",
    ),
    host(
        "bpftune",
        "bpftune beside a file of sysctl.d, with the 2 GiB of its early versions.",
        "github.com/oracle/bpftune/issues/93",
        {
            "sysctls": {"net.ipv4.tcp_rmem": "4096 131072 2147483647"},
            "owners": [
                {"owner": "bpftune", "kind": "running"},
                {
                    "owner": "sysctl.d",
                    "kind": "setting",
                    "path": "/etc/sysctl.d/99-tcp.conf",
                    "name": "net.ipv4.tcp_rmem",
                    "value": "4096 131072 67108864",
                },
            ],
        },
        expected="tuner-overrides two-owners setting-drift buffer-trap",
    ),
    host(
        "mlx5-100-gigabit",
        "100 Gbit/s with irqbalance, a strict IOMMU, interrupts on the other node, powersave of acpi-cpufreq.",
        "fasterdata.es.net, 100G tuning; mlnx_tune",
        FAST,
        {
            "host": {"numa_nodes": 2},
            "owners": [{"owner": "irqbalance", "kind": "running"}],
            "pci": [{"interface": "eth0", "iommu_group": True, "iommu_type": "DMA"}],
            "irqs": [{"number": 40 + at, "counts": {"3": 1_000_000_000}} for at in range(4)],
            "cpus": [
                {"cpu": cpu, "numa_node": cpu // 2, "governor": "powersave", "driver": "acpi-cpufreq"}
                for cpu in range(4)
            ],
        },
        expected="irqbalance-beside-fast-nic iommu-translates irqs-on-far-node irqs-on-one-cpu cpu-frequency-low",
    ),
    host(
        "dtn-well-tuned-100-gigabit",
        "A data transfer node as fasterdata.es.net advises: iommu=pt, performance, interrupts on the node.",
        "fasterdata.es.net, 100G tuning",
        FAST,
        {"pci": [{"interface": "eth0", "iommu_group": True, "iommu_type": "identity"}]},
    ),
    host(
        "wrong-slot",
        "A 100 Gbit/s card in a slot of eight lanes of PCIe 3.",
        "Documentation/ABI/testing/sysfs-bus-pci; mlnx_tune",
        FAST,
        {"pci": [{"interface": "eth0", "width": 8, "speed_gt_per_sec": 8.0, "max_speed_gt_per_sec": 8.0}]},
        expected="pcie-too-narrow",
    ),
    host(
        "ixgbe-small-ring",
        "82599 with its default ring of 512, which loses bursts.",
        "Documentation/networking/device_drivers/ethernet/intel/ixgbe.rst; ethtool(8)",
        {
            "interfaces": [{"interface": "eth0", "driver": "ixgbe", "rx_missed_errors": 900_000}],
            "rings": [{"interface": "eth0", "rx": 512, "rx_max": 4096, "tx": 512, "tx_max": 4096}],
        },
        expected="rx-ring-drops",
    ),
    host(
        "router-with-lro",
        "LRO on a host that forwards.",
        "Documentation/networking/device_drivers/ethernet/intel/ixgbe.rst, LRO",
        {
            "sysctls": {"net.ipv4.ip_forward": "1"},
            "offloads": [{"interface": "eth0", "name": "large-receive-offload", "on": True}],
        },
        expected="lro-where-forwarded",
    ),
    host(
        "bond-of-two",
        "802.3ad with the default hash: all to the router by one link.",
        "Documentation/networking/bonding.rst, xmit_hash_policy",
        {
            "interfaces": [
                {
                    "interface": "bond0",
                    "ifindex": 7,
                    "kind": "bond",
                    "operstate": "up",
                    "loopback": False,
                    "mtu_bytes": 9000,
                    "default_route": True,
                    "bond_mode": "802.3ad",
                    "bond_xmit_hash_policy": "layer2",
                },
                {"interface": "eth0", "master": "bond0", "default_route": False},
                {
                    "interface": "eth1",
                    "ifindex": 8,
                    "operstate": "up",
                    "loopback": False,
                    "mtu_bytes": 9000,
                    "master": "bond0",
                    "tx_queues": 1,
                },
            ],
            "qdiscs": qdiscs("eth1", "fq", root=None),
        },
        expected="bond-uses-one-link",
    ),
    host(
        "redis-in-a-rack",
        "A cache whose clients are 90 us away, with BBR, deep idle states and a fixed interrupt wait.",
        "Documentation/admin-guide/pm/cpuidle.rst; Cao et al., IMC 2019",
        BBR,
        rack("bbr"),
        {
            "cpus": [{"cpu": cpu, "idle_state": "C6", "idle_exit_us": 133} for cpu in range(4)],
            "coalescing": [{"interface": "eth0", "rx_us": 125, "adaptive_rx": False}],
        },
        expected="bbr-inside-data-centre deep-sleep interrupts-wait-long",
    ),
    host("cubic-in-a-rack", "The same with CUBIC and adaptive coalescing.", "docs/claims.md", rack()),
    host(
        "trans-pacific-cubic",
        "CUBIC at 2 % loss over 100 ms, in send buffers of 4 MiB.",
        "README.md, demo",
        {"sysctls": {"net.ipv4.tcp_wmem": "4096 16384 4194304"}},
        {
            "without": ["sockets"],
            "sockets": [
                {
                    "algorithm": "cubic",
                    "remote": "public",
                    "rtt_band": "above-50ms",
                    "connections": 200,
                    "busy_connections": 60,
                    "srtt_us_p50": 105_000,
                    "min_rtt_us_p50": 100_000,
                    "data_segs_out": 10_000_000,
                    "retrans_segs": 200_000,
                    "sndbuf_limited_connections": 12,
                    "delivery_rate_bits_per_sec_max": 300_000_000,
                }
            ],
        },
        expected="loss-based-on-lossy-path send-buffer-limits",
    ),
    host(
        "old-firewall",
        "A firewall that takes SACK out of SYNs, and an administrator who turned timestamps off.",
        "RFC 2018; RFC 7323",
        {
            "sysctls": {"net.ipv4.tcp_timestamps": "0"},
            "sockets": [
                {"algorithm": "cubic", "remote": "public", "rtt_band": "10-50ms", "no_sack_connections": 380},
            ],
        },
        expected="options-off options-stripped",
    ),
    host(
        "threads-of-two-cores",
        "Four queues on a server of eight threads, placed on the threads 0 to 3 that firmware numbered core by core.",
        f"{SCALING}, RSS IRQ Configuration",
        {"cpus": [{"cpu": cpu, "siblings": [cpu & ~1, cpu | 1]} for cpu in range(8)]},
        {
            "without": ["irqs", "channels", "qdiscs", "queues"],
            "channels": [{"interface": "eth0", "combined": 4, "combined_max": 4, "rss_queues": [0, 1, 2, 3]}],
            "qdiscs": qdiscs("eth0", *["fq"] * 4),
            "irqs": [
                {"number": 40 + queue, "interface": "eth0", "counts": {str(queue): 1_000_000_000}, "effective": [queue]}
                for queue in range(4)
            ],
        },
        expected="queues-on-siblings",
        cpus=8,
    ),
    host(
        "ethtool-x-equal-2",
        "Two of four queues were once kept for XDP, and the table of RSS stayed so.",
        "ethtool(8), -X",
        {"channels": [{"interface": "eth0", "rss_queues": [0, 1]}]},
        expected="rss-leaves-queues-out",
    ),
    host(
        "behind-a-policer",
        "A policer drops whole windows, and tail loss probes are off as some old guides advise.",
        "RFC 8985, section 1",
        {
            "sysctls": {"net.ipv4.tcp_early_retrans": "0", "net.ipv4.tcp_recovery": "1"},
            "counters": {"Tcp.RetransSegs": 100_000_000, "TcpExt.TCPTimeouts": 70_000_000},
        },
        expected="losses-found-by-timeout",
    ),
    host(
        "nobody-may-read",
        "An ordinary user in a container without /sys: only settings and counters.",
        "proc(5); sysfs(5)",
        {"without": ["interfaces", "qdiscs", "rings", "channels", "offloads", "coalescing", "queues", "irqs", "pci"]},
        {"without": ["nic_stats", "owners", "routes"], "host": {"root": False, "container": "docker"}},
    ),
    *VIRTUAL,
)

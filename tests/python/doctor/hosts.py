"""Hosts made from public facts: what distributions, clouds and kernels set by default, and what people have got wrong.

Each is the well-tuned host of `made.py` with a difference; `expected` has the rules that must find something, and no
others may.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from made import KEYS, Difference, qdiscs

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Host:
    name: str
    facts: str
    """What is true of such hosts."""
    source: str
    """Where that is published."""
    difference: Difference
    expected: frozenset[str]
    cpus: int = 4


def host(name: str, facts: str, source: str, *differences: Difference, expected: str = "", cpus: int = 4) -> Host:
    return Host(name, facts, source, merged(*differences), frozenset(expected.split()), cpus)


def merged(*differences: Difference) -> Difference:
    """One after the other: of tables by name the later value holds, rows with the same key are put together."""
    whole: dict[str, Any] = {"without": []}
    for difference in differences:
        # A table that a later difference empties has nothing of the earlier ones.
        for table in difference.get("without", ()):
            whole["without"].append(table)
            whole.pop(table, None)
        for table, found in difference.items():
            if table in ("host", "sysctls", "counters"):
                whole[table] = {**whole.get(table, {}), **found}
            elif table != "without":
                whole[table] = _rows(KEYS[table], whole.get(table, ()), found)
    return whole


def _rows(key: tuple[str, ...], before: Rows, after: Rows) -> list[dict[str, Any]]:
    rows = [dict(row) for row in before]
    for row in after:
        same = [one for one in rows if all(one.get(name) == row.get(name) for name in key)]
        for one in same:
            one.update(row)
        if not same:
            rows.append(dict(row))
    return rows


def kernel(release: str, distribution: str, version: str) -> Difference:
    """A kernel with its own defaults: what nobody has tuned."""
    numbers = tuple(int(part) for part in release.split("-")[0].split(".")[:2])
    sysctls = {
        "net.core.somaxconn": "4096" if numbers >= (5, 4) else "128",
        "net.core.default_qdisc": "pfifo_fast",
        "net.core.rmem_max": "212992",
        "net.core.wmem_max": "212992",
        "net.core.netdev_budget_usecs": "8000",
        "net.ipv4.tcp_rmem": f"4096 {131072 if numbers >= (4, 20) else 87380} 6291456",
        "net.ipv4.tcp_wmem": "4096 16384 4194304",
        "net.ipv4.tcp_notsent_lowat": "4294967295" if numbers >= (4, 0) else "-1",
        "net.ipv4.tcp_slow_start_after_idle": "1",
        "net.ipv4.tcp_no_metrics_save": "0",
        "net.ipv4.tcp_mtu_probing": "0",
    }
    if numbers >= (5, 6):
        sysctls["net.ipv4.tcp_no_ssthresh_metrics_save"] = "1"
    return {
        "host": {"kernel": release, "distribution": distribution, "distribution_version": version},
        "sysctls": sysctls,
    }


def leaves(kind: str, count: int = 4, name: str = "eth0") -> Difference:
    """mq with a leaf of the kind for each queue, as the kernel makes them: all with the handle 0."""
    rows = [{**row, "handle": "0:"} for row in qdiscs(name, *[kind] * count)]
    for at, row in enumerate(rows[1:], 1):
        row["parent"] = f":{at:x}"
    return {"without": ["qdiscs"], "qdiscs": rows}


def root(kind: str, name: str = "eth0") -> Difference:
    """One qdisc at the root, made by the kernel."""
    return {"without": ["qdiscs"], "qdiscs": [{**qdiscs(name, kind, root=None)[0], "handle": "0:"}]}


SYSTEMD: Difference = {"sysctls": {"net.core.default_qdisc": "fq_codel"}}
"""50-default.conf of systemd since version 217."""

BBR: Difference = {"sysctls": {"net.ipv4.tcp_congestion_control": "bbr"}}

USUAL_MTU: Difference = {"interfaces": [{"interface": "eth0", "mtu_bytes": 1500}]}

GIGABIT: Difference = {"interfaces": [{"interface": "eth0", "mtu_bytes": 1500, "speed_bits_per_sec": 1_000_000_000}]}

NO_SOCKETS: Difference = {"without": ["sockets"]}


def quiet_web(algorithm: str = "cubic", **values: Any) -> Difference:
    """Connections that ask for little: no bulk, so that buffers and idle pauses cost nothing."""
    row = {"algorithm": algorithm, "remote": "public", "rtt_band": "10-50ms", "connections": 50, "busy_connections": 4}
    return {"without": ["sockets"], "sockets": [{**row, "srtt_us_p50": 30_000, "min_rtt_us_p50": 25_000, **values}]}


def rack(algorithm: str = "cubic", **values: Any) -> Difference:
    """Connections within a data centre."""
    row = {"algorithm": algorithm, "remote": "private", "rtt_band": "below-1ms", "connections": 300}
    row |= {"busy_connections": 100, "srtt_us_p50": 150, "min_rtt_us_p50": 90, "data_segs_out": 50_000_000, **values}
    return {"without": ["sockets"], "sockets": [row]}


def virtual(driver: str, hypervisor: str, *, queues: int = 4, most: int | None = None, **host: Any) -> Difference:
    """A virtual machine's device: no speed, no PCIe link, no node."""
    most = queues if most is None else most
    return {
        "without": ["pci", "channels", "coalescing", "queues", "irqs", "rings"],
        "host": {"hypervisor": hypervisor, "smt": "notsupported", "clocksource": "kvm-clock", **host},
        "interfaces": [
            {
                "interface": "eth0",
                "driver": driver,
                "bus": "virtio" if driver == "virtio_net" else "pci",
                "speed_bits_per_sec": None,
                "mtu_bytes": 1500,
                "numa_node": -1,
                "rx_queues": queues,
                "tx_queues": queues,
            }
        ],
        "channels": [{"interface": "eth0", "combined": queues, "combined_max": most}],
        "rings": [{"interface": "eth0", "rx": 256, "rx_max": 256, "tx": 256, "tx_max": 256}],
        "queues": [
            {"interface": "eth0", "direction": "rx", "number": at, "rps_cpus": [], "rps_flow_cnt": 0}
            for at in range(queues)
        ],
        "cpus": [
            {"cpu": cpu, "governor": None, "driver": None, "max_khz": None, "hardware_max_khz": None}
            for cpu in range(4)
        ],
    }


AWS = virtual("ena", "kvm", cloud="amazon", instance_type="m5.xlarge", clocksource="tsc")
ENA: Difference = {"interfaces": [{"interface": "eth0", "mtu_bytes": 9001}]}
GCE = virtual("gve", "kvm", cloud="google", instance_type="n2-standard-4")
AZURE = virtual("hv_netvsc", "hyper-v", cloud="microsoft", clocksource="hyperv_clocksource_tsc_page")

POD: Difference = {
    "without": ["interfaces", "qdiscs", "rings", "channels", "offloads", "coalescing", "queues", "irqs", "pci"],
    "host": {"container": "kubernetes", "initial_netns": False},
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

FAST: Difference = {
    "interfaces": [{"interface": "eth0", "driver": "mlx5_core", "speed_bits_per_sec": 100_000_000_000}],
    "pci": [{"interface": "eth0", "width": 16, "max_width": 16, "vendor": "0x15b3"}],
}
"""A 100 Gbit/s device in a slot that carries it."""

IP_SYSCTL = "Documentation/networking/ip-sysctl.rst"
SCALING = "Documentation/networking/scaling.rst"

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
        "aws-m5-amazon-linux-2023",
        "ENA with 9,001 bytes; Amazon Linux 2023 with Linux 6.1.",
        "AWS, Network MTU for your EC2 instance (9001)",
        kernel("6.1.112-122.189.amzn2023.x86_64", "amzn", "2023"),
        SYSTEMD,
        AWS,
        ENA,
        leaves("fq_codel"),
        quiet_web(),
        expected="path-mtu-black-hole",
    ),
    host(
        "aws-over-its-allowance",
        "Packets beyond what the instance may send a second.",
        "repost.aws/knowledge-center/ec2-instance-exceeding-network-limits",
        AWS,
        {"nic_stats": [{"interface": "eth0", "name": "pps_allowance_exceeded", "value": 3_000_000}]},
        expected="ena-allowance",
    ),
    host(
        "aws-tracked-connections",
        "A security group that tracks connections, at its bound.",
        "AWS, Monitor network performance for your EC2 instance",
        AWS,
        {"nic_stats": [{"interface": "eth0", "name": "conntrack_allowance_exceeded", "value": 90_000}]},
        expected="ena-allowance",
    ),
    host(
        "aws-one-flow",
        "One connection at 4.95 Gbit/s.",
        "AWS, Amazon EC2 instance network bandwidth (5 Gbit/s for a flow)",
        AWS,
        {
            "sockets": [
                {
                    "algorithm": "cubic",
                    "remote": "public",
                    "rtt_band": "10-50ms",
                    "delivery_rate_bits_per_sec_max": 4_950_000_000,
                }
            ]
        },
        expected="ena-single-flow",
    ),
    host(
        "aws-xen-clock",
        "An older instance type whose clock is xen.",
        "AWS knowledge centre, Manage the clock source for EC2 Linux instances",
        AWS,
        {"host": {"hypervisor": "xen", "clocksource": "xen", "clocksources": ["xen", "tsc", "hpet"]}},
        expected="slow-clock",
    ),
    host(
        "gce-n2",
        "gve with a queue for each processor, Linux 6.1, 1,460 bytes.",
        "Google Cloud, Maximum transmission unit (1460)",
        kernel("6.1.0-25-cloud-amd64", "debian", "12"),
        SYSTEMD,
        GCE,
        {"interfaces": [{"interface": "eth0", "mtu_bytes": 1460}]},
        leaves("fq_codel"),
        quiet_web(),
    ),
    host(
        "azure-steal",
        "A burstable machine without credits: a fifth of its time goes to others, and BBR runs on it.",
        "arXiv 2601.05665; proc_stat(5)",
        AZURE,
        BBR,
        {"host": {"steal_pct": 21.0}},
        expected="cpu-stolen bbr-where-cpu-is-stolen",
    ),
    host(
        "kvm-one-queue",
        "libvirt gives a virtio device one queue unless told otherwise.",
        "libvirt.org/formatdomain.html, driver queues",
        virtual("virtio_net", "kvm", queues=1),
        root("fq_codel"),
        {"cpus": [{"cpu": 0, "softirq_pct": 70.0}]},
        expected="virtio-one-queue one-queue-without-rps default-qdisc-not-applied",
    ),
    host(
        "kvm-one-queue-two-interrupts",
        "virtio has an interrupt for each direction of its queue; both may come to one processor.",
        "drivers/net/virtio_net.c, input.0 and output.0",
        virtual("virtio_net", "kvm", queues=1),
        root("fq"),
        {
            "irqs": [
                {"number": 38, "name": "virtio0-input.0", "interface": "eth0", "counts": {"0": 2_000_000_000}},
                {"number": 39, "name": "virtio0-output.0", "interface": "eth0", "counts": {"0": 1_000_000_000}},
            ]
        },
        expected="virtio-one-queue",
    ),
    host(
        "kvm-queues-not-used",
        "The hypervisor gives four queues, and the guest uses one.",
        "linux-kvm.org/page/Multiqueue (ethtool -L)",
        virtual("virtio_net", "kvm", queues=1, most=4),
        root("fq"),
        {"cpus": [{"cpu": 0, "softirq_pct": 70.0}]},
        expected="few-queues",
    ),
    host(
        "rps-mask-as-a-count",
        "Somebody wrote the number of processors into the mask: 4 is processor 2.",
        f"{SCALING}, RPS configuration",
        virtual("virtio_net", "kvm", queues=1),
        root("fq"),
        {"queues": [{"interface": "eth0", "direction": "rx", "number": 0, "rps_cpus": [2]}]},
        expected="virtio-one-queue rps-on-one-cpu",
    ),
    host(
        "pod-on-5.15",
        "A pod with BBR on Linux 5.15: what it asks of pacing is lost at the namespace.",
        "github.com/cilium/cilium/commit/215613462cfa",
        {"host": {"kernel": "5.15.0-1051-gke"}},
        BBR,
        POD,
        quiet_web("bbr"),
        expected="pod-departure-times bbr-without-fq",
    ),
    host("pod-cubic", "A pod with CUBIC on Linux 6.12 has nothing of its own to set.", SCALING, POD, quiet_web()),
    host(
        "kubernetes-node",
        "Thousands of pods in one layer 2 network, with tracked connections for each service.",
        f"{IP_SYSCTL}, gc_thresh3; Documentation/networking/nf_conntrack-sysctl.rst",
        {
            "sysctls": {
                "net.ipv4.ip_forward": "1",
                "net.netfilter.nf_conntrack_max": "262144",
                "net.netfilter.nf_conntrack_count": "261000",
            },
            "counters": {"arp_cache.entries": 1_020, "arp_cache.table_fulls": 900},
        },
        expected="conntrack-full neighbour-table-full",
    ),
    host(
        "kata-node",
        "Talos sets fq by default: taps of virtual machines get it too, and drop what was stamped on arrival.",
        "github.com/siderolabs/talos/issues/13745",
        {
            "sysctls": {"net.ipv4.ip_forward": "1"},
            "interfaces": [
                {"interface": "tap0", "ifindex": 9, "kind": "tun", "operstate": "up", "loopback": False},
            ],
            "qdiscs": [{**qdiscs("tap0", "fq", root=None)[0], "horizon_drops": 12_000, "packets": 400_000}],
        },
        expected="fq-where-forwarded fq-horizon-drops",
    ),
    host(
        "cilium-bandwidth-manager",
        "Programs on clsact set departure times, and fq holds them; a few drops in a billion packets say nothing.",
        "docs.cilium.io, Bandwidth Manager",
        {
            "owners": [{"owner": "cilium", "kind": "running"}],
            "qdiscs": [
                {"interface": "eth0", "kind": "clsact", "handle": "ffff:", "parent": "ingress", "options": {}},
                {
                    "interface": "eth0",
                    "parent": "1:1",
                    "handle": "8001:",
                    "packets": 1_000_000_000,
                    "drops": 12,
                    "throttled": 90_000,
                },
            ],
        },
    ),
    host(
        "cilium-unbounded-pod",
        "The same where a pod sends faster than its limit, and nothing marks or drops before the queue is full.",
        "Saeed et al., Carousel, SIGCOMM 2017",
        {
            "qdiscs": [
                {"interface": "eth0", "kind": "clsact", "handle": "ffff:", "parent": "ingress", "options": {}},
                {
                    "interface": "eth0",
                    "parent": "1:1",
                    "handle": "8001:",
                    "packets": 1_000_000_000,
                    "drops": 400_000,
                    "throttled": 90_000_000,
                },
            ]
        },
        expected="departure-times-in-one-fifo",
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
        "nobody-may-read",
        "An ordinary user in a container without /sys: only settings and counters.",
        "proc(5); sysfs(5)",
        {"without": ["interfaces", "qdiscs", "rings", "channels", "offloads", "coalescing", "queues", "irqs", "pci"]},
        {"without": ["nic_stats", "owners", "routes"], "host": {"root": False, "container": "docker"}},
    ),
)

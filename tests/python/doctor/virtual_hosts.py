"""Hosts made from public facts: virtual machines of clouds and others, and hosts and namespaces of containers."""

from __future__ import annotations

from typing import Any

from host_parts import BBR, IP_SYSCTL, POD, SCALING, SYSTEMD, Host, host, kernel, leaves, quiet_web, root
from made import Difference, qdiscs


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

KUBERNETES: Difference = {"host": {"container": "kubernetes", "initial_netns": False}, **POD}

VIRTUAL: tuple[Host, ...] = (
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
        KUBERNETES,
        quiet_web("bbr"),
        expected="pod-departure-times bbr-without-fq",
    ),
    host(
        "pod-cubic", "A pod with CUBIC on Linux 6.12 has nothing of its own to set.", SCALING, KUBERNETES, quiet_web()
    ),
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
        "taps-without-routing",
        "A hypervisor that routes nothing: one tap belongs to a bridge, to another tc redirects; a time daemon runs.",
        "github.com/siderolabs/talos/issues/13745 (tc redirects do not clear the time stamp)",
        {
            "host": {"stamping": ["chronyd"]},
            "interfaces": [
                {"interface": "br0", "ifindex": 8, "kind": "bridge", "operstate": "up", "loopback": False},
                {"interface": "tap0", "kind": "tun", "operstate": "up", "loopback": False, "master": "br0"},
                {"interface": "tap1", "kind": "tun", "operstate": "up", "loopback": False},
            ],
            "qdiscs": [
                *qdiscs("tap0", "fq", root=None),
                *qdiscs("tap1", "fq", root=None),
                {"interface": "tap1", "kind": "ingress", "handle": "ffff:", "parent": "ingress", "options": {}},
            ],
        },
        expected="fq-where-forwarded",
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
        "aws-ipv6-with-short-headers",
        "ENA of Linux 6.8 with its default space for headers of 96 bytes, in a network that is half IPv6.",
        "github.com/amzn/amzn-drivers, ENA_Linux_Best_Practices.rst (96 bytes; IPv6 with SACK has more)",
        AWS,
        ENA,
        {
            "rings": [{"interface": "eth0", "rx": 1024, "tx": 1024, "tx_push_bytes": 96, "tx_push_max_bytes": 224}],
            "counters": {"Ip.OutRequests": 5_000_000_000, "Ip6.OutRequests": 5_000_000_000},
        },
        expected="ena-header-size",
    ),
    host(
        "aws-ena-express-with-wide-headers",
        "ENA Express, and entries for headers of 224 bytes left over from before.",
        "AWS, Improve network performance with ENA Express (notification code 1)",
        AWS,
        ENA,
        {
            "rings": [{"interface": "eth0", "rx": 1024, "tx": 512, "tx_push_bytes": 224, "tx_push_max_bytes": 224}],
            "nic_stats": [{"interface": "eth0", "name": "ena_srd_mode", "value": 1}],
        },
        expected="ena-header-size",
    ),
    host(
        "aws-without-irqbalance",
        "irqbalance removed from an image, and the device's interrupts came back on one processor after a reset.",
        "github.com/amzn/amzn-drivers, ENA_Linux_Best_Practices.rst, CPU starvation",
        AWS,
        ENA,
        {
            "irqs": [
                {
                    "number": 40 + queue,
                    "name": f"eth0-Tx-Rx-{queue}",
                    "interface": "eth0",
                    "effective": [0],
                    "counts": {"0": 1_000_000_000},
                }
                for queue in range(4)
            ]
        },
        expected="irqbalance-missing irqs-on-one-cpu",
    ),
    host(
        "node-of-pods-on-5.15",
        "A node whose pods begin with its BBR, with fq on the way out, on the kernel of Ubuntu 22.04.",
        "github.com/cilium/cilium/pull/15324 and 19287",
        kernel("5.15.0-122-generic", "ubuntu", "22.04"),
        BBR,
        quiet_web("bbr"),
        {
            "sysctls": {"net.core.default_qdisc": "fq", "net.ipv4.tcp_mtu_probing": "1"},
            "interfaces": [
                {
                    "interface": f"veth{at}",
                    "ifindex": 10 + at,
                    "kind": "veth",
                    "operstate": "up",
                    "loopback": False,
                    "mtu_bytes": 9000,
                    "peer_elsewhere": True,
                }
                for at in range(3)
            ],
        },
        expected="pod-departure-times",
    ),
)

//! Tables of a snapshot: what a host is and how it is set.

use crate::{Schema, declare};

declare! {
    /// One row: what the host is.
    "host" HOST from "uname, /etc/os-release, /proc, /sys/class/dmi, /sys/devices/system" {
        host: Text, "", "name of the host; a keyed hash where names are left out";
        host_id: Text, "", "hash of the machine-id, the same over boots";
        kernel: Text, "", "release of the kernel";
        arch: Text, "", "machine, as uname names it";
        distribution: Text, "", "ID of os-release";
        distribution_version: Text, "", "VERSION_ID of os-release";
        hypervisor: Text, "", "kvm, xen, vmware, hyper-v, firecracker, …; \"none\": no sign of one";
        container: Text, "", "docker, podman, kubernetes, lxc, systemd-nspawn, other; \"none\": no sign of one";
        cloud: Text, "", "amazon, google, microsoft, …; null: not known";
        instance_type: Text, "", "the machine's product name where a cloud gives it";
        root: Bool, "", "whether root took the snapshot";
        initial_netns: Bool, "", "whether the namespace is that of the first process";
        netns: Text, "", "network namespace: the name asked for, or net:[INODE]";
        cpus: Integer, "", "processors that are online";
        numa_nodes: Integer, "", "NUMA nodes with processors";
        memory_bytes: Integer, "bytes", "memory of the host";
        memory_available_bytes: Integer, "bytes", "memory that programs could still get";
        memory_limit_bytes: Integer, "bytes", "limit of this cgroup; null: none";
        memory_pressure_pct: Number, "%", "share of the last minute in which some task waited for memory";
        cpu_pressure_pct: Number, "%", "share of the last minute in which some task waited for a processor";
        clocksource: Text, "", "clock in use";
        clocksources: Texts, "", "clocks that could be used";
        smt: Text, "", "on, off, forceoff, notsupported, notimplemented";
        boot_parameters: Texts, "", "parameters of the kernel command line that concern the network or processors";
        modules: Texts, "", "loaded modules that concern the network";
        algorithms: Texts, "", "congestion controls that are available";
        bbr_version: Text, "", "version of what is called bbr, as its module or the kernel's types say: 1, 3, or \"2 or 3\"; null: not known";
        has_fq: Bool, "", "whether the kernel was built with the qdisc fq; null: no configuration to be read";
        uptime_sec: Number, "s", "time since boot";
        stamping: Texts, "", "running programs that may have the kernel stamp received packets: ntpd, ptp4l, …";
        steal_pct: Number, "%", "processor time since boot that the hypervisor gave to others";
        ksoftirqd_us: Count, "us", "processor time of all ksoftirqd threads";
        page_bytes: Integer, "bytes", "size of a page";
        init: Text, "", "systemd, other";
    }
}

declare! {
    /// A row for each setting below net, and a few of vm and kernel.
    "sysctls" SYSCTLS from "/proc/sys" {
        netns: Text, "", "network namespace";
        name: Text, "", "name, as sysctl(8) has it";
        value: Text, "", "value, words with one blank between; null: not readable or not shown here";
    }
}

declare! {
    /// A row for each network interface.
    "interfaces" INTERFACES from "rtnetlink, /sys/class/net" {
        netns: Text, "", "network namespace";
        interface: Text, "", "name";
        ifindex: Integer, "", "index";
        kind: Text, "", "kind of a virtual interface as `ip -d link` has it; null: a device";
        driver: Text, "", "driver of the device";
        bus: Text, "", "bus of the device: pci, virtio, vmbus, …";
        address_on_bus: Text, "", "where on the bus, as 0000:00:05.0";
        operstate: Text, "", "up, down, unknown, …";
        loopback: Bool, "", "whether it is the loopback interface";
        mtu_bytes: Integer, "bytes", "largest packet";
        max_mtu_bytes: Integer, "bytes", "largest that can be set; null: not told";
        txqueuelen_pkts: Integer, "pkts", "length of its queue";
        speed_bits_per_sec: Integer, "bit/s", "speed of the link; null: not told";
        duplex: Text, "", "full, half";
        master: Text, "", "bridge, bond or team that it belongs to";
        lower: Text, "", "interface below it, for VLANs and such";
        peer_elsewhere: Bool, "", "whether its other end lies in another network namespace";
        default_route: Bool, "", "whether a default route leads through it";
        numa_node: Integer, "", "NUMA node of the device; -1: none";
        rx_queues: Integer, "", "receive queues";
        tx_queues: Integer, "", "transmit queues";
        gso_max_bytes: Integer, "bytes", "largest packet that segmentation makes";
        gro_max_bytes: Integer, "bytes", "largest packet that GRO makes";
        threaded: Bool, "", "whether NAPI runs in threads";
        gro_flush_timeout_ns: Integer, "ns", "how long GRO may hold packets after a poll";
        napi_defer_hard_irqs: Integer, "", "empty polls before interrupts come back";
        bond_mode: Text, "", "mode of a bond";
        bond_xmit_hash_policy: Text, "", "how a bond chooses the member";
        carrier_changes: Count, "", "times that the link came or went";
        rx_packets: Count, "pkts", "received so far";
        tx_packets: Count, "pkts", "sent so far";
        rx_bytes: Count, "bytes", "received so far";
        tx_bytes: Count, "bytes", "sent so far";
        rx_dropped: Count, "pkts", "received and dropped so far";
        tx_dropped: Count, "pkts", "dropped on the way out so far";
        rx_errors: Count, "pkts", "bad packets received so far";
        tx_errors: Count, "pkts", "packets that could not be sent so far";
        rx_missed_errors: Count, "pkts", "that the device had no buffer for, so far";
        rx_fifo_errors: Count, "pkts", "that overran the device, so far";
        rx_crc_errors: Count, "pkts", "with a wrong checksum of the link, so far";
        rx_nohandler: Count, "pkts", "that came to an interface that is not in use, so far";
    }
}

declare! {
    /// A row for each interface that has rings.
    "rings" RINGS from "SIOCETHTOOL (`ethtool -g`)" {
        netns: Text, "", "network namespace";
        interface: Text, "", "interface";
        rx: Integer, "", "descriptors for receiving";
        rx_max: Integer, "", "most that the device has";
        tx: Integer, "", "descriptors for sending";
        tx_max: Integer, "", "most that the device has";
        tx_push_bytes: Integer, "bytes", "first bytes of a packet that the driver writes into the device itself; null: not told";
        tx_push_max_bytes: Integer, "bytes", "most of them";
    }
}

declare! {
    /// A row for each interface whose number of queues can be told.
    "channels" CHANNELS from "SIOCETHTOOL (`ethtool -l`)" {
        netns: Text, "", "network namespace";
        interface: Text, "", "interface";
        rx: Integer, "", "queues that only receive";
        rx_max: Integer, "", "most of them";
        tx: Integer, "", "queues that only send";
        tx_max: Integer, "", "most of them";
        combined: Integer, "", "queues that do both";
        combined_max: Integer, "", "most of them";
        rss_queues: Integers, "", "queues that the table of RSS leads to (`ethtool -x`); null: not told";
    }
}

declare! {
    /// A row for each offload of an interface that TCP depends on.
    "offloads" OFFLOADS from "SIOCETHTOOL (`ethtool -k`)" {
        netns: Text, "", "network namespace";
        interface: Text, "", "interface";
        name: Text, "", "name as `ethtool -k` prints it, without dashes at the front";
        on: Bool, "", "whether it is on";
        fixed: Bool, "", "whether the device cannot change it";
    }
}

declare! {
    /// A row for each interface that coalesces interrupts.
    "coalescing" COALESCING from "SIOCETHTOOL (`ethtool -c`)" {
        netns: Text, "", "network namespace";
        interface: Text, "", "interface";
        rx_us: Integer, "us", "longest wait before an interrupt for received packets";
        rx_pkts: Integer, "pkts", "most packets before an interrupt";
        tx_us: Integer, "us", "longest wait before an interrupt for sent packets";
        tx_pkts: Integer, "pkts", "most packets before an interrupt";
        adaptive_rx: Bool, "", "whether the driver adapts the first two";
        adaptive_tx: Bool, "", "whether the driver adapts the other two";
    }
}

declare! {
    /// A row for each qdisc.
    "qdiscs" QDISCS from "rtnetlink (`tc -s qdisc`)" {
        netns: Text, "", "network namespace";
        interface: Text, "", "interface";
        kind: Text, "", "fq, fq_codel, mq, pfifo_fast, …";
        handle: Text, "", "as tc prints it";
        parent: Text, "", "root, ingress, or the class that it hangs from";
        options: Object, "", "options by name, where they are understood";
        bytes: Count, "bytes", "sent so far";
        packets: Count, "pkts", "sent so far";
        drops: Count, "pkts", "dropped so far";
        overlimits: Count, "", "times over the limit so far";
        requeues: Count, "pkts", "put back because the device was busy, so far";
        backlog_pkts: Integer, "pkts", "in the queue now";
        flows_plimit: Count, "pkts", "fq: dropped because of the limit for each flow, so far";
        horizon_drops: Count, "pkts", "fq: dropped because their time was too far off, so far";
        horizon_caps: Count, "pkts", "fq: sent earlier than asked because their time was too far off, so far";
        throttled: Count, "", "fq: times that a flow had to wait, so far";
        fastpath_pkts: Count, "pkts", "fq: sent without a flow of their own, so far";
    }
}

declare! {
    /// A row for each queue of an interface.
    "queues" QUEUES from "/sys/class/net/*/queues" {
        netns: Text, "", "network namespace";
        interface: Text, "", "interface";
        direction: Text, "", "rx, tx";
        number: Integer, "", "number of the queue";
        rps_cpus: Integers, "", "rx: processors that RPS spreads its packets over; empty: RPS is off";
        rps_flow_cnt: Integer, "", "rx: flows that RFS follows in this queue";
        xps_cpus: Integers, "", "tx: processors that choose this queue";
    }
}

declare! {
    /// A row for each interrupt of a network device.
    "irqs" IRQS from "/proc/interrupts, /proc/irq, /sys/class/net/*/device/msi_irqs" {
        number: Integer, "", "number";
        name: Text, "", "as /proc/interrupts names it";
        interface: Text, "", "interface whose device has it";
        affinity: Integers, "", "processors that it may come to";
        effective: Integers, "", "processors that it comes to";
        counts: Counts, "", "interrupts so far by processor; processors without any are left out";
    }
}

declare! {
    /// A row for each processor.
    "softnet" SOFTNET from "/proc/net/softnet_stat" {
        cpu: Integer, "", "processor";
        processed: Count, "pkts", "received so far";
        dropped: Count, "pkts", "dropped so far because the backlog was full";
        squeezed: Count, "", "times that packets were left when the budget or the time was used up";
        received_rps: Count, "", "interrupts from other processors for RPS";
        flow_limit_count: Count, "pkts", "dropped so far by flow limit";
    }
}

declare! {
    /// A row for each counter of the protocols.
    "counters" COUNTERS from "/proc/net/snmp, snmp6, netstat, sockstat, stat/arp_cache, stat/ndisc_cache, and the sum of /proc/pressure" {
        netns: Text, "", "network namespace";
        name: Text, "", "as the recorder names it: Tcp.RetransSegs, TcpExt.ListenDrops, TCP.mem";
        value: Count, "", "value so far; a few (TCP.mem, arp_cache.entries) are of the moment";
    }
}

declare! {
    /// A row for each group of TCP connections with the same algorithm, kind of far end and band of round-trip time.
    "sockets" SOCKETS from "sock_diag" {
        netns: Text, "", "network namespace";
        algorithm: Text, "", "congestion control";
        remote: Text, "", "loopback, private or public address of the far end";
        rtt_band: Text, "", "below-1ms, 1-10ms, 10-50ms, above-50ms, by smoothed round-trip time";
        connections: Integer, "", "connections in the group";
        busy_connections: Integer, "", "of those: acknowledged or received 1 MB or more";
        srtt_us_p50: Integer, "us", "median of the smoothed round-trip time";
        min_rtt_us_p50: Integer, "us", "median of the least round-trip time";
        snd_mss_bytes_p50: Integer, "bytes", "median segment size";
        bytes_acked: Integer, "bytes", "acknowledged by the far ends so far";
        bytes_received: Integer, "bytes", "received so far";
        bytes_sent: Integer, "bytes", "sent so far, retransmissions included";
        bytes_retrans: Integer, "bytes", "retransmitted so far";
        data_segs_out: Integer, "segments", "sent so far";
        retrans_segs: Integer, "segments", "retransmitted so far";
        delivered_ce: Integer, "segments", "that arrived with an ECN mark";
        delivery_rate_bits_per_sec_p50: Integer, "bit/s", "median delivery rate of those not limited by the application";
        delivery_rate_bits_per_sec_max: Integer, "bit/s", "largest delivery rate";
        busy_us: Integer, "us", "time with data outstanding, of all";
        rwnd_limited_us: Integer, "us", "of that: the receiver's window was full";
        sndbuf_limited_us: Integer, "us", "of that: the send buffer was full";
        rwnd_limited_connections: Integer, "", "of busy connections: more than 20 % of the busy time";
        sndbuf_limited_connections: Integer, "", "of busy connections: more than 20 % of the busy time";
        no_sack_connections: Integer, "", "connections without SACK";
        no_timestamps_connections: Integer, "", "connections without timestamps";
        no_scaling_connections: Integer, "", "connections without window scaling";
    }
}

declare! {
    /// A row for each TCP socket that listens.
    "listeners" LISTENERS from "sock_diag" {
        netns: Text, "", "network namespace";
        local_port: Integer, "", "port";
        queued: Integer, "", "connections that wait to be accepted";
        backlog: Integer, "", "most that may wait";
    }
}

declare! {
    /// A row for each processor.
    "cpus" CPUS from "/proc/stat, /sys/devices/system/cpu" {
        cpu: Integer, "", "processor";
        numa_node: Integer, "", "NUMA node";
        siblings: Integers, "", "processors that are threads of the same core, itself among them";
        governor: Text, "", "governor of its frequency";
        driver: Text, "", "driver of its frequency";
        max_khz: Integer, "kHz", "highest frequency that the governor may take";
        hardware_max_khz: Integer, "kHz", "highest frequency of the processor";
        idle_state: Text, "", "deepest idle state that is not disabled";
        idle_exit_us: Integer, "us", "time to leave that state";
        busy_pct: Number, "%", "of the time since boot, idle and iowait left out";
        softirq_pct: Number, "%", "of the time since boot";
        steal_pct: Number, "%", "of the time since boot";
        time_us: Count, "us", "time since boot that was counted";
        busy_us: Count, "us", "of it: not idle and not waiting for a disk";
        softirq_us: Count, "us", "of it: in soft interrupts";
        steal_us: Count, "us", "of it: given to others by the hypervisor";
        isolated: Bool, "", "whether the scheduler leaves it alone";
    }
}

declare! {
    /// A row for each program, or line of its files, that sets what the doctor judges.
    "owners" OWNERS from "/proc/PID/comm, /etc, /run, /usr/lib" {
        owner: Text, "", "tuned, bpftune, NetworkManager, systemd-networkd, irqbalance, cloud-init, sysctl.d, …";
        kind: Text, "", "running: it runs; present: it is installed; setting: a value in its file; profile: its active profile";
        path: Text, "", "file; null: none";
        name: Text, "", "of a setting: the sysctl";
        value: Text, "", "of a setting: its value; of a profile: its name";
    }
}

declare! {
    /// A row for each counter of a driver that a rule knows.
    "nic_stats" NIC_STATS from "SIOCETHTOOL ETHTOOL_GSTATS (`ethtool -S`)" {
        netns: Text, "", "network namespace";
        interface: Text, "", "interface";
        name: Text, "", "as the driver names it";
        value: Count, "", "value so far";
    }
}

declare! {
    /// A row for each interface whose device is on PCI.
    "pci" PCI from "/sys/class/net/*/device" {
        interface: Text, "", "interface";
        vendor: Text, "", "identifier of the vendor, 0x8086";
        device: Text, "", "identifier of the device";
        speed_gt_per_sec: Number, "GT/s", "speed of the link";
        max_speed_gt_per_sec: Number, "GT/s", "highest speed of the device";
        width: Integer, "", "lanes";
        max_width: Integer, "", "most lanes of the device";
        iommu_group: Bool, "", "whether an IOMMU translates its addresses";
        iommu_type: Text, "", "DMA, DMA-FQ, identity";
    }
}

declare! {
    /// A row for each set of routes that set the same metrics.
    "routes" ROUTES from "rtnetlink (`ip route show table all`)" {
        netns: Text, "", "network namespace";
        interface: Text, "", "interface";
        default: Bool, "", "whether these are default routes";
        routes: Integer, "", "how many routes";
        initcwnd_pkts: Integer, "pkts", "initial congestion window; null: the kernel's 10";
        initrwnd_pkts: Integer, "pkts", "initial receive window; null: the kernel's";
        algorithm: Text, "", "congestion control; null: the default";
        mtu_bytes: Integer, "bytes", "path MTU; null: the interface's";
        mtu_locked: Bool, "", "whether path MTU discovery may not change it";
    }
}

declare! {
    /// A row for each other network namespace that can be seen.
    "namespaces" NAMESPACES from "/proc/PID/ns/net, /run/netns" {
        netns: Text, "", "net:[INODE]";
        name: Text, "", "its name below /run/netns; null: none";
        processes: Integer, "", "processes in it that this user may look at";
    }
}

/// Tables of a snapshot.
pub const SNAPSHOT: &[Schema] = &[
    HOST, SYSCTLS, INTERFACES, RINGS, CHANNELS, OFFLOADS, COALESCING, QDISCS, QUEUES, IRQS,
    SOFTNET, COUNTERS, SOCKETS, LISTENERS, CPUS, OWNERS, NIC_STATS, PCI, ROUTES, NAMESPACES,
];

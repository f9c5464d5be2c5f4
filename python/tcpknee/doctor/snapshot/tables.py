"""The tables of a snapshot and their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["integer", "count", "number", "text", "bool", "integers", "texts", "object", "counts"]
"""A count grows from boot on, or since the device was reset; counts are several by name."""


@dataclass(frozen=True)
class Column:
    name: str
    kind: Kind
    unit: str
    doc: str


@dataclass(frozen=True)
class Table:
    name: str
    doc: str
    source: str
    columns: Mapping[str, Column]


def _table(name: str, doc: str, source: str, columns: str) -> Table:
    """`columns` has a line for each: name, kind, unit or -, meaning."""
    listed = {}
    for line in columns.strip().splitlines():
        column, kind, unit, meaning = line.split(None, 3)
        listed[column] = Column(column, kind, "" if unit == "-" else unit, meaning)  # type: ignore[arg-type]
    return Table(name, doc, source, listed)


_LISTED = (
    _table(
        "host",
        "One row: what the host is.",
        "uname, /etc/os-release, /proc, /sys/class/dmi, /sys/devices/system",
        """
host                 text     -      name of the host; a keyed hash where names are left out
host_id              text     -      hash of the machine-id, the same over boots
kernel               text     -      release of the kernel
arch                 text     -      machine, as uname names it
distribution         text     -      ID of os-release
distribution_version text     -      VERSION_ID of os-release
hypervisor           text     -      kvm, xen, vmware, hyper-v, firecracker, …; "none": no sign of one
container            text     -      docker, podman, kubernetes, lxc, systemd-nspawn, other; "none": no sign of one
cloud                text     -      amazon, google, microsoft, …; null: not known
instance_type        text     -      the machine's product name where a cloud gives it
root                 bool     -      whether root took the snapshot
initial_netns        bool     -      whether the namespace is that of the first process
netns                text     -      network namespace: the name asked for, or net:[INODE]
cpus                 integer  -      processors that are online
numa_nodes           integer  -      NUMA nodes with processors
memory_bytes         integer  bytes  memory of the host
memory_available_bytes integer bytes memory that programs could still get
memory_limit_bytes   integer  bytes  limit of this cgroup; null: none
memory_pressure_pct  number   %      share of the last minute in which some task waited for memory
cpu_pressure_pct     number   %      share of the last minute in which some task waited for a processor
clocksource          text     -      clock in use
clocksources         texts    -      clocks that could be used
smt                  text     -      on, off, forceoff, notsupported, notimplemented
boot_parameters      texts    -      parameters of the kernel command line that concern the network or processors
modules              texts    -      loaded modules that concern the network
algorithms           texts    -      congestion controls that are available
has_fq               bool     -      whether the kernel was built with the qdisc fq; null: no configuration to be read
uptime_sec           number   s      time since boot
stamping             texts    -      running programs that may have the kernel stamp received packets: ntpd, ptp4l, …
steal_pct            number   %      processor time since boot that the hypervisor gave to others
ksoftirqd_us         count    us     processor time of all ksoftirqd threads
page_bytes           integer  bytes  size of a page
init                 text     -      systemd, other
""",
    ),
    _table(
        "sysctls",
        "A row for each setting below net, and a few of vm and kernel.",
        "/proc/sys",
        """
netns text - network namespace
name  text - name, as sysctl(8) has it
value text - value, words with one blank between; null: not readable or not shown here
""",
    ),
    _table(
        "interfaces",
        "A row for each network interface.",
        "rtnetlink, /sys/class/net",
        """
netns               text     -      network namespace
interface           text     -      name
ifindex             integer  -      index
kind                text     -      kind of a virtual interface as `ip -d link` has it; null: a device
driver              text     -      driver of the device
bus                 text     -      bus of the device: pci, virtio, vmbus, …
address_on_bus      text     -      where on the bus, as 0000:00:05.0
operstate           text     -      up, down, unknown, …
loopback            bool     -      whether it is the loopback interface
mtu_bytes           integer  bytes  largest packet
max_mtu_bytes       integer  bytes  largest that can be set; null: not told
txqueuelen_pkts     integer  pkts   length of its queue
speed_bits_per_sec  integer  bit/s  speed of the link; null: not told
duplex              text     -      full, half
master              text     -      bridge, bond or team that it belongs to
lower               text     -      interface below it, for VLANs and such
peer_elsewhere      bool     -      whether its other end lies in another network namespace
default_route       bool     -      whether a default route leads through it
numa_node           integer  -      NUMA node of the device; -1: none
rx_queues           integer  -      receive queues
tx_queues           integer  -      transmit queues
gso_max_bytes       integer  bytes  largest packet that segmentation makes
gro_max_bytes       integer  bytes  largest packet that GRO makes
threaded            bool     -      whether NAPI runs in threads
gro_flush_timeout_ns integer ns     how long GRO may hold packets after a poll
napi_defer_hard_irqs integer -      empty polls before interrupts come back
bond_mode           text     -      mode of a bond
bond_xmit_hash_policy text   -      how a bond chooses the member
carrier_changes     count    -      times that the link came or went
rx_packets          count    pkts   received so far
tx_packets          count    pkts   sent so far
rx_bytes            count    bytes  received so far
tx_bytes            count    bytes  sent so far
rx_dropped          count    pkts   received and dropped so far
tx_dropped          count    pkts   dropped on the way out so far
rx_errors           count    pkts   bad packets received so far
tx_errors           count    pkts   packets that could not be sent so far
rx_missed_errors    count    pkts   that the device had no buffer for, so far
rx_fifo_errors      count    pkts   that overran the device, so far
rx_crc_errors       count    pkts   with a wrong checksum of the link, so far
rx_nohandler        count    pkts   that came to an interface that is not in use, so far
""",
    ),
    _table(
        "rings",
        "A row for each interface that has rings.",
        "ethtool netlink (`ethtool -g`)",
        """
netns             text    -     network namespace
interface         text    -     interface
rx                integer -     descriptors for receiving
rx_max            integer -     most that the device has
tx                integer -     descriptors for sending
tx_max            integer -     most that the device has
tx_push_bytes     integer bytes first bytes of a packet that the driver writes into the device itself; null: not told
tx_push_max_bytes integer bytes most of them
""",
    ),
    _table(
        "channels",
        "A row for each interface whose number of queues can be told.",
        "ethtool netlink (`ethtool -l`)",
        """
netns        text    - network namespace
interface    text    - interface
rx           integer - queues that only receive
rx_max       integer - most of them
tx           integer - queues that only send
tx_max       integer - most of them
combined     integer - queues that do both
combined_max integer - most of them
rss_queues   integers - queues that the table of RSS leads to (`ethtool -x`); null: not told
""",
    ),
    _table(
        "offloads",
        "A row for each offload of an interface that TCP depends on.",
        "ethtool netlink (`ethtool -k`)",
        """
netns     text - network namespace
interface text - interface
name      text - name as `ethtool -k` prints it, without dashes at the front
on        bool - whether it is on
fixed     bool - whether the device cannot change it
""",
    ),
    _table(
        "coalescing",
        "A row for each interface that coalesces interrupts.",
        "ethtool netlink (`ethtool -c`)",
        """
netns       text    -    network namespace
interface   text    -    interface
rx_us       integer us   longest wait before an interrupt for received packets
rx_pkts     integer pkts most packets before an interrupt
tx_us       integer us   longest wait before an interrupt for sent packets
tx_pkts     integer pkts most packets before an interrupt
adaptive_rx bool    -    whether the driver adapts the first two
adaptive_tx bool    -    whether the driver adapts the other two
""",
    ),
    _table(
        "qdiscs",
        "A row for each qdisc.",
        "rtnetlink (`tc -s qdisc`)",
        """
netns          text    -     network namespace
interface      text    -     interface
kind           text    -     fq, fq_codel, mq, pfifo_fast, …
handle         text    -     as tc prints it
parent         text    -     root, ingress, or the class that it hangs from
options        object  -     options by name, where they are understood
bytes          count   bytes sent so far
packets        count   pkts  sent so far
drops          count   pkts  dropped so far
overlimits     count   -     times over the limit so far
requeues       count   pkts  put back because the device was busy, so far
backlog_pkts   integer pkts  in the queue now
flows_plimit   count   pkts  fq: dropped because of the limit for each flow, so far
horizon_drops  count   pkts  fq: dropped because their time was too far off, so far
horizon_caps   count   pkts  fq: sent earlier than asked because their time was too far off, so far
throttled      count   -     fq: times that a flow had to wait, so far
fastpath_pkts  count   pkts  fq: sent without a flow of their own, so far
""",
    ),
    _table(
        "queues",
        "A row for each queue of an interface.",
        "/sys/class/net/*/queues",
        """
netns        text     - network namespace
interface    text     - interface
direction    text     - rx, tx
number       integer  - number of the queue
rps_cpus     integers - rx: processors that RPS spreads its packets over; empty: RPS is off
rps_flow_cnt integer  - rx: flows that RFS follows in this queue
xps_cpus     integers - tx: processors that choose this queue
""",
    ),
    _table(
        "irqs",
        "A row for each interrupt of a network device.",
        "/proc/interrupts, /proc/irq, /sys/class/net/*/device/msi_irqs",
        """
number    integer  - number
name      text     - as /proc/interrupts names it
interface text     - interface whose device has it
affinity  integers - processors that it may come to
effective integers - processors that it comes to
counts    counts   - interrupts so far by processor; processors without any are left out
""",
    ),
    _table(
        "softnet",
        "A row for each processor.",
        "/proc/net/softnet_stat",
        """
cpu              integer -    processor
processed        count   pkts received so far
dropped          count   pkts dropped so far because the backlog was full
squeezed         count   -    times that packets were left when the budget or the time was used up
received_rps     count   -    interrupts from other processors for RPS
flow_limit_count count   pkts dropped so far by flow limit
""",
    ),
    _table(
        "counters",
        "A row for each counter of the protocols.",
        "/proc/net/snmp, snmp6, netstat, sockstat, stat/arp_cache, stat/ndisc_cache, and the sum of /proc/pressure",
        """
netns text    - network namespace
name  text    - as the recorder names it: Tcp.RetransSegs, TcpExt.ListenDrops, TCP.mem
value count   - value so far; a few (TCP.mem, arp_cache.entries) are of the moment
""",
    ),
    _table(
        "sockets",
        "A row for each group of TCP connections with the same algorithm, kind of far end and band of round-trip time.",
        "sock_diag",
        """
netns                       text    -        network namespace
algorithm                   text    -        congestion control
remote                      text    -        loopback, private or public address of the far end
rtt_band                    text    -        below-1ms, 1-10ms, 10-50ms, above-50ms, by smoothed round-trip time
connections                 integer -        connections in the group
busy_connections            integer -        of those: acknowledged or received 1 MB or more
srtt_us_p50                 integer us       median of the smoothed round-trip time
min_rtt_us_p50              integer us       median of the least round-trip time
snd_mss_bytes_p50           integer bytes    median segment size
bytes_acked                 integer bytes    acknowledged by the far ends so far
bytes_received              integer bytes    received so far
bytes_sent                  integer bytes    sent so far, retransmissions included
bytes_retrans               integer bytes    retransmitted so far
data_segs_out               integer segments sent so far
retrans_segs                integer segments retransmitted so far
delivered_ce                integer segments that arrived with an ECN mark
delivery_rate_bits_per_sec_p50 integer bit/s median delivery rate of those not limited by the application
delivery_rate_bits_per_sec_max integer bit/s largest delivery rate
busy_us                     integer us       time with data outstanding, of all
rwnd_limited_us             integer us       of that: the receiver's window was full
sndbuf_limited_us           integer us       of that: the send buffer was full
rwnd_limited_connections    integer -        of busy connections: more than 20 % of the busy time
sndbuf_limited_connections  integer -        of busy connections: more than 20 % of the busy time
no_sack_connections         integer -        connections without SACK
no_timestamps_connections   integer -        connections without timestamps
no_scaling_connections      integer -        connections without window scaling
""",
    ),
    _table(
        "listeners",
        "A row for each TCP socket that listens.",
        "sock_diag",
        """
netns      text    - network namespace
local_port integer - port
queued     integer - connections that wait to be accepted
backlog    integer - most that may wait
""",
    ),
    _table(
        "cpus",
        "A row for each processor.",
        "/proc/stat, /sys/devices/system/cpu",
        """
cpu             integer - processor
numa_node       integer - NUMA node
siblings        integers - processors that are threads of the same core, itself among them
governor        text    - governor of its frequency
driver          text    - driver of its frequency
max_khz         integer kHz highest frequency that the governor may take
hardware_max_khz integer kHz highest frequency of the processor
idle_state      text    - deepest idle state that is not disabled
idle_exit_us    integer us time to leave that state
busy_pct        number  % of the time since boot, idle and iowait left out
softirq_pct     number  % of the time since boot
steal_pct       number  % of the time since boot
time_us         count   us time since boot that was counted
busy_us         count   us of it: not idle and not waiting for a disk
softirq_us      count   us of it: in soft interrupts
steal_us        count   us of it: given to others by the hypervisor
isolated        bool    - whether the scheduler leaves it alone
""",
    ),
    _table(
        "owners",
        "A row for each program, or line of its files, that sets what the doctor judges.",
        "/proc/PID/comm, /etc, /run, /usr/lib",
        """
owner   text - tuned, bpftune, NetworkManager, systemd-networkd, irqbalance, cloud-init, sysctl.d, …
kind    text - running: it runs; present: it is installed; setting: a value in its file; profile: its active profile
path    text - file; null: none
name    text - of a setting: the sysctl
value   text - of a setting: its value; of a profile: its name
""",
    ),
    _table(
        "nic_stats",
        "A row for each counter of a driver that a rule knows.",
        "SIOCETHTOOL ETHTOOL_GSTATS (`ethtool -S`)",
        """
netns     text    - network namespace
interface text    - interface
name      text    - as the driver names it
value     count   - value so far
""",
    ),
    _table(
        "pci",
        "A row for each interface whose device is on PCI.",
        "/sys/class/net/*/device",
        """
interface          text    -    interface
vendor             text    -    identifier of the vendor, 0x8086
device             text    -    identifier of the device
speed_gt_per_sec     number GT/s speed of the link
max_speed_gt_per_sec number GT/s highest speed of the device
width              integer -    lanes
max_width          integer -    most lanes of the device
iommu_group        bool    -    whether an IOMMU translates its addresses
iommu_type         text    -    DMA, DMA-FQ, identity
""",
    ),
    _table(
        "routes",
        "A row for each set of routes that set the same metrics.",
        "rtnetlink (`ip route show table all`)",
        """
netns         text    -     network namespace
interface     text    -     interface
default       bool    -     whether these are default routes
routes        integer -     how many routes
initcwnd_pkts integer pkts  initial congestion window; null: the kernel's 10
initrwnd_pkts integer pkts  initial receive window; null: the kernel's
algorithm     text    -     congestion control; null: the default
mtu_bytes     integer bytes path MTU; null: the interface's
mtu_locked    bool    -     whether path MTU discovery may not change it
""",
    ),
    _table(
        "namespaces",
        "A row for each other network namespace that can be seen.",
        "/proc/PID/ns/net, /run/netns",
        """
netns     text    - net:[INODE]
name      text    - its name below /run/netns; null: none
processes integer - processes in it that this user may look at
""",
    ),
)

TABLES: Mapping[str, Table] = {table.name: table for table in _LISTED}

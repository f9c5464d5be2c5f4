//! The hosts of one side, and their keys: `[sender]` and `[receiver]`.

use crate::key::Default::Value;
use crate::key::keyed::keyed;
use crate::key::profile::{self, Profile};
use crate::key::{
    GIB, INT_MAX, Key, hosted_or_modelled, key, kind, modelled, ms, real, real_or_modelled, secs,
    simulated, us,
};
use knee_units::Nanos;
use knee_units::cpus::Cpus;
use serde::Serialize;

use super::{PACING, PACING_SOURCE, Pacing};

mod choices;

pub use choices::{GroTable, PacingTimer, Prr, RcvbufGrowth, RcvbufShare, Reception, SendStamps};

const SYSCTL: &str = "Linux 6.18, Documentation/networking/ip-sysctl.rst";
const NET_SYSCTL: &str = "Linux 6.18, Documentation/admin-guide/sysctl/net.rst";

const fn buffer_size(name: &'static str, default: &'static str, doc: &'static str) -> Key {
    key(
        name,
        &kind::Bytes {
            min: 4_096,
            max: INT_MAX,
        },
        Value(default),
        doc,
        SYSCTL,
    )
}

/// What a socket may ask for at most, which has no part in autotuning.
const fn socket_max(name: &'static str, doc: &'static str) -> Key {
    key(
        name,
        &kind::Bytes {
            min: 4_096,
            max: INT_MAX / 2,
        },
        Value("4194304B"),
        doc,
        NET_SYSCTL,
    )
}

const fn pacing_ratio(name: &'static str, default: &'static str, doc: &'static str) -> Key {
    let kind = &kind::Count { min: 1, max: 1_000 };
    key(name, kind, Value(default), doc, SYSCTL)
}

/// A count that net.core.`name` has in the kernel.
const fn net_count(
    name: &'static str,
    kind: &'static kind::Count,
    default: &'static str,
    doc: &'static str,
) -> Key {
    key(name, kind, Value(default), doc, NET_SYSCTL)
}

keyed! {
    /// Linux settings of one side's hosts, named as the sysctls.
    #[derive(Clone, Debug, Serialize)]
    pub struct Host {
        pub hz: u32 = simulated(key(
            "hz",
            &kind::Choice(&[100, 250, 300, 1000]),
            Value("250"),
            "jiffies per second: granularity of TCP's timers and of CUBIC's clock",
            "Linux, kernel/Kconfig.hz",
        ));
        /// Least, initial and largest send buffer.
        pub tcp_wmem_bytes: [u64; 3] =
            buffer_size("tcp_wmem_min", "4096B", "least send buffer"),
            buffer_size("tcp_wmem_default", "16384B", "initial send buffer"),
            buffer_size(
                "tcp_wmem_max",
                "4194304B",
                "largest send buffer that autotuning reaches",
            );
        /// Least, initial and largest receive buffer.
        pub tcp_rmem_bytes: [u64; 3] =
            buffer_size("tcp_rmem_min", "4096B", "least receive buffer"),
            buffer_size("tcp_rmem_default", "131072B", "initial receive buffer"),
            buffer_size(
                "tcp_rmem_max",
                "33554432B",
                "largest receive buffer that autotuning reaches; 6MiB in Linux 6.12",
            );
        pub tcp_window_scaling: bool = key(
            "tcp_window_scaling",
            &kind::Flag,
            Value("true"),
            "may windows be larger than 65,535 bytes? If either end says no, neither's are",
            SYSCTL,
        );
        pub tcp_sack: bool = real(key(
            "tcp_sack",
            &kind::Flag,
            Value("true"),
            "are selective acknowledgments used, if both ends say so?",
            SYSCTL,
        ));
        pub tcp_timestamps: bool = real(key(
            "tcp_timestamps",
            &kind::Flag,
            Value("true"),
            "do segments carry timestamps, if both ends say so?",
            SYSCTL,
        ));
        pub tcp_moderate_rcvbuf: bool = key(
            "tcp_moderate_rcvbuf",
            &kind::Flag,
            Value("true"),
            "does a receive buffer grow with what is read from it, up to tcp_rmem_max? Otherwise it stays tcp_rmem_default",
            SYSCTL,
        );
        pub wmem_max_bytes: u64 =
            socket_max("wmem_max", "largest send buffer that a socket may ask for (flow.sndbuf)");
        pub rmem_max_bytes: u64 =
            socket_max("rmem_max", "largest receive buffer that a socket may ask for (flow.rcvbuf)");
        pub tcp_limit_output_bytes: u64 = key(
            "tcp_limit_output_bytes",
            &kind::Bytes {
                min: 4_096,
                max: INT_MAX,
            },
            Value("4194304B"),
            "most bytes of a socket in qdisc and NIC (TSQ); 1MiB in Linux 6.12",
            SYSCTL,
        );
        pub tsq_limits_paced: bool = simulated(key(
            "tsq_limits_paced",
            &kind::Flag,
            Value("true"),
            "does tcp_limit_output_bytes limit sockets that are paced, too? It does not in Linux 5.0 to 6.15",
            "Linux c73e5807e4f6, \"tcp: tsq: no longer use limit_output_bytes for paced flows\"; netdev, 13 May 2025, \"tcp: always use tcp_limit_output_bytes limitation\"",
        ));
        pub tcp_slow_start_after_idle: bool = key(
            "tcp_slow_start_after_idle",
            &kind::Flag,
            Value("true"),
            "does an idle connection fall back to its initial window?",
            SYSCTL,
        );
        pub tcp_rto_min: Nanos = key(
            "tcp_rto_min",
            &kind::Duration {
                min: us(1),
                max: secs(120),
            },
            Value("200ms"),
            "least variance term of the retransmission timeout",
            "Linux, tcp_rto_min_us: TCP_RTO_MIN = HZ/5",
        );
        pub tcp_comp_sack_delay: Nanos = key(
            "tcp_comp_sack_delay",
            &kind::Duration {
                min: Nanos::ZERO,
                max: secs(1),
            },
            Value("1ms"),
            "longest delay of a compressed SACK; 0s turns compression off",
            "Linux, tcp_comp_sack_delay_ns",
        );
        pub tcp_comp_sack_nr: u32 = key(
            "tcp_comp_sack_nr",
            &kind::Count { min: 0, max: 255 },
            Value("44"),
            "how many SACKs one ACK may stand for; 0 turns compression off",
            SYSCTL,
        );
        pub tcp_comp_sack_rtt_percent: u32 = key(
            "tcp_comp_sack_rtt_percent",
            &kind::Count { min: 1, max: 1_000 },
            Value("5"),
            "how long a compressed SACK waits, in percent of the RTT; fixed before Linux 6.19",
            "Linux 7.2, Documentation/networking/ip-sysctl.rst",
        );
        pub tcp_syn_linear_timeouts: u32 = key(
            "tcp_syn_linear_timeouts",
            &kind::Count { min: 0, max: 255 },
            Value("4"),
            "how many times a SYN is repeated after the same timeout before it doubles",
            SYSCTL,
        );
        pub pacing: Pacing = key(
            "pacing",
            PACING,
            Value("internal"),
            "who spaces packets: TCP's timer for algorithms that ask for it (internal) or for every socket (timer), or the fq qdisc for every socket",
            PACING_SOURCE,
        );
        pub pacing_timer: PacingTimer = simulated(key(
            "pacing_timer",
            &kind::Name("rule", || PacingTimer::NAMES.to_vec()),
            Value("when-needed"),
            "when TCP arms its pacing timer: for a packet that has to wait (when-needed), after every packet with data (every-packet), or never, as only the fq qdisc paces",
            "Linux 864e5c090749, \"tcp: optimize tcp internal pacing\"; 218af599fa63",
        ));
        pub tcp_pacing_ss_ratio: u32 = pacing_ratio(
            "tcp_pacing_ss_ratio",
            "200",
            "default pacing rate while the window is below half of ssthresh, in percent of cwnd/srtt",
        );
        pub tcp_pacing_ca_ratio: u32 = pacing_ratio(
            "tcp_pacing_ca_ratio",
            "120",
            "default pacing rate otherwise, in percent of cwnd/srtt",
        );
        pub send_stamps: SendStamps = simulated(key(
            "send_stamps",
            &kind::Name("sending time", || SendStamps::NAMES.to_vec()),
            Value("departure"),
            "what RTT samples and delivery rates take as the time at which a packet was sent: when the qdisc lets it go (departure, since Linux 4.20), or when TCP handed it to the qdisc (handover, before), so that the time that fq holds it is part of the RTT",
            "Linux ab408b6dc744, \"tcp: switch tcp and sch_fq to new earliest departure time model\"",
        ));
        /// Qdisc of a lab host's interface, `None`: the kernel's default for it.
        /// The simulator has none but what `pacing` says.
        pub qdisc: Option<&'static str> = real(key(
            "qdisc",
            &kind::Name("qdisc", || {
                vec![
                    "default",
                    "noqueue",
                    "pfifo",
                    "bfifo",
                    "pfifo_fast",
                    "fq",
                    "fq_codel",
                    "codel",
                    "sfq",
                    "cake",
                    "pie",
                    "fq_pie",
                ]
            }),
            Value("default"),
            "qdisc of the host's interface, with its defaults; the kernel must have it",
            "tc(8)",
        ));
        pub tcp_ecn: u8 = key(
            "tcp_ecn",
            &kind::Count { min: 0, max: 5 },
            Value("2"),
            "Explicit Congestion Notification: 0 off, 1 ask for it and accept it, 2 accept it; Accurate ECN, from Linux 7.0 on: 3 ask for it and accept it, 4 accept it and ask for classic ECN, 5 accept it; an algorithm that needs ECN asks whatever this says",
            SYSCTL,
        );
        pub quickack: bool = key(
            "quickack",
            &kind::Flag,
            Value("false"),
            "is every segment acknowledged at once?",
            "ip-route(8), quickack",
        );
        pub initcwnd: u32 = key(
            "initcwnd",
            &kind::Count { min: 1, max: 1_000 },
            Value("10"),
            "initial window, segments",
            "RFC 6928; ip-route(8)",
        );
        pub gso_max_bytes: u32 = key(
            "gso_max",
            &kind::Bytes {
                min: 0,
                max: 524_280,
            },
            Value("65536B"),
            "largest TSO packet; 0B turns segmentation offload off",
            "Linux, GSO_LEGACY_MAX_SIZE, GSO_MAX_SIZE; ip-link(8)",
        );
        pub tso_autosizing: bool = simulated(key(
            "tso_autosizing",
            &kind::Flag,
            Value("true"),
            "does the pacing rate bound a TSO packet to a millisecond's worth? Otherwise it has what the window lets go, up to gso_max",
            "Linux 95bd09eb2750, \"tcp: TSO packets automatic sizing\"",
        ));
        pub tcp_tso_rtt_log: u32 = key(
            "tcp_tso_rtt_log",
            &kind::Count { min: 0, max: 31 },
            Value("9"),
            "what a TSO packet has beside a millisecond's worth: gso_max, halved for every 2^tcp_tso_rtt_log us of minimum RTT; 0: nothing",
            SYSCTL,
        );
        pub rcvbuf_share: RcvbufShare = simulated(key(
            "rcvbuf_share",
            &kind::Name("share", || RcvbufShare::NAMES.to_vec()),
            Value("measured"),
            "how much of the receive buffer is taken for payload, which bounds the window: what full packets have shown, and until then half (measured) or a quarter (measured-from-quarter), or always half, which is tcp_adv_win_scale = 1",
            "Linux dfa2f0483360, \"tcp: get rid of sysctl_tcp_adv_win_scale\"",
        ));
        pub rcvbuf_growth: RcvbufGrowth = simulated(key(
            "rcvbuf_growth",
            &kind::Name("rule", || RcvbufGrowth::NAMES.to_vec()),
            Value("rise"),
            "what the window that the receive buffer is sized for grows to when a round trip ends in which more was read than in any before: twice that (twice), and as the sender may double its rate, twice again by the share that it is more (rise), or both of that and of 16 segments (margin). twice and rise add how far the data beyond a hole reaches",
            "Linux aa251c84636c, \"tcp: fix too slow tcp_rcvbuf_grow() action\"; 65c5287892e9, \"tcp: fix sk_rcvbuf overshoot\"; 63ad7dfedfae, \"tcp: adjust rcvbuf in presence of reorders\"",
        ));
        pub tcp_rcvbuf_low_rtt: Nanos = key(
            "tcp_rcvbuf_low_rtt",
            &kind::Duration {
                min: Nanos::ZERO,
                max: secs(1),
            },
            Value("0s"),
            "below so long a round trip the receive buffer grows by that RTT's share of it, and not by how much more was read; 1ms since Linux 6.19",
            SYSCTL,
        );
        pub grow_skb: bool = simulated(key(
            "grow_skb",
            &kind::Flag,
            Value("true"),
            "does a packet take what it lacks from the next skb of the send buffer? Linux before 6.10 does not, and sends what is left of an skb alone",
            "Linux 6.10, tcp_grow_skb()",
        ));
        pub prr: Prr = simulated(key(
            "prr",
            &kind::Name("rule", || Prr::NAMES.to_vec()),
            Value("catch-up"),
            "how the window grows while it is being reduced and less is in flight than ssthresh: by what was delivered and not sent for yet, with each ACK and one more while ACKs advance and report no loss (catch-up); by that and one more only while they do (on-progress), only while they cover retransmissions (on-repair), else by what the ACK delivered; or always (slow-start)",
            "RFC 6937; Linux 9ad084d66619, \"tcp: improve PRR loss recovery\"; 7e901ee7b6ab; 3759824da87b",
        ));
        pub gro: bool = key(
            "gro",
            &kind::Flag,
            Value("true"),
            "does the receive path merge packets before TCP sees them?",
            "ethtool(8), -K gro",
        );
        pub rx_coalesce: Nanos = key(
            "rx_coalesce",
            &kind::Duration {
                min: Nanos::ZERO,
                max: ms(10),
            },
            Value("20us"),
            "how long the NIC gathers packets before it interrupts, which bounds what GRO can merge; 0s: an interrupt per packet",
            "Linux ena driver, initial rx-usecs (netdev, 12 May 2024, \"net: ena: Change initial rx_usec interval\"); ethtool(8), -C rx-usecs",
        );
        pub adaptive_rx: bool = modelled(key(
            "adaptive_rx",
            &kind::Flag,
            Value("false"),
            "does the driver choose how long each receive queue gathers packets, from 1us to 256us, by what comes (DIM), in the place of rx_coalesce?",
            "Linux 6.18, Documentation/networking/net_dim.rst; ethtool(8), -C adaptive-rx",
        ));
        pub noise: Nanos = simulated(key(
            "noise",
            &kind::Duration {
                min: Nanos::ZERO,
                max: ms(100),
            },
            Value("0s"),
            "how late the host sends, in the mean: exponential, drawn anew for each moment at which it sends, and in order. The simulator's hosts have no noise but this",
            "tcpknee; docs/simulator.md has what was measured",
        ));
        /// What the hosts' operations cost; `None`: nothing, and they have no processors.
        pub costs: Option<Box<Profile>> = simulated(key(
            profile::KEY,
            &kind::Costs,
            Value("none"),
            "what the hosts' operations cost: a profile that comes with tcpknee or that `knee calibrate` wrote; none: what they do takes no time. With a profile, and unless hosts says otherwise, there is one host at this side, with processors, threads and queues",
            "tcpknee; docs/host.md",
        ));
        pub cpus: u32 = modelled(key(
            "cpus",
            &kind::Count { min: 1, max: 128 },
            Value("1"),
            "processors of a host",
            "tcpknee; docs/host.md",
        ));
        pub app_threads: u32 = modelled(key(
            "app_threads",
            &kind::Count { min: 1, max: 1_024 },
            Value("1"),
            "threads of a host's applications, to which connections belong in turn; pinned to app_cpus in turn where that names any",
            "tcpknee; docs/host.md",
        ));
        pub rx_ring: u32 = modelled(key(
            "rx_ring",
            &kind::Count {
                min: 1,
                max: 65_536,
            },
            Value("1024"),
            "descriptors of each receive queue: packets that arrive while all are taken are dropped",
            "ethtool(8), -G rx",
        ));
        pub netdev_max_backlog: u32 = hosted_or_modelled(net_count(
            "netdev_max_backlog",
            &kind::Count { min: 1, max: 1_000_000 },
            "1000",
            "most packets that wait on a processor for its backlog: with RPS, and on a veth",
        ));
        /// Empty: none.
        pub flow_limit_cpu_bitmap: Cpus = modelled(key(
            "flow_limit_cpu_bitmap",
            &kind::CpuMask,
            Value("0"),
            "processors that limit flows: one of these puts no packet into a backlog that is half full or fuller, if more than half of the last 128 that it had for such backlogs were of the same flow; 0: none",
            "Linux 6.18, Documentation/networking/scaling.rst, RPS Flow Limit; net/core/dev.c: skb_flow_limit()",
        ));
        pub netdev_budget: u32 = hosted_or_modelled(net_count(
            "netdev_budget",
            &kind::Count { min: 1, max: INT_MAX },
            "300",
            "most packets that a processor's polls take in a round, before other softirqs go first",
        ));
        pub netdev_budget_usecs: u32 = hosted_or_modelled(net_count(
            "netdev_budget_usecs",
            &kind::Count { min: 1, max: INT_MAX },
            "8000",
            "how long a processor's polls take in a round at most, us. The kernel's default is two jiffies: 8000 with hz = 250, 2000 with hz = 1000",
        ));
        pub reception: Reception = modelled(key(
            "reception",
            &kind::Name("reception", || Reception::NAMES.to_vec()),
            Value("napi"),
            "how packets come from the NIC: an interrupt and then polls (napi), an interrupt for each packet (interrupts), or polls without a pause and without interrupts (busy-poll)",
            "Linux 6.18, Documentation/networking/napi.rst",
        ));
        pub gro_table: GroTable = modelled(key(
            "gro_table",
            &kind::Name("GRO table", || GroTable::NAMES.to_vec()),
            Value("hash"),
            "where GRO holds packets: eight lists by hash, of up to eight packets each (hash, since Linux 4.19), one list of up to eight that gives up its oldest for a new flow (short-list), one of up to eight past which a new flow goes when it is full (short-list-passed, before Linux 600adc18eba8), or one of any length (list)",
            "Linux, net/core/gro.c: dev_gro_receive(), GRO_HASH_BUCKETS, MAX_GRO_SKBS",
        ));
        pub tso: bool = hosted_or_modelled(key(
            "tso",
            &kind::Flag,
            Value("true"),
            "does the NIC split TSO packets? Otherwise software does, which costs",
            "ethtool(8), -K tso",
        ));
        pub tx_coalesce: Nanos = modelled(key(
            "tx_coalesce",
            &kind::Duration {
                min: Nanos::ZERO,
                max: ms(10),
            },
            Value("0s"),
            "how long the NIC gathers packets that it has sent before it reports them, up to when they count for TSQ; 0s: it reports each at once, without an interrupt",
            "ethtool(8), -C tx-usecs",
        ));
        pub mq: bool = modelled(key(
            "mq",
            &kind::Flag,
            Value("true"),
            "has each queue of the NIC a qdisc of its own (mq), with a lock of its own, and reports by itself what it has sent? Otherwise the host sends through one qdisc and one queue",
            "tc-mq(8)",
        ));
        pub xps: bool = modelled(key(
            "xps",
            &kind::Flag,
            Value("false"),
            "does each processor send by queues of its own (XPS)? Queues belong to processors in turn, and where there are fewer processors share them. Otherwise a hash of the connection chooses one. It takes mq",
            "Linux 6.18, Documentation/networking/scaling.rst, XPS; net/core/dev.c: netdev_pick_tx()",
        ));
        pub fq_fast_path: bool = modelled(key(
            "fq_fast_path",
            &kind::Flag,
            Value("true"),
            "does a packet that need not wait pass fq's tree of flows by? Since Linux 6.7",
            "Linux 076433bd78d7, \"net_sched: sch_fq: add fast path for mostly idle qdisc\"",
        ));
        pub read_bytes: u64 = modelled(key(
            "read",
            &kind::Bytes { min: 1, max: GIB },
            Value("256KiB"),
            "most bytes that an application asks for in one call; those of a lab ask for 256KiB",
            "recv(2)",
        ));
        pub steal: f64 = modelled(key(
            "steal",
            &kind::Share,
            Value("0%"),
            "share of each processor that a hypervisor gives to others",
            "proc_stat(5), steal",
        ));
        pub steal_slice: Nanos = modelled(key(
            "steal_slice",
            &kind::Duration {
                min: us(1),
                max: secs(1),
            },
            Value("5ms"),
            "how long at a time a processor is away",
            "tcpknee",
        ));
        pub contention: bool = modelled(key(
            "contention",
            &kind::Flag,
            Value("false"),
            "has every processor other work at all times, with which applications share it fairly?",
            "Linux 6.18, Documentation/scheduler/sched-eevdf.rst",
        ));
        pub wakeup_preemption: bool = modelled(key(
            "wakeup_preemption",
            &kind::Flag,
            Value("false"),
            "does a thread that is woken interrupt the one that runs? So with CFS, Linux before 6.6; since then a thread keeps its slice",
            "Linux 6.18, kernel/sched/features.h: RUN_TO_PARITY",
        ));
        /// How many hosts there are, over which connections are spread in turn; `None`: each connection has its own.
        pub hosts: Option<u64> = key(
            "hosts",
            &kind::CountOrUnlimited(kind::Count {
                min: 1,
                max: 65_000,
            }),
            Value("unlimited"),
            "hosts at this side, over which connections are spread in turn: those on one host share its NIC's interrupts, its noise and, in cake, its part of the rate; unlimited: each connection has its own, or with costs all are on one. A lab has one host at each side, whatever this says; its link's cake takes it for so many",
            "tcpknee",
        );
        /// Empty: any.
        pub app_cpus: Cpus = real_or_modelled(key(
            "app_cpus",
            &kind::CpuList,
            Value("any"),
            "processors that the host's applications run on. A lab pins its traffic generators and programs to them, of a generator with several threads each thread to one of them in turn",
            "taskset(1)",
        ));
        pub queues: u32 = real_or_modelled(key(
            "queues",
            &kind::Count { min: 1, max: 128 },
            Value("1"),
            "queues of the host's NIC in each direction, over which flows are spread. A lab's veth pair has them, the TUN device of tcpknee's link has one",
            "ethtool(8), -L; ip-link(8), numtxqueues",
        ));
        /// Empty: packets stay where they arrived.
        pub rps_cpus: Cpus = real_or_modelled(key(
            "rps_cpus",
            &kind::CpuMask,
            Value("0"),
            "processors over which flows that arrive are spread (RPS), for each queue of the host's NIC; 0: off",
            "Linux 6.18, Documentation/networking/scaling.rst",
        ));
        pub rps_sock_flow_entries: u64 = real_or_modelled(key(
            "rps_sock_flow_entries",
            &kind::Count { min: 0, max: 1 << 29 },
            Value("0"),
            "flows whose application's processor the host remembers, so that packets go there (RFS); its NIC's queues get an equal part each; 0: off. The kernel has one table for the whole machine, so that a lab takes it only with --allow-host-settings",
            "Linux 6.18, Documentation/networking/scaling.rst; net/core/sysctl_net_core.c",
        ));
        pub gro_flush_timeout: Nanos = real_or_modelled(key(
            "gro_flush_timeout",
            &kind::Duration {
                min: Nanos::ZERO,
                max: secs(1),
            },
            Value("0s"),
            "how long GRO keeps packets after a poll that found no more, and how long the NIC's interrupts stay off where napi_defer_hard_irqs is set; in a lab on veth or netem, in the host model with reception = napi",
            "Linux 6.18, Documentation/networking/napi.rst",
        ));
        pub napi_defer_hard_irqs: u32 = real_or_modelled(key(
            "napi_defer_hard_irqs",
            &kind::Count { min: 0, max: INT_MAX },
            Value("0"),
            "polls in a row that find nothing before the NIC's interrupts are on again, gro_flush_timeout apart; in a lab on veth or netem, in the host model with reception = napi",
            "Linux 6.18, Documentation/networking/napi.rst",
        ));
        pub threaded_napi: bool = real(key(
            "threaded_napi",
            &kind::Flag,
            Value("false"),
            "do threads of the kernel poll the NIC's queues, in the place of softirqs? On veth or netem",
            "Linux 6.18, Documentation/networking/napi.rst",
        ));
        given {
            /// Algorithm of the connections' far end, for what it sends back.
            pub algorithm: String,
        };
    }
}

impl Host {
    /// Hosts over which connections are spread in turn; `None`: each connection has its own. A host with processors is shared,
    /// unless the scenario says otherwise.
    pub fn shared_hosts(&self) -> Option<u32> {
        let shared = self.hosts.map(|hosts| hosts as u32);
        shared.or(self.costs.as_ref().map(|_| 1))
    }
}

//! The keys themselves, table by table, with their Linux defaults.
//!
//! Defaults are those of Linux 6.18, unless the source beside them says otherwise.

use knee_units::Nanos;

use super::Default::{Required, Value, Words};
use super::{Default, Key, Kind};
use crate::workload::WORKLOADS;

/// Most that a sysctl or socket option of type int can say.
const INT_MAX: u64 = i32::MAX as u64;
const GIB: u64 = 1 << 30;

pub(super) const fn key(
    name: &'static str,
    kind: Kind,
    default: Default,
    doc: &'static str,
    source: &'static str,
) -> Key {
    Key {
        name,
        kind,
        default,
        axis: true,
        doc,
        source,
    }
}

pub(super) const fn fixed(key: Key) -> Key {
    Key { axis: false, ..key }
}

pub(super) const fn us(n: u64) -> Nanos {
    Nanos::from_us(n)
}
pub(super) const fn ms(n: u64) -> Nanos {
    Nanos::from_ms(n)
}
pub(super) const fn secs(n: u64) -> Nanos {
    Nanos::from_secs(n)
}

pub(super) static TOP: &[Key] = &[
    fixed(key(
        "title",
        Kind::Line,
        Words("the file's name"),
        "what the scenario is about",
        "kneepoint",
    )),
    fixed(key(
        "claim",
        Kind::Id,
        Words("none"),
        "id of the published claim it reproduces",
        "kneepoint",
    )),
    key(
        "duration",
        Kind::Duration {
            min: us(1),
            max: secs(86_400),
        },
        Required("\"30s\""),
        "length of the run",
        "kneepoint",
    ),
    key(
        "warmup",
        Kind::Duration {
            min: Nanos::ZERO,
            max: secs(86_400),
        },
        Value("0s"),
        "beginning of the run that steady-state metrics leave out",
        "kneepoint",
    ),
    fixed(key(
        "repeat",
        Kind::Count {
            min: 1,
            max: 10_000,
        },
        Value("1"),
        "repetitions of every cell, each with its own random draws",
        "kneepoint",
    )),
    fixed(key(
        "seed",
        Kind::Count {
            min: 0,
            max: i64::MAX as u64,
        },
        Value("1"),
        "where all random draws start",
        "kneepoint",
    )),
    key(
        "sample_interval",
        Kind::Duration {
            min: us(10),
            max: secs(3_600),
        },
        Value("10ms"),
        "how often flows and queues are sampled",
        "kneepoint",
    ),
];

const SYSCTL: &str = "Linux 6.18, Documentation/networking/ip-sysctl.rst";

const fn buffer_size(name: &'static str, default: &'static str, doc: &'static str) -> Key {
    key(
        name,
        Kind::Bytes {
            min: 4_096,
            max: INT_MAX,
        },
        Value(default),
        doc,
        SYSCTL,
    )
}

const PACING: Kind = Kind::Name("pacing", || vec!["internal", "timer", "fq"]);
const PACING_SOURCE: &str =
    "Linux, net/ipv4/tcp_output.c, net/sched/sch_fq.c; timer: socket(7), SO_MAX_PACING_RATE";

pub(super) static HOST: &[Key] = &[
    key(
        "hz",
        Kind::Choice(&[100, 250, 300, 1000]),
        Value("250"),
        "jiffies per second: granularity of TCP's timers and of CUBIC's clock",
        "Linux, kernel/Kconfig.hz",
    ),
    buffer_size("tcp_wmem_min", "4096B", "least send buffer"),
    buffer_size("tcp_wmem_default", "16384B", "initial send buffer"),
    buffer_size(
        "tcp_wmem_max",
        "4194304B",
        "largest send buffer that autotuning reaches",
    ),
    buffer_size("tcp_rmem_min", "4096B", "least receive buffer"),
    buffer_size("tcp_rmem_default", "131072B", "initial receive buffer"),
    buffer_size(
        "tcp_rmem_max",
        "33554432B",
        "largest receive buffer that autotuning reaches; 6MiB in Linux 6.12",
    ),
    key(
        "tcp_limit_output_bytes",
        Kind::Bytes {
            min: 4_096,
            max: INT_MAX,
        },
        Value("4194304B"),
        "most bytes of a socket in qdisc and NIC (TSQ); 1MiB in Linux 6.12",
        SYSCTL,
    ),
    key(
        "tcp_slow_start_after_idle",
        Kind::Flag,
        Value("true"),
        "does an idle connection fall back to its initial window?",
        SYSCTL,
    ),
    key(
        "tcp_rto_min",
        Kind::Duration {
            min: us(1),
            max: secs(120),
        },
        Value("200ms"),
        "least variance term of the retransmission timeout",
        "Linux, tcp_rto_min_us: TCP_RTO_MIN = HZ/5",
    ),
    key(
        "tcp_comp_sack_delay",
        Kind::Duration {
            min: Nanos::ZERO,
            max: secs(1),
        },
        Value("1ms"),
        "longest delay of a compressed SACK; 0s turns compression off",
        "Linux, tcp_comp_sack_delay_ns",
    ),
    key(
        "tcp_comp_sack_nr",
        Kind::Count { min: 0, max: 255 },
        Value("44"),
        "how many SACKs one ACK may stand for; 0 turns compression off",
        SYSCTL,
    ),
    key(
        "pacing",
        PACING,
        Value("internal"),
        "who spaces packets: TCP's timer for algorithms that ask for it (internal) or for every socket (timer), or the fq qdisc for every socket",
        PACING_SOURCE,
    ),
    key(
        "qdisc",
        Kind::Name("qdisc", || {
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
        "qdisc of the host's interface, with its defaults; only a lab has them, and those that its kernel has",
        "tc(8)",
    ),
    key(
        "tcp_ecn",
        Kind::Count { min: 0, max: 5 },
        Value("2"),
        "Explicit Congestion Notification: 0 off, 1 ask for it and accept it, 2 accept it; Accurate ECN, from Linux 7.0 on: 3 ask for it and accept it, 4 accept it and ask for classic ECN, 5 accept it; an algorithm that needs ECN asks whatever this says",
        SYSCTL,
    ),
    key(
        "quickack",
        Kind::Flag,
        Value("false"),
        "is every segment acknowledged at once?",
        "ip-route(8), quickack",
    ),
    key(
        "initcwnd",
        Kind::Count { min: 1, max: 1_000 },
        Value("10"),
        "initial window, segments",
        "RFC 6928; ip-route(8)",
    ),
    key(
        "gso_max",
        Kind::Bytes {
            min: 0,
            max: 524_280,
        },
        Value("65536B"),
        "largest TSO packet; 0B turns segmentation offload off",
        "Linux, GSO_LEGACY_MAX_SIZE, GSO_MAX_SIZE; ip-link(8)",
    ),
    key(
        "grow_skb",
        Kind::Flag,
        Value("true"),
        "does a packet take what it lacks from the next skb of the send buffer? Linux before 6.10 does not, and sends what is left of an skb alone; a real kernel does as it does",
        "Linux 6.10, tcp_grow_skb()",
    ),
    key(
        "gro",
        Kind::Flag,
        Value("true"),
        "does the receive path merge packets before TCP sees them?",
        "ethtool(8), -K gro",
    ),
    key(
        "rx_coalesce",
        Kind::Duration {
            min: Nanos::ZERO,
            max: ms(10),
        },
        Value("20us"),
        "how long the NIC gathers packets before it interrupts, which bounds what GRO can merge; 0s: an interrupt per packet",
        "Linux ena driver, initial rx-usecs (netdev, 12 May 2024, \"net: ena: Change initial rx_usec interval\"); ethtool(8), -C rx-usecs",
    ),
    key(
        "noise",
        Kind::Duration {
            min: Nanos::ZERO,
            max: ms(100),
        },
        Value("0s"),
        "how late the host sends, in the mean: exponential, drawn anew for each moment at which it sends, and in order. For the simulator, whose hosts have no noise of their own; those of a lab have theirs, whatever this says",
        "kneepoint; docs/simulator.md has what was measured",
    ),
];

pub(super) static RECEIVER: &[Key] = &[key(
    "algorithm",
    Kind::Algorithm,
    Value("cubic"),
    "congestion control of the far end, for what it sends back; the sender's is flow.algorithm",
    "Linux, CONFIG_DEFAULT_TCP_CONG",
)];

pub(super) static FLOW: &[Key] = &[
    key(
        "algorithm",
        Kind::Algorithm,
        Required("\"cubic\""),
        "congestion control of the sender",
        "TCP_CONGESTION",
    ),
    fixed(key(
        "name",
        Kind::Identifier,
        Words(
            "the algorithm's name; with _2, _3 … behind it when an earlier [[flow]] has that name",
        ),
        "shown in tables and used by expectations",
        "kneepoint",
    )),
    key(
        "hops",
        Kind::Hops,
        Words("all"),
        "the [[hop]] tables that it crosses, counted from 1 in the data direction",
        "kneepoint",
    ),
    key(
        "workload",
        Kind::Name("workload", || {
            WORKLOADS.iter().map(|kind| kind.name).collect()
        }),
        Value("bulk"),
        "what the application does with the connection",
        "kneepoint",
    ),
    key(
        "bytes",
        Kind::Bytes {
            min: 1,
            max: 1_000_000_000_000,
        },
        Words("required by workload transfer"),
        "how much is transferred",
        "kneepoint",
    ),
    key(
        "write",
        Kind::Bytes { min: 1, max: GIB },
        Value("128KiB"),
        "bytes of each write of the application",
        "iperf3(1), -l",
    ),
    key(
        "on",
        Kind::Duration {
            min: ms(1),
            max: secs(86_400),
        },
        Value("1s"),
        "how long the application writes",
        "kneepoint",
    ),
    key(
        "off",
        Kind::Duration {
            min: ms(1),
            max: secs(86_400),
        },
        Value("1s"),
        "how long it then pauses, once the write() it is in is done",
        "kneepoint",
    ),
    key(
        "load",
        Kind::Rate,
        Words("required by workload web, unless it has arrivals"),
        "payload that transfers ask for in the long run: a rate over the mean of sizes gives how often they come. Sizes with a heavy tail are far from their mean in a short run",
        "kneepoint",
    ),
    key(
        "arrivals",
        Kind::PerSec {
            min: 1e-3,
            max: 1e6,
        },
        Words("what load asks for"),
        "how many transfers come, in the long run",
        "kneepoint",
    ),
    key(
        "arrival_process",
        Kind::Name("process", || vec!["poisson", "regular"]),
        Value("poisson"),
        "when transfers come, from start to the run's end: independent of each other, or at even times",
        "Paxson, Floyd: IEEE/ACM ToN 3(3) 1995: sessions of users arrive as a Poisson process",
    ),
    key(
        "sizes",
        Kind::Sizes,
        Value("pareto"),
        "how large transfers are; see below",
        "kneepoint",
    ),
    key(
        "request",
        Kind::Bytes { min: 1, max: GIB },
        Value("1B"),
        "size of a request",
        "netperf TCP_RR, -r",
    ),
    key(
        "response",
        Kind::Bytes { min: 1, max: GIB },
        Value("1B"),
        "size of a response",
        "netperf TCP_RR, -r",
    ),
    key(
        "connections",
        Kind::Count {
            min: 1,
            max: 1_000_000,
        },
        Value("1"),
        "connections per flow",
        "memtier_benchmark(1), -c",
    ),
    key(
        "depth",
        Kind::Count {
            min: 1,
            max: 100_000,
        },
        Value("1"),
        "requests in flight per connection",
        "memtier_benchmark(1), --pipeline",
    ),
    key(
        "requests",
        Kind::CountOrUnlimited {
            min: 1,
            max: 1_000_000_000_000,
        },
        Value("unlimited"),
        "requests per connection, after which it closes",
        "memtier_benchmark(1), -n",
    ),
    key(
        "server",
        Kind::Line,
        Words("none: the client needs no server, or brings its own"),
        "command of the server, at the sender's host; {server} and {client} stand for the hosts' addresses",
        "kneepoint",
    ),
    key(
        "client",
        Kind::Line,
        Words("none"),
        "command of the client, at the receiver's host; its end ends the flow",
        "kneepoint",
    ),
    key(
        "count",
        Kind::Count {
            min: 1,
            max: 1_000_000,
        },
        Value("1"),
        "how many flows alike",
        "kneepoint",
    ),
    key(
        "start",
        Kind::Duration {
            min: Nanos::ZERO,
            max: secs(86_400),
        },
        Value("0s"),
        "when the first of them starts",
        "kneepoint",
    ),
    key(
        "stagger",
        Kind::Duration {
            min: Nanos::ZERO,
            max: secs(86_400),
        },
        Value("0s"),
        "how much later each further one starts",
        "kneepoint",
    ),
    key(
        "rtt",
        Kind::Duration {
            min: us(1),
            max: secs(60),
        },
        Words("path.rtt"),
        "these flows' own base round-trip time",
        "kneepoint",
    ),
    key(
        "blocking",
        Kind::Flag,
        Value("false"),
        "does the sending application wait in write() for room in the send buffer? A nonblocking one writes anew when there is room, and a write that finds nothing unsent marks the flow as limited by its application: BBR then leaves its samples out. Only the simulator has blocking ones",
        "socket(7), O_NONBLOCK; Linux, tcp_sendmsg_locked()",
    ),
    key(
        "pacing",
        PACING,
        Words("sender.pacing"),
        "who spaces the data of these flows, so that paced and unpaced ones can share a link. A lab's sender has one qdisc for all flows: fq must be sender.pacing there, and then holds for every flow",
        PACING_SOURCE,
    ),
    key(
        "max_pacing_rate",
        Kind::Rate,
        Value("unlimited"),
        "cap of the pacing rate",
        "socket(7), SO_MAX_PACING_RATE",
    ),
];

pub(super) static EXPECT: &[Key] = &[fixed(key(
    "assert",
    Kind::Line,
    Required("\"bbr1.goodput / cubic.goodput >= 20\""),
    "a comparison that must hold over the whole interval, such as \"bbr1.goodput / cubic.goodput >= 20\"",
    "kneepoint",
))];

pub(super) static PUBLISHED: &[Key] = &[
    fixed(key(
        "value",
        Kind::Line,
        Required("\"bbr1.goodput\""),
        "what of ours the figure stands beside: an expression as on one side of an expectation, of one cell; shown, never checked",
        "kneepoint",
    )),
    fixed(key(
        "figure",
        Kind::Figure,
        Required("\"10.5Mbit/s\""),
        "the figure as it was published",
        "kneepoint",
    )),
    fixed(key(
        "source",
        Kind::Line,
        Required("\"the article, its hosts and its kernel\""),
        "where it was published, and on what it was measured",
        "kneepoint",
    )),
];

//! The keys of `[path]`, and of `[[hop]]`.

use std::sync::LazyLock;

use crate::key::Default::{Required, Value, Words};
use crate::key::{Key, fixed, key, kind, secs};
use knee_path::queue;
use knee_path::queue::policer::MAX_BURST_BYTES;
use knee_units::Nanos;

use super::impairments;

/// Of each hop. A `[path]` is one.
pub(super) static HOP: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let [forward, further] = [FORWARD, FURTHER].map(|keys| keys.iter().copied());
    forward.chain(impairments::keys()).chain(further).collect()
});

/// Those before the impairments'.
static FORWARD: &[Key] = &[
    key(
        "rate",
        &kind::LinkRate,
        Required("\"50Mbit/s\""),
        "rate of the bottleneck, counting IP packets and path.overhead. A trace has a line per packet of 1504 bytes that may leave, the millisecond at which it may, and begins anew after the last; where a rate is asked for, as by a BDP, its mean counts. trace and a name without a dot is a bundled one: cellular, wifi, satellite",
        "tcpknee; traces: Netravali et al.: Mahimahi, USENIX ATC 2015",
    ),
    key(
        "rtt",
        &kind::Duration {
            min: Nanos::ZERO,
            max: secs(60),
        },
        Required("\"100ms\""),
        "base round-trip time, without queueing and transmission; 0s: what the hosts themselves take",
        "tcpknee",
    ),
    key(
        "loss",
        &kind::Loss,
        Value("0%"),
        "packets lost in the data direction, before the queue",
        "tcpknee",
    ),
    key(
        "ack_loss",
        &kind::Loss,
        Value("0%"),
        "packets lost against the data direction",
        "tcpknee",
    ),
    key(
        "buffer",
        &kind::Buffer,
        Words("1bdp; unlimited when path.rate is"),
        "size of the bottleneck's queue; bdp is path.rate × path.rtt, times become bytes the same way, rounded up",
        "one BDP: Villamizar, Song: CCR 24(5) 1994",
    ),
    key(
        "queue",
        &kind::Name("queue", || {
            queue::QUEUES.iter().map(|kind| kind.name).collect()
        }),
        Value("fifo"),
        "the bottleneck's queue discipline",
        "tcpknee",
    ),
    key(
        "policer_rate",
        &kind::Rate,
        Value("unlimited"),
        "rate of a token bucket in front of the queue, counting as path.rate does; what exceeds it is dropped or marked at once; unlimited: there is none",
        "RFC 2697; Linux net/sched/act_police.c",
    ),
    key(
        "policer_burst",
        &kind::Bytes {
            min: 576,
            max: MAX_BURST_BYTES,
        },
        Words("what path.policer_rate brings in 250ms; at least a packet"),
        "size of the token bucket",
        "Cisco ME 3800X and 3600X configuration guide: police, 250 ms",
    ),
    key(
        "policer_action",
        &kind::Name("treatment", || vec!["drop", "mark"]),
        Value("drop"),
        "what happens to packets that exceed; mark: ECN's CE, and a drop where the sender does not understand ECN",
        "RFC 3168; Linux net/sched/act_police.c",
    ),
];

/// Those behind the impairments'.
static FURTHER: &[Key] = &[
    fixed(key(
        "rtt_change",
        &kind::RttChanges,
        Words("none"),
        "from when on path.rtt is another, as after a change of the route; what is under way then is not touched, and a shorter path overtakes it. Flows with an rtt of their own change by the same difference",
        "tcpknee",
    )),
    key(
        "ack_rate",
        &kind::LinkRate,
        Value("unlimited"),
        "rate of the link against the data direction",
        "tcpknee",
    ),
    key(
        "ack_buffer",
        &kind::Buffer,
        Value("1000packets"),
        "size of its queue, where it has a rate; bdp is path.ack_rate × path.rtt",
        "Linux, include/net/pkt_sched.h, DEFAULT_TX_QUEUE_LEN",
    ),
    key(
        "ack_queue",
        &kind::Name("queue", || {
            queue::QUEUES.iter().map(|kind| kind.name).collect()
        }),
        Value("fifo"),
        "its queue discipline; its parameters stand behind ack_ and its name, as in ack_codel.target",
        "tcpknee",
    ),
    key(
        "overhead",
        &kind::Bytes { min: 0, max: 1_000 },
        Value("0B"),
        "link-layer bytes per packet that the rate and the buffer count besides",
        "tcpknee; Ethernet: 14B, with FCS, preamble and gap 38B",
    ),
];

/// Of the path as a whole.
pub(super) static WHOLE: &[Key] = &[
    key(
        "mtu",
        &kind::Bytes {
            min: 576,
            max: 65_535,
        },
        Value("1500B"),
        "largest IP packet; with TCP timestamps 1500 B carry 1448 B of payload",
        "RFC 894 (1500), RFC 791 (576)",
    ),
    key(
        "backend",
        &kind::Name("back end", || vec!["auto", "user", "netem", "veth"]),
        Value("auto"),
        "what emulates the path in a lab: tcpknee's own link, or netem and qdiscs where the kernel has them; auto: the own link, but netem in a guest kernel, and above 2 Gbit/s or without a rate where there is no policer; with hops, and where qdiscs cannot do the path, the own link always. veth: nothing does, and the two hosts are joined directly, to measure what they cost; it needs rate = \"unlimited\", rtt = \"0s\" and no other key of the path but mtu and super_packets. The simulator has one path, whatever this says, but joins hosts with costs by a veth pair, too",
        "tcpknee; tc-netem(8), veth(4)",
    ),
    key(
        "super_packets",
        &kind::Name("treatment", || vec!["split", "keep"]),
        Value("split"),
        "does a lab cut TSO packets into wire packets before loss, queue and rate, or the far host of a veth pair, see them? keep: faster, and less true. The simulator keeps them on a veth pair alone",
        "tcpknee",
    ),
];

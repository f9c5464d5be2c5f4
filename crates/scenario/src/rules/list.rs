//! The rules.

use super::{Change, Rule, Subject};
use crate::release::Release;

const OLDEST: Release = Release::OLDEST;

const fn first(value: &'static str) -> Change {
    change(OLDEST, value, "")
}

const fn change(since: Release, value: &'static str, source: &'static str) -> Change {
    Change {
        since,
        value,
        source,
    }
}

const fn hosts(key: &'static str, doc: &'static str, changes: &'static [Change]) -> Rule {
    Rule {
        subject: Subject::Hosts(key),
        doc,
        changes,
    }
}

/// What the simulator lacks.
const fn words(name: &'static str, doc: &'static str, changes: &'static [Change]) -> Rule {
    Rule {
        subject: Subject::NotModelled(name),
        doc,
        changes,
    }
}

const fn param(
    algorithm: &'static str,
    name: &'static str,
    doc: &'static str,
    changes: &'static [Change],
) -> Rule {
    Rule {
        subject: Subject::Param { algorithm, name },
        doc,
        changes,
    }
}

/// What the simulator has, and then what it has not.
pub const RULES: &[Rule] = &[
    hosts(
        "tcp_rmem_default",
        "receive buffer at the start; the first window is half of it",
        &[
            first("87380B"),
            change(
                Release(4, 20),
                "131072B",
                "a337531b942b, \"tcp: up initial rmem to 128KB and SYN rwin to around 64KB\"",
            ),
        ],
    ),
    hosts(
        "tcp_rmem_max",
        "largest receive buffer of autotuning",
        &[
            first("6291456B"),
            change(
                Release(6, 16),
                "33554432B",
                "572be9bf9d0d, \"tcp: increase tcp_rmem[2] to 32 MB\"",
            ),
        ],
    ),
    hosts(
        "tcp_limit_output_bytes",
        "most bytes of a socket in qdisc and NIC",
        &[
            first("131072B"),
            change(
                Release(4, 2),
                "262144B",
                "c39c4c6abb89, \"tcp: double default TSQ output bytes limit\"",
            ),
            change(
                Release(5, 0),
                "1048576B",
                "c73e5807e4f6, \"tcp: tsq: no longer use limit_output_bytes for paced flows\"",
            ),
            change(
                Release(6, 16),
                "4194304B",
                "9ea3bfa61b09, \"tcp: increase tcp_limit_output_bytes default value to 4MB\"",
            ),
        ],
    ),
    hosts(
        "tsq_limits_paced",
        "does that limit sockets that are paced, too?",
        &[
            first("true"),
            change(
                Release(5, 0),
                "false",
                "c73e5807e4f6, \"tcp: tsq: no longer use limit_output_bytes for paced flows\"",
            ),
            change(
                Release(6, 16),
                "true",
                "c4221a8cc3a7, \"tcp: always use tcp_limit_output_bytes limitation\"",
            ),
        ],
    ),
    hosts(
        "tso_autosizing",
        "does the pacing rate bound a TSO packet to a millisecond's worth?",
        &[
            first("false"),
            change(
                Release(3, 12),
                "true",
                "95bd09eb2750, \"tcp: TSO packets automatic sizing\"",
            ),
        ],
    ),
    hosts(
        "tcp_tso_rtt_log",
        "larger TSO packets on short paths: doublings of the minimum RTT, us, that halve the addition; 0: none",
        &[
            first("0"),
            change(
                Release(5, 18),
                "9",
                "65466904b015, \"tcp: adjust TSO packet sizes based on min_rtt\"",
            ),
        ],
    ),
    hosts(
        "pacing_timer",
        "when TCP arms its pacing timer",
        &[
            first("never"),
            change(
                Release(4, 13),
                "every-packet",
                "218af599fa63, \"tcp: internal implementation for pacing\"",
            ),
            change(
                Release(4, 20),
                "when-needed",
                "864e5c090749, \"tcp: optimize tcp internal pacing\"",
            ),
        ],
    ),
    hosts(
        "tcp_pacing_ca_ratio",
        "default pacing rate outside of slow start, in percent of cwnd/srtt",
        &[
            first("200"),
            change(
                Release(4, 3),
                "120",
                "43e122b014c9, \"tcp: refine pacing rate determination\"",
            ),
        ],
    ),
    hosts(
        "send_stamps",
        "what counts as the time at which a packet was sent",
        &[
            first("handover"),
            change(
                Release(4, 20),
                "departure",
                "ab408b6dc744, \"tcp: switch tcp and sch_fq to new earliest departure time model\"",
            ),
        ],
    ),
    hosts(
        "tcp_comp_sack_nr",
        "how many SACKs one ACK may stand for",
        &[
            first("0"),
            change(
                Release(4, 18),
                "44",
                "5d9f4262b7ea, \"tcp: add SACK compression\"",
            ),
        ],
    ),
    hosts(
        "tcp_comp_sack_rtt_percent",
        "how long a compressed SACK waits, in percent of the RTT",
        &[first("5"), change(Release(6, 19), "33", "416dd649f3aa")],
    ),
    hosts(
        "tcp_syn_linear_timeouts",
        "SYNs repeated after the same timeout before it doubles",
        &[first("0"), change(Release(6, 5), "4", "ccce324dabfe")],
    ),
    hosts(
        "rcvbuf_share",
        "how much of the receive buffer is taken for payload",
        &[
            first("half"),
            change(
                Release(6, 6),
                "measured-from-quarter",
                "dfa2f0483360, \"tcp: get rid of sysctl_tcp_adv_win_scale\"",
            ),
            change(Release(6, 10), "measured", "697a6c8cec03"),
        ],
    ),
    hosts(
        "rcvbuf_growth",
        "what the receive buffer grows to when a round trip ends",
        &[
            first("margin"),
            change(
                Release(6, 16),
                "twice",
                "65c5287892e9, \"tcp: fix sk_rcvbuf overshoot\"; 63ad7dfedfae",
            ),
            change(
                Release(6, 18),
                "rise",
                "aa251c84636c, \"tcp: fix too slow tcp_rcvbuf_grow() action\"",
            ),
        ],
    ),
    hosts(
        "tcp_rcvbuf_low_rtt",
        "below so long a round trip the receive buffer grows by that RTT",
        &[first("0s"), change(Release(6, 19), "1ms", "ecfea98b7d0d")],
    ),
    hosts(
        "grow_skb",
        "does a packet take what it lacks from the next skb?",
        &[
            first("false"),
            change(
                Release(6, 10),
                "true",
                "8ee602c63520, \"tcp: try to send bigger TSO packets\"",
            ),
        ],
    ),
    hosts(
        "prr",
        "how the window grows while it is being reduced and less is in flight than ssthresh",
        &[
            first("slow-start"),
            change(
                Release(4, 3),
                "on-repair",
                "3759824da87b, \"tcp: PRR uses CRB mode by default and SS mode conditionally\"",
            ),
            change(
                Release(5, 11),
                "on-progress",
                "7e901ee7b6ab, \"tcp: avoid slow start during fast recovery on new losses\"",
            ),
            change(
                Release(5, 19),
                "catch-up",
                "9ad084d66619, \"tcp: improve PRR loss recovery\"",
            ),
        ],
    ),
    hosts(
        "gro_table",
        "where GRO holds packets; for the host model",
        &[
            first("short-list-passed"),
            change(Release(4, 19), "hash", "07d78363dcff"),
        ],
    ),
    hosts(
        "fq_fast_path",
        "does a packet that need not wait pass fq's tree by? For the host model",
        &[
            first("false"),
            change(
                Release(6, 7),
                "true",
                "076433bd78d7, \"net_sched: sch_fq: add fast path for mostly idle qdisc\"",
            ),
        ],
    ),
    param(
        "cubic",
        "slow_start_per_ack",
        "1: slow start counts ACKs and not packets",
        &[first("1"), change(Release(3, 13), "0", "9f9843a751d0")],
    ),
    param(
        "cubic",
        "per_ack",
        "1: growth counts ACKs and not packets",
        &[first("1"), change(Release(4, 0), "0", "e73ebb0881ea")],
    ),
    param(
        "bbr1",
        "ack_aggregation",
        "1: room in the window for ACKs that come in lumps",
        &[first("0"), change(Release(5, 1), "1", "78dc70ebaa38")],
    ),
    param(
        "bbr1",
        "pace_headers",
        "1: without fq paced with headers in the rate: 3.6 % above what was measured",
        &[
            first("0"),
            change(
                Release(4, 13),
                "1",
                "218af599fa63, \"tcp: internal implementation for pacing\"",
            ),
            change(
                Release(4, 19),
                "0",
                "cadefe5f584a, \"tcp_bbr: fix bbr pacing rate for internal pacing\"",
            ),
        ],
    ),
    words(
        "HyStart's delay threshold",
        "rise of the RTT that ends slow start",
        &[
            first("RTT/16"),
            change(Release(3, 19), "RTT/8, 4 to 16 ms", "42eef7a0bb09"),
        ],
    ),
    words(
        "HyStart's clock",
        "how finely it measures ACK trains and RTTs",
        &[
            first("jiffies"),
            change(Release(5, 6), "us", "cff04e2da308"),
        ],
    ),
    words(
        "HyStart and pacing",
        "length of an ACK train that ends slow start",
        &[
            first("RTT/2"),
            change(
                Release(5, 6),
                "RTT/2, the RTT where paced; plus 1 ms of TSO at most",
                "ede656e84658, 42f3a8aaae66",
            ),
        ],
    ),
    words(
        "loss detection",
        "what says that a packet is lost",
        &[
            first("duplicate ACKs (RFC 6675, FACK)"),
            change(
                Release(4, 4),
                "the same, and RACK in recovery",
                "4f41b1c58a32",
            ),
            change(Release(4, 11), "RACK and duplicate ACKs", "718e14bb292a"),
            change(
                Release(4, 18),
                "RACK, from three duplicate ACKs on at once",
                "b38a51fec1c1, 20b654dfe1be",
            ),
        ],
    ),
    words(
        "tcp_recovery = 0",
        "what turning RACK off does",
        &[
            first("no RACK"),
            change(Release(6, 17), "nothing", "1c120191dcec"),
        ],
    ),
    words(
        "tail loss probe",
        "when it is sent",
        &[
            first("max(2 SRTT, 10 ms)"),
            change(Release(4, 14), "2 SRTT + 2 jiffies", "bb4d991a28cc"),
            change(Release(6, 6), "2 SRTT + 2 ms", "1c2709cfff1d"),
        ],
    ),
    words(
        "TSO deferral",
        "when a smaller packet does not wait for the next ACK",
        &[
            first("2 jiffies after the last packet"),
            change(
                Release(4, 1),
                "the oldest packet is younger than SRTT/2",
                "50c8339e9299, 5f852eb536ad",
            ),
            change(
                Release(6, 18),
                "the next ACK is not due within min(1 ms, SRTT/2)",
                "295ce1eb36ae",
            ),
        ],
    ),
    words(
        "small queues",
        "a socket whose last packet waits in the qdisc may send",
        &[first("no"), change(Release(6, 6), "yes", "f921a4a5bffa")],
    ),
    words(
        "window that was not used",
        "what counts as limited by the window",
        &[
            first("a round trip that ends full"),
            change(
                Release(6, 1),
                "a round trip that was full at some time",
                "f4ce91ce12a7",
            ),
        ],
    ),
    words(
        "data beyond the window",
        "what a receiver does with it",
        &[
            first("accepts it"),
            change(Release(6, 17), "drops it", "9ca48d616ed7"),
        ],
    ),
    words(
        "quick ACKs after ECN",
        "ACKs at once after a mark",
        &[
            first("16"),
            change(Release(4, 18), "at most 2", "522040ea5fdd"),
        ],
    ),
    words(
        "ssthresh of earlier connections",
        "is it taken over by new ones to the same host?",
        &[first("yes"), change(Release(5, 6), "no", "65e6d90168f3")],
    ),
    words(
        "Accurate ECN",
        "tcp_ecn 3 to 5",
        &[
            first("no"),
            change(
                Release(6, 18),
                "code, which nothing turns on",
                "542a495cbaa6, 3cae34274c79",
            ),
            change(Release(7, 0), "yes; tcp_ecn stays 2", "8ae3e8e6ceed"),
        ],
    ),
    words(
        "autocorking",
        "small writes wait while packets of the socket lie in the qdisc",
        &[first("no"), change(Release(3, 14), "yes", "f54b311142a9")],
    ),
    words(
        "BBR version 1",
        "is there one?",
        &[first("no"), change(Release(4, 9), "yes", "0f8782ea1497")],
    ),
];

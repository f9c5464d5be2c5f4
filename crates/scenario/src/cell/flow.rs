//! A `[[flow]]`, and the keys that each has whatever its workload.

use std::ops::Range;

use crate::key::Default::{Value, Words};
use crate::key::keyed::Bytes;
use crate::key::keyed::keyed;
use crate::key::{INT_MAX, key, kind, secs, simulated};
use knee_units::{Nanos, Rate};
use serde::Serialize;

use super::{PACING, PACING_SOURCE, Pacing};
use crate::workload::WorkloadSpec;

const SOCKET_BUFFER: &dyn kind::Kind = &kind::Bytes {
    min: 4_096,
    max: INT_MAX / 2,
};

keyed! {
    /// One `[[flow]]`: `count` connections alike.
    #[derive(Clone, Debug, Serialize)]
    pub struct FlowSpec {
        given {
            /// Shown in tables; the algorithm's name unless the file gives one.
            pub name: String,
            pub algorithm: String,
            /// Parameters set by the file, by name; the rest keep their defaults.
            pub params: Vec<(String, u32)>,
            pub workload: WorkloadSpec,
        };
        pub count: u32 = key(
            "count",
            &kind::Count {
                min: 1,
                max: 1_000_000,
            },
            Value("1"),
            "how many flows alike",
            "tcpknee",
        );
        pub start: Nanos = key(
            "start",
            &kind::Duration {
                min: Nanos::ZERO,
                max: secs(86_400),
            },
            Value("0s"),
            "when the first of them starts",
            "tcpknee",
        );
        pub stagger: Nanos = key(
            "stagger",
            &kind::Duration {
                min: Nanos::ZERO,
                max: secs(86_400),
            },
            Value("0s"),
            "how much later each further one starts",
            "tcpknee",
        );
        given {
            /// Base RTT of this flow.
            pub rtt: Nanos,
            /// The hops that it crosses: the first, and the one behind the last.
            pub hops: Range<usize>,
        };
        pub blocking: bool = simulated(key(
            "blocking",
            &kind::Flag,
            Value("false"),
            "does the sending application wait in write() for room in the send buffer? A nonblocking one writes anew when there is room, and a write that finds nothing unsent marks the flow as limited by its application: BBR then leaves its samples out",
            "socket(7), O_NONBLOCK; Linux, tcp_sendmsg_locked()",
        ));
        /// Who spaces what the flow sends; `None`: as its host says.
        pub pacing: Option<Pacing> = key(
            "pacing",
            PACING,
            Words("sender.pacing"),
            "who spaces the data of these flows, so that paced and unpaced ones can share a link. A lab's sender has one qdisc for all flows: fq must be sender.pacing there, and then holds for every flow",
            PACING_SOURCE,
        );
        /// `None`: where the receiver opens the connection.
        pub nodelay: Option<bool> = key(
            "nodelay",
            &kind::Flag,
            Words("true for a workload whose clients ask, as netperf and redis-benchmark do, else false"),
            "does a small segment leave while others are under way (TCP_NODELAY, at both ends)? Else Nagle's algorithm holds it back",
            "tcp(7), TCP_NODELAY; RFC 896",
        );
        pub max_pacing_rate: Option<Rate> = key(
            "max_pacing_rate",
            &kind::Rate,
            Value("unlimited"),
            "cap of the pacing rate",
            "socket(7), SO_MAX_PACING_RATE",
        );
        /// As asked for; the buffer is twice that.
        pub sndbuf: Option<Bytes> = key(
            "sndbuf",
            SOCKET_BUFFER,
            Words("grows up to sender.tcp_wmem_max"),
            "send buffer that the sending socket asks for, no more than sender.wmem_max: the kernel doubles it, for what memory takes besides data, and it does not grow",
            "socket(7), SO_SNDBUF; Linux, SOCK_SNDBUF_LOCK",
        );
        /// As asked for; the buffer is twice that.
        pub rcvbuf: Option<Bytes> = key(
            "rcvbuf",
            SOCKET_BUFFER,
            Words("grows up to receiver.tcp_rmem_max"),
            "receive buffer that the receiving socket asks for, no more than receiver.rmem_max: the kernel doubles it, for what memory takes besides data, and it does not grow",
            "socket(7), SO_RCVBUF; Linux, SOCK_RCVBUF_LOCK",
        );
        pub window_clamp: Option<Bytes> = key(
            "window_clamp",
            SOCKET_BUFFER,
            Words("as the receive buffer has room"),
            "largest window that the receiving socket asks to offer, before it connects or listens. Linux 6.10 and newer replace it once data shows how much of the buffer is payload; what stays is the window scale that it chose, so that the window is at most 65535 of its units: 65535B is kept exactly",
            "tcp(7), TCP_WINDOW_CLAMP; Linux, tcp_select_initial_window(), tcp_measure_rcv_mss()",
        );
    }
}

//! Endpoints and segments for the tests of this folder.

use knee_cc::Instance;
use knee_path::packet::Ecn;
use knee_units::rng::Stream;

use super::rtx::Seg;
use super::{Endpoint, HostConf, State};
use crate::segment::{ACK, SackBlocks, Segment};

pub const MSS: u64 = 1000;

/// A sender that has segments of these flags on their way.
pub fn sender(conf: &HostConf, algorithm: &str, flags: &[u8]) -> Endpoint {
    let algorithm = knee_cc::find(algorithm).expect("it is built in");
    let algorithm = Instance::new(algorithm, &[]).expect("it has no parameters to be wrong");
    let mut tcp = Endpoint::new(conf, algorithm, Stream::new(1, "test"), 0, false);
    tcp.state = State::Established;
    tcp.cc.mss_bytes = MSS as u32;
    (tcp.snd_una, tcp.snd_nxt) = (1, 1);
    for &flags in flags {
        let mss = MSS as u32;
        tcp.board.push(Seg::new(tcp.snd_nxt, mss, 1, mss, flags));
        tcp.snd_nxt += MSS;
    }
    tcp
}

/// An ACK and nothing else.
pub fn segment(seq: u64, ack: u64) -> Segment {
    Segment {
        seq,
        ack,
        window_bytes: 1 << 20,
        payload_bytes: 0,
        flags: ACK,
        ecn: Ecn::NotEct,
        packets: 1,
        gso_bytes: 0,
        option_bytes: 0,
        ce_bytes: 0,
        tsval_ms: 0,
        tsecr_ms: 0,
        sack: SackBlocks::default(),
        departure_ns: 0,
    }
}

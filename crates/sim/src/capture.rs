//! What a capture at the sender's interface shows of a segment.

use knee_units::Nanos;

use crate::CapturedPacket;
use knee_tcp::HostConf;
use knee_tcp::segment::{
    ACK, AE, CWR, ECE, FIN, PSH, SYN, Segment, TIMESTAMPS_BYTES, WINDOW_FIELD_MAX,
};

impl CapturedPacket {
    /// The record of a segment that `origin` sent.
    pub(crate) fn new(
        t: Nanos,
        flow: u32,
        outbound: bool,
        segment: &Segment,
        origin: &HostConf,
    ) -> CapturedPacket {
        let syn = segment.has(SYN);
        // A SYN's window is not scaled.
        let shift = if syn { 0 } else { origin.wscale };
        let mut sack = [(0, 0); 4];
        for (slot, block) in sack.iter_mut().zip(segment.sack.blocks(segment.ack)) {
            *slot = block;
        }
        CapturedPacket {
            t,
            flow,
            outbound,
            seq: segment.seq,
            ack: segment.ack,
            payload_bytes: segment.payload_bytes,
            syn,
            fin: segment.has(FIN),
            has_ack: segment.has(ACK),
            psh: segment.has(PSH),
            ece: segment.has(ECE),
            cwr: segment.has(CWR),
            ae: segment.has(AE),
            ecn: segment.ecn as u8,
            window: (segment.window_bytes >> shift).min(WINDOW_FIELD_MAX) as u16,
            wscale: origin.wscale,
            mss_bytes: (origin.mss_bytes + TIMESTAMPS_BYTES) as u16,
            tsval_ms: segment.tsval_ms,
            tsecr_ms: segment.tsecr_ms,
            sack,
            sack_count: segment.sack.count(),
        }
    }
}

//! Which ACKs later ones make superfluous.

use super::tin::Flow;
use crate::packet::Packet;
use crate::queue::packets::{NONE, Packets};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AckFilter {
    No,
    Yes,
    Aggressive,
}

impl AckFilter {
    /// Takes out an ACK of the flow that `last`, its last packet and an ACK too,
    /// makes superfluous: the oldest of two, or the last one when aggressive.
    #[cold]
    pub(super) fn take(
        self,
        packets: &mut Packets,
        flow: &mut Flow,
        last: &Packet,
    ) -> Option<Packet> {
        let new = last.pure_ack?;
        // The packet before the eligible ACK, and the ACK itself.
        let mut eligible: Option<(u32, u32)> = None;
        let (mut before, mut at) = (NONE, flow.chain.head);
        while at != flow.chain.tail {
            let (packet, next) = packets.get(at);
            // Duplicate ACKs are counted by TCP, and stay.
            let older = |ack: u32| new.wrapping_sub(ack).cast_signed() > 0;
            if packet.flow == last.flow && packet.pure_ack.is_some_and(older) {
                if let Some((before, _)) = eligible {
                    return Some(flow.remove(packets, before));
                }
                eligible = Some((before, at));
            }
            before = at;
            at = next;
        }
        // Only if nothing stands between the two.
        let (before_it, at) = eligible?;
        (self == AckFilter::Aggressive && at == before).then(|| flow.remove(packets, before_it))
    }
}

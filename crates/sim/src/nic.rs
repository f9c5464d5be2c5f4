//! A host's receiving NIC: interrupt moderation and GRO, which decide how many
//! wire packets the stack sees as one.

use knee_units::Nanos;

use crate::segment::{ACE, FIN, PSH, SYN, Segment, Slab};

/// Largest packet that GRO builds, payload bytes (GRO_LEGACY_MAX_SIZE less headers).
const GRO_MAX_BYTES: u32 = 65_535 - 52;

/// What a NIC gathered until its next interrupt.
#[derive(Default)]
pub struct Nic {
    pub pending: Vec<u32>,
    /// No interrupt before this: the last one plus the moderation interval.
    next_interrupt_ns: u64,
}

/// What to do with a packet that just arrived.
pub enum Arrival {
    /// Interrupt now: hand it to the stack.
    Deliver,
    /// Kept; an interrupt is pending.
    Kept,
    /// Kept; an interrupt is due at that time.
    WakeAt(u64),
}

impl Nic {
    /// Would a packet that arrives then be found only by an interrupt that is
    /// already pending?
    #[inline]
    pub fn sleeps_through(&self, at_ns: u64) -> bool {
        !self.pending.is_empty() && at_ns <= self.next_interrupt_ns
    }

    #[inline]
    pub fn arrive(&mut self, now_ns: u64, coalesce: Nanos, handle: u32) -> Arrival {
        if self.pending.is_empty() {
            if now_ns >= self.next_interrupt_ns {
                self.next_interrupt_ns = now_ns + coalesce.0;
                return Arrival::Deliver;
            }
            self.pending.push(handle);
            return Arrival::WakeAt(self.next_interrupt_ns);
        }
        self.pending.push(handle);
        Arrival::Kept
    }

    /// The interrupt: takes what was gathered into `batch`.
    pub fn interrupt(&mut self, now_ns: u64, coalesce: Nanos, batch: &mut Vec<u32>) {
        self.next_interrupt_ns = now_ns + coalesce.0;
        batch.append(&mut self.pending);
    }
}

/// GRO: the next segment of the batch, with those merged that follow it
/// seamlessly. Handles taken are released. `None` at the batch's end.
pub fn next_merged(slab: &mut Slab, batch: &[u32], at: &mut usize, gro: bool) -> Option<Segment> {
    let &first = batch.get(*at)?;
    let mut merged = slab.get(first).clone();
    slab.release(first);
    *at += 1;
    while gro && let Some(&handle) = batch.get(*at) {
        let next = slab.get(handle);
        if !mergeable(&merged, next) {
            break;
        }
        merged.payload_bytes += next.payload_bytes;
        merged.flags |= next.flags;
        merged.packets += next.packets;
        merged.window_bytes = next.window_bytes;
        slab.release(handle);
        *at += 1;
    }
    Some(merged)
}

/// Same flow is given; GRO wants the next byte, the same options and no flag
/// that ends a train.
fn mergeable(head: &Segment, next: &Segment) -> bool {
    head.payload_bytes > 0
        && next.payload_bytes > 0
        && head.seq + u64::from(head.payload_bytes) == next.seq
        && (head.flags | next.flags) & SYN == 0
        && head.flags & (PSH | FIN) == 0
        && (head.flags ^ next.flags) & ACE == 0
        && head.ack == next.ack
        && head.tsval_ms == next.tsval_ms
        && head.tsecr_ms == next.tsecr_ms
        && head.ecn == next.ecn
        && head.payload_bytes + next.payload_bytes <= GRO_MAX_BYTES
}

#[cfg(test)]
mod tests {
    use knee_path::packet::Ecn;

    use super::*;
    use crate::segment::{ACK, CWR, SackBlocks};

    fn data(seq: u64) -> Segment {
        Segment {
            seq,
            ack: 1,
            window_bytes: 65_536,
            payload_bytes: 1_448,
            flags: ACK,
            ecn: Ecn::NotEct,
            packets: 1,
            option_bytes: 0,
            ce_bytes: 0,
            tsval_ms: 7,
            tsecr_ms: 5,
            sack: SackBlocks::default(),
            departure_ns: 0,
        }
    }

    /// Payload bytes of what GRO makes of the segments.
    fn merged(segments: &[Segment]) -> Vec<u32> {
        let mut slab = Slab::default();
        let batch: Vec<u32> = segments.iter().map(|s| slab.insert(s.clone())).collect();
        let mut at = 0;
        std::iter::from_fn(|| next_merged(&mut slab, &batch, &mut at, true))
            .map(|segment| segment.payload_bytes)
            .collect()
    }

    #[test]
    fn gro_merges_a_seamless_train() {
        assert_eq!(merged(&[data(1), data(1_449), data(2_897)]), [3 * 1_448]);
    }

    #[test]
    fn gro_stops_at_whatever_a_merged_packet_could_not_tell() {
        let next = data(1_449);
        let differing = [
            Segment {
                seq: 2_897,
                ..next.clone()
            },
            Segment {
                ack: 2,
                ..next.clone()
            },
            Segment {
                tsval_ms: 8,
                ..next.clone()
            },
            Segment {
                tsecr_ms: 6,
                ..next.clone()
            },
            Segment {
                ecn: Ecn::Ce,
                ..next.clone()
            },
            Segment {
                flags: ACK | CWR,
                ..next.clone()
            },
            Segment {
                payload_bytes: 0,
                ..next.clone()
            },
        ];
        for segment in differing {
            let len = segment.payload_bytes;
            assert_eq!(
                merged(&[data(1), segment.clone()]),
                [1_448, len],
                "{segment:?}"
            );
        }
    }

    #[test]
    fn gro_ends_a_packet_at_push_and_at_64_kib() {
        let pushed = Segment {
            flags: ACK | PSH,
            ..data(1)
        };
        assert_eq!(merged(&[pushed, data(1_449)]), [1_448, 1_448]);
        let train: Vec<_> = (0..46).map(|i| data(1 + i * 1_448)).collect();
        assert_eq!(merged(&train), [45 * 1_448, 1_448]);
    }

    #[test]
    fn a_nic_interrupts_at_once_after_silence_and_then_moderates() {
        let mut nic = Nic::default();
        let coalesce = Nanos::from_us(20);
        assert!(matches!(nic.arrive(1_000, coalesce, 0), Arrival::Deliver));
        assert!(matches!(
            nic.arrive(5_000, coalesce, 1),
            Arrival::WakeAt(21_000)
        ));
        assert!(matches!(nic.arrive(9_000, coalesce, 2), Arrival::Kept));
        let mut batch = Vec::new();
        nic.interrupt(21_000, coalesce, &mut batch);
        assert_eq!(batch, [1, 2]);
        assert!(matches!(nic.arrive(50_000, coalesce, 3), Arrival::Deliver));
    }
}

//! GRO: which wire packets the stack sees as one.

pub mod lists;

use knee_kit::odds::likely;
use knee_path::sink::Passing;

use knee_tcp::segment::{ACE, FIN, PSH, SYN, Segment, Slab};

/// Largest packet that GRO builds, payload bytes (GRO_LEGACY_MAX_SIZE less headers).
const GRO_MAX_BYTES: u32 = 65_535 - 52;

/// Does the stack see packets of one handle as one segment, because there is only one or because GRO merges them?
#[inline]
pub fn is_one(slab: &Slab, passing: &Passing<()>, gro: bool) -> bool {
    let &Passing { handle, pkts, .. } = passing;
    likely(pkts == 1) || gro && slab.get(handle).payload_of(pkts) <= GRO_MAX_BYTES
}

/// What a NIC hands over at one interrupt, taken packet by packet or as GRO merges them.
pub struct Batch<'a> {
    rest: &'a [Passing<()>],
    /// How many of the first's packets were taken.
    taken: u32,
}

impl<'a> Batch<'a> {
    pub fn new(packets: &'a [Passing<()>]) -> Batch<'a> {
        Batch {
            rest: packets,
            taken: 0,
        }
    }

    /// The flow, the handle and how many packets of it come next.
    #[inline]
    pub fn peek(&self) -> Option<Passing<()>> {
        let first = self.rest.first()?;
        Some(Passing {
            pkts: first.pkts - self.taken,
            ..*first
        })
    }

    /// Takes the next `pkts` packets, which are all of one handle. With its last packet a handle is free.
    #[inline]
    pub fn take(&mut self, slab: &mut Slab, pkts: u32) -> Segment {
        let first = &self.rest[0];
        self.taken += pkts;
        let handle = first.handle;
        if self.taken == first.pkts {
            self.rest = &self.rest[1..];
            self.taken = 0;
        }
        slab.take(handle, pkts)
    }

    /// The next segment that the stack sees, with those merged that follow it seamlessly. `None` at the batch's end.
    #[inline]
    pub fn next_merged(&mut self, slab: &mut Slab, gro: bool) -> Option<Segment> {
        let mut merged = self.first(slab, gro)?;
        while gro && self.merge(&mut merged, slab) {}
        Some(merged)
    }

    /// The next packet, or packets of one handle that GRO makes one of.
    #[inline]
    pub fn first(&mut self, slab: &mut Slab, gro: bool) -> Option<Segment> {
        let next = self.peek()?;
        let pkts = match gro {
            true => room(slab.get(next.handle), next.pkts, GRO_MAX_BYTES).max(1),
            false => 1,
        };
        Some(self.take(slab, pkts))
    }

    /// Merges into a segment what comes next of its flow and of one handle, as far as it follows seamlessly and fits.
    #[inline]
    pub fn merge(&mut self, merged: &mut Segment, slab: &mut Slab) -> bool {
        let Some(next) = self.peek() else {
            return false;
        };
        let of_next = slab.get(next.handle);
        if !mergeable(merged, of_next) {
            return false;
        }
        let pkts = room(of_next, next.pkts, GRO_MAX_BYTES - merged.payload_bytes);
        if pkts == 0 {
            return false;
        }
        let next = self.take(slab, pkts);
        merged.payload_bytes += next.payload_bytes;
        merged.flags |= next.flags;
        merged.packets += next.packets;
        merged.window_bytes = next.window_bytes;
        true
    }
}

/// How many of the next `pkts` packets of a train fit into `bytes`.
#[inline]
fn room(train: &Segment, pkts: u32, bytes: u32) -> u32 {
    match train.payload_of(pkts) <= bytes {
        true => pkts,
        false => bytes.checked_div(train.gso_bytes.into()).unwrap_or(0),
    }
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
}

#[cfg(test)]
mod tests {
    use knee_path::packet::Ecn;

    use super::*;
    use knee_tcp::segment::{ACK, CWR, SackBlocks};

    fn data(seq: u64) -> Segment {
        Segment {
            seq,
            ack: 1,
            window_bytes: 65_536,
            payload_bytes: 1_448,
            flags: ACK,
            ecn: Ecn::NotEct,
            packets: 1,
            gso_bytes: 0,
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
        let passing = |segment: &Segment| Passing {
            flow: 0,
            handle: slab.insert(segment.clone()),
            pkts: segment.packets.into(),
            note: (),
        };
        let packets: Vec<_> = segments.iter().map(passing).collect();
        let mut batch = Batch::new(&packets);
        std::iter::from_fn(|| batch.next_merged(&mut slab, true))
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
}

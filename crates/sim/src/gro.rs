//! GRO: which wire packets the stack sees as one.

use knee_path::pipe::Passing;

use knee_tcp::segment::{ACE, FIN, PSH, SYN, Segment, Slab};

/// Largest packet that GRO builds, payload bytes (GRO_LEGACY_MAX_SIZE less headers).
const GRO_MAX_BYTES: u32 = 65_535 - 52;

/// The next segment of a batch, with those merged that follow it seamlessly. They are taken out of the batch, and their
/// handles released. `None` at the batch's end.
#[inline]
pub fn next_merged(slab: &mut Slab, batch: &mut &[Passing<()>], gro: bool) -> Option<Segment> {
    let (first, mut rest) = batch.split_first()?;
    let mut merged = slab.get(first.handle).clone();
    slab.release(first.handle);
    while gro
        && let Some((passing, further)) = rest.split_first()
        && merge(&mut merged, slab.get(passing.handle))
    {
        slab.release(passing.handle);
        rest = further;
    }
    *batch = rest;
    Some(merged)
}

/// Merges the next segment of its flow into a segment, if it follows seamlessly.
#[inline]
pub fn merge(merged: &mut Segment, next: &Segment) -> bool {
    let merges = mergeable(merged, next);
    if merges {
        merged.payload_bytes += next.payload_bytes;
        merged.flags |= next.flags;
        merged.packets += next.packets;
        merged.window_bytes = next.window_bytes;
    }
    merges
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
            note: (),
        };
        let batch: Vec<_> = segments.iter().map(passing).collect();
        let mut rest = &batch[..];
        std::iter::from_fn(|| next_merged(&mut slab, &mut rest, true))
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

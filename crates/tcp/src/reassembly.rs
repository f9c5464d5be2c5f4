//! Reassembly: what arrived in order, what arrived beyond a hole, and the SACK and DSACK blocks that report it.

use knee_kit::ahead;
use knee_kit::odds::unlikely;
use knee_kit::ranges::RangeSet;

use crate::segment::SackBlocks;

/// Blocks that the last ACK surely reported (TCP_SACK_BLOCKS_EXPECTED).
const SACK_BLOCKS_TOLD: usize = 2;
/// Blocks remembered (TCP_NUM_SACKS); three fit into an ACK.
const NUM_SACKS: usize = 4;

#[derive(Clone, Debug, Default)]
pub struct Reassembly {
    rcv_nxt: u64,
    out_of_order: RangeSet,
    /// `None`: nothing has come out of order or twice yet.
    blocks: Option<Box<Blocks>>,
    fin_seq: Option<u64>,
    fin_received: bool,
}

/// What SACKs report.
#[derive(Clone, Debug, Default)]
struct Blocks {
    /// Most recently changed first.
    sacks: [(u64, u64); NUM_SACKS],
    num_sacks: usize,
    dsack: Option<(u64, u64)>,
}

impl Reassembly {
    /// A SYN arrived.
    pub fn start(&mut self) {
        self.rcv_nxt = 1;
    }

    #[inline]
    pub fn rcv_nxt(&self) -> u64 {
        self.rcv_nxt
    }
    /// Is there no hole?
    #[inline]
    pub fn is_in_order(&self) -> bool {
        self.out_of_order.is_empty()
    }
    /// Bytes that wait beyond a hole.
    #[inline]
    pub fn waiting_bytes(&self) -> u64 {
        self.out_of_order.total()
    }
    /// How far what waits beyond a hole reaches, from where the hole begins, bytes.
    pub fn reach(&self) -> u64 {
        self.out_of_order
            .last()
            .map_or(0, |(_, end)| end - self.rcv_nxt)
    }
    #[inline]
    pub fn fin_received(&self) -> bool {
        self.fin_received
    }

    /// A FIN with this number arrived, in order or not.
    pub fn note_fin(&mut self, seq: u64) {
        self.fin_seq = Some(seq);
    }

    /// This arrived twice.
    pub fn set_dsack(&mut self, range: (u64, u64)) {
        self.blocks.get_or_insert_default().dsack = Some(range);
    }

    /// An ACK reported what arrived twice.
    #[inline]
    pub fn forget_dsack(&mut self) {
        if let Some(blocks) = &mut self.blocks {
            blocks.dsack = None;
        }
    }

    /// Data arrived beyond a hole. Returns how many bytes of it are new.
    pub fn insert(&mut self, start: u64, end: u64) -> u64 {
        let mut fresh = 0;
        let range = self.out_of_order.insert(start, end, |a, b| fresh += b - a);
        if fresh < end - start {
            self.set_dsack((start, end));
        }
        self.blocks.get_or_insert_default().report(range);
        fresh
    }

    /// Data up to `end` arrived in order.
    #[inline]
    pub fn advance(&mut self, end: u64) {
        self.rcv_nxt = end;
    }

    /// What waited behind it is in order now, too. Returns whether that filled the last hole.
    #[inline]
    pub fn fill(&mut self) -> bool {
        unlikely(!self.out_of_order.is_empty()) && self.fill_hole()
    }

    #[inline(never)]
    fn fill_hole(&mut self) -> bool {
        if let Some((_, filled)) = self.out_of_order.containing(self.rcv_nxt) {
            self.rcv_nxt = filled;
        }
        self.out_of_order.remove_below(self.rcv_nxt);
        if let Some(blocks) = &mut self.blocks {
            blocks.forget_covered(self.rcv_nxt);
        }
        self.out_of_order.is_empty()
    }

    /// Has the FIN come into order just now?
    #[inline]
    pub fn take_fin(&mut self) -> bool {
        let is_in_order = unlikely(self.fin_seq.is_some_and(|fin| self.rcv_nxt > fin));
        let taken = is_in_order && !self.fin_received;
        self.fin_received |= taken;
        taken
    }

    /// Fetches ahead what lies elsewhere in memory.
    #[inline]
    pub fn fetch_parts(&self) {
        self.out_of_order.fetch();
        if let Some(blocks) = &self.blocks {
            ahead::fetch(&**blocks);
        }
    }

    // ---- SACK blocks -----------------------------------------------------

    /// Blocks to report: a duplicate first, then the most recent holes' edges.
    #[inline]
    pub fn sack_blocks(&self, ack: u64) -> SackBlocks {
        match &self.blocks {
            Some(blocks) if unlikely(blocks.num_sacks > 0 || blocks.dsack.is_some()) => {
                blocks.told(ack)
            }
            _ => SackBlocks::default(),
        }
    }

    /// Would reporting this range push out blocks that the last ACK may not have reported?
    pub fn pushes_out(&self, (start, end): (u64, u64)) -> bool {
        let sacks = self
            .blocks
            .as_ref()
            .map_or(&[][..], |blocks| blocks.sacks());
        let touched = sacks
            .iter()
            .position(|sack| start <= sack.1 && sack.0 <= end)
            .unwrap_or(sacks.len());
        touched >= SACK_BLOCKS_TOLD
    }
}

impl Blocks {
    /// What to report with this ACK number.
    #[inline(never)]
    fn told(&self, ack: u64) -> SackBlocks {
        let mut told = SackBlocks::default();
        if let Some(dsack) = self.dsack {
            told.push_dsack(ack, dsack);
        }
        for &sack in self.sacks() {
            told.push(ack, sack);
        }
        told
    }

    fn sacks(&self) -> &[(u64, u64)] {
        &self.sacks[..self.num_sacks]
    }

    /// A range changed: its block goes first, those it swallowed go.
    fn report(&mut self, range: (u64, u64)) {
        let mut kept = [(0, 0); NUM_SACKS];
        kept[0] = range;
        let mut count = 1;
        for &(start, end) in self.sacks() {
            if (end < range.0 || start > range.1) && count < NUM_SACKS {
                kept[count] = (start, end);
                count += 1;
            }
        }
        self.sacks = kept;
        self.num_sacks = count;
    }

    /// tcp_sack_remove(): forgets blocks that the cumulative ACK covers.
    fn forget_covered(&mut self, rcv_nxt: u64) {
        let mut count = 0;
        for i in 0..self.num_sacks {
            if self.sacks[i].0 > rcv_nxt {
                self.sacks[count] = self.sacks[i];
                count += 1;
            }
        }
        self.num_sacks = count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(data: &Reassembly) -> Vec<(u64, u64)> {
        data.sack_blocks(1).blocks(1).collect()
    }

    #[test]
    fn blocks_are_reported_most_recent_first_until_their_hole_is_filled() {
        let mut data = Reassembly::default();
        data.start();
        assert_eq!(data.insert(10, 20), 10);
        assert_eq!(data.insert(30, 40), 10);
        assert_eq!(blocks(&data), [(30, 40), (10, 20)]);
        assert!(!data.pushes_out((20, 25)) && data.pushes_out((50, 60)));
        assert_eq!(data.insert(20, 25), 5);
        assert_eq!(blocks(&data), [(10, 25), (30, 40)]);
        data.advance(10);
        assert!(!data.fill());
        assert_eq!((data.rcv_nxt(), data.waiting_bytes()), (25, 10));
        assert_eq!(blocks(&data), [(30, 40)]);
        data.advance(30);
        assert!(data.fill() && data.is_in_order() && !data.fill());
        assert_eq!((data.rcv_nxt(), blocks(&data)), (40, vec![]));
    }

    #[test]
    fn what_arrives_twice_is_reported_once_and_first() {
        let mut data = Reassembly::default();
        data.start();
        data.insert(10, 20);
        assert_eq!(data.insert(15, 25), 5);
        assert!(data.sack_blocks(1).has_dsack());
        assert_eq!(blocks(&data), [(15, 25), (10, 25)]);
        data.forget_dsack();
        assert_eq!(blocks(&data), [(10, 25)]);
    }

    #[test]
    fn a_fin_counts_when_all_before_it_has_arrived_and_once() {
        let mut data = Reassembly::default();
        data.start();
        data.note_fin(10);
        data.insert(5, 11);
        assert!(!data.take_fin());
        data.advance(5);
        data.fill();
        assert!(data.take_fin() && !data.take_fin() && data.fin_received());
    }
}

//! The send buffer: what was written and not sent, and how much memory it may take with what is not acked.

use crate::write_queue::WriteQueue;

/// sk_buff
const SKB_BYTES: u64 = 256;
/// MAX_TCP_HEADER and skb_shared_info.
const HEAD_BYTES: u64 = 320 + 320;
/// What an skb of the write queue takes besides payload, as counted in truesize.
pub const SKB_OVERHEAD_BYTES: u64 = SKB_BYTES + HEAD_BYTES;

/// tcp_sndbuf_expand(): what one segment is taken to need, a head rounded up to a power of two plus the sk_buff: 4,352 bytes
/// of an MTU of 1500, 16,640 of one of 9001. Its MSS is without options.
fn per_segment_bytes(mss_bytes: u64) -> u64 {
    (mss_bytes + HEAD_BYTES).next_power_of_two() + SKB_BYTES
}

/// SOCK_MIN_SNDBUF
const LEAST_BYTES: u64 = 2 * (2048 + 256);

#[derive(Debug)]
pub struct SendBuffer {
    /// End of what the application wrote; the FIN, once queued, is at this number.
    write_seq: u64,
    fin_queued: bool,
    /// Did the last write() find no space (SOCK_NOSPACE)?
    nospace: bool,
    /// Does the application wait in write() for space?
    blocking: bool,
    /// In the middle of a write(), possibly waiting for space.
    in_sendmsg: bool,
    /// What it may hold.
    limit_bytes: u64,
    /// Did the application ask for that size (SOCK_SNDBUF_LOCK)?
    locked: bool,
    /// Up to where PSH was asked for.
    pushed_seq: u64,
    queue: WriteQueue,
}

impl SendBuffer {
    pub fn new(limit_bytes: u64) -> SendBuffer {
        SendBuffer {
            write_seq: 1,
            fin_queued: false,
            nospace: false,
            blocking: false,
            in_sendmsg: false,
            limit_bytes,
            locked: false,
            pushed_seq: 0,
            queue: WriteQueue::default(),
        }
    }

    pub fn set_blocking(&mut self, blocking: bool) {
        self.blocking = blocking;
    }

    /// SO_SNDBUF: twice what is asked for, at least SOCK_MIN_SNDBUF, and it does not grow.
    pub fn ask_for(&mut self, bytes: u64) {
        self.limit_bytes = (2 * bytes).max(LEAST_BYTES);
        self.locked = true;
    }

    // ---- what it holds ---------------------------------------------------

    /// The packets that were written and not sent.
    #[inline]
    pub fn queue(&mut self) -> &mut WriteQueue {
        &mut self.queue
    }
    /// End of what the application wrote.
    #[inline]
    pub fn write_seq(&self) -> u64 {
        self.write_seq
    }
    #[inline]
    pub fn fin_queued(&self) -> bool {
        self.fin_queued
    }
    /// Does a FIN go out with what ends at `end_seq`?
    #[inline]
    pub fn ends_at(&self, end_seq: u64) -> bool {
        self.fin_queued && end_seq == self.write_seq
    }
    /// Data, or a FIN, that was never sent?
    #[inline]
    pub fn has_unsent(&self, snd_nxt: u64) -> bool {
        snd_nxt < self.write_seq + u64::from(self.fin_queued)
    }
    /// Payload that was never sent. Before the handshake is complete snd_nxt is behind the first byte.
    #[inline]
    pub fn unsent_bytes(&self, snd_nxt: u64) -> u64 {
        self.write_seq.saturating_sub(snd_nxt.max(1))
    }
    /// Is the packet that is sent next the one that writes add to?
    #[inline]
    pub fn head_is_tail(&self) -> bool {
        self.queue.head_is_tail()
    }
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }
    /// Did the last write() stop for want of space?
    #[inline]
    pub fn is_full(&self) -> bool {
        self.nospace
    }
    /// Has a write() been interrupted that waits for space?
    pub fn write_waits(&self) -> bool {
        self.blocking && self.in_sendmsg
    }

    /// sk_wmem_queued: payload unacked and unsent, and what its packets cost, `skbs_out` of which were sent.
    fn queued_bytes(&self, snd_una: u64, skbs_out: u64) -> u64 {
        let payload = self.write_seq.saturating_sub(snd_una);
        payload + (skbs_out + self.queue.skbs()) * SKB_OVERHEAD_BYTES
    }

    /// What still fits into the last packet that was not sent. What a packet takes, `goal_bytes`, is asked only where it
    /// matters, because it costs a division.
    #[inline]
    fn tail_room_bytes(&self, snd_nxt: u64, goal_bytes: impl Fn() -> u64) -> u64 {
        let tail_bytes = self.queue.tail_bytes(snd_nxt);
        tail_bytes.map_or(0, |bytes| goal_bytes().saturating_sub(bytes))
    }

    // ---- what the application does ---------------------------------------

    /// Would a write() be taken now? A refusal is remembered: SOCK_NOSPACE.
    ///
    /// tcp_sendmsg() asks for memory only when it needs a new skb; what fits into an unsent one is added to it. A sender
    /// whose TSO packets are smaller than its skbs therefore goes beyond its buffer.
    #[inline]
    pub fn takes_more(
        &mut self,
        (snd_una, snd_nxt): (u64, u64),
        goal_bytes: impl Fn() -> u64,
        skbs_out: u64,
    ) -> bool {
        self.nospace = self.tail_room_bytes(snd_nxt, goal_bytes) == 0
            && self.queued_bytes(snd_una, skbs_out) >= self.limit_bytes;
        !self.nospace
    }

    /// tcp_sendmsg(), as far as one packet: returns the bytes taken of `bytes`, and whether they filled it.
    #[inline]
    pub fn write(&mut self, bytes: u64, snd_nxt: u64, goal_bytes: impl Fn() -> u64) -> (u64, bool) {
        let mut room = self.tail_room_bytes(snd_nxt, &goal_bytes);
        let new_skb = room == 0;
        if new_skb {
            room = goal_bytes();
        }
        let taken = bytes.min(room);
        let goes_on = std::mem::replace(&mut self.in_sendmsg, taken < bytes);
        self.write_seq += taken;
        if new_skb {
            self.queue.add(self.write_seq);
        } else {
            self.queue.extend(self.write_seq, !goes_on);
        }
        (taken, taken == room)
    }

    /// Was more than half the largest window written since PSH was last asked for (forced_push())?
    pub fn wants_push(&self, max_window: u64) -> bool {
        self.write_seq > self.pushed_seq + (max_window >> 1)
    }

    /// tcp_mark_push()
    pub fn mark_push(&mut self) {
        self.queue.mark_push();
        self.pushed_seq = self.write_seq;
    }

    /// close(): a FIN follows what was written. False when closed before.
    pub fn close(&mut self) -> bool {
        !std::mem::replace(&mut self.fin_queued, true)
    }

    // ---- space -----------------------------------------------------------

    /// sk_stream_write_space(): a third must be free before the writer wakes.
    pub fn check_space(&mut self, snd_una: u64, skbs_out: u64) {
        let queued = self.queued_bytes(snd_una, skbs_out);
        if queued < self.limit_bytes && self.limit_bytes - queued >= queued / 2 {
            self.nospace = false;
        }
    }

    /// tcp_sndbuf_expand(): room for `segs` segments of an MSS, but no more than `most_bytes`.
    pub fn expand(&mut self, segs: u64, mss_bytes: u64, most_bytes: u64) {
        let wanted = segs * per_segment_bytes(mss_bytes);
        if wanted > self.limit_bytes && !self.locked {
            self.limit_bytes = wanted.min(most_bytes).max(self.limit_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOAL: u64 = 10_000;

    fn goal() -> u64 {
        GOAL
    }

    #[test]
    fn a_buffer_that_was_asked_for_is_twice_as_large_and_does_not_grow() {
        let mut buffer = SendBuffer::new(16_384);
        buffer.expand(10, 1460, 1 << 20);
        assert_eq!(buffer.limit_bytes(), 10 * 4_352);
        buffer.ask_for(30_000);
        buffer.expand(1_000, 1460, 4 << 20);
        assert_eq!(buffer.limit_bytes(), 60_000);
        buffer.ask_for(1_000);
        assert_eq!(buffer.limit_bytes(), 4_608);
    }

    #[test]
    fn a_write_fills_one_packet_and_the_next_goes_on_in_it() {
        let mut buffer = SendBuffer::new(1 << 20);
        assert_eq!(buffer.write(4_000, 1, goal), (4_000, false));
        assert_eq!(buffer.write(9_000, 1, goal), (6_000, true));
        assert_eq!(buffer.write(3_000, 1, goal), (3_000, false));
        assert_eq!((buffer.queue().skbs(), buffer.write_seq()), (2, 13_001));
        assert_eq!(buffer.unsent_bytes(3_001), 10_000);
        assert_eq!(buffer.unsent_bytes(0), 13_000);
        assert!(buffer.has_unsent(13_000) && !buffer.has_unsent(13_001));
        assert!(buffer.close() && !buffer.close());
        assert!(buffer.has_unsent(13_001) && buffer.ends_at(13_001));
        assert!(!buffer.has_unsent(13_002) && !buffer.ends_at(13_000));
    }

    #[test]
    fn only_a_blocking_write_that_was_cut_short_waits() {
        for blocking in [false, true] {
            let mut buffer = SendBuffer::new(1 << 20);
            buffer.set_blocking(blocking);
            buffer.write(GOAL + 1, 1, goal);
            assert_eq!(buffer.write_waits(), blocking);
            buffer.write(1, 1, goal);
            assert!(!buffer.write_waits());
        }
    }

    #[test]
    fn a_full_buffer_takes_what_fits_into_its_last_packet_and_wakes_the_writer_with_a_third_free() {
        let mut buffer = SendBuffer::new(12_000);
        buffer.write(GOAL, 1, goal);
        assert!(buffer.takes_more((1, 1), goal, 0), "10,896 of 12,000");
        buffer.write(4_000, 1, goal);
        assert!(buffer.takes_more((1, 1), goal, 0), "the tail has room");
        buffer.write(6_000, 1, goal);
        assert!(!buffer.takes_more((1, 1), goal, 0) && buffer.is_full());
        // All is sent as two packets; 8,000 bytes of 12,000 with their cost is the most that wakes.
        let left = |payload: u64| 1 + 20_000 - (payload - 2 * SKB_OVERHEAD_BYTES);
        buffer.queue().sent(20_001);
        buffer.check_space(left(8_002), 2);
        assert!(buffer.is_full());
        buffer.check_space(left(8_000), 2);
        assert!(!buffer.is_full());
    }

    /// Source: Linux tcp_sndbuf_expand(), SKB_TRUESIZE() on x86-64.
    #[test]
    fn a_segment_takes_a_power_of_two_by_its_mss() {
        let taken = [1408, 1409, 1460, 8961].map(per_segment_bytes);
        assert_eq!(taken, [2_304, 4_352, 4_352, 16_640]);
    }

    #[test]
    fn the_buffer_grows_up_to_the_most_and_never_shrinks() {
        let mut buffer = SendBuffer::new(50_000);
        buffer.expand(10, 1460, 1 << 20);
        assert_eq!(buffer.limit_bytes(), 50_000);
        buffer.expand(20, 1460, 1 << 20);
        assert_eq!(buffer.limit_bytes(), 20 * 4_352);
        buffer.expand(90, 1460, 100_000);
        assert_eq!(buffer.limit_bytes(), 100_000);
        buffer.expand(90, 1460, 60_000);
        assert_eq!(buffer.limit_bytes(), 100_000);
    }

    #[test]
    fn push_is_asked_for_every_half_window() {
        let mut buffer = SendBuffer::new(1 << 20);
        buffer.write(5_000, 1, goal);
        assert!(!buffer.wants_push(10_002) && buffer.wants_push(10_000));
        buffer.mark_push();
        assert!(!buffer.wants_push(0));
    }
}

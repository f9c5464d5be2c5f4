//! The skbs that were written and not sent: sk_write_queue.
//!
//! An skb takes up to 64 KiB, and packets do not reach across its end unless the
//! window lets more go than is left of it. A single segment at an skb's end goes
//! at once where one in its middle waits for the next ACK (tcp_tso_should_defer()),
//! so the ends decide where in a train the odd segment stands.
//!
//! Source: Linux 6.12 net/ipv4/tcp.c: tcp_sendmsg_locked(); tcp_output.c: tcp_grow_skb().

use std::collections::VecDeque;

#[derive(Debug)]
struct Skb {
    end_seq: u64,
    /// Its last segment carries PSH.
    psh: bool,
}

/// Each skb begins where the one before ends, the first one at snd_nxt.
#[derive(Debug)]
pub struct WriteQueue {
    skbs: VecDeque<Skb>,
}

impl WriteQueue {
    pub fn new() -> WriteQueue {
        WriteQueue {
            skbs: VecDeque::new(),
        }
    }

    pub fn len(&self) -> u64 {
        self.skbs.len() as u64
    }

    /// Bytes of the skb that is sent next; 0 when there is none.
    pub fn head_bytes(&self, snd_nxt: u64) -> u64 {
        self.skbs.front().map_or(0, |skb| skb.end_seq - snd_nxt)
    }

    /// Is the skb that is sent next the one that writes add to?
    pub fn head_is_tail(&self) -> bool {
        self.skbs.len() <= 1
    }

    /// Bytes of the skb that writes add to, `None` when there is none.
    pub fn tail_bytes(&self, snd_nxt: u64) -> Option<u64> {
        let tail = self.skbs.back()?;
        let before = self.skbs.len().checked_sub(2);
        let start = before.map_or(snd_nxt, |i| self.skbs[i].end_seq);
        Some(tail.end_seq - start)
    }

    /// A new skb behind all others.
    pub fn add(&mut self, end_seq: u64) {
        self.skbs.push_back(Skb {
            end_seq,
            psh: false,
        });
    }

    /// More bytes for the last skb. The first ones of a write() take back the
    /// PSH of the write() before.
    pub fn extend(&mut self, end_seq: u64, first: bool) {
        if let Some(tail) = self.skbs.back_mut() {
            tail.end_seq = end_seq;
            tail.psh &= !first;
        }
    }

    /// tcp_mark_push()
    pub fn mark_push(&mut self) {
        if let Some(tail) = self.skbs.back_mut() {
            tail.psh = true;
        }
    }

    /// tcp_grow_skb(): takes from the second skb what the first lacks of `bytes`.
    pub fn grow_head(&mut self, snd_nxt: u64, bytes: u64) {
        let wanted = snd_nxt + bytes;
        if self.skbs.len() < 2 || self.skbs[0].end_seq >= wanted {
            return;
        }
        if wanted < self.skbs[1].end_seq {
            self.skbs[0].end_seq = wanted;
        } else {
            let emptied = self.skbs.pop_front();
            self.skbs[0].psh |= emptied.is_some_and(|skb| skb.psh);
        }
    }

    /// Everything before `snd_nxt` is sent. Was that the end of an skb with PSH?
    pub fn sent(&mut self, snd_nxt: u64) -> bool {
        let mut psh = false;
        while let Some(skb) = self.skbs.front()
            && skb.end_seq <= snd_nxt
        {
            psh = skb.psh;
            self.skbs.pop_front();
        }
        psh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_448;

    fn queue(ends: &[u64]) -> WriteQueue {
        let mut queue = WriteQueue::new();
        ends.iter().for_each(|end| queue.add(end * MSS));
        queue
    }

    #[test]
    fn an_skb_ends_where_it_was_filled_up() {
        let mut queue = queue(&[45, 90]);
        assert_eq!(queue.head_bytes(0), 45 * MSS);
        assert!(!queue.sent(44 * MSS));
        assert_eq!(queue.head_bytes(44 * MSS), MSS);
        assert_eq!(queue.tail_bytes(44 * MSS), Some(45 * MSS));
        queue.sent(45 * MSS);
        assert!(queue.head_is_tail());
        assert_eq!(queue.tail_bytes(50 * MSS), Some(40 * MSS));
    }

    #[test]
    fn a_head_shorter_than_what_may_go_takes_from_the_next_only() {
        let mut first = queue(&[1, 46, 91]);
        first.grow_head(0, MSS);
        assert_eq!((first.head_bytes(0), first.len()), (MSS, 3));
        first.grow_head(0, 2 * MSS);
        assert_eq!((first.head_bytes(0), first.len()), (2 * MSS, 3));
        first.grow_head(0, 60 * MSS);
        assert_eq!((first.head_bytes(0), first.len()), (46 * MSS, 2));
        let mut alone = queue(&[1]);
        alone.grow_head(0, 2 * MSS);
        assert_eq!(alone.head_bytes(0), MSS);
    }

    #[test]
    fn push_stands_at_the_end_of_a_write_until_the_next_adds_to_it() {
        let mut queue = queue(&[45]);
        queue.mark_push();
        queue.extend(46 * MSS, false);
        assert!(!queue.sent(45 * MSS));
        queue.mark_push();
        queue.extend(47 * MSS, true);
        assert!(!queue.sent(47 * MSS));
        queue.add(48 * MSS);
        queue.mark_push();
        assert!(queue.sent(48 * MSS));
        assert_eq!(queue.tail_bytes(48 * MSS), None);
    }
}

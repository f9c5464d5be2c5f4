//! The skbs that were written and not sent: sk_write_queue.
//!
//! An skb takes up to 64 KiB, and packets do not reach across its end unless the
//! window lets more go than is left of it. A single segment at an skb's end goes
//! at once where one in its middle waits for the next ACK (tcp_tso_should_defer()),
//! so the ends decide where in a train the odd segment stands.
//!
//! Source: Linux 6.12 net/ipv4/tcp.c: tcp_sendmsg_locked(); tcp_output.c: tcp_grow_skb().

use knee_kit::odds::unlikely;
use std::collections::VecDeque;

#[derive(Debug, Default)]
struct Skb {
    end_seq: u64,
    /// Its last segment carries PSH.
    psh: bool,
}

/// Each skb begins where the one before ends, the first one at snd_nxt.
#[derive(Debug, Default)]
pub struct WriteQueue {
    /// The skb that is sent next; each packet looks at it several times. Without one it ends at or before snd_nxt.
    head: Skb,
    has_head: bool,
    /// Those behind it.
    others: VecDeque<Skb>,
}

impl WriteQueue {
    /// How many there are.
    #[inline]
    pub fn skbs(&self) -> u64 {
        u64::from(self.has_head) + self.others.len() as u64
    }

    /// Bytes of the skb that is sent next; 0 when there is none.
    #[inline]
    pub fn head_bytes(&self, snd_nxt: u64) -> u64 {
        self.head.end_seq.saturating_sub(snd_nxt)
    }

    /// Is the skb that is sent next the one that writes add to?
    #[inline]
    pub fn head_is_tail(&self) -> bool {
        self.others.is_empty()
    }

    /// Bytes of the skb that writes add to, `None` when there is none.
    #[inline]
    pub fn tail_bytes(&self, snd_nxt: u64) -> Option<u64> {
        let Some(last) = self.others.len().checked_sub(1) else {
            return self.has_head.then(|| self.head_bytes(snd_nxt));
        };
        let before = last.checked_sub(1);
        let start = before.map_or(self.head.end_seq, |i| self.others[i].end_seq);
        Some(self.others[last].end_seq - start)
    }

    /// A new skb behind all others.
    #[inline]
    pub fn add(&mut self, end_seq: u64) {
        let skb = Skb {
            end_seq,
            psh: false,
        };
        match std::mem::replace(&mut self.has_head, true) {
            true => self.others.push_back(skb),
            false => self.head = skb,
        }
    }

    fn tail(&mut self) -> Option<&mut Skb> {
        match self.others.back_mut() {
            None => self.has_head.then_some(&mut self.head),
            tail => tail,
        }
    }

    /// More bytes for the last skb. The first ones of a write() take back the
    /// PSH of the write() before.
    #[inline]
    pub fn extend(&mut self, end_seq: u64, first: bool) {
        if let Some(tail) = self.tail() {
            tail.end_seq = end_seq;
            tail.psh &= !first;
        }
    }

    /// tcp_mark_push()
    #[inline]
    pub fn mark_push(&mut self) {
        if let Some(tail) = self.tail() {
            tail.psh = true;
        }
    }

    /// tcp_grow_skb(): takes from the second skb what the first lacks of `bytes`.
    #[inline]
    pub fn grow_head(&mut self, snd_nxt: u64, bytes: u64) {
        let wanted = snd_nxt + bytes;
        if unlikely(self.head.end_seq < wanted && !self.others.is_empty()) {
            self.take_from_second(wanted);
        }
    }

    #[inline(never)]
    fn take_from_second(&mut self, wanted: u64) {
        if wanted < self.others[0].end_seq {
            self.head.end_seq = wanted;
        } else if let Some(second) = self.others.pop_front() {
            let emptied = std::mem::replace(&mut self.head, second);
            self.head.psh |= emptied.psh;
        }
    }

    /// Everything before `snd_nxt` is sent. Was that the end of an skb with PSH?
    #[inline]
    pub fn sent(&mut self, snd_nxt: u64) -> bool {
        unlikely(self.head.end_seq <= snd_nxt) && self.pop_sent(snd_nxt)
    }

    #[inline(never)]
    fn pop_sent(&mut self, snd_nxt: u64) -> bool {
        let mut psh = false;
        while self.has_head && self.head.end_seq <= snd_nxt {
            psh = self.head.psh;
            match self.others.pop_front() {
                Some(next) => self.head = next,
                None => self.has_head = false,
            }
        }
        psh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_448;

    fn queue(ends: &[u64]) -> WriteQueue {
        let mut queue = WriteQueue::default();
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
        assert_eq!((first.head_bytes(0), first.skbs()), (MSS, 3));
        first.grow_head(0, 2 * MSS);
        assert_eq!((first.head_bytes(0), first.skbs()), (2 * MSS, 3));
        first.grow_head(0, 60 * MSS);
        assert_eq!((first.head_bytes(0), first.skbs()), (46 * MSS, 2));
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

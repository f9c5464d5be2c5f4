//! The window that the other end offers.

use crate::segment::{Segment, WINDOW_FIELD_MAX};

#[derive(Clone, Debug)]
pub struct PeerWindow {
    bytes: u64,
    /// snd_wl1: sequence number of the segment that last changed it.
    changed_at: u64,
    /// The largest that was offered; 0 before the first.
    max_bytes: u64,
}

impl PeerWindow {
    pub fn new() -> PeerWindow {
        PeerWindow {
            bytes: WINDOW_FIELD_MAX,
            changed_at: 0,
            max_bytes: 0,
        }
    }

    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The largest that was offered; 0 before the first.
    #[inline]
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// May data up to `end_seq` be sent?
    #[inline]
    pub fn allows(&self, snd_una: u64, end_seq: u64) -> bool {
        end_seq <= snd_una + self.bytes
    }

    /// Bytes that may still be sent.
    #[inline]
    pub fn room_bytes(&self, snd_una: u64, snd_nxt: u64) -> u64 {
        (snd_una + self.bytes).saturating_sub(snd_nxt)
    }

    /// The handshake is complete.
    pub fn start(&mut self, segment: &Segment) {
        self.set(segment);
    }

    #[inline]
    fn set(&mut self, segment: &Segment) {
        self.changed_at = segment.seq;
        self.bytes = segment.window_bytes;
        self.max_bytes = self.max_bytes.max(self.bytes);
    }

    /// tcp_ack_update_window(): takes over what a segment offers unless an older one does; did the window change?
    #[inline]
    pub fn update(&mut self, segment: &Segment, snd_una: u64) -> bool {
        let window = segment.window_bytes;
        let newer = segment.ack > snd_una
            || segment.seq > self.changed_at
            || segment.seq == self.changed_at && (window > self.bytes || window == 0);
        if !newer {
            return false;
        }
        let changed = window != self.bytes;
        self.set(segment);
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::segment;
    use super::*;

    fn offer(seq: u64, ack: u64, window_bytes: u64) -> Segment {
        Segment {
            window_bytes,
            ..segment(seq, ack)
        }
    }

    #[test]
    fn an_older_segment_does_not_change_the_window() {
        let mut window = PeerWindow::new();
        window.start(&offer(10, 1, 5_000));
        assert!(!window.update(&offer(9, 1, 9_000), 1), "sent before");
        assert!(!window.update(&offer(10, 1, 4_000), 1), "overtaken");
        assert!(window.update(&offer(10, 1, 6_000), 1), "larger");
        assert!(window.update(&offer(10, 1, 0), 1), "shut");
        assert!(window.update(&offer(11, 1, 100), 1), "sent later");
        assert!(window.update(&offer(5, 2, 200), 1), "acks more");
        assert!(!window.update(&offer(12, 2, 200), 1), "nothing new");
        assert_eq!((window.bytes(), window.max_bytes()), (200, 6_000));
    }

    #[test]
    fn room_is_what_the_window_leaves_beyond_what_was_sent() {
        let mut window = PeerWindow::new();
        window.start(&offer(1, 1, 1_000));
        assert_eq!(window.room_bytes(1, 801), 200);
        assert_eq!(window.room_bytes(1, 1_001), 0);
        assert!(window.allows(1, 1_001) && !window.allows(1, 1_002));
        window.update(&offer(2, 1, 500), 1);
        assert_eq!(window.room_bytes(1, 801), 0, "it shrank");
    }
}

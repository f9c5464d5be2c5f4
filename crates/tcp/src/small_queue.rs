//! TCP small queues: a connection keeps little of its own in qdisc and NIC.

/// What of the connection waits there.
#[derive(Clone, Debug, Default)]
pub struct SmallQueue {
    bytes: u64,
    /// Did sending stop because it was too much?
    throttled: bool,
}

impl SmallQueue {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// A packet waits.
    #[inline]
    pub fn add(&mut self, bytes: u32) {
        self.bytes += u64::from(bytes);
    }

    /// `bytes` wait no longer; true: sending may go on.
    #[inline]
    pub fn release(&mut self, bytes: u32) -> bool {
        self.bytes -= u64::from(bytes);
        std::mem::replace(&mut self.throttled, false)
    }

    /// tcp_small_queue_check(): does more than `limit_bytes` wait? A connection with one packet outstanding never stops.
    pub fn blocks(&mut self, limit_bytes: u64, skbs_out: u64) -> bool {
        self.throttled = self.bytes > limit_bytes && skbs_out > 1;
        self.throttled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sending_stops_above_the_limit_and_goes_on_once_with_the_next_departure() {
        let mut queue = SmallQueue::default();
        queue.add(1_000);
        assert!(!queue.blocks(1_000, 2));
        queue.add(1);
        assert!(!queue.blocks(1_000, 1) && !queue.release(0));
        assert!(queue.blocks(1_000, 2));
        assert!(queue.release(1) && !queue.release(1_000));
        assert!(queue.is_empty());
    }
}

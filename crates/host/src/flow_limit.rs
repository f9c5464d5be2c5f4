//! Whose packets a backlog refuses that has filled up to one half (Linux, Documentation/networking/scaling.rst, "RPS Flow
//! Limit"; net/core/dev.c: skb_flow_limit(); 99bbc7074190).

/// Packets whose connections a processor remembers: FLOW_LIMIT_HISTORY.
const HISTORY: usize = 128;
/// Connections are told apart by so many values of their hash: net.core.flow_limit_table_len.
const BUCKETS: usize = 4_096;

/// What a processor remembers of the packets that it put into backlogs which were half full or fuller.
#[derive(Clone, Debug)]
pub struct FlowLimit {
    history: [u16; HISTORY],
    /// The oldest of them.
    oldest: usize,
    /// How many of the history each value of the hash has.
    counts: Vec<u8>,
}

impl Default for FlowLimit {
    fn default() -> FlowLimit {
        FlowLimit {
            history: [0; HISTORY],
            oldest: 0,
            counts: vec![0; BUCKETS],
        }
    }
}

impl FlowLimit {
    /// A packet of a connection with that hash is for a backlog where `waits` of at most `most` wait. Is it refused, as more than
    /// half of the last ones were of its connection?
    pub fn refuses(&mut self, hash: u32, waits: u64, most: u64) -> bool {
        if waits < most / 2 {
            return false;
        }
        let bucket = hash as usize % BUCKETS;
        let oldest = std::mem::replace(&mut self.history[self.oldest], bucket as u16);
        self.oldest = (self.oldest + 1) % HISTORY;
        // An empty history counts for nobody.
        let left = &mut self.counts[usize::from(oldest)];
        *left = left.saturating_sub(1);
        self.counts[bucket] += 1;
        usize::from(self.counts[bucket]) > HISTORY / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_refused_that_has_more_than_half_of_the_last_packets() {
        let mut limit = FlowLimit::default();
        let refused = (0..200).filter(|_| limit.refuses(7, 50, 100)).count();
        assert_eq!(refused, 200 - 64);
        // Another one comes through, and then the first as well: it has no more than half.
        let others = (0..64).filter(|_| limit.refuses(8, 50, 100)).count();
        assert_eq!((others, limit.refuses(7, 50, 100)), (0, false));
    }

    #[test]
    fn many_connections_are_never_refused_and_a_backlog_below_its_half_refuses_nobody() {
        let mut limit = FlowLimit::default();
        assert!((0..10_000).all(|packet| !limit.refuses(packet % 3, 99, 100)));
        assert!((0..10_000).all(|_| !limit.refuses(7, 49, 100)));
        assert!(
            limit
                .counts
                .iter()
                .map(|&count| u32::from(count))
                .sum::<u32>()
                <= 128
        );
    }
}

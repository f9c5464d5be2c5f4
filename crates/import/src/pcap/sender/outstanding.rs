//! Ranges that were sent and are not acknowledged yet.

use std::collections::BTreeMap;

use crate::pcap::ranges::Ranges;

struct Sent {
    end: u64,
    t_ns: i64,
    /// More than once.
    again: bool,
}

/// Ranges by their beginnings; none overlaps another.
#[derive(Default)]
pub struct Outstanding(BTreeMap<u64, Sent>);

impl Outstanding {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Gives back half of the memory: what was sent longest ago is forgotten.
    pub fn forget(&mut self) {
        for _ in 0..self.0.len().div_ceil(2) {
            self.0.pop_first();
        }
    }

    /// Notes that `from..to` was sent, in place of what was known of it.
    pub fn insert(&mut self, t_ns: i64, from: u64, to: u64, again: bool) {
        if from >= to {
            return;
        }
        if let Some((_, sent)) = self.0.range_mut(..from).next_back()
            && sent.end > from
        {
            let after = Sent {
                end: sent.end,
                ..*sent
            };
            sent.end = from;
            if after.end > to {
                self.0.insert(to, after);
            }
        }
        while let Some((&start, _)) = self.0.range(from..to).next() {
            let covered = self.0.remove(&start).expect("it was just seen");
            if covered.end > to {
                self.0.insert(to, covered);
            }
        }
        let sent = Sent {
            end: to,
            t_ns,
            again,
        };
        self.0.insert(from, sent);
    }

    /// Takes what is below `ack`. When the newest of it was sent, leaving out what
    /// a SACK block told before; `None` where any of it was sent again.
    pub fn acknowledge(&mut self, ack: u64, sacked: &Ranges) -> Option<i64> {
        let mut newest = None;
        let mut any_again = false;
        while let Some(entry) = self.0.first_entry() {
            let start = *entry.key();
            if start >= ack {
                break;
            }
            let sent = entry.remove();
            any_again |= sent.again;
            if !sent.again && !sacked.covers(start, sent.end.min(ack)) {
                newest = newest.max(Some(sent.t_ns));
            }
            if sent.end > ack {
                self.0.insert(ack, sent);
            }
        }
        newest.filter(|_| !any_again)
    }

    /// When the newest within `from..to` was sent that was sent once.
    pub fn newest(&self, from: u64, to: u64) -> Option<i64> {
        let first = (self.0.range(..=from).next_back())
            .filter(|(_, sent)| sent.end > from)
            .map_or(from, |(&start, _)| start);
        (self.0.range(first..to))
            .filter(|(_, sent)| !sent.again)
            .map(|(_, sent)| sent.t_ns)
            .max()
    }
}

//! Ranges that were sent again, and how often each.

use std::collections::BTreeMap;

use super::KEPT;

/// Ends and counts of ranges by their beginnings.
#[derive(Default)]
pub struct Again(BTreeMap<u64, (u64, u32)>);

impl Again {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// That range was sent again.
    pub fn add(&mut self, from: u64, to: u64) {
        let known = self.0.entry(from).or_insert((to, 0));
        *known = (known.0.max(to), known.1 + 1);
        if self.0.len() > KEPT {
            self.0.pop_first();
        }
    }

    /// That range came twice. Counts the segments of it that were sent again, for
    /// nothing, and takes them out.
    pub fn spurious(&mut self, from: u64, to: u64, mss: u64) -> u64 {
        let mut segments = 0;
        let mut at = from;
        while at < to {
            let found = (self.0.range(..=at).next_back())
                .filter(|(_, (end, _))| *end > at)
                .or_else(|| self.0.range(at..to).next())
                .map(|(&start, &(end, times))| (start, end, times));
            let Some((start, end, times)) = found else {
                break;
            };
            let part = (start.max(at), end.min(to));
            segments += (part.1 - part.0).div_ceil(mss);
            self.0.remove(&start);
            if times > 1 {
                self.0.insert(start, (end, times - 1));
            } else {
                if start < part.0 {
                    self.0.insert(start, (part.0, 1));
                }
                if part.1 < end {
                    self.0.insert(part.1, (end, 1));
                }
            }
            at = end.max(at + 1);
        }
        segments
    }
}

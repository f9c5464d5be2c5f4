//! Counts of values in buckets that never change.

use serde::Serialize;

/// Values so far. A bucket holds what is at most its edge and more than the one before.
#[derive(Clone, Debug, Serialize)]
pub struct Histogram {
    #[serde(rename = "le")]
    edges: &'static [u64],
    /// One more than edges: what is above the last one.
    counts: Box<[u64]>,
    sum: u64,
}

impl Histogram {
    pub fn new(edges: &'static [u64]) -> Histogram {
        Histogram {
            edges,
            counts: vec![0; edges.len() + 1].into(),
            sum: 0,
        }
    }

    pub fn observe(&mut self, value: u64) {
        self.counts[self.edges.partition_point(|&edge| edge < value)] += 1;
        self.sum = self.sum.saturating_add(value);
    }
}

/// Edges three to a decade: 1, 2 and 5 times its beginning.
pub const TIME_US: &[u64] = &[
    50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000, 2_000_000, 5_000_000, 10_000_000,
];
pub const BYTES_PER_SEC: &[u64] = &[
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
];
pub const SEGMENTS: &[u64] = &[
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000,
];
/// Nothing at all has a bucket to itself.
pub const PPM: &[u64] = &[
    0, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_on_an_edge_is_in_the_bucket_below_it() {
        let mut histogram = Histogram::new(SEGMENTS);
        for value in [1, 2, 3, 5, 50_001] {
            histogram.observe(value);
        }
        assert_eq!(histogram.counts[..4], [1, 1, 2, 0]);
        assert_eq!(histogram.counts.last(), Some(&1));
        assert_eq!(histogram.sum, 50_012);
    }

    #[test]
    fn edges_rise() {
        for edges in [TIME_US, BYTES_PER_SEC, SEGMENTS, PPM] {
            assert!(edges.is_sorted_by(|a, b| a < b));
        }
    }
}

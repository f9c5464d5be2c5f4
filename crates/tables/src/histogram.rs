//! A histogram of times, log-linear, so that percentiles are within 1 %.

/// Counts of values in buckets that grow with the value: 64 per power of two.
/// Only buckets that were hit take memory, so ten thousand flows can have
/// several each; neighbouring values come one after another, so the bucket hit
/// last is nearly always found at once.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
pub struct Histogram {
    /// (bucket, count), ascending.
    buckets: Vec<(u32, u32)>,
    /// Index of the bucket hit last.
    last: usize,
    count: u64,
    sum: u64,
    /// Least and greatest value, so that no percentile lies outside; of none the greatest and the least number.
    range: (u64, u64),
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            buckets: Vec::new(),
            last: 0,
            count: 0,
            sum: 0,
            range: (u64::MAX, 0),
        }
    }
}

const SUB_BITS: u32 = 6;
/// Places that are looked at one by one before all others are searched.
const NEAR: usize = 8;

impl Histogram {
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.range = (self.range.0.min(value), self.range.1.max(value));
        let bucket = bucket_of(value);
        match self.buckets.get_mut(self.last) {
            Some((found, n)) if *found == bucket => *n = n.saturating_add(1),
            _ => self.add_near(bucket),
        }
    }

    /// Most values come to a bucket near that of the last.
    fn add_near(&mut self, bucket: u32) {
        let Some(&(last, _)) = self.buckets.get(self.last) else {
            return self.add_elsewhere(bucket);
        };
        // It stands there if all buckets between were hit, else before.
        let places = bucket as i64 - last as i64;
        let mut at = (self.last as i64 + places).clamp(0, self.buckets.len() as i64 - 1) as usize;
        for _ in 0..NEAR {
            match self.buckets.get_mut(at) {
                Some((found, n)) if *found == bucket => {
                    *n = n.saturating_add(1);
                    self.last = at;
                    return;
                }
                Some((found, _)) if *found < bucket => at += 1,
                Some(_) => at = at.wrapping_sub(1),
                None => break,
            }
        }
        self.add_elsewhere(bucket);
    }

    fn add_elsewhere(&mut self, bucket: u32) {
        match self
            .buckets
            .binary_search_by_key(&bucket, |&(bucket, _)| bucket)
        {
            Ok(at) => {
                self.buckets[at].1 = self.buckets[at].1.saturating_add(1);
                self.last = at;
            }
            Err(at) => {
                self.buckets.insert(at, (bucket, 1));
                self.last = at;
            }
        }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Exact mean; `None` when empty.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The value below or at which `share` of the values lie (nearest rank),
    /// as the middle of its bucket, within what was seen; `None` when empty.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        let (bucket, _) = self.buckets.iter().find(|(_, n)| {
            seen += u64::from(*n);
            seen >= rank
        })?;
        let (least, most) = self.range;
        Some(middle(*bucket).clamp(least as f64, most as f64))
    }
}

/// Values below 128 have a bucket each; above, the power of two and the
/// SUB_BITS bits that follow the leading one name it.
fn bucket_of(value: u64) -> u32 {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(SUB_BITS + 1);
    (shift << SUB_BITS) + (value >> shift) as u32
}

fn middle(bucket: u32) -> f64 {
    let shift = (bucket >> SUB_BITS).saturating_sub(1);
    let low = u64::from(bucket - (shift << SUB_BITS)) << shift;
    low as f64 + ((1u64 << shift) - 1) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_one_percent() {
        let mut histogram = Histogram::default();
        for value in 1..=100_000u64 {
            histogram.add(value);
        }
        for share in [0.01, 0.5, 0.95, 0.99, 1.0] {
            let exact = share * 100_000.0;
            let got = histogram.quantile(share).unwrap();
            assert!(
                (got - exact).abs() <= 0.01 * exact,
                "{share}: {got} against {exact}"
            );
        }
        assert_eq!(histogram.mean(), Some(50_000.5));
    }

    #[test]
    fn every_value_lies_in_the_bucket_whose_middle_stands_for_it() {
        for value in
            (0..20_000).chain((0..64).flat_map(|bit| [1 << bit, (1u64 << bit).wrapping_sub(1)]))
        {
            let middle = middle(bucket_of(value));
            assert!(
                (middle - value as f64).abs() <= value as f64 / 128.0,
                "{value}: {middle}"
            );
        }
    }

    #[test]
    fn an_empty_one_has_no_quantiles() {
        assert_eq!(Histogram::default().quantile(0.5), None);
        assert_eq!(Histogram::default().mean(), None);
    }
}

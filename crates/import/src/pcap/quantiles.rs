//! Quantiles of many numbers in little memory.

/// Numbers below 2^7 are counted exactly, others in 64 buckets per doubling: a
/// quantile is off by 0.8 % at most.
#[derive(Default)]
pub struct Quantiles {
    /// Bucket and count, ascending; those without a count are absent.
    buckets: Vec<(u16, u32)>,
    count: u64,
    least: u64,
    greatest: u64,
}

const BITS: u32 = 6;

impl Quantiles {
    pub fn add(&mut self, number: u64) {
        (self.least, self.greatest) = if self.count == 0 {
            (number, number)
        } else {
            (self.least.min(number), self.greatest.max(number))
        };
        self.count += 1;
        let bucket = bucket(number);
        match self
            .buckets
            .binary_search_by_key(&bucket, |&(bucket, _)| bucket)
        {
            Ok(at) => self.buckets[at].1 = self.buckets[at].1.saturating_add(1),
            Err(at) => self.buckets.insert(at, (bucket, 1)),
        }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Pieces of memory that it takes.
    pub fn buckets(&self) -> usize {
        self.buckets.len()
    }

    pub fn least(&self) -> Option<u64> {
        (self.count > 0).then_some(self.least)
    }

    pub fn greatest(&self) -> Option<u64> {
        (self.count > 0).then_some(self.greatest)
    }

    /// The least number with at least the share `share` of all at or below it.
    pub fn at(&self, share: f64) -> Option<u64> {
        let rank = (share * self.count as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        let (bucket, _) = self.buckets.iter().find(|(_, count)| {
            below += u64::from(*count);
            below >= rank
        })?;
        Some(middle(*bucket).clamp(self.least, self.greatest))
    }
}

fn bucket(number: u64) -> u16 {
    let shift = (u64::BITS - number.leading_zeros()).saturating_sub(BITS + 1);
    // At most 57 << 6 + 127.
    ((u64::from(shift) << BITS) + (number >> shift)) as u16
}

/// The middle of a bucket's numbers.
fn middle(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    let shift = (bucket >> BITS).saturating_sub(1);
    let first = (bucket - (shift << BITS)) << shift;
    first + ((1 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn quantile_is_within_0_8_pct(mut numbers in prop::collection::vec(0u64..1 << 40, 1..200), share in 0.0f64..1.0) {
            let mut quantiles = Quantiles::default();
            numbers.iter().for_each(|&number| quantiles.add(number));
            numbers.sort_unstable();
            let rank = ((share * numbers.len() as f64).ceil() as usize).max(1);
            let expected = numbers[rank - 1] as f64;
            let found = quantiles.at(share).unwrap() as f64;
            prop_assert!((found - expected).abs() <= expected * 0.008, "{found} is not {expected}");
            prop_assert_eq!(quantiles.least(), numbers.first().copied());
            prop_assert_eq!(quantiles.greatest(), numbers.last().copied());
        }
    }

    #[test]
    fn nothing_has_no_quantile() {
        assert_eq!(Quantiles::default().at(0.5), None);
    }
}

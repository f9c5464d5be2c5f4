//! A histogram of times, log-linear, so that percentiles are within 1 %.

/// Counts of values in buckets that grow with the value: 64 per power of two.
/// Memory is taken per power of two touched, so an unused one is nearly free.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    octaves: Vec<Option<Box<[u64; SUB as usize]>>>,
    count: u64,
    sum: f64,
}

const SUB_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;

impl Histogram {
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.add_n(value, 1);
    }

    #[inline]
    pub fn add_n(&mut self, value: u64, n: u64) {
        // Values below SUB share octave 0, one bucket each; above, the top
        // SUB_BITS + 1 bits choose octave and bucket.
        let shift = (u64::BITS - value.leading_zeros()).saturating_sub(SUB_BITS + 1);
        let octave = if value < SUB { 0 } else { shift as usize + 1 };
        let bucket = ((value >> shift) & (SUB - 1)) as usize;
        if octave >= self.octaves.len() {
            self.octaves.resize(octave + 1, None);
        }
        self.octaves[octave].get_or_insert_with(|| Box::new([0; SUB as usize]))[bucket] += n;
        self.count += n;
        self.sum += value as f64 * n as f64;
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Exact mean; `None` when empty.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// The value below or at which `share` of the values lie (nearest rank),
    /// as the middle of its bucket; `None` when empty.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count);
        let mut seen = 0;
        for (octave, buckets) in self.octaves.iter().enumerate() {
            for (bucket, &n) in buckets
                .iter()
                .flat_map(|buckets| buckets.iter().enumerate())
            {
                seen += n;
                if seen >= rank {
                    return Some(middle(octave, bucket as u64));
                }
            }
        }
        unreachable!("the buckets hold `count` values")
    }
}

fn middle(octave: usize, bucket: u64) -> f64 {
    match octave {
        0 => bucket as f64,
        _ => {
            let width = 1u64 << (octave - 1);
            ((SUB + bucket) * width) as f64 + (width - 1) as f64 / 2.0
        }
    }
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
    fn small_values_are_exact_and_huge_ones_fit() {
        let mut histogram = Histogram::default();
        histogram.add(0);
        assert_eq!(histogram.quantile(0.5), Some(0.0));
        histogram.add(u64::MAX);
        let top = histogram.quantile(1.0).unwrap();
        assert!((top / u64::MAX as f64 - 1.0).abs() < 0.01);
        assert_eq!(Histogram::default().quantile(0.5), None);
    }
}

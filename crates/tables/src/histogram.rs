//! A histogram of times, log-linear, so that percentiles are within 1 %.

/// Counts of values in buckets that grow with the value: 64 per power of two.
/// Buckets lie four to a page, and only pages that were hit take memory, so ten
/// thousand flows can have several each; neighbouring values come one after
/// another, so the page hit last is nearly always the right one. It lies here,
/// where nothing else in memory has to be waited for.
#[derive(Clone, Debug, serde::Deserialize, serde::Serialize)]
pub struct Histogram {
    count: u64,
    sum: u64,
    /// Least and greatest value, so that no percentile lies outside; of none the greatest and the least number.
    range: (u64, u64),
    /// The page hit last, ...
    current: Page,
    /// ... and its place, where it is written when another is hit.
    place: u32,
    /// By their numbers, ascending; none as long as there is one alone.
    pages: Vec<Page>,
}

/// Buckets one after the other, the first of which is `number` * `BUCKETS`.
#[derive(Clone, Copy, Debug, serde::Deserialize, serde::Serialize)]
struct Page {
    number: u32,
    counts: [u32; BUCKETS],
}

impl Page {
    /// Of no values.
    fn new(number: u32) -> Page {
        let counts = [0; BUCKETS];
        Page { number, counts }
    }

    #[inline]
    fn add(&mut self, bucket: u32, times: u32) {
        let count = &mut self.counts[bucket as usize % BUCKETS];
        *count = count.saturating_add(times);
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            count: 0,
            sum: 0,
            range: (u64::MAX, 0),
            current: Page::new(0),
            place: 0,
            pages: Vec::new(),
        }
    }
}

const SUB_BITS: u32 = 6;
/// Of a page.
const BUCKETS: usize = 4;

impl Histogram {
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.add_times(value, 1);
    }

    /// As many values alike.
    #[inline]
    pub fn add_times(&mut self, value: u64, times: u32) {
        if times == 0 {
            return;
        }
        self.count += u64::from(times);
        self.sum = self
            .sum
            .saturating_add(value.saturating_mul(u64::from(times)));
        let (least, most) = self.range;
        if value < least || value > most {
            self.widen(value);
        }
        let bucket = bucket_of(value);
        if self.current.number != bucket / BUCKETS as u32 {
            self.turn_to(bucket / BUCKETS as u32);
        }
        self.current.add(bucket, times);
    }

    #[cold]
    fn widen(&mut self, value: u64) {
        let (least, most) = self.range;
        self.range = (least.min(value), most.max(value));
    }

    /// Another page is the current one, which is made if need be. Few pages are missing between those that were hit, so that
    /// a page's number mostly tells its place.
    #[inline(never)]
    fn turn_to(&mut self, number: u32) {
        let away = number.wrapping_sub(self.current.number).cast_signed();
        let likely = (self.place as usize).wrapping_add_signed(away as isize);
        if let Some(current) = self.pages.get_mut(self.place as usize) {
            *current = self.current;
        }
        let found = match self.pages.get(likely) {
            Some(page) if page.number == number => likely,
            _ => self.find(number),
        };
        self.current = self.pages.get(found).copied().unwrap_or(Page::new(number));
        self.place = found as u32;
    }

    /// The place of a page, which is made if need be.
    #[inline(never)]
    fn find(&mut self, number: u32) -> usize {
        if self.pages.is_empty() {
            if self.current.counts == [0; BUCKETS] {
                // The first value comes.
                return 0;
            }
            self.pages.reserve_exact(2);
            self.pages.push(self.current);
        }
        let found = self.pages.binary_search_by_key(&number, |page| page.number);
        found.unwrap_or_else(|at| {
            // Most histograms of a run with many flows have few pages, and no room for more.
            if self.pages.len() == self.pages.capacity() {
                self.pages.reserve_exact(self.pages.len());
            }
            self.pages.insert(at, Page::new(number));
            at
        })
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
        let place = self.place as usize;
        let others = self.pages.get(place + 1..).unwrap_or_default();
        let pages = self.pages.iter().take(place).chain([&self.current]);
        let mut buckets = pages.chain(others).flat_map(|page| {
            let first = page.number * BUCKETS as u32;
            (first..).zip(page.counts)
        });
        let mut seen = 0;
        let (bucket, _) = buckets.find(|&(_, n)| {
            seen += u64::from(n);
            seen >= rank
        })?;
        let (least, most) = self.range;
        Some(middle(bucket).clamp(least as f64, most as f64))
    }
}

/// Values below 128 have a bucket each; above, the power of two and the
/// SUB_BITS bits that follow the leading one name it.
#[inline]
fn bucket_of(value: u64) -> u32 {
    let shift = (value | 1 << SUB_BITS).ilog2() - SUB_BITS;
    (shift << SUB_BITS) + (value >> shift) as u32
}

fn middle(bucket: u32) -> f64 {
    let shift = (bucket >> SUB_BITS).saturating_sub(1);
    let low = u64::from(bucket - (shift << SUB_BITS)) << shift;
    low as f64 + ((1u64 << shift) - 1) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    proptest! {
        /// Against all the values.
        #[test]
        fn in_whatever_order_values_come_each_is_counted_in_its_bucket(values in prop::collection::vec((0u64..2_000, 0u32..4), 1..300)) {
            let mut histogram = Histogram::default();
            let mut sorted = vec![7];
            histogram.add(7);
            for &(value, times) in &values {
                histogram.add_times(value, times);
                sorted.extend((0..times).map(|_| value));
                prop_assert!(histogram.pages.is_sorted_by(|a, b| a.number < b.number));
            }
            sorted.sort_unstable();
            let (least, most) = (sorted[0] as f64, sorted[sorted.len() - 1] as f64);
            for (n, &value) in sorted.iter().enumerate() {
                let share = (n as f64 + 0.5) / sorted.len() as f64;
                let expected = middle(bucket_of(value)).clamp(least, most);
                prop_assert_eq!(histogram.quantile(share), Some(expected));
            }
        }
    }

    #[test]
    fn an_empty_one_has_no_quantiles() {
        assert_eq!(Histogram::default().quantile(0.5), None);
        assert_eq!(Histogram::default().mean(), None);
    }
}

//! Counters of the kernel that begin again from 0 at their width, or because who
//! counts was put in another's place.

pub const WORD: u64 = u32::MAX as u64;
pub const SHORT: u64 = u16::MAX as u64;

/// How far a counter of that width came. One that would have come further than
/// half of it was set back, and counts from 0.
pub fn moved_on(now: u64, earlier: u64, mask: u64) -> u64 {
    let delta = now.wrapping_sub(earlier) & mask;
    if delta > mask / 2 { now } else { delta }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_that_wraps_moves_on_and_one_that_was_set_back_counts_from_0() {
        assert_eq!(moved_on(7, 5, WORD), 2);
        assert_eq!(moved_on(3, WORD - 1, WORD), 5);
        assert_eq!(moved_on(3, 1_000, WORD), 3);
        assert_eq!(moved_on(1, SHORT, SHORT), 2);
        assert_eq!(moved_on(5, 9, u64::MAX), 5);
    }
}

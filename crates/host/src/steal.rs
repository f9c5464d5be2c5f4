//! Time that a hypervisor gives to others.

use std::collections::VecDeque;

use knee_units::rng::Stream;

/// Slices of a processor's time that are not its own. Each is as long as the others; the pauses between them are drawn
/// evenly from half to one and a half times their mean, so that they keep no step with anything.
#[derive(Clone, Debug)]
pub struct Steal {
    slice_ns: u64,
    mean_pause_ns: u64,
    draws: Stream,
    /// When slices begin that have been drawn and are not over.
    begin_ns: VecDeque<u64>,
    /// When the last slice ended that was drawn.
    drawn_until_ns: u64,
}

impl Steal {
    /// `share` of the time, in slices of this length. A share of 1 or more would leave nothing.
    pub fn new(share: f64, slice_ns: u64, draws: Stream, now_ns: u64) -> Steal {
        Steal {
            slice_ns,
            mean_pause_ns: (slice_ns as f64 * (1.0 - share) / share).round() as u64,
            draws,
            begin_ns: VecDeque::new(),
            drawn_until_ns: now_ns,
        }
    }

    /// When a slice begins; 0: the one that comes next, or that it is in.
    fn slice(&mut self, position: usize) -> u64 {
        while self.begin_ns.len() <= position {
            let mean_ns = self.mean_pause_ns;
            let pause_ns = mean_ns / 2 + (self.draws.next_share() * mean_ns as f64) as u64;
            let begin_ns = self.drawn_until_ns + pause_ns;
            self.drawn_until_ns = begin_ns + self.slice_ns;
            self.begin_ns.push_back(begin_ns);
        }
        self.begin_ns[position]
    }

    /// Forgets the slices that are over by then.
    fn pass(&mut self, now_ns: u64) {
        while self.slice(0) + self.slice_ns <= now_ns {
            self.begin_ns.pop_front();
        }
    }

    /// When the processor is there again, if it is not now.
    pub fn ends_ns(&mut self, now_ns: u64) -> Option<u64> {
        self.pass(now_ns);
        let begin_ns = self.slice(0);
        (begin_ns <= now_ns).then_some(begin_ns + self.slice_ns)
    }

    /// When work is done that begins now, while the processor is there, and takes so long; and how much of that is stolen.
    pub fn finish(&mut self, now_ns: u64, work_ns: u64) -> (u64, u64) {
        self.pass(now_ns);
        let mut end_ns = now_ns + work_ns;
        let mut slices = 0;
        while self.slice(slices) < end_ns {
            end_ns += self.slice_ns;
            slices += 1;
        }
        (end_ns, slices as u64 * self.slice_ns)
    }

    /// How much is stolen from now until the end of work that began before.
    pub fn within_ns(&mut self, now_ns: u64, end_ns: u64) -> u64 {
        self.pass(now_ns);
        let mut stolen_ns = 0;
        for position in 0.. {
            let begin_ns = self.slice(position);
            if begin_ns >= end_ns {
                break;
            }
            stolen_ns += (begin_ns + self.slice_ns).min(end_ns) - begin_ns.max(now_ns);
        }
        stolen_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half() -> Steal {
        Steal::new(0.5, 1_000, Stream::new(1, "steal"), 0)
    }

    #[test]
    fn work_takes_as_much_longer_as_the_share_says() {
        let mut steal = half();
        let mut now_ns = 0;
        let mut work_ns = 0;
        while work_ns < 10_000_000 {
            if let Some(end_ns) = steal.ends_ns(now_ns) {
                now_ns = end_ns;
            }
            (now_ns, _) = steal.finish(now_ns, 100);
            work_ns += 100;
        }
        let took = now_ns as f64 / work_ns as f64;
        assert!((took - 2.0).abs() < 0.02, "{took}");
    }

    #[test]
    fn nothing_begins_within_a_slice() {
        let mut steal = half();
        let begin_ns = steal.slice(0);
        assert!(steal.ends_ns(begin_ns - 1).is_none());
        assert_eq!(steal.ends_ns(begin_ns), Some(begin_ns + 1_000));
        assert_eq!(steal.ends_ns(begin_ns + 999), Some(begin_ns + 1_000));
        assert!(steal.ends_ns(begin_ns + 1_000).is_none());
    }

    #[test]
    fn work_that_meets_a_slice_ends_later_by_it() {
        let mut steal = half();
        let begin_ns = steal.slice(0);
        assert_eq!(steal.finish(begin_ns - 10, 10), (begin_ns, 0));
        let mut steal = half();
        assert_eq!(steal.finish(begin_ns - 10, 11), (begin_ns + 1_001, 1_000));
    }

    #[test]
    fn what_is_still_stolen_of_work_under_way_is_told_from_any_moment() {
        let mut steal = half();
        let begin_ns = steal.slice(0);
        let (end_ns, _) = steal.finish(begin_ns - 10, 30);
        assert_eq!(end_ns, begin_ns + 1_020);
        assert_eq!(steal.within_ns(begin_ns - 5, end_ns), 1_000);
        assert_eq!(steal.within_ns(begin_ns + 300, end_ns), 700);
        assert_eq!(steal.ends_ns(begin_ns + 300), Some(begin_ns + 1_000));
        assert_eq!(steal.within_ns(begin_ns + 1_005, end_ns), 0);
    }
}

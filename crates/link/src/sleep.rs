//! How long before a packet is due the link wakes up, and how long it stays
//! awake for nothing.

/// Awake for longer than this is not worth its processor time: a wake-up that
/// takes longer is a busy machine's, which a longer wait would make busier.
const MOST_NS: u64 = 60_000;
const LEAST_NS: u64 = 2_000;

/// Learns how late the kernel wakes this thread up, here and now: 5 us on bare
/// metal, 30 to 50 us in a virtual machine whose processor had gone idle.
pub struct Lead {
    ns: u64,
}

impl Default for Lead {
    fn default() -> Lead {
        Lead { ns: 10_000 }
    }
}

impl Lead {
    /// Wake up so much earlier; the rest is waited for awake.
    pub fn ns(&self) -> u64 {
        self.ns
    }

    /// A wake-up came that late. One step up outweighs nine down, so nine of
    /// ten wake-ups are in time.
    pub fn woke(&mut self, late_ns: u64) {
        let step_ns = self.ns / 64 + 1;
        self.ns = if late_ns > self.ns {
            self.ns + 9 * step_ns
        } else {
            self.ns - step_ns
        };
        self.ns = self.ns.clamp(LEAST_NS, MOST_NS);
    }
}

/// A thread of real-time priority that waits awake keeps both hosts' stacks
/// from working, and after a second of it the kernel stops the thread for up
/// to 50 ms (fair server; before Linux 6.12 sched_rt_runtime_us). So it rests
/// after each 0.1 ms that it waited awake within a millisecond: enough for 100
/// Mbit/s, a packet each 120 us.
const WINDOW_NS: u64 = 1_000_000;
const AWAKE_NS: u64 = WINDOW_NS / 10;
/// A rest instead: with the time to wake up again, what piles up meanwhile is
/// late by less than 100 us.
pub const REST_NS: u64 = 30_000;

/// Counts the time that was waited awake.
#[derive(Default)]
pub struct Patience {
    window_ns: u64,
    awake_ns: u64,
}

impl Patience {
    /// The thread waited awake for `ns` more. Is that too much? Then it rests
    /// for [`REST_NS`].
    pub fn is_over(&mut self, now_ns: u64, ns: u64) -> bool {
        if now_ns - self.window_ns > WINDOW_NS {
            self.window_ns = now_ns;
            self.awake_ns = 0;
        }
        self.awake_ns += ns;
        self.awake_ns > AWAKE_NS
    }

    pub fn rested(&mut self) {
        self.awake_ns = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lead_covers_nine_of_ten_wake_ups() {
        let mut lead = Lead::default();
        let mut late = 0;
        for n in 0u64..20_000 {
            // Evenly between 20 and 40 us.
            let late_ns = 20_000 + n * 7_919 % 20_000;
            late += u64::from(n >= 10_000 && late_ns > lead.ns());
            lead.woke(late_ns);
        }
        assert!((500..2_000).contains(&late), "{late} of 10000");
        assert!((34_000..42_000).contains(&lead.ns()), "{}", lead.ns());
    }

    #[test]
    fn stalls_do_not_make_the_link_wait_awake_for_long() {
        let mut lead = Lead::default();
        for _ in 0..1_000 {
            lead.woke(5_000_000);
        }
        assert_eq!(lead.ns(), MOST_NS);
    }

    #[test]
    fn patience_ends_after_a_tenth_of_each_window() {
        let rests = |step_ns: u64| {
            let mut patience = Patience::default();
            let over = (0..10_000u64).filter(|n| {
                let over = patience.is_over(n * 10_000, step_ns);
                if over {
                    patience.rested();
                }
                over
            });
            over.count()
        };
        // Awake for 9 % of the time, and all of it: nine rests in each window.
        assert_eq!(rests(900), 0);
        assert!((880..=910).contains(&rests(10_000)));
    }
}

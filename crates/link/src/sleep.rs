//! How long before a packet is due the link wakes up.

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
}

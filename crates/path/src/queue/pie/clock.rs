//! When the probability is corrected.

use knee_units::Nanos;

use super::controller::Pie;
use super::settings::Settings;

/// Corrections made up for at most after a pause, 61 s of them at the default
/// `tupdate`: by then the probability has reached 0 or 1.
const MAX_CATCH_UP: u32 = 4_096;

/// When a PIE is corrected next.
#[derive(Clone, Copy, Debug)]
pub struct Clock(pub(super) Nanos);

impl Clock {
    /// Before the first packet.
    pub const UNSET: Clock = Clock(Nanos::MAX);

    /// The first correction is due a `tupdate` after `start`, or whole numbers
    /// of it later: all flows' at the same times.
    pub fn start(settings: &Settings, start: Nanos, now: Nanos) -> Clock {
        let passed = (now - start).0;
        Clock(now + Nanos(settings.tupdate.0 - passed % settings.tupdate.0))
    }

    pub fn is_unset(self) -> bool {
        self.0 == Nanos::MAX
    }

    /// Makes the corrections that were due up to `now`. Since the last packet
    /// nothing has changed that they depend on, so that this is exact.
    #[inline]
    pub fn catch_up(&mut self, pie: &mut Pie, settings: &Settings, backlog_bytes: u64, now: Nanos) {
        if now >= self.0 {
            self.catch_up_late(pie, settings, backlog_bytes, now);
        }
    }

    #[cold]
    fn catch_up_late(
        &mut self,
        pie: &mut Pie,
        settings: &Settings,
        backlog_bytes: u64,
        now: Nanos,
    ) {
        let due = (now - self.0).0 / settings.tupdate.0 + 1;
        self.0 += Nanos(due * settings.tupdate.0);
        for _ in 0..due.min(u64::from(MAX_CATCH_UP)) {
            let before = *pie;
            pie.update(settings, backlog_bytes);
            if *pie == before {
                // Nor will the others change anything.
                break;
            }
        }
    }
}

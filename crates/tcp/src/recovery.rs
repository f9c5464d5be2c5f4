//! Where the loss state machine stands.

use knee_cc::CaState;

/// The state, and the data that the present episode is about.
#[derive(Clone, Debug)]
pub struct Recovery {
    state: CaState,
    /// snd_nxt when the episode began: it ends when all before is acked.
    high_seq: u64,
    /// After a timeout: does F-RTO (RFC 5682) still wait to see whether it was spurious?
    frto: bool,
    /// Timeouts since snd_una last advanced.
    timeouts: u32,
}

impl Recovery {
    pub fn new() -> Recovery {
        Recovery {
            state: CaState::Open,
            high_seq: 0,
            frto: false,
            timeouts: 0,
        }
    }

    #[inline]
    pub fn state(&self) -> CaState {
        self.state
    }
    #[inline]
    pub fn high_seq(&self) -> u64 {
        self.high_seq
    }
    #[inline]
    pub fn in_cwnd_reduction(&self) -> bool {
        matches!(self.state, CaState::Cwr | CaState::Recovery)
    }
    pub fn awaits_frto(&self) -> bool {
        self.frto
    }
    pub fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// Goes over to `state`; returns the turning points passed, for the `events` table.
    pub fn change(&mut self, state: CaState) -> impl Iterator<Item = &'static str> + use<> {
        let (mut ended, mut entered) = (None, None);
        if state != self.state {
            ended = match self.state {
                CaState::Recovery => Some("recovery_end"),
                CaState::Loss => Some("loss_end"),
                CaState::Cwr => Some("cwr_end"),
                _ => None,
            };
            entered = match state {
                CaState::Recovery => Some("recovery"),
                CaState::Loss => Some("loss"),
                CaState::Cwr => Some("cwr"),
                _ => None,
            };
        }
        self.state = state;
        ended.into_iter().chain(entered)
    }

    /// An episode begins, or reaches further.
    pub fn set_high_seq(&mut self, snd_nxt: u64) {
        self.high_seq = snd_nxt;
    }

    /// A timeout: F-RTO looks whether it was spurious, unless it was the first and within a recovery.
    pub fn start_frto(&mut self, new_recovery: bool) {
        self.frto = new_recovery || self.timeouts > 0;
    }

    /// The timeout was no spurious one.
    pub fn end_frto(&mut self) {
        self.frto = false;
    }

    pub fn on_timeout(&mut self) {
        self.timeouts += 1;
    }

    /// snd_una advanced, or a timeout was undone.
    #[inline]
    pub fn clear_timeouts(&mut self) {
        self.timeouts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turning_points_are_what_is_left_and_what_is_entered() {
        let mut recovery = Recovery::new();
        let mut change = |state| recovery.change(state).collect::<Vec<_>>();
        assert!(change(CaState::Disorder).is_empty());
        assert_eq!(change(CaState::Recovery), ["recovery"]);
        assert!(change(CaState::Recovery).is_empty());
        assert_eq!(change(CaState::Loss), ["recovery_end", "loss"]);
        assert_eq!(change(CaState::Cwr), ["loss_end", "cwr"]);
        assert_eq!(change(CaState::Open), ["cwr_end"]);
    }

    #[test]
    fn only_a_first_timeout_within_a_recovery_is_not_tried_for_being_spurious() {
        let mut recovery = Recovery::new();
        recovery.start_frto(false);
        assert!(!recovery.awaits_frto());
        recovery.start_frto(true);
        assert!(recovery.awaits_frto());
        recovery.end_frto();
        recovery.on_timeout();
        recovery.start_frto(false);
        assert!(recovery.awaits_frto());
        recovery.clear_timeouts();
        assert_eq!(recovery.timeouts(), 0);
    }
}

//! What is needed to take a reduction of the window back once it proves spurious: every retransmission was reported as
//! a duplicate (DSACK), or an ACK answers data sent before the first of them (Eifel, RFC 3522).

#[derive(Clone, Debug, Default)]
pub struct Undo {
    /// snd_una when the episode began; 0: there is nothing to undo.
    marker: u64,
    /// Retransmissions that were not reported as duplicates; negative: there was none yet.
    retrans: i64,
    /// ms stamp of the first retransmission of the episode; 0: none.
    retrans_stamp_ms: u32,
    /// ssthresh to go back to; 0: none.
    prior_ssthresh: u32,
}

impl Undo {
    /// An episode begins; `retrans_out` retransmissions are in flight.
    pub fn start(&mut self, snd_una: u64, retrans_out: u32) {
        self.marker = snd_una;
        // Those in flight from before could be mistaken for ours. None: -1, so that undo waits for the first.
        self.retrans = match retrans_out {
            0 => -1,
            n => i64::from(n),
        };
    }

    /// The episode is over, or must not be undone.
    pub fn end(&mut self) {
        self.marker = 0;
    }

    #[inline]
    pub fn is_on(&self) -> bool {
        self.marker != 0
    }

    pub fn set_prior_ssthresh(&mut self, ssthresh: u32) {
        self.prior_ssthresh = ssthresh;
    }

    /// The network did ask to reduce: ssthresh stays.
    pub fn forget_ssthresh(&mut self) {
        self.prior_ssthresh = 0;
    }

    /// ssthresh to go back to; 0: none.
    pub fn prior_ssthresh(&self) -> u32 {
        self.prior_ssthresh
    }

    /// `segs` segments were sent again.
    pub fn on_retransmit(&mut self, segs: u32, departure_ns: u64) {
        if self.retrans_stamp_ms == 0 {
            self.retrans_stamp_ms = (departure_ns / 1_000_000) as u32;
        }
        self.retrans = self.retrans.max(0) + i64::from(segs);
    }

    /// Nothing is in flight that was retransmitted.
    pub fn clear_stamp(&mut self) {
        self.retrans_stamp_ms = 0;
    }

    /// Would a duplicate count?
    pub fn awaits_duplicates(&self) -> bool {
        self.is_on() && self.retrans > 0
    }

    /// `segs` segments, the last ending at `end_seq`, arrived twice.
    pub fn on_duplicates(&mut self, end_seq: u64, segs: u64) {
        if end_seq > self.marker {
            self.retrans = (self.retrans - segs as i64).max(0);
        }
    }

    /// Was every retransmission of the episode a duplicate?
    pub fn all_duplicates(&self) -> bool {
        self.is_on() && self.retrans == 0
    }

    /// tcp_packet_delayed(): does the ACK, which echoes this stamp, answer data sent before the first retransmission?
    pub fn packet_delayed(&self, echoed_ms: Option<u32>) -> bool {
        let first_ms = self.retrans_stamp_ms;
        first_ms != 0 && echoed_ms.is_some_and(|ms| is_before(ms, first_ms))
    }

    /// tcp_may_undo()
    pub fn may_undo(&self, echoed_ms: Option<u32>) -> bool {
        self.is_on() && (self.retrans == 0 || self.packet_delayed(echoed_ms))
    }
}

/// Of two stamps of a clock that wraps.
#[inline]
pub fn is_before(a_ms: u32, b_ms: u32) -> bool {
    (a_ms.wrapping_sub(b_ms) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_episode_is_undone_when_all_its_retransmissions_were_duplicates() {
        let mut undo = Undo::default();
        assert!(!undo.all_duplicates());
        undo.start(1_000, 0);
        assert!(!undo.may_undo(None) && !undo.awaits_duplicates());
        undo.on_retransmit(2, 5_000_000);
        undo.on_duplicates(1_000, 1);
        undo.on_duplicates(2_000, 1);
        assert!(!undo.may_undo(None) && undo.awaits_duplicates());
        undo.on_duplicates(3_000, 5);
        assert!(undo.may_undo(None) && undo.all_duplicates());
        undo.end();
        assert!(!undo.may_undo(None) && !undo.all_duplicates());
    }

    #[test]
    fn retransmissions_in_flight_from_before_are_waited_for() {
        let mut undo = Undo::default();
        undo.start(1_000, 2);
        undo.on_retransmit(1, 5_000_000);
        undo.on_duplicates(2_000, 2);
        assert!(!undo.all_duplicates());
        undo.on_duplicates(2_000, 1);
        assert!(undo.all_duplicates());
    }

    #[test]
    fn an_echo_of_before_the_first_retransmission_undoes() {
        let mut undo = Undo::default();
        undo.start(1_000, 0);
        assert!(!undo.packet_delayed(Some(1)));
        undo.on_retransmit(1, 7_999_999);
        undo.on_retransmit(1, 9_000_000);
        assert!(undo.may_undo(Some(6)) && undo.packet_delayed(Some(u32::MAX)));
        assert!(!undo.may_undo(Some(7)) && !undo.may_undo(None));
        undo.clear_stamp();
        assert!(!undo.may_undo(Some(6)));
    }
}

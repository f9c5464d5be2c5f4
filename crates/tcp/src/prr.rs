//! Proportional rate reduction (RFC 6937 as Linux has it): how much is sent per ACK while the window shrinks.

/// How the window grows where less is in flight than ssthresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrrRule {
    /// By what was delivered and not sent for yet, and by one more where the ACK advanced and reported no new loss: since Linux
    /// 5.19 (9ad084d66619, "tcp: improve PRR loss recovery").
    CatchUp,
    /// By that and one more where the ACK advanced and reported no new loss, and else by what the ACK delivered: Linux 5.11 to
    /// 5.18 (7e901ee7b6ab, "tcp: avoid slow start during fast recovery on new losses").
    OnProgress,
    /// The same where an ACK covers a retransmission and none was lost again: Linux 4.3 to 5.10 (3759824da87b, "tcp: PRR uses
    /// CRB mode by default and SS mode conditionally").
    OnRepair,
    /// By what was delivered and not sent for yet, and by one more: before.
    SlowStart,
}

/// What was delivered and sent since the reduction began, segments.
#[derive(Clone, Debug, Default)]
pub struct Prr {
    delivered: u32,
    out: u32,
}

impl Prr {
    /// A reduction begins.
    pub fn start(&mut self) {
        *self = Prr::default();
    }

    /// Segments were sent during the reduction.
    pub fn on_sent(&mut self, segs: u32) {
        self.out += segs;
    }

    /// tcp_cwnd_reduction(): the window after an ACK that delivered segments. `prior_cwnd` is the window before the
    /// reduction, `growth` what is sent beside what was delivered and not sent for yet; `None`: only what this ACK delivered.
    pub fn cwnd(
        &mut self,
        delivered: u32,
        in_flight: u32,
        ssthresh: u32,
        prior_cwnd: u32,
        growth: Option<u32>,
    ) -> u32 {
        self.delivered += delivered;
        let in_flight = i64::from(in_flight);
        let delta = i64::from(ssthresh) - in_flight;
        let (prr_delivered, prr_out) = (i64::from(self.delivered), i64::from(self.out));
        let mut send = if delta < 0 {
            let share = i64::from(ssthresh) * prr_delivered;
            (share as u64).div_ceil(u64::from(prior_cwnd)) as i64 - prr_out
        } else {
            let delivered = i64::from(delivered);
            let send = match growth {
                Some(more) => (prr_delivered - prr_out).max(delivered) + i64::from(more),
                None => delivered,
            };
            send.min(delta)
        };
        // The fast retransmission itself always goes out.
        send = send.max(i64::from(prr_out == 0));
        (in_flight + send).max(1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6937, 3: while more is in flight than ssthresh, ssthresh / prior_cwnd is sent of what is delivered.
    #[test]
    fn the_window_falls_by_the_share_that_the_algorithm_asks_for() {
        let mut prr = Prr::default();
        prr.start();
        let (mut in_flight, mut sent) = (99, 0);
        for delivered in 1..=40 {
            in_flight -= 1;
            let send = prr
                .cwnd(1, in_flight, 50, 100, Some(0))
                .saturating_sub(in_flight);
            prr.on_sent(send);
            in_flight += send;
            sent += send;
            assert_eq!(sent, (50 * delivered as u32).div_ceil(100));
        }
    }

    #[test]
    fn below_ssthresh_it_catches_up_and_grows_only_where_nothing_more_is_lost() {
        let mut prr = Prr::default();
        prr.on_sent(1);
        assert_eq!(prr.cwnd(2, 10, 20, 40, Some(0)), 12);
        assert_eq!(prr.cwnd(2, 10, 20, 40, Some(1)), 14);
        assert_eq!(prr.cwnd(1, 10, 20, 40, None), 11, "only what came");
        assert_eq!(prr.cwnd(9, 19, 20, 40, Some(1)), 20, "not above ssthresh");
    }

    #[test]
    fn the_first_retransmission_goes_out_whatever_the_share() {
        let mut prr = Prr::default();
        assert_eq!(prr.cwnd(1, 20, 20, 40, Some(0)), 21);
        prr.on_sent(1);
        assert_eq!(prr.cwnd(1, 20, 20, 40, Some(0)), 20);
    }
}

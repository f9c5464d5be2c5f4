//! What ECN marks do to an endpoint: a reduction of its window, or what it echoes.

use knee_cc::{ACK_STATE_DELAYED, ACK_STATE_ECHO, AckPrior, CaState, Event, Op};
use knee_path::packet::Ecn;

use super::ecn::DataMark;
use super::input::{AckFlags, Before};
use super::{Cx, Endpoint};
use crate::segment::{ACK, Segment};

/// Quick ACKs after a mark (tcp_enter_quickack_mode(sk, 2)).
const QUICKACKS_ON_CE: u32 = 2;

impl Endpoint {
    /// Counts the marks that an ACK tells of, after all else that it delivers is counted.
    #[inline(never)]
    pub(super) fn count_marks(
        &mut self,
        segment: &Segment,
        before: &Before,
        newly_delivered: u32,
        flags: &mut AckFlags,
    ) {
        let echo = segment.ack >= before.una && self.ecn.is_echo(segment);
        let is_news = flags.una_advanced || flags.data_sacked || flags.data_acked;
        let (una, sacked_bytes) = (self.snd_una, self.board.sacked_bytes());
        flags.ece = self.ecn.count_marks(
            segment,
            (echo, is_news),
            newly_delivered,
            || una + sacked_bytes - (before.una + before.sacked_bytes),
            self.cc.mss_bytes,
        );
        self.cc.delivered_ce = self.ecn.delivered_ce();
    }

    /// tcp_enter_cwr(): the network asks to slow down, nothing was lost.
    pub(super) fn enter_cwr(&mut self, cx: &mut Cx) {
        self.undo.forget_ssthresh();
        if self.recovery.state() < CaState::Cwr {
            self.undo.end();
            self.init_cwnd_reduction(cx);
            self.set_ca_state(cx, CaState::Cwr);
        }
    }

    /// tcp_data_ecn_check(): new data arrived, with or without a mark.
    #[inline]
    pub(super) fn check_ce(&mut self, cx: &mut Cx, segment: &Segment) {
        match self.ecn.on_data(segment.ecn) {
            DataMark::Ignored => {}
            mark => self.on_ecn(cx, segment, mark),
        }
    }

    #[inline(never)]
    fn on_ecn(&mut self, cx: &mut Cx, segment: &Segment, mark: DataMark) {
        match mark {
            DataMark::Ignored => {}
            DataMark::Suspicious => self.rx.enter_quickack(QUICKACKS_ON_CE),
            DataMark::Capable => {
                let ce = segment.ecn == Ecn::Ce;
                if self.ecn.is_needed() && self.alg.has(Op::CwndEvent) {
                    self.tell_mark(cx, if ce { Event::EcnIsCe } else { Event::EcnNoCe });
                }
                if ce && self.ecn.start_echo() {
                    self.rx.enter_quickack(QUICKACKS_ON_CE);
                }
            }
        }
    }

    /// The algorithm decides what the echo says.
    fn tell_mark(&mut self, cx: &mut Cx, event: Event) {
        self.cc.event = event as u32;
        self.cc.ack_state = (u32::from(self.ecn.echoes()) * ACK_STATE_ECHO)
            | (u32::from(self.rx.delays_ack()) * ACK_STATE_DELAYED);
        let out = self.call_cc_out(cx, Op::CwndEvent);
        if out.ack_prior != AckPrior::None as u32 {
            self.ecn.set_echo(out.ack_prior == AckPrior::Ece as u32);
            let behind = (self.rx.rcv_nxt() as u32).wrapping_sub(out.ack_prior_seq);
            let ack = self.rx.rcv_nxt().saturating_sub(u64::from(behind));
            self.emit(cx, self.snd_nxt, ack, ACK);
        }
        self.ecn.set_echo(out.ecn_echo != 0);
        self.rx.hurry_ack(out.ack_now != 0);
    }
}

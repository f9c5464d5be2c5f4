//! Each algorithm's answers to thousands of drawn connections, as a row of `tests/golden/cc_drawn.txt`: what the one
//! walk of `golden.rs` does not come to. A row that changes is a change of behaviour: explain it in the commit.
//!
//! Half of the connections run in round numbers: times in eighths of a round trip, flights in quarters of a window. So what
//! an algorithm compares is often equal, and parameters often stand at their bounds. Some connections are wild: every
//! word that an op is shown is drawn, with a liking for the edges.

use std::path::Path;

use crate::common::Conn;
use crate::common::digest::{Digest, Random, SIDE_OPS, asked, golden_rows};
use knee_cc::{
    ACK_ECE, ACK_MAYBE_DELAYED, ACK_SLOWPATH, ACK_SND_UNA_ADVANCED, ACK_STATE_DELAYED,
    ACK_STATE_ECHO, Algorithm, CaState, CcIn, EcnMode, Event, Op, PacingStatus,
};

const CONNECTIONS: u64 = 600;
const STEPS: u32 = 400;
const WILD_CONNECTIONS: u64 = 300;
const WILD_STEPS: u32 = 60;

/// A connection as it is drawn.
struct Drawn {
    c: Conn,
    r: Random,
    is_round: bool,
    windowed: bool,
    rtt_us: u32,
    /// What the path delivers in a round trip, packets.
    bdp: u32,
    losses_in_1024: u32,
    marks_in_256: u32,
    app_limited_in_16: u32,
    side_ops_in_256: u32,
    repairing: u32,
}

impl Drawn {
    fn new(a: &'static Algorithm, seed: u64) -> Drawn {
        let mut r = Random::new(seed);
        let params: Vec<_> = a
            .params()
            .iter()
            .map(|p| {
                let between = p.min + r.below(p.max - p.min + 1);
                let value = r.one_of(&[p.default, p.default, p.default, p.min, p.max, between]);
                (p.name, value)
            })
            .collect();
        let mut c = Conn::new(a.name(), if r.one_in(2) { &params } else { &[] });
        let s = &mut c.stack;
        s.hz = r.one_of(&[100, 250, 1000]);
        s.mss_bytes = r.one_of(&[88, 536, 1000, 1448, 8960]);
        s.ecn_mode = r.one_of(&[EcnMode::None, EcnMode::Classic, EcnMode::Accurate]) as u32;
        s.pacing_status =
            r.one_of(&[PacingStatus::None, PacingStatus::Needed, PacingStatus::Fq]) as u32;
        s.max_pacing_rate = r.one_of(&[u64::MAX, u64::MAX, 1_250_000]);
        s.snd_cwnd_clamp = r.one_of(&[u32::MAX, u32::MAX, 40]);
        s.jiffies = r.one_of(&[5000, u32::MAX - 300]);
        s.lsndtime = s.jiffies;
        s.delivered = r.one_of(&[1, u32::MAX - 1000]);
        s.snd_una = r.word();
        let rtt_us = r.one_of(&[200, 1000, 4000, 8000, 40_000, 200_000, 2_000_000]);
        if r.one_in(4) {
            s.srtt_us = rtt_us;
        }
        c.op(Op::Init);
        Drawn {
            c,
            is_round: r.one_in(2),
            windowed: a.has(Op::CongAvoid),
            rtt_us,
            bdp: r.one_of(&[4, 16, 64, 256]),
            losses_in_1024: r.one_of(&[0, 2, 20, 200, 600]),
            marks_in_256: r.one_of(&[0, 0, 16, 128]),
            app_limited_in_16: r.one_of(&[0, 0, 1]),
            side_ops_in_256: r.one_of(&[0, 8, 64]),
            repairing: 0,
            r,
        }
    }

    /// From nothing to all of `n`; of a round connection one of the quarters.
    fn share(&mut self, n: u32) -> u32 {
        if self.is_round {
            (u64::from(n) * u64::from(self.r.below(5)) / 4) as u32
        } else {
            self.r.below(n.max(1))
        }
    }

    fn pass(&mut self) {
        let gap_us = match self.r.below(256) {
            0 => 5_000_000,
            1..4 => self.rtt_us * 4,
            _ if self.is_round => self.rtt_us / 8 * self.r.below(5),
            _ => self.r.below(self.rtt_us / 4),
        };
        let sent_at = self.c.stack.lsndtime;
        self.c.pass_us(gap_us.into());
        if gap_us >= 5_000_000 || self.r.one_in(16) {
            self.c.stack.lsndtime = sent_at;
        }
        let later_us = self.share(self.rtt_us / 8);
        self.c.stack.wstamp_ns += u64::from(later_us) * 1000 * u64::from(self.r.one_in(2));
    }

    /// An ACK, as the stack shows it.
    fn show(&mut self) {
        let most = self.c.cwnd().min(1 << 14);
        let in_flight = match self.r.below(8) {
            0 => self.share(2 * most),
            1 => self.r.one_of(&[0, 4, self.bdp, self.bdp * 5 / 4]),
            _ => most.min(2 * self.bdp),
        };
        // A round trip takes some eight ACKs.
        let acked = match self.r.below(16) {
            0 => 0,
            1 => self.share(in_flight).max(1),
            2..8 => 1 + self.r.below(2),
            _ => 1 + self.share(in_flight / 4),
        };
        let queued_us = in_flight
            .saturating_sub(self.bdp)
            .saturating_mul(self.rtt_us / self.bdp);
        let rtt_us = self.rtt_us + queued_us.min(4 * self.rtt_us) + self.share(self.rtt_us / 4);
        let lost = u32::from(self.r.below(1024) < self.losses_in_1024) * (1 + self.r.below(3));
        let marked = if self.r.below(256) < self.marks_in_256 {
            self.share(acked)
        } else {
            0
        };
        let has_sample = !self.r.one_in(32);
        let app_limited = self.r.below(16) < self.app_limited_in_16;
        let (delayed, limited) = (self.r.one_in(8), !self.r.one_in(8));
        let delivered = match self.r.below(8) {
            0 => self.share(2 * self.bdp),
            _ => self.bdp,
        };
        let delivered = delivered.min(in_flight.max(1));
        let prior = self.r.one_of(&[in_flight, in_flight, in_flight, 0]);
        // What a stack that knows each packet's facts tells: of a flight that was smaller, or that lost more.
        let sent_among = self
            .r
            .one_of(&[in_flight, in_flight, in_flight / 2, lost, 1]);
        let lost_since = self
            .r
            .one_of(&[lost, lost, lost + 1, lost / 2, in_flight / 16]);
        let s = &mut self.c.stack;
        s.random = self.r.word();
        s.acked = acked;
        s.rs_acked_sacked = acked;
        s.rs_losses = lost;
        s.rs_lost = lost_since;
        s.lost = s.lost.wrapping_add(lost);
        s.delivered = s.delivered.wrapping_add(acked);
        s.delivered_ce = s.delivered_ce.wrapping_add(marked);
        s.rs_delivered_ce = marked as i32;
        s.ack_flags = if acked > 0 { ACK_SND_UNA_ADVANCED } else { 0 }
            | if acked == 0 || marked + lost > 0 {
                ACK_SLOWPATH
            } else {
                0
            }
            | if marked > 0 { ACK_ECE } else { 0 }
            | if delayed { ACK_MAYBE_DELAYED } else { 0 };
        s.snd_una = s.snd_una.wrapping_add(acked * s.mss_bytes);
        s.snd_nxt = s.snd_una.wrapping_add(in_flight * s.mss_bytes);
        s.packets_out = in_flight;
        s.lost_out = lost.min(in_flight);
        s.retrans_out = s.lost_out / 2;
        s.max_packets_out = in_flight.max(1);
        s.is_cwnd_limited = u32::from(limited);
        s.app_limited = if app_limited {
            s.delivered.wrapping_add(in_flight)
        } else {
            0
        };
        s.ack_rtt_us = if has_sample { rtt_us.into() } else { -1 };
        s.rs_rtt_us = s.ack_rtt_us;
        if has_sample {
            s.srtt_us = rtt_us;
            s.min_rtt_us = s.min_rtt_us.min(rtt_us);
        }
        s.rcv_tsecr = ((s.now_us.saturating_sub(u64::from(rtt_us))) / 1000) as u32;
        s.rcv_tsval = ((s.now_us - u64::from(self.rtt_us / 2)) / 1000) as u32;
        s.ack_in_flight_bytes = in_flight * s.mss_bytes;
        s.rs_interval_us = if has_sample { self.rtt_us.into() } else { -1 };
        s.rs_snd_interval_us = self.rtt_us;
        s.rs_rcv_interval_us = self.rtt_us;
        s.rs_delivered = if has_sample { delivered as i32 } else { -1 };
        s.rs_prior_delivered = s.delivered.wrapping_sub(prior);
        s.rs_prior_mstamp_us = s.now_us.saturating_sub(u64::from(rtt_us));
        s.rs_prior_in_flight = in_flight;
        s.rs_tx_in_flight = sent_among;
        s.rs_last_end_seq = s.snd_una;
        s.rs_has_tx = u32::from(has_sample);
        s.rs_is_app_limited = u32::from(app_limited);
        s.rs_is_ack_delayed = u32::from(delayed);
        s.lost_tx_in_flight = sent_among;
        s.lost_tx_lost = s.lost.wrapping_sub(lost_since);
        s.lost_is_app_limited = u32::from(app_limited);
    }

    /// A loss begins a repair, which ends after some ACKs.
    fn repair(&mut self) {
        if self.c.stack.rs_losses > 0 && self.repairing == 0 {
            self.repairing = 1 + self.r.below(24);
            self.c.op(Op::SkbMarkedLost);
            if self.r.one_in(8) {
                self.c.time_out();
                return;
            }
            let state = self
                .r
                .one_of(&[CaState::Recovery, CaState::Recovery, CaState::Cwr]);
            self.c.stack.prior_cwnd = self.c.cwnd();
            self.c.stack.snd_ssthresh = self.c.op(Op::Ssthresh);
            self.c.set_state(state);
        } else if self.repairing > 0 {
            self.repairing -= 1;
            if self.repairing == 0 {
                if self.r.one_in(4) {
                    self.c.stack.snd_cwnd = self.c.op(Op::UndoCwnd).max(1);
                } else {
                    if self.windowed && self.c.stack.ca_state != CaState::Loss as u32 {
                        self.c.stack.snd_cwnd = self.c.stack.snd_ssthresh;
                    }
                    self.c.event(Event::CompleteCwr);
                }
                self.c.set_state(CaState::Open);
            }
        }
    }

    fn side_op(&mut self) -> u32 {
        let op = self.r.one_of(&SIDE_OPS);
        let events = [
            Event::TxStart,
            Event::CwndRestart,
            Event::CompleteCwr,
            Event::Loss,
            Event::EcnNoCe,
            Event::EcnIsCe,
        ];
        let s = &mut self.c.stack;
        s.state = self.r.below(5);
        s.event = self.r.one_of(&events) as u32;
        s.rcv_nxt = s.rcv_nxt.wrapping_add(s.mss_bytes);
        let delays = if self.r.one_in(2) {
            ACK_STATE_DELAYED
        } else {
            0
        };
        s.ack_state = s.ack_state & ACK_STATE_ECHO | delays;
        self.c.op(op)
    }

    fn step(&mut self, digest: &mut Digest) {
        self.pass();
        self.show();
        self.c.op(Op::InAckEvent);
        self.repair();
        self.c.op(Op::PktsAcked);
        let reduces = [CaState::Cwr, CaState::Recovery].map(|state| state as u32);
        if !reduces.contains(&self.c.stack.ca_state) {
            self.c.op(Op::CongAvoid);
        }
        self.c.op(Op::CongControl);
        let mut returned = [Op::MinTsoSegs, Op::SndbufExpand].map(|op| self.c.op(op));
        if self.r.below(256) < self.side_ops_in_256 {
            returned[0] = self.side_op();
        }
        digest.add_conn(&self.c, &returned);
        digest.add_info(&self.c);
    }
}

fn wild_word(r: &mut Random) -> u32 {
    const EDGES: [u32; 8] = [
        0,
        1,
        2,
        1000,
        i32::MAX as u32,
        1 << 31,
        u32::MAX - 1,
        u32::MAX,
    ];
    match r.below(4) {
        0 => r.one_of(&EDGES),
        1 => r.below(256),
        2 => 1 << r.below(32),
        _ => r.word(),
    }
}

fn walk_wildly(a: &'static Algorithm, seed: u64, digest: &mut Digest) {
    let mut r = Random::new(seed);
    let mut c = Conn::new(a.name(), &[]);
    for _ in 0..WILD_STEPS {
        let words = [(); size_of::<CcIn>() / 4].map(|()| wild_word(&mut r));
        // SAFETY: CcIn is repr(C) of integers, of as many bytes: any memory is one.
        c.stack = unsafe { std::mem::transmute::<[u32; size_of::<CcIn>() / 4], CcIn>(words) };
        c.stack.snd_cwnd = c.stack.snd_cwnd.max(1);
        let returned = c.op(r.one_of(&Op::ALL));
        digest.add_conn(&c, &[returned]);
        digest.add_info(&c);
    }
}

fn row(a: &'static Algorithm) -> String {
    let mut digest = Digest::default();
    for p in a.params() {
        [p.default, p.min, p.max]
            .into_iter()
            .for_each(|v| digest.add(v.into()));
    }
    for seed in 1..=CONNECTIONS {
        let mut drawn = Drawn::new(a, seed);
        for _ in 0..STEPS {
            drawn.step(&mut digest);
        }
    }
    for seed in 1..=WILD_CONNECTIONS {
        walk_wildly(a, seed, &mut digest);
    }
    format!("{} digest={:016x}", a.name(), digest.value())
}

#[test]
fn every_algorithm_answers_drawn_connections_as_its_golden_row_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/cc_drawn.txt");
    let drawn: Vec<_> = asked().into_iter().map(row).collect();
    assert_eq!(
        golden_rows(&path),
        drawn,
        "{}: behaviour changed. If that is meant, the rows to put there are:\n{}",
        path.display(),
        drawn.join("\n")
    );
}

#[test]
fn the_drawn_connections_come_to_every_phase() {
    for a in asked() {
        let mut missing = a.phases().to_vec();
        for seed in 1..=CONNECTIONS {
            let mut drawn = Drawn::new(a, seed);
            let mut digest = Digest::default();
            for _ in 0..STEPS {
                if missing.is_empty() {
                    break;
                }
                drawn.step(&mut digest);
                let phase = drawn.c.info().unwrap().phase;
                missing.retain(|&other| other != phase);
            }
        }
        assert!(missing.is_empty(), "{}: never in {missing:?}", a.name());
    }
}

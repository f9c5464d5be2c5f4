//! Each algorithm's behaviour on one fixed walk, as a row of `tests/golden/cc.txt`. A row that changes is a change of
//! behaviour: explain it in the commit that changes the row.

use std::path::Path;

use crate::common::digest::{Digest, Random, asked, golden_rows};
use crate::common::{Conn, MSS_BYTES};
use knee_cc::{
    ACK_ECE, ACK_MAYBE_DELAYED, ACK_SLOWPATH, ACK_SND_UNA_ADVANCED, ACK_STATE_DELAYED,
    ACK_STATE_ECHO, CaState, EcnMode, Event, Op, find,
};

const ACKS: u32 = 50_000;
/// The path: 5 packets/ms, 20 ms, and a queue of one BDP; an ACK is of so many packets at most.
const BASE_RTT_US: u32 = 20_000;
const BDP: u32 = 100;
const QUEUED_PACKET_US: u32 = 200;
const ACKED_MAX: u32 = 8;
/// In every other stretch of so many ACKs the queue marks from a quarter of the BDP on; in the others it drops when full.
const STRETCH_ACKS: u32 = 2000;
/// A repair lasts so many ACKs.
const REPAIR_ACKS: u32 = 30;
/// Of losses: every so many ends in a timeout. Of repairs: every so many is found to be spurious.
const LOSSES_PER_TIMEOUT: u32 = 5;
const REPAIRS_PER_UNDO: u32 = 3;
/// What an application writes per round trip while it limits the connection.
const APP_WINDOW: u32 = 25;
/// Linux' restart window, and the timeout after which it restarts.
const RESTART_CWND: u32 = 10;
const RTO_US: u32 = 200_000;

/// What happened to a connection on its way.
#[derive(Debug, Default)]
struct Met {
    losses: u32,
    marks: u32,
    timeouts: u32,
    undos: u32,
    idles: u32,
    app_limited: u32,
}

/// A connection on the path, and what the stack around it remembers.
struct Walk {
    c: Conn,
    r: Random,
    digest: Digest,
    met: Met,
    /// ACKs until the repair under way has ended; 0: none is.
    repairing: u32,
    repairs: u32,
    prior_ssthresh: u32,
    /// Has the algorithm cong_avoid? Then the stack sets its window around a repair.
    windowed: bool,
}

/// ACKs in lumps; losses, marks, timeouts, undos, idle times, an application with little to say, and a route that
/// gets longer for a while.
fn walk(name: &str) -> Walk {
    let mut c = Conn::new(name, &[]);
    c.stack.ecn_mode = EcnMode::Accurate as u32;
    c.op(Op::Init);
    let mut walk = Walk {
        c,
        r: Random::new(1),
        digest: Digest::default(),
        met: Met::default(),
        repairing: 0,
        repairs: 0,
        prior_ssthresh: 0,
        windowed: find(name).unwrap().has(Op::CongAvoid),
    };
    for n in 0..ACKS {
        walk.step(n);
    }
    walk
}

impl Walk {
    fn step(&mut self, n: u32) {
        let app_limits = (2600..3000).contains(&(n % 5000));
        let wanted = if app_limits { APP_WINDOW } else { 4 * BDP };
        let in_flight = self.c.cwnd().min(wanted);
        let queue = in_flight.saturating_sub(BDP);
        let way_us = match n {
            30_000..38_000 => 3 * BASE_RTT_US,
            _ => BASE_RTT_US,
        };
        let waited_us = queue * QUEUED_PACKET_US + self.r.below(200);
        let acked = (1 + self.r.below(ACKED_MAX)).min(in_flight);
        let marks = n / STRETCH_ACKS % 2 == 1 && (queue > BDP / 4 || self.r.one_in(100));
        let marked = if marks { 1 + self.r.below(acked) } else { 0 };
        let is_full = queue > BDP || self.r.one_in(1500);
        let lost = u32::from(is_full && self.repairing == 0);
        self.met.app_limited += u32::from(app_limits);
        self.met.marks += marked;
        self.show(in_flight, acked, marked, lost, (way_us, waited_us));
        // Stock Linux does not keep what was in flight when a packet left: so the second half of the walk.
        self.c.stack.rs_has_tx = u32::from(n < ACKS / 2);
        self.c.stack.is_cwnd_limited = u32::from(!app_limits);
        if app_limits {
            self.c.stack.app_limited = self.c.stack.delivered.wrapping_add(in_flight);
        }
        self.c.stack.rs_is_app_limited = u32::from(app_limits);

        self.c.op(Op::InAckEvent);
        if lost > 0 {
            self.lose(in_flight);
        } else if marked > 0 && self.repairing == 0 {
            self.enter(CaState::Cwr);
        }
        self.c.op(Op::PktsAcked);
        let reduces = [CaState::Cwr, CaState::Recovery].map(|state| state as u32);
        if !reduces.contains(&self.c.stack.ca_state) {
            self.c.op(Op::CongAvoid);
        }
        self.c.op(Op::CongControl);
        self.repair();
        self.receive();
        if self.r.one_in(2000) {
            self.idle();
        }
        let returned = [Op::MinTsoSegs, Op::SndbufExpand].map(|op| self.c.op(op));
        self.digest.add_conn(&self.c, &returned);
    }

    /// An ACK of `acked` packets, as the stack shows it.
    fn show(
        &mut self,
        in_flight: u32,
        acked: u32,
        marked: u32,
        lost: u32,
        (way_us, waited_us): (u32, u32),
    ) {
        let rtt_us = way_us + waited_us;
        self.c
            .pass_us((u64::from(acked) * u64::from(rtt_us) / u64::from(in_flight)).max(1));
        let delayed = self.r.one_in(10);
        let s = &mut self.c.stack;
        s.random = self.r.below(u32::MAX);
        s.srtt_us = match s.srtt_us {
            0 => rtt_us,
            smooth => smooth - smooth / 8 + rtt_us / 8,
        };
        s.min_rtt_us = s.min_rtt_us.min(rtt_us);
        // The other end's clock has no offset and ticks at 1000 Hz.
        s.rcv_tsecr = ((s.now_us - u64::from(rtt_us)) / 1000) as u32;
        s.rcv_tsval = ((s.now_us - u64::from(way_us / 2)) / 1000) as u32;
        s.snd_una = s.snd_una.wrapping_add(acked * MSS_BYTES);
        s.snd_nxt = s.snd_una.wrapping_add(in_flight * MSS_BYTES);
        s.packets_out = in_flight;
        s.max_packets_out = in_flight;
        s.delivered = s.delivered.wrapping_add(acked);
        s.delivered_ce = s.delivered_ce.wrapping_add(marked);
        s.lost = s.lost.wrapping_add(lost);
        s.ack_flags = ACK_SND_UNA_ADVANCED
            | if marked + lost > 0 { ACK_SLOWPATH } else { 0 }
            | if marked > 0 { ACK_ECE } else { 0 }
            | if delayed { ACK_MAYBE_DELAYED } else { 0 };
        s.acked = acked;
        s.ack_rtt_us = rtt_us.into();
        s.ack_in_flight_bytes = in_flight * MSS_BYTES;
        s.rs_prior_delivered = s.delivered.wrapping_sub(in_flight);
        s.rs_prior_mstamp_us = s.now_us - u64::from(rtt_us);
        s.rs_delivered = in_flight as i32;
        s.rs_delivered_ce = marked as i32;
        s.rs_interval_us = rtt_us.into();
        s.rs_snd_interval_us = rtt_us;
        s.rs_rcv_interval_us = rtt_us;
        s.rs_rtt_us = rtt_us.into();
        s.rs_acked_sacked = acked;
        s.rs_losses = lost;
        s.rs_lost = lost;
        s.rs_prior_in_flight = in_flight;
        s.rs_tx_in_flight = in_flight;
        s.rs_last_end_seq = s.snd_una;
        s.rs_is_ack_delayed = u32::from(delayed && acked == 1);
    }

    fn lose(&mut self, in_flight: u32) {
        self.met.losses += 1;
        let s = &mut self.c.stack;
        s.lost_tx_in_flight = in_flight;
        s.lost_tx_lost = s.lost.wrapping_sub(1);
        s.lost_is_app_limited = s.rs_is_app_limited;
        self.c.op(Op::SkbMarkedLost);
        if self.met.losses.is_multiple_of(LOSSES_PER_TIMEOUT) {
            self.met.timeouts += 1;
            self.prior_ssthresh = self.c.stack.snd_ssthresh;
            self.c.time_out();
            self.repairing = REPAIR_ACKS;
        } else {
            self.enter(CaState::Recovery);
        }
    }

    /// CWR or fast recovery begins.
    fn enter(&mut self, state: CaState) {
        self.prior_ssthresh = self.c.stack.snd_ssthresh;
        self.c.stack.prior_cwnd = self.c.cwnd();
        self.c.stack.snd_ssthresh = self.c.op(Op::Ssthresh);
        self.c.set_state(state);
        self.repairing = REPAIR_ACKS;
    }

    /// One ACK of a repair; the last one ends it, or undoes it.
    fn repair(&mut self) {
        if self.repairing == 0 {
            return;
        }
        self.repairing -= 1;
        if self.repairing > 0 {
            return;
        }
        let is_marked = self.c.stack.ca_state == CaState::Cwr as u32;
        let timed_out = self.c.stack.ca_state == CaState::Loss as u32;
        self.repairs += u32::from(!is_marked);
        if !is_marked && self.repairs.is_multiple_of(REPAIRS_PER_UNDO) {
            self.met.undos += 1;
            let cwnd = self.c.op(Op::UndoCwnd);
            self.c.stack.snd_cwnd = cwnd.max(1);
            self.c.stack.snd_ssthresh = self.c.stack.snd_ssthresh.max(self.prior_ssthresh);
        } else if !timed_out {
            if self.windowed {
                self.c.stack.snd_cwnd = self.c.stack.snd_ssthresh;
            }
            self.c.event(Event::CompleteCwr);
        }
        self.c.set_state(CaState::Open);
    }

    /// The receiving half sees a packet, marked or not.
    fn receive(&mut self) {
        if !self.r.one_in(20) {
            return;
        }
        let s = &mut self.c.stack;
        s.rcv_nxt = s.rcv_nxt.wrapping_add(MSS_BYTES);
        let delays = if self.r.one_in(2) {
            ACK_STATE_DELAYED
        } else {
            0
        };
        s.ack_state = s.ack_state & ACK_STATE_ECHO | delays;
        self.c.event(match self.r.below(3) {
            0 => Event::EcnIsCe,
            _ => Event::EcnNoCe,
        });
        self.digest.add_conn(&self.c, &[]);
    }

    /// A second without data. Where the stack sets the window it halves it per timeout (Linux tcp_cwnd_restart()).
    fn idle(&mut self) {
        self.met.idles += 1;
        let sent_at = self.c.stack.lsndtime;
        self.c.pass_us(1_000_000);
        self.c.stack.lsndtime = sent_at;
        self.c.stack.app_limited = self.c.stack.delivered;
        if self.windowed && self.repairing == 0 {
            self.c.event(Event::CwndRestart);
            let s = &mut self.c.stack;
            s.snd_ssthresh = s.snd_ssthresh.max(s.snd_cwnd / 4 * 3);
            let halved = s.snd_cwnd >> (1_000_000 / RTO_US);
            s.snd_cwnd = halved.max(RESTART_CWND.min(s.snd_cwnd));
            s.snd_cwnd_cnt = 0;
        }
        self.c.event(Event::TxStart);
    }
}

fn row(name: &str) -> String {
    let Walk { c, digest, met, .. } = walk(name);
    format!(
        "{name} cwnd={} ssthresh={} pacing_rate={} losses={} timeouts={} undos={} marks={} digest={:016x}",
        c.cwnd(),
        c.stack.snd_ssthresh,
        c.stack.pacing_rate,
        met.losses,
        met.timeouts,
        met.undos,
        met.marks,
        digest.value()
    )
}

#[test]
fn every_algorithm_walks_its_golden_row() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/cc.txt");
    let walked: Vec<_> = asked().iter().map(|a| row(a.name())).collect();
    assert_eq!(
        golden_rows(&path),
        walked,
        "{}: behaviour changed. If that is meant, the rows to put there are:\n{}",
        path.display(),
        walked.join("\n")
    );
}

#[test]
fn no_two_algorithms_walk_alike() {
    let digests: Vec<_> = asked()
        .iter()
        .map(|a| (a.name(), walk(a.name()).digest.value()))
        .collect();
    for (at, (name, digest)) in digests.iter().enumerate() {
        let alike = digests[..at].iter().find(|(_, other)| other == digest);
        assert_eq!(alike, None, "walks as {name} does");
    }
}

#[test]
fn the_walk_takes_every_algorithm_through_all_that_befalls_a_connection() {
    for a in asked() {
        let met = walk(a.name()).met;
        let counts = [
            met.losses,
            met.marks,
            met.timeouts,
            met.undos,
            met.idles,
            met.app_limited,
        ];
        assert!(
            counts.iter().all(|&count| count > 0),
            "{}: {met:?}",
            a.name()
        );
    }
}

#[test]
fn the_walk_is_the_same_twice() {
    for a in asked() {
        assert_eq!(row(a.name()), row(a.name()));
    }
}

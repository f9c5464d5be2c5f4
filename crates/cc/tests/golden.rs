//! Each algorithm's behaviour on one fixed walk, as a row of `tests/golden/cc.txt`. A row that changes is a change of
//! behaviour: explain it in the commit that changes the row.

mod common;

use std::path::Path;

use common::Conn;
use knee_cc::{CaState, Event, Op, algorithms, find};

const ACKS: u32 = 50_000;

/// xorshift64* (Vigna 2016): the walk must be the same on every platform and for ever.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(2_685_821_657_736_338_717) >> 32;
        ((bits * u64::from(n)) >> 32) as u32
    }
}

/// FNV-1a over what every op left behind.
struct Digest(u64);

impl Digest {
    fn add(&mut self, value: u64) {
        for byte in value.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn add_conn(&mut self, c: &Conn, ret: u32) {
        let s = &c.stack;
        let fields = [
            s.pacing_status,
            s.snd_cwnd,
            s.snd_cwnd_cnt,
            s.snd_ssthresh,
            s.app_limited,
            ret,
        ];
        self.add(s.pacing_rate);
        fields.into_iter().for_each(|f| self.add(f.into()));
    }
}

/// A path of 20 packets/ms with a queue of one BDP: ACKs in lumps, a loss when the queue is full, now and then a
/// timeout, an undo, an idle second.
fn walk(name: &str) -> String {
    const BASE_RTT_US: u32 = 20_000;
    const BDP: u32 = 400;
    let mut r = Random(0x9e37_79b9_7f4a_7c15);
    let mut c = Conn::new(name, &[]);
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    let windowed = find(name).unwrap().has(Op::CongAvoid);
    let mut recovery_acks = 0;
    let (mut most, mut losses) = (0, 0);

    for _ in 0..ACKS {
        let in_flight = c.cwnd().min(4 * BDP);
        let queue = in_flight.saturating_sub(BDP);
        let rtt_us = BASE_RTT_US + queue * 50 + r.below(200);
        let acked = (1 + r.below(20)).min(in_flight);
        c.pass_us(u64::from(acked * rtt_us / in_flight).max(1));
        let s = &mut c.stack;
        s.random = r.below(u32::MAX);
        s.srtt_us = rtt_us;
        s.min_rtt_us = s.min_rtt_us.min(rtt_us);
        s.delivered = s.delivered.wrapping_add(acked);
        s.packets_out = in_flight;
        s.rs_losses = u32::from(queue > BDP || r.below(3000) == 0) * u32::from(recovery_acks == 0);
        s.lost += s.rs_losses;
        s.rs_prior_delivered = s.delivered.wrapping_sub(in_flight);
        s.rs_delivered = in_flight as i32;
        s.rs_interval_us = rtt_us.into();
        s.rs_rtt_us = rtt_us.into();
        s.rs_acked_sacked = acked;
        s.rs_prior_in_flight = in_flight;
        s.rs_is_app_limited = u32::from(r.below(200) == 0);
        s.app_limited = s.rs_is_app_limited;

        if c.stack.rs_losses > 0 {
            losses += 1;
            recovery_acks = 30;
            if r.below(20) == 0 {
                c.time_out();
            } else {
                c.stack.prior_cwnd = c.cwnd();
                c.stack.snd_ssthresh = c.op(Op::Ssthresh);
                c.set_state(CaState::Recovery);
            }
        }
        if c.stack.ca_state != CaState::Recovery as u32 {
            c.ack(acked, rtt_us.into());
        }
        let mut ret = c.op(Op::CongControl);
        if recovery_acks > 0 {
            recovery_acks -= 1;
            if recovery_acks == 0 {
                if c.stack.ca_state == CaState::Recovery as u32 && windowed {
                    c.stack.snd_cwnd = c.stack.snd_ssthresh;
                }
                c.set_state(CaState::Open);
                if r.below(10) == 0 {
                    ret = c.op(Op::UndoCwnd);
                    c.stack.snd_cwnd = ret;
                }
            }
        }
        if r.below(2000) == 0 {
            let sent_at = c.stack.lsndtime;
            c.pass_us(1_000_000);
            c.stack.lsndtime = sent_at;
            c.event(Event::TxStart);
        }
        ret ^= c.op(Op::MinTsoSegs) << 16;
        digest.add_conn(&c, ret);
        most = most.max(c.cwnd());
    }
    let (cwnd, pacing_rate) = (c.cwnd(), c.stack.pacing_rate);
    format!(
        "{name} cwnd={cwnd} cwnd_max={most} losses={losses} pacing_rate={pacing_rate} digest={:016x}",
        digest.0
    )
}

#[test]
fn every_algorithm_walks_its_golden_row() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/cc.txt");
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let rows: Vec<_> = golden.lines().filter(|l| !l.starts_with('#')).collect();
    let walked: Vec<_> = algorithms().iter().map(|a| walk(a.name())).collect();
    assert_eq!(
        rows,
        walked,
        "{}: behaviour changed. If that is meant, the rows to put there are:\n{}",
        path.display(),
        walked.join("\n")
    );
}

#[test]
fn the_walk_is_the_same_twice() {
    for a in algorithms() {
        assert_eq!(walk(a.name()), walk(a.name()));
    }
}

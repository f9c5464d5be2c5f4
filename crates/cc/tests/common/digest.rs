//! For golden rows: chance that is the same for ever, and a digest of what an algorithm did.

use std::hash::Hasher as _;

use fnv::FnvHasher;
use knee_cc::{Algorithm, Op, algorithms};

use super::Conn;

/// Every algorithm; or those that `KNEE_ALGORITHMS` names, as `make mutants` asks for those that hold a mutant.
pub fn asked() -> Vec<&'static Algorithm> {
    let named = std::env::var("KNEE_ALGORITHMS").unwrap_or_default();
    let names: Vec<_> = named.split(' ').collect();
    let is_asked = |a: &&Algorithm| named.is_empty() || names.contains(&a.name());
    algorithms().iter().filter(is_asked).collect()
}

/// The rows of a table in `tests/golden` for the algorithms asked for.
pub fn golden_rows(path: &std::path::Path) -> Vec<String> {
    let golden = std::fs::read_to_string(path).unwrap_or_default();
    let missing: Vec<_> = algorithms()
        .iter()
        .filter(|a| !asked().iter().any(|b| a.name() == b.name()))
        .map(|a| format!("{} ", a.name()))
        .collect();
    let is_asked = |line: &&str| !missing.iter().any(|name| line.starts_with(name));
    let rows = golden.lines().filter(|line| !line.starts_with('#'));
    rows.filter(is_asked).map(str::to_owned).collect()
}

/// xorshift64* (Vigna 2016): a walk must be the same on every platform and for ever.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub fn word(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(2_685_821_657_736_338_717) >> 32) as u32
    }

    pub fn below(&mut self, n: u32) -> u32 {
        ((u64::from(self.word()) * u64::from(n)) >> 32) as u32
    }

    pub fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u32) as usize]
    }
}

/// What every op left behind, as one number.
#[derive(Default)]
pub struct Digest(FnvHasher);

impl Digest {
    pub fn value(&self) -> u64 {
        self.0.finish()
    }

    pub fn add(&mut self, value: u64) {
        self.0.write(&value.to_le_bytes());
    }

    pub fn add_conn(&mut self, c: &Conn, returned: &[u32]) {
        let s = &c.stack;
        let (prior, prior_seq, now) = c.acks;
        let fields = [
            s.pacing_status,
            s.snd_cwnd,
            s.snd_cwnd_cnt,
            s.snd_ssthresh,
            s.app_limited,
            s.ack_state,
            prior,
            prior_seq,
            now,
        ];
        self.add(s.pacing_rate);
        for &field in fields.iter().chain(returned) {
            self.add(field.into());
        }
    }

    /// What the algorithm tells of its model of the path.
    pub fn add_info(&mut self, c: &Conn) {
        if let Some(info) = c.info() {
            self.add(info.bw_bytes_per_sec.unwrap_or(0));
            self.add(info.min_rtt_us.unwrap_or(u32::MAX).into());
            self.add((info.pacing_gain * 256.0) as u64);
            self.add((info.cwnd_gain * 256.0) as u64);
            info.phase.bytes().for_each(|b| self.add(b.into()));
        }
    }
}

/// What a connection calls besides the ops of every ACK.
pub const SIDE_OPS: [Op; 9] = [
    Op::Ssthresh,
    Op::UndoCwnd,
    Op::SetState,
    Op::CwndEvent,
    Op::MinTsoSegs,
    Op::SndbufExpand,
    Op::InAckEvent,
    Op::SkbMarkedLost,
    Op::PktsAcked,
];

//! What a replay found.

use std::collections::BTreeMap;
use std::fmt;

use knee_cc::{CcOut, Op};

/// What an op may change; see `struct cc_out` of `cc/cc.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    SndCwnd = 0,
    SndSsthresh,
    PacingRate,
    SndCwndCnt,
    AppLimited,
    PacingStatus,
    Ret,
}

impl Field {
    /// Every field, in the order of their numbers.
    pub const ALL: [Field; 7] = [
        Field::SndCwnd,
        Field::SndSsthresh,
        Field::PacingRate,
        Field::SndCwndCnt,
        Field::AppLimited,
        Field::PacingStatus,
        Field::Ret,
    ];

    /// Its name in `cc/cc.h`.
    pub fn name(self) -> &'static str {
        match self {
            Field::SndCwnd => "snd_cwnd",
            Field::SndSsthresh => "snd_ssthresh",
            Field::PacingRate => "pacing_rate",
            Field::SndCwndCnt => "snd_cwnd_cnt",
            Field::AppLimited => "app_limited",
            Field::PacingStatus => "pacing_status",
            Field::Ret => "ret",
        }
    }

    pub(super) fn of(self, out: &CcOut) -> u64 {
        match self {
            Field::SndCwnd => out.snd_cwnd.into(),
            Field::SndSsthresh => out.snd_ssthresh.into(),
            Field::PacingRate => out.pacing_rate,
            Field::SndCwndCnt => out.snd_cwnd_cnt.into(),
            Field::AppLimited => out.app_limited.into(),
            Field::PacingStatus => out.pacing_status.into(),
            Field::Ret => out.ret.into(),
        }
    }
}

/// Why two results differ, as far as a replay can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// With the next jiffy all is equal: the clock ticked between the recorder's look at it and the kernel's.
    Jiffy,
    /// cubic: the kernel's cube root, a table and one Newton step, gave another K, no further off than it can be.
    CubeRoot,
    /// cubic: the window is so large (above 5.9 million segments) that its product with beta leaves 32 bits in the
    /// kernel.
    Overflow,
    /// None of these.
    Unexplained,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::Jiffy => "jiffy",
            Cause::CubeRoot => "cube root",
            Cause::Overflow => "overflow",
            Cause::Unexplained => "unexplained",
        })
    }
}

/// One value on which the kernel and our algorithm disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    pub op: Op,
    pub field: Field,
    pub cause: Cause,
    /// Number of the flow in the recording.
    pub flow: u64,
    /// Number of the op in its flow.
    pub number: u32,
    /// The value before the op, in the unit of the field; 0 for `ret`.
    pub before: u64,
    /// What the kernel made of it.
    pub kernels: u64,
    /// What ours makes of it.
    pub ours: u64,
}

/// What a replay found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Our name of the algorithm.
    pub algorithm: &'static str,
    pub flows: u64,
    /// Flows of which a record is missing; compared up to there.
    pub cut_flows: u64,
    /// Records that could not be compared, because one before them is missing.
    pub skipped: u64,
    /// Ops compared.
    pub ops: u64,
    /// Of those: ACKs (`cong_avoid` or `cong_control`).
    pub acks: u64,
    /// ACKs after which both have the same, by [`Field`].
    pub equal: [u64; Field::ALL.len()],
    kinds: BTreeMap<(usize, Field, Cause), (u64, Difference)>,
}

impl Report {
    pub(super) fn new(algorithm: &'static str) -> Self {
        Report {
            algorithm,
            flows: 0,
            cut_flows: 0,
            skipped: 0,
            ops: 0,
            acks: 0,
            equal: [0; Field::ALL.len()],
            kinds: BTreeMap::new(),
        }
    }

    pub(super) fn note(&mut self, difference: Difference) {
        let kind = (difference.op as usize, difference.field, difference.cause);
        self.kinds.entry(kind).or_insert((0, difference)).0 += 1;
    }

    /// Each kind of difference: how often it came, and the first one.
    pub fn kinds(&self) -> impl Iterator<Item = (u64, &Difference)> {
        self.kinds.values().map(|(count, first)| (*count, first))
    }

    /// How many values differ for this cause, over all ops.
    pub fn differences(&self, cause: Cause) -> u64 {
        self.kinds()
            .filter(|(_, first)| first.cause == cause)
            .map(|(count, _)| count)
            .sum()
    }

    /// Share of the ACKs after which `field` is the same, 0 to 1; 1 without ACKs.
    pub fn equal_share(&self, field: Field) -> f64 {
        if self.acks == 0 {
            return 1.0;
        }
        self.equal[field as usize] as f64 / self.acks as f64
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} flows, {} ops, {} ACKs compared",
            self.algorithm, self.flows, self.ops, self.acks
        )?;
        if self.cut_flows > 0 {
            writeln!(
                f,
                "  {} flows lack a record and were compared up to there; {} ops were not",
                self.cut_flows, self.skipped
            )?;
        }
        for field in [Field::SndCwnd, Field::SndSsthresh, Field::PacingRate] {
            writeln!(
                f,
                "  {:<12} equal on {} ACKs, {:.4} %",
                field.name(),
                self.equal[field as usize],
                100.0 * self.equal_share(field)
            )?;
        }
        for (count, first) in self.kinds() {
            writeln!(
                f,
                "  {count} x {:?} {} ({}), first: flow {} op {}: {} became {} in the kernel, {} here",
                first.op,
                first.field.name(),
                first.cause,
                first.flow,
                first.number,
                first.before,
                first.kernels,
                first.ours
            )?;
        }
        Ok(())
    }
}

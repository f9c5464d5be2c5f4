//! What a PIE is told.

use knee_units::Nanos;
use knee_units::params::{Param, Params, Unit};

const SOURCE: &str = "Linux include/net/pie.h: pie_params_init()";

pub const TARGET: Param = Param {
    name: "target",
    unit: Unit::Time,
    default: 15e6,
    min: 1e3,
    max: 1e10,
    doc: "wait that it steers to",
    source: "RFC 8033 section 4.2; Linux include/net/pie.h",
};

pub const TUPDATE: Param = Param {
    name: "tupdate",
    unit: Unit::Time,
    default: 15e6,
    min: 1e6,
    max: 1e10,
    doc: "time between two corrections of the probability",
    source: "RFC 8033 section 4.2; Linux include/net/pie.h",
};

pub const ALPHA: Param = Param {
    name: "alpha",
    unit: Unit::Count,
    default: 2.0,
    min: 0.0,
    max: 32.0,
    doc: "gain of the distance to the target, in sixteenths per second",
    source: SOURCE,
};

pub const BETA: Param = Param {
    name: "beta",
    unit: Unit::Count,
    default: 20.0,
    min: 0.0,
    max: 32.0,
    doc: "gain of the change since the last correction, in sixteenths per second",
    source: SOURCE,
};

pub const ECN: Param = Param {
    name: "ecn",
    unit: Unit::Flag,
    default: 0.0,
    min: 0.0,
    max: 1.0,
    doc: "mark instead of dropping while the probability is small, where the sender understands ECN",
    source: SOURCE,
};

pub const BYTEMODE: Param = Param {
    name: "bytemode",
    unit: Unit::Flag,
    default: 0.0,
    min: 0.0,
    max: 1.0,
    doc: "drop small packets with a smaller probability, in proportion",
    source: SOURCE,
};

pub const DQ_RATE_ESTIMATOR: Param = Param {
    name: "dq_rate_estimator",
    unit: Unit::Flag,
    default: 0.0,
    min: 0.0,
    max: 1.0,
    doc: "compute the wait from the backlog and the rate it leaves at, instead of from timestamps",
    source: SOURCE,
};

/// Probability 1. Linux include/net/pie.h: MAX_PROB.
pub(super) const ONE: u64 = u64::MAX >> 8;

/// A probability of so many percent.
pub const fn percent(percent: u64) -> u64 {
    ONE / 100 * percent
}

/// What a PIE was told.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub(super) target: Nanos,
    pub(super) tupdate: Nanos,
    /// Per second and 16, as a probability per ns.
    pub(super) alpha: u64,
    pub(super) beta: u64,
    pub(super) ecn: bool,
    pub(super) mark_prob: u64,
    pub(super) bytemode: bool,
    pub(super) dq_rate_estimator: bool,
    pub(super) max_packet_bytes: u64,
}

impl Settings {
    /// `mark_prob`: up to which probability ECN marks.
    pub fn new(params: &Params, max_packet_bytes: u32, mark_prob: u64) -> Settings {
        let gain = |name| params.int(name) * (ONE / 1_000_000_000) / 16;
        Settings {
            target: Nanos(params.int("target")),
            tupdate: Nanos(params.int("tupdate")),
            alpha: gain("alpha"),
            beta: gain("beta"),
            ecn: params.flag("ecn"),
            mark_prob,
            bytemode: params.flag("bytemode"),
            dq_rate_estimator: params.flag("dq_rate_estimator"),
            max_packet_bytes: u64::from(max_packet_bytes),
        }
    }
}

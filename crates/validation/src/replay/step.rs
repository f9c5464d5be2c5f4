//! One op of a replay.

use knee_cc::{CcOut, Instance, Op};

use super::op_record::OpRecord;

/// The outcome of one op.
pub(super) struct Step {
    pub(super) out: CcOut,
    kernels: CcOut,
    /// Different, but equal with the next jiffy.
    pub(super) is_jiffy: bool,
}

impl Step {
    /// Returns whether the kernel did the same, or would have at the next jiffy.
    pub(super) fn is_equal(&self) -> bool {
        self.out == self.kernels || self.is_jiffy
    }
}

/// Gives the op to `ours`. If the clock ticked between the recorder's look at it and the kernel's, `ours` has the
/// kernel's clock afterwards.
pub(super) fn step(ours: &mut Instance, op: Op, record: &OpRecord) -> Step {
    let before = ours.clone();
    let out = call(ours, op, record);
    let mut is_jiffy = false;
    if out != record.out {
        let mut later = *record;
        later.input.jiffies = later.input.jiffies.wrapping_add(1);
        let mut ours_later = before;
        is_jiffy = call(&mut ours_later, op, &later) == record.out;
        if is_jiffy {
            *ours = ours_later;
        }
    }
    Step {
        out,
        kernels: record.out,
        is_jiffy,
    }
}

fn call(ours: &mut Instance, op: Op, record: &OpRecord) -> CcOut {
    let mut out = record.out_before();
    ours.call(op, &record.input, &mut out);
    out
}

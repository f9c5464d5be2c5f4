//! Calls our algorithm with what the kernel's was shown, and compares what they did.

use std::collections::HashMap;

use knee_cc::{Algorithm, CcOut, Instance, Op};

use super::op_record::OpRecord;
use super::report::{Cause, Difference, Field, Report};

/// The replay of one recording.
pub struct Replay {
    algorithm: &'static Algorithm,
    flows: HashMap<u64, Flow>,
    report: Report,
}

struct Flow {
    ours: Instance,
    next: u32,
    /// A record is missing: what follows cannot be compared, since the state is not known.
    is_cut: bool,
}

/// Word of cubic's state that holds K, after five parameters and five of the state's own; a test holds it to that.
const CUBIC_K_WORD: usize = 10;

impl Replay {
    /// A replay through our algorithm of this name, with the parameters at their defaults, which are the kernel's.
    pub fn new(algorithm: &'static Algorithm) -> Self {
        Replay {
            algorithm,
            flows: HashMap::new(),
            report: Report::new(algorithm.name()),
        }
    }

    /// Replays one op. The first one of a flow is its `init`; a flow without is left out.
    pub fn feed(&mut self, record: &OpRecord) {
        let Some(op) = record.op() else { return };
        let flow = self.flows.entry(record.flow).or_insert_with(|| Flow {
            ours: Instance::new(self.algorithm, &[]).expect("defaults are in range"),
            next: 0,
            is_cut: false,
        });
        if !flow.is_cut && record.number != flow.next {
            flow.is_cut = true;
            self.report.cut_flows += 1;
        }
        if flow.is_cut {
            self.report.skipped += 1;
            return;
        }
        flow.next = record.number.wrapping_add(1);
        self.report.ops += 1;
        self.report.acks += u64::from(record.is_ack());

        let before = flow.ours.clone();
        let out = call(&mut flow.ours, op, record);
        let mut cause = None;
        if out != record.out {
            cause = Some(Cause::Unexplained);
            // The clock may have ticked between the recorder's look at it and the kernel's.
            let mut later = *record;
            later.input.jiffies = later.input.jiffies.wrapping_add(1);
            let mut ours_later = before;
            if call(&mut ours_later, op, &later) == record.out {
                cause = Some(Cause::Jiffy);
                // The next op is compared from the state that the kernel has.
                flow.ours = ours_later;
            } else if self.algorithm.name() == "cubic" && cubic_k(&flow.ours) != record.kernel_k {
                cause = Some(Cause::CubeRoot);
            }
        }
        for field in Field::ALL {
            let (ours, kernels) = (field.of(&out), field.of(&record.out));
            if ours == kernels {
                self.report.equal[field as usize] += u64::from(record.is_ack());
            } else {
                self.report.note(Difference {
                    op,
                    field,
                    cause: cause.expect("a field differs, so the blocks do"),
                    flow: record.flow,
                    number: record.number,
                    before: field.of(&record.out_before()),
                    kernels,
                    ours,
                });
            }
        }
    }

    /// What came of it.
    pub fn finish(mut self) -> Report {
        self.report.flows = self.flows.len() as u64;
        self.report
    }
}

fn call(ours: &mut Instance, op: Op, record: &OpRecord) -> CcOut {
    let mut out = record.out_before();
    ours.call(op, &record.input, &mut out);
    out
}

/// cubic's K, 2^-10 s.
fn cubic_k(cubic: &Instance) -> u32 {
    let pair = cubic.state()[CUBIC_K_WORD / 2].to_ne_bytes();
    let at = CUBIC_K_WORD % 2 * 4;
    u32::from_ne_bytes(pair[at..at + 4].try_into().expect("four bytes"))
}

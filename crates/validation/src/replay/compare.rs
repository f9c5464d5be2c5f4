//! Calls our algorithm with the kernel's input, and compares the decisions of both.

use std::collections::HashMap;

use knee_cc::{Algorithm, Instance};

use super::cubic::{self, WithKernelsK};
use super::op_record::OpRecord;
use super::report::{Cause, Difference, Field, Report};
use super::step::{Step, step};

/// The replay of one recording.
pub struct Replay {
    algorithm: &'static Algorithm,
    flows: HashMap<u64, Flow>,
    report: Report,
}

struct Flow {
    ours: Instance,
    with_kernels_k: Option<WithKernelsK>,
    next: u32,
    /// A record is missing: what follows cannot be compared, since the state is not known.
    is_cut: bool,
}

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
        let flow = self.flows.entry(record.flow).or_insert_with(|| {
            let ours = Instance::new(self.algorithm, &[]).expect("defaults are in range");
            Flow {
                with_kernels_k: WithKernelsK::of(&ours),
                ours,
                next: 0,
                is_cut: false,
            }
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

        let step = step(&mut flow.ours, op, record);
        let is_cube_root = flow
            .with_kernels_k
            .as_mut()
            .is_some_and(|twin| twin.explains(op, record, &flow.ours));
        let cause = match step {
            Step { is_jiffy: true, .. } => Cause::Jiffy,
            _ if cubic::overflows(op, record) && flow.with_kernels_k.is_some() => Cause::Overflow,
            _ if is_cube_root => Cause::CubeRoot,
            _ => Cause::Unexplained,
        };
        for field in Field::ALL {
            let (ours, kernels) = (field.of(&step.out), field.of(&record.out));
            if ours == kernels {
                self.report.equal[field as usize] += u64::from(record.is_ack());
            } else {
                self.report.note(Difference {
                    op,
                    field,
                    cause,
                    flow: record.flow,
                    number: record.number,
                    before: field.of(&record.out_before()),
                    kernels,
                    ours,
                });
            }
        }
    }

    /// Ends the replay and returns its counts.
    pub fn finish(mut self) -> Report {
        self.report.flows = self.flows.len() as u64;
        self.report
    }
}

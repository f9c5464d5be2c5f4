//! Processor time during a repetition: of the lab's processes and programs, and of the processors as a whole.

use knee_collect::cpu::{self, Processor};
use knee_tables::{CpuSample, CpuSamples};

use crate::netem::is_user_mode_linux;

/// A processor busier than this had no time for what the lab asked of it.
const SATURATED_SHARE: f64 = 0.97;

/// Processor time under watch.
#[derive(Default)]
pub(super) struct Cpu {
    at_start: Vec<Processor>,
    pub(super) rows: CpuSamples,
}

impl Cpu {
    /// The repetition starts.
    pub(super) fn start(&mut self) {
        // In a guest of virtual time nothing takes any: what the kernel counts there is no processor's time.
        if !is_user_mode_linux() {
            self.at_start = cpu::processors();
        }
    }

    /// Reads the time of each thread of these processes, `roles` with their numbers, and of each processor.
    pub(super) fn watch(&mut self, cell: u32, rep: u32, t_ns: u64, roles: &[(String, i32)]) {
        if self.at_start.is_empty() {
            return;
        }
        let (cell, rep, t_ns) = (cell as i32, rep as i32, t_ns as i64);
        // Asked for again each time: programs start threads, and so does the link.
        for thread in roles
            .iter()
            .flat_map(|(role, pid)| cpu::threads_of(role, *pid))
        {
            let Some(run_ns) = thread.run_ns() else {
                continue;
            };
            self.rows.push(CpuSample {
                cell,
                rep,
                t_ns,
                name: thread.name.clone(),
                run_us: (run_ns / 1_000) as i64,
                user_us: None,
                system_us: None,
                softirq_us: None,
                steal_us: None,
            });
        }
        let processors = cpu::processors();
        let rows = rows_of((cell, rep, t_ns), "", &processors, &self.at_start);
        rows.for_each(|row| self.rows.push(row));
    }

    /// What to say when the processors had no time left in a run of that length: then they were the bottleneck.
    pub(super) fn warn_of_saturation(&self, span_ns: u64) -> Option<String> {
        warn_of_saturation(&cpu::processors(), &self.at_start, span_ns)
    }
}

/// A row for each processor; `host`: what its name begins with.
pub(crate) fn rows_of(
    (cell, rep, t_ns): (i32, i32, i64),
    host: &str,
    now: &[Processor],
    then: &[Processor],
) -> impl Iterator<Item = CpuSample> {
    now.iter().zip(then).map(move |(now, then)| {
        let [user, system, softirq, steal] = used_us(now, then);
        CpuSample {
            cell,
            rep,
            t_ns,
            name: format!("{host}cpu{}", now.number),
            run_us: user + system + softirq,
            user_us: Some(user),
            system_us: Some(system),
            softirq_us: Some(softirq),
            steal_us: Some(steal),
        }
    })
}

/// What to say when processors had no time left between these two looks at them.
pub(crate) fn warn_of_saturation(
    now: &[Processor],
    then: &[Processor],
    span_ns: u64,
) -> Option<String> {
    let span_us = span_ns as f64 / 1e3;
    let used = now.iter().zip(then);
    let busy_us: i64 = used.flat_map(|(now, then)| used_us(now, then)).sum();
    let share = busy_us as f64 / (span_us * then.len().max(1) as f64);
    (share > SATURATED_SHARE).then(|| {
        format!(
            "the processors were busy for {:.0} % of the run: they, and not the path, may be what is measured",
            share.min(1.0) * 100.0
        )
    })
}

/// What programs, the kernel, interrupts and other machines took of a processor in between.
fn used_us(now: &Processor, then: &Processor) -> [i64; 4] {
    [
        now.programs_us() - then.programs_us(),
        now.system_us - then.system_us,
        now.interrupts_us() - then.interrupts_us(),
        now.steal_us - then.steal_us,
    ]
}

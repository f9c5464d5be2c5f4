//! An interval under measurement.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::time::Instant;

use knee_collect::KernelError;
use knee_collect::cpu::{self, Processor};
use knee_collect::threads::{self, Thread};
use knee_collect::totals::Totals;
use knee_tables::{
    COUNTERS, HistogramRow, Histograms, HostCosts, ProcessorRow, Processors, SoftirqRow,
    SoftirqRows, Stack, Stacks as StackRows, ThreadRow, ThreadRows,
};

use super::Instrument;
use super::counters::{Counters, HISTOGRAMS, SOFTIRQ_NAMES, Snapshot};
use super::stacks::Stacks;
use crate::record::{Netns, in_namespace};
use crate::trace::{Cost, ProgramCost};

/// The host that is the whole machine.
const MACHINE: &str = "machine";

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Asked {
    pub instruments: Vec<&'static Instrument>,
    /// Inode and path of the one network namespace that counts; `None`: all of them, or those of [`Session::list`].
    pub netns: Option<(u32, PathBuf)>,
    /// Are the hosts those of [`Session::list`] alone, as in a lab?
    pub is_lab: bool,
    /// The one process whose threads and stacks count.
    pub pid: Option<u32>,
    /// Samples of stacks per second and processor.
    pub stacks_hz: u64,
}

/// What `/proc` says at one moment.
struct Moment {
    at: Instant,
    totals: Totals,
    processors: Vec<Processor>,
    threads: BTreeMap<i32, Thread>,
    counters: Option<Snapshot>,
    cost: Cost,
}

/// A measurement under way.
pub struct Session {
    asked: Asked,
    counters: Option<Counters>,
    stacks: Option<Stacks>,
    hosts: Vec<&'static str>,
    /// Holds the namespace, also when the process that it was found by ends.
    netns: Option<File>,
    begun: Option<Moment>,
}

/// What was found between [`Session::begin`] and [`Session::finish`].
#[derive(Clone, Debug)]
pub struct Found {
    pub seconds: f64,
    pub host_costs: HostCosts,
    pub stacks: StackRows,
    pub histograms: Histograms,
    pub processors: Processors,
    pub softirqs: SoftirqRows,
    pub threads: ThreadRows,
    /// Samples of idle processors, and samples that found no room.
    pub idle_samples: u64,
    pub lost_samples: u64,
    /// Packets whose headers could not be read.
    pub unreadable: u64,
    pub cost: Cost,
}

impl Session {
    /// Attaches the programs of the instruments.
    ///
    /// # Errors
    /// Why the kernel or the caller's rights do not allow it.
    pub fn start(asked: Asked) -> Result<Session, KernelError> {
        let chosen = asked.instruments.iter().copied();
        let counting: Vec<&Instrument> = chosen.filter(|one| !one.tracepoints.is_empty()).collect();
        let listed_only = asked.is_lab || asked.netns.is_some();
        let counters = match counting.is_empty() {
            true => None,
            false => Some(Counters::attach(&counting, listed_only)?),
        };
        let stacks = match asked.instruments.iter().any(|one| one.name == "stacks") {
            true => Some(Stacks::attach(asked.stacks_hz, asked.pid)?),
            false => None,
        };
        let netns = asked.netns.as_ref().map(|(_, path)| {
            File::open(path).map_err(KernelError::system(format!("open {}", path.display())))
        });
        let session = Session {
            netns: netns.transpose()?,
            asked,
            counters,
            stacks,
            hosts: vec![MACHINE],
            begun: None,
        };
        if let Some((inode, _)) = session.asked.netns {
            session.place(inode, 0)?;
        }
        Ok(session)
    }

    /// Counts the events of a network namespace as a host of its own.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn list(&mut self, host: &'static str, inode: u32) -> Result<(), KernelError> {
        self.hosts.push(host);
        self.place(inode, self.hosts.len() as u32 - 1)
    }

    fn place(&self, inode: u32, place: u32) -> Result<(), KernelError> {
        match &self.counters {
            Some(counters) => counters.list(inode, place),
            None => Ok(()),
        }
    }

    /// The interval begins.
    ///
    /// # Errors
    /// What the programs wrote cannot be read.
    pub fn begin(&mut self) -> Result<(), KernelError> {
        if let Some(stacks) = &mut self.stacks {
            stacks.begin()?;
        }
        self.begun = Some(self.moment()?);
        Ok(())
    }

    /// The interval ends: takes the programs out of the kernel and tells what was found, in rows of that cell and
    /// repetition.
    ///
    /// # Errors
    /// What the programs wrote cannot be read.
    ///
    /// # Panics
    /// The interval has not begun.
    pub fn finish(mut self, cell: i32, rep: i32) -> Result<Found, KernelError> {
        let begun = self.begun.take().expect("begin() comes before finish()");
        let ended = self.moment()?;
        let mut found = Found {
            seconds: (ended.at - begun.at).as_secs_f64(),
            host_costs: HostCosts::default(),
            stacks: StackRows::default(),
            histograms: Histograms::default(),
            processors: processors(&begun.processors, &ended.processors),
            softirqs: SoftirqRows::default(),
            threads: threads_since(&begun.threads, &ended.threads),
            idle_samples: 0,
            lost_samples: 0,
            unreadable: 0,
            cost: since(&ended.cost, &begun.cost),
        };
        let mut counts = Vec::new();
        if let (Some(now), Some(then)) = (ended.counters, &begun.counters) {
            let counted = now.since(then);
            found.unreadable = counted.unreadable();
            counts = self.count(&counted, &mut found);
        }
        let totals = ended.totals.since(&begun.totals).into_iter();
        counts.extend(totals.map(|(name, value)| (MACHINE, name, value)));
        let place = |name: &str| COUNTERS.iter().position(|counter| counter.name == name);
        counts.sort_by_key(|(host, name, _)| {
            (
                self.hosts.iter().position(|other| other == host),
                place(name),
            )
        });
        for (host, name, value) in counts {
            found.host_costs.count(cell, rep, host, name, value);
        }
        if let Some(stacks) = self.stacks {
            let sampled = stacks.finish()?;
            (found.idle_samples, found.lost_samples) = (sampled.idle, sampled.lost);
            for (stack, class, samples) in sampled.stacks {
                let samples = samples as i64;
                found.stacks.push(Stack {
                    cell,
                    rep,
                    stack,
                    samples,
                    class,
                });
            }
        }
        Ok(found)
    }

    /// Host, counter and value of what the programs counted; sizes and softirqs become rows.
    fn count(
        &self,
        counted: &Snapshot,
        found: &mut Found,
    ) -> Vec<(&'static str, &'static str, i64)> {
        let mut counts = Vec::new();
        let has = |name: &str| self.asked.instruments.iter().any(|one| one.name == name);
        for (place, &host) in self.hosts.iter().enumerate() {
            let here = &counted.places[place];
            for (name, value) in here.named(has) {
                // What no namespace is told of counts for the machine alone, and in a lab the rest does not.
                let of_machine = name == "wakeups" || name.starts_with("napi");
                let told = match host {
                    MACHINE => of_machine || !self.asked.is_lab,
                    _ => name != "wakeups",
                };
                if told {
                    counts.push((host, name, value));
                }
            }
            for (which, (histogram, instrument)) in HISTOGRAMS.iter().enumerate() {
                let rows = here.histogram(which);
                for (least, most, count) in rows.into_iter().filter(|_| has(instrument)) {
                    found.histograms.push(HistogramRow {
                        host,
                        histogram,
                        least,
                        most,
                        count,
                    });
                }
            }
        }
        if has("softirqs") {
            let spent = |names: &[&str]| {
                let places = SOFTIRQ_NAMES.iter().enumerate();
                let chosen = places.filter(|(_, name)| names.contains(name));
                let of = |place: usize| counted.softirqs.iter().map(move |cpu| cpu.ns[place]);
                chosen.flat_map(|(place, _)| of(place)).sum::<u64>() as i64
            };
            let counters: [(&'static str, &[&str]); 4] = [
                ("softirq_net_rx_ns", &["net_rx"]),
                ("softirq_net_tx_ns", &["net_tx"]),
                ("softirq_timer_ns", &["timer", "hrtimer"]),
                ("softirq_sched_ns", &["sched"]),
            ];
            for (name, softirqs) in counters {
                counts.push((MACHINE, name, spent(softirqs)));
            }
        }
        for (cpu, one) in counted.softirqs.iter().enumerate() {
            for (place, softirq) in SOFTIRQ_NAMES.iter().enumerate() {
                let (ns, runs) = (one.ns[place] as i64, one.runs[place] as i64);
                if runs > 0 {
                    let cpu = cpu as i32;
                    found.softirqs.push(SoftirqRow {
                        cpu,
                        softirq,
                        ns,
                        runs,
                    });
                }
            }
        }
        counts
    }

    fn moment(&self) -> Result<Moment, KernelError> {
        let softnet = self
            .asked
            .instruments
            .iter()
            .any(|one| one.name == "softnet");
        let netns = self.netns.as_ref().map(|file| Netns {
            name: "that is measured".into(),
            path: format!("/proc/self/fd/{}", file.as_raw_fd()).into(),
        });
        let pid = self.asked.pid.map(|pid| pid as i32);
        Ok(Moment {
            at: Instant::now(),
            totals: in_namespace(netns.as_ref(), || Ok(Totals::now(softnet)))?,
            processors: cpu::processors(),
            // In a lab the table `cpu` has them.
            threads: match self.asked.is_lab {
                true => BTreeMap::new(),
                false => threads::all(pid),
            },
            counters: self.counters.as_ref().map(Counters::snapshot).transpose()?,
            cost: self.cost(),
        })
    }

    /// What the programs cost so far.
    fn cost(&self) -> Cost {
        let counters = self.counters.as_ref().map(Counters::cost);
        let stacks = self.stacks.as_ref().map(Stacks::cost);
        let parts: Vec<Cost> = counters.into_iter().chain(stacks).collect();
        Cost {
            not_measured: parts.iter().find_map(|cost| cost.not_measured.clone()),
            programs: parts.into_iter().flat_map(|cost| cost.programs).collect(),
        }
    }
}

/// What programs cost in between.
fn since(now: &Cost, then: &Cost) -> Cost {
    let programs = now.programs.iter().zip(&then.programs);
    Cost {
        programs: programs
            .map(|(now, then)| ProgramCost {
                tracepoint: now.tracepoint.clone(),
                runs: now.runs - then.runs,
                run_time_ns: now.run_time_ns - then.run_time_ns,
                missed: now.missed - then.missed,
            })
            .collect(),
        not_measured: now.not_measured.clone(),
    }
}

fn processors(then: &[Processor], now: &[Processor]) -> Processors {
    let mut rows = Processors::default();
    for now in now {
        // One that came meanwhile has no interval.
        let Some(then) = then.iter().find(|then| then.number == now.number) else {
            continue;
        };
        rows.push(ProcessorRow {
            cpu: now.number as i32,
            user_us: now.programs_us() - then.programs_us(),
            system_us: now.system_us - then.system_us,
            irq_us: now.irq_us - then.irq_us,
            softirq_us: now.softirq_us - then.softirq_us,
            steal_us: now.steal_us - then.steal_us,
            idle_us: now.idle_us + now.iowait_us - then.idle_us - then.iowait_us,
        });
    }
    rows
}

/// Threads that ran in between, those that ran most first.
fn threads_since(then: &BTreeMap<i32, Thread>, now: &BTreeMap<i32, Thread>) -> ThreadRows {
    let fresh = Thread::default();
    let mut found: Vec<ThreadRow> = now
        .iter()
        .map(|(&tid, now)| {
            let same = |then: &&Thread| then.pid == now.pid;
            let then = then.get(&tid).filter(same).unwrap_or(&fresh);
            ThreadRow {
                pid: now.pid,
                tid,
                program: now.program.clone(),
                thread: now.name.clone(),
                run_ns: now.run_ns - then.run_ns,
                wait_ns: now.wait_ns - then.wait_ns,
                user_us: now.user_us - then.user_us,
                system_us: now.system_us - then.system_us,
            }
        })
        .filter(|row| row.run_ns > 0)
        .collect();
    found.sort_by_key(|row| std::cmp::Reverse(row.run_ns));
    let mut rows = ThreadRows::default();
    found.into_iter().for_each(|row| rows.push(row));
    rows
}

#[cfg(test)]
mod tests {
    use super::super::INSTRUMENTS;
    use super::*;

    fn thread(pid: i32, run_ns: i64) -> Thread {
        Thread {
            pid,
            run_ns,
            ..Thread::default()
        }
    }

    #[test]
    fn threads_that_did_not_run_have_no_row_and_a_number_used_again_counts_from_nothing() {
        let then = BTreeMap::from([(1, thread(1, 10)), (2, thread(2, 70)), (3, thread(3, 5))]);
        let now = BTreeMap::from([(1, thread(1, 30)), (2, thread(9, 40)), (3, thread(3, 5))]);
        let rows = threads_since(&then, &now);
        assert_eq!(rows.tid, [2, 1]);
        assert_eq!(rows.run_ns, [40, 20]);
    }

    #[test]
    fn an_interval_without_bpf_has_processors_threads_and_softnet() {
        let mut session = Session::start(Asked {
            instruments: INSTRUMENTS.iter().filter(|one| !one.bpf).collect(),
            netns: None,
            is_lab: false,
            pid: Some(std::process::id()),
            stacks_hz: 99,
        })
        .unwrap();
        session.begin().unwrap();
        let until = Instant::now() + std::time::Duration::from_millis(30);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        let found = session.finish(0, 0).unwrap();
        assert!(found.seconds >= 0.03);
        assert!(!found.processors.cpu.is_empty());
        assert!(
            found
                .threads
                .pid
                .iter()
                .all(|&pid| pid as u32 == std::process::id())
        );
        assert!(found.threads.run_ns[0] > 0);
        let counters = found.host_costs.counter.names();
        assert!(counters.contains(&"backlog_drops"));
        assert!(counters.contains(&"context_switches"));
        assert!(found.stacks.stack.is_empty() && found.cost.programs.is_empty());
    }
}

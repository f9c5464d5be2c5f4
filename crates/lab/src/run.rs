//! One repetition of a cell on the real kernel.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use knee_collect::KernelError;
use knee_collect::clock::{Punctual, monotonic_ns};
use knee_collect::cpu::{self, Processor, Watched};
use knee_observe::folder::Folder;
use knee_scenario::{Cell, FlowSpec, Pacing, WorkloadSpec};
use knee_tables::{
    CpuSample, CpuSamples, Events, Flows, Links, Program as ProgramRow, Programs, QueueSamples,
    Samples, TcpInfoSamples,
};
use knee_units::Nanos;
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::rows::{self, Reports};
use crate::sampler::Sampler;
use crate::traffic::{self, EndReport, Flow, Plan, Progress, Shared, Side};
use crate::{Child, Ended, Facts, Lab, Listeners, Program, RunAs};

/// From the start of the processes to the start of the run: they have to be there.
const LEAD: Duration = Duration::from_millis(100);
/// How often processor time is read.
const CPU_INTERVAL_NS: u64 = 100_000_000;
/// How long a server program may take to listen.
const SERVER_PATIENCE: Duration = Duration::from_secs(10);
/// How long a process may take to report at the end.
const REPORT_PATIENCE: Duration = Duration::from_secs(20);
/// A processor busier than this had no time for what the lab asked of it.
const SATURATED_SHARE: f64 = 0.97;

/// What the caller settles.
pub struct Options {
    /// What the kernel calls each of the scenario's algorithms.
    pub congestion: BTreeMap<String, String>,
    /// Where what programs print is kept.
    pub output: PathBuf,
    /// Who programs run as; `None`: as the lab does.
    pub run_as: Option<RunAs>,
}

/// What one repetition produced.
#[derive(Default)]
pub struct Output {
    pub flows: Flows,
    pub samples: Samples,
    /// Further columns of `samples`.
    pub tcp_info: TcpInfoSamples,
    pub queue: QueueSamples,
    pub events: Events,
    pub cpu: CpuSamples,
    pub links: Links,
    pub programs: Programs,
    /// Data packets that entered the path.
    pub data_packets: u64,
    pub facts: Facts,
    /// What makes the results doubtful, in words.
    pub warnings: Vec<String>,
}

/// Runs one repetition. The caller is the first process of a lab ([`crate::enter`]).
///
/// `progress` hears the time reached now and then; false ends the run with
/// [`KernelError::Cancelled`].
///
/// # Errors
/// The lab cannot be made, or one of its processes fails.
pub fn run_in_lab(
    cell: &Cell,
    rep: u32,
    options: &Options,
    progress: &mut dyn FnMut(Nanos) -> bool,
) -> Result<Output, KernelError> {
    refuse_blocking(cell)?;
    refuse_pacing(cell)?;
    let congestion = |name: &str| {
        let known = options.congestion.get(name);
        known.cloned().unwrap_or_else(|| name.to_owned())
    };
    let flows = traffic::flows(cell, rep);
    crate::check_flows(flows.len() as u32)?;
    let lab = Lab::build(cell, &congestion)?;
    Repetition::start(cell, rep, options, lab, &flows, &congestion)?.run(progress)
}

/// The generators serve many connections by one thread each, which cannot wait in a write.
fn refuse_blocking(cell: &Cell) -> Result<(), KernelError> {
    match cell.flows.iter().position(|flow| flow.blocking) {
        None => Ok(()),
        Some(group) => Err(KernelError::Unsupported {
            what: format!("flow.{group}.blocking = true"),
            lacks: "writes without blocking".into(),
            hint: "Leave it out, simulate it, or let a program of yours write (workload = \"programs\").".into(),
        }),
    }
}

/// All flows leave their host through one qdisc, and fq paces every socket.
fn refuse_pacing(cell: &Cell) -> Result<(), KernelError> {
    let host_has_fq = crate::qdisc(&cell.sender) == Some("fq");
    let differs = |pacing: Pacing| (pacing == Pacing::Fq) != host_has_fq;
    let mut flows = cell.flows.iter().enumerate();
    let Some((group, pacing)) = flows.find_map(|(group, flow)| {
        let pacing = flow.pacing.filter(|&pacing| differs(pacing))?;
        Some((group, pacing))
    }) else {
        return Ok(());
    };
    let (lacks, hint) = match host_has_fq {
        true => (
            "paces every flow of a host whose qdisc is fq",
            "Take fq from [sender], or simulate it.",
        ),
        false => (
            "has one qdisc for all flows of the sender's host, which is not fq",
            "Write flow.pacing = \"timer\", which paces at the same rate; or sender.pacing = \"fq\" for all flows; or simulate it.",
        ),
    };
    Err(KernelError::Unsupported {
        what: format!("flow.{group}.pacing = \"{}\"", pacing.name()),
        lacks: lacks.into(),
        hint: hint.into(),
    })
}

/// A repetition under way.
struct Repetition<'a> {
    cell: &'a Cell,
    rep: u32,
    flows: &'a [Flow],
    lab: Lab,
    shared: Shared,
    stop: EventFd,
    start_ns: u64,
    link: Child,
    generators: [Child; 2],
    programs: Vec<Program>,
    /// Clients to start, the last first.
    clients: Vec<(u64, usize)>,
    sampler: Sampler,
    cpu: Cpu,
    options: &'a Options,
    warnings: Vec<String>,
}

/// Processor time under watch.
struct Cpu {
    watched: Vec<Watched>,
    at_start: Vec<Processor>,
    rows: CpuSamples,
}

impl<'a> Repetition<'a> {
    fn start(
        cell: &'a Cell,
        rep: u32,
        options: &'a Options,
        mut lab: Lab,
        flows: &'a [Flow],
        congestion: &dyn Fn(&str) -> String,
    ) -> Result<Repetition<'a>, KernelError> {
        let stop = EventFd::from_flags(EfdFlags::EFD_CLOEXEC)
            .map_err(KernelError::system("make an event descriptor"))?;
        let shared = Shared::new(flows.len()).map_err(KernelError::system(
            "share memory between the lab's processes",
        ))?;
        let sampler = Sampler::new(cell, rep, flows, &lab, shared)?;
        let config = lab.link_config(cell, cell.rep_seed(rep), flows.len() as u32);
        let joint = lab.joint.take().expect("a fresh lab has its path");
        let start_link =
            |start_ns| crate::spawn("link", || joint.carry(&config, start_ns, stop.as_fd()));
        let mut repetition_programs = Vec::new();
        let mut clients = Vec::new();
        let programs = |flow: &FlowSpec| matches!(flow.workload, WorkloadSpec::Programs { .. });
        if cell.flows.iter().any(programs) {
            Folder::make(&options.output).map_err(KernelError::system(format!(
                "make the folder {}",
                options.output.display()
            )))?;
        }
        if let Some(user) = &options.run_as {
            user.welcome(&lab.sender)?;
            user.welcome(&lab.receiver)?;
        }
        for (group, flow) in cell.flows.iter().enumerate() {
            let WorkloadSpec::Programs { server, .. } = &flow.workload else {
                continue;
            };
            if let Some(command) = server {
                let file = output_file(&options.output, cell, rep, group, "server");
                let addresses = lab.addresses[group];
                lab.sender.enter()?;
                let before = Listeners::here();
                let place = (&lab.sender, addresses);
                let run_as = options.run_as.as_ref();
                let mut program = Program::start("server", group, command, place, run_as, &file)?;
                let ready =
                    crate::await_listener(&mut program, &before, addresses, SERVER_PATIENCE);
                if let Err(error) = ready {
                    program.stop();
                    return Err(error);
                }
                repetition_programs.push(program);
            }
            clients.push((flow.start.0, group));
        }
        clients.sort_unstable_by(|a, b| b.cmp(a));

        let start_ns = monotonic_ns() + LEAD.as_nanos() as u64;
        let link = start_link(start_ns)?;
        let plan = |side| Plan {
            cell,
            side,
            flows,
            addresses: &lab.addresses,
            congestion,
            shared,
            start_ns,
        };
        // The receivers first: they are who listens most.
        let generators =
            [("receiver", Side::Receiver), ("sender", Side::Sender)].map(|(role, side)| {
                crate::spawn(role, || {
                    let place = if side == Side::Sender {
                        &lab.sender
                    } else {
                        &lab.receiver
                    };
                    place.enter()?;
                    traffic::generate(&plan(side), stop.as_fd())
                })
            });
        let [receiver, sender] = generators;
        Ok(Repetition {
            cell,
            rep,
            flows,
            shared,
            stop,
            start_ns,
            link,
            generators: [sender?, receiver?],
            programs: repetition_programs,
            clients,
            sampler,
            cpu: Cpu {
                watched: Vec::new(),
                at_start: Vec::new(),
                rows: CpuSamples::default(),
            },
            options,
            warnings: Vec::new(),
            lab,
        })
    }

    fn run(mut self, progress: &mut dyn FnMut(Nanos) -> bool) -> Result<Output, KernelError> {
        let punctual = Punctual::request();
        self.sampler.realtime = punctual.granted;
        let outcome = self.watch(progress);
        drop(punctual);
        for program in &mut self.programs {
            program.stop();
        }
        outcome?;
        self.finish()
    }

    /// Until the duration is over or all work is done.
    fn watch(&mut self, progress: &mut dyn FnMut(Nanos) -> bool) -> Result<(), KernelError> {
        let end_ns = self.start_ns + self.cell.duration.0;
        sleep_until(self.start_ns);
        self.cpu.at_start = cpu::processors();
        let interval_ns = self.cell.sample_interval.0;
        let warm_ns = self.start_ns + self.cell.warmup.0;
        let mut next_sample_ns = self.start_ns + interval_ns;
        let mut next_cpu_ns = self.start_ns;
        let mut warmed = false;
        loop {
            let now_ns = monotonic_ns();
            self.check_children()?;
            self.start_clients(now_ns)?;
            if now_ns >= next_cpu_ns {
                self.watch_cpu(now_ns);
                next_cpu_ns += CPU_INTERVAL_NS;
                if !progress(Nanos(now_ns - self.start_ns)) {
                    return Err(KernelError::Cancelled);
                }
            }
            if !warmed && now_ns >= warm_ns {
                warmed = true;
                self.sampler
                    .sample(warm_ns - self.start_ns, self.start_ns)?;
                self.sampler.start_measuring(monotonic_ns() - self.start_ns);
            }
            if now_ns >= next_sample_ns {
                self.sampler
                    .sample(next_sample_ns - self.start_ns, self.start_ns)?;
                // Samples that could not be taken in time are left out, not made up.
                let missed = (monotonic_ns().saturating_sub(next_sample_ns)) / interval_ns;
                self.sampler.missed += missed;
                next_sample_ns += interval_ns * (1 + missed);
            }
            if now_ns >= end_ns || self.is_done() {
                return Ok(());
            }
            let next_ns = next_sample_ns.min(next_cpu_ns).min(end_ns);
            let next_ns = if warmed {
                next_ns
            } else {
                next_ns.min(warm_ns)
            };
            let next_client_ns = self.clients.last().map(|(start, _)| self.start_ns + start);
            // Children are looked after ten times a second at least.
            sleep_until(next_ns.min(next_client_ns.unwrap_or(u64::MAX)));
        }
    }

    /// Is all work complete, so that waiting would show nothing more?
    fn is_done(&mut self) -> bool {
        let complete =
            |flow: &Flow| Progress::when(&self.shared.get(flow.number).completed_ns).is_some();
        self.clients.is_empty()
            && self.flows.iter().all(complete)
            && self
                .programs
                .iter_mut()
                .all(|program| program.role == "server" || program.poll().is_some())
    }

    fn check_children(&mut self) -> Result<(), KernelError> {
        for child in self.generators.iter_mut().chain([&mut self.link]) {
            if child.poll().is_some() {
                return Err(child.died());
            }
        }
        for program in &mut self.programs {
            // Also of clients it is noted when they ended.
            let ended = program.poll();
            if program.role == "server"
                && let Some(ended) = ended
            {
                return Err(KernelError::Command {
                    group: program.group,
                    role: "server",
                    command: program.command.clone(),
                    why: format!(
                        "it {} during the run{}",
                        ended.words(),
                        program.last_words()
                    ),
                });
            }
        }
        let ours = self.generators.iter().chain([&self.link]);
        let pids = ours
            .map(|child| child.pid)
            .chain(self.programs.iter().map(|program| program.pid));
        crate::reap_orphans(|ended| pids.clone().any(|pid| pid == ended))
    }

    fn start_clients(&mut self, now_ns: u64) -> Result<(), KernelError> {
        while let Some(&(start, group)) = self.clients.last()
            && self.start_ns + start <= now_ns
        {
            self.clients.pop();
            let WorkloadSpec::Programs { client, .. } = &self.cell.flows[group].workload else {
                continue;
            };
            let file = output_file(&self.options.output, self.cell, self.rep, group, "client");
            let place = (&self.lab.receiver, self.lab.addresses[group]);
            let run_as = self.options.run_as.as_ref();
            let program = Program::start("client", group, client, place, run_as, &file)?;
            self.programs.push(program);
        }
        Ok(())
    }

    fn watch_cpu(&mut self, now_ns: u64) {
        // Again each time: programs start threads, and so does the link.
        let mut watched = Vec::new();
        for (role, pid) in self.roles() {
            watched.extend(cpu::threads_of(&role, pid));
        }
        self.cpu.watched = watched;
        let (cell, rep) = (self.cell.index as i32, self.rep as i32);
        let t_ns = (now_ns - self.start_ns) as i64;
        for thread in &self.cpu.watched {
            let Some(run_ns) = thread.run_ns() else {
                continue;
            };
            self.cpu.rows.push(CpuSample {
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
        for (now, then) in cpu::processors().iter().zip(&self.cpu.at_start) {
            let [user, system, softirq, steal] = [
                now.programs_us() - then.programs_us(),
                now.system_us - then.system_us,
                now.interrupts_us() - then.interrupts_us(),
                now.steal_us - then.steal_us,
            ];
            self.cpu.rows.push(CpuSample {
                cell,
                rep,
                t_ns,
                name: format!("cpu{}", now.number),
                run_us: user + system + softirq,
                user_us: Some(user),
                system_us: Some(system),
                softirq_us: Some(softirq),
                steal_us: Some(steal),
            });
        }
    }

    /// Processes whose time counts, by their number in the lab.
    fn roles(&self) -> Vec<(String, i32)> {
        let ours = self.generators.iter().chain([&self.link]);
        let programs = self
            .programs
            .iter()
            .filter(|program| program.ended.is_none());
        ours.map(|child| (child.role.clone(), child.pid.as_raw()))
            .chain(programs.map(|program| {
                (
                    format!("{}.{}", program.role, program.group),
                    program.pid.as_raw(),
                )
            }))
            .collect()
    }

    /// The last sample, the reports, and the rows made of both.
    fn finish(mut self) -> Result<Output, KernelError> {
        let now_ns = monotonic_ns();
        self.sampler.sample(now_ns - self.start_ns, self.start_ns)?;
        self.watch_cpu(now_ns);
        self.stop
            .write(1)
            .map_err(KernelError::system("tell the lab's processes to end"))?;
        let deadline = Instant::now() + REPORT_PATIENCE;
        let link: knee_link::Report = self.link.finish(deadline)?;
        let [sender, receiver] = &mut self.generators;
        let sender: Vec<EndReport> = sender.finish(deadline)?;
        let receiver: Vec<EndReport> = receiver.finish(deadline)?;
        self.warn_of_saturation(now_ns);
        let mut programs = Programs::default();
        for program in &self.programs {
            programs.push(self.program_row(program));
        }
        let mut output = Output {
            cpu: self.cpu.rows,
            facts: self.lab.facts,
            warnings: self.warnings,
            programs,
            ..Output::default()
        };
        let reports = Reports {
            link,
            sender: &sender,
            receiver: &receiver,
            start_ns: self.start_ns,
            ended_ns: now_ns - self.start_ns,
        };
        rows::finish(self.sampler, reports, &mut output);
        Ok(output)
    }

    fn program_row(&self, program: &Program) -> ProgramRow {
        let (exit_code, signal) = match program.ended {
            Some((Ended::Exited(code), _)) => (Some(i64::from(code)), None),
            Some((Ended::Killed(signal), _)) => (None, Some(i64::from(signal))),
            None => (None, None),
        };
        let until = program.ended.map_or_else(Instant::now, |(_, at)| at);
        let ago_ns = program.started.elapsed().as_nanos() as i64;
        ProgramRow {
            cell: self.cell.index as i32,
            rep: self.rep as i32,
            group: program.group as i32,
            role: program.role,
            command: program.command.clone(),
            start_ns: monotonic_ns() as i64 - ago_ns - self.start_ns as i64,
            wall_us: (until - program.started).as_micros() as i64,
            exit_code,
            signal,
            output: program
                .output
                .file_name()
                .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        }
    }

    /// Says when the processors had no time left: then they were the bottleneck.
    fn warn_of_saturation(&mut self, now_ns: u64) {
        let span_us = (now_ns - self.start_ns) as f64 / 1e3;
        let busy_us: i64 = cpu::processors()
            .iter()
            .zip(&self.cpu.at_start)
            .map(|(now, then)| {
                (now.programs_us() - then.programs_us())
                    + (now.system_us - then.system_us)
                    + (now.interrupts_us() - then.interrupts_us())
                    + (now.steal_us - then.steal_us)
            })
            .sum();
        let share = busy_us as f64 / (span_us * self.cpu.at_start.len().max(1) as f64);
        if share > SATURATED_SHARE {
            self.warnings.push(format!(
                "the processors were busy for {:.0} % of the run: they, and not the path, may be what is measured",
                share.min(1.0) * 100.0
            ));
        }
    }
}

fn output_file(
    folder: &std::path::Path,
    cell: &Cell,
    rep: u32,
    group: usize,
    role: &str,
) -> PathBuf {
    folder.join(format!(
        "cell{}-rep{rep}-flow{group}-{role}.txt",
        cell.index
    ))
}

fn sleep_until(at_ns: u64) {
    let now_ns = monotonic_ns();
    if at_ns > now_ns {
        std::thread::sleep(Duration::from_nanos(at_ns - now_ns));
    }
}

//! One repetition of a cell on the real kernel.

pub(crate) mod cpu;
mod moment;
mod options;
mod programs;

use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use knee_clock::{Punctual, monotonic_ns};
use knee_collect::KernelError;
use knee_link::SERVICE_PORT;
use knee_loader::Variant;
use knee_path::Backend;
use knee_scenario::{Cell, Pacing};
use knee_tables::Packets;
use knee_units::Nanos;
use nix::sys::eventfd::{EfdFlags, EventFd};

use cpu::Cpu;
pub use moment::Moment;
pub use options::Options;
use programs::Programs;
pub(crate) use programs::output_name;

use crate::packets::{self, Captures};
pub use crate::repetition::Output;
use crate::rows::{self, Reports};
use crate::sampler::Sampler;
use crate::{Child, Lab};
use knee_traffic::{
    self as traffic, Algorithm, EndReport, Ends, Flow, Plan, Progress, Shared, Side, Start,
};

/// From when all processes are there to the start of the run, which the link's threads have to be ready for. In virtual
/// time, which waits for whoever works, from their own start.
const LEAD: Duration = Duration::from_millis(100);
/// How long they may take until they are there.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// How often processor time is read.
const CPU_INTERVAL_NS: u64 = 100_000_000;
/// How long a process may take to report at the end.
const REPORT_PATIENCE: Duration = Duration::from_secs(20);

/// Runs one repetition. The caller is the first process of a lab ([`crate::enter`]).
///
/// `progress` hears of each [`Moment`]; false ends the run with [`KernelError::Cancelled`].
///
/// # Errors
/// The lab cannot be made, or one of its processes fails.
pub fn run_in_lab(
    cell: &Cell,
    rep: u32,
    options: &Options,
    progress: &mut dyn FnMut(Moment) -> bool,
) -> Result<Output, KernelError> {
    refuse_blocking(cell)?;
    refuse_buffers(cell)?;
    refuse_pacing(cell)?;
    let congestion = |name: &str| {
        let known = options.congestion.get(name);
        known.cloned().unwrap_or_else(|| name.to_owned())
    };
    let flows = traffic::flows(cell, rep);
    crate::check_flows(flows.len() as u32)?;
    let lab = Lab::build(cell, &congestion)?;
    let (sender, receiver) = (lab.sender.inode()?, lab.receiver.inode()?);
    tell(progress, Moment::Built { sender, receiver })?;
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

/// Programs make their sockets themselves.
pub(crate) fn refuse_buffers(cell: &Cell) -> Result<(), KernelError> {
    for (group, flow) in cell.flows.iter().enumerate() {
        let asked = [
            (flow.sndbuf, "sndbuf"),
            (flow.rcvbuf, "rcvbuf"),
            (flow.window_clamp, "window_clamp"),
        ];
        let asked = asked.iter().find(|(size, _)| size.is_some());
        if let Some((_, key)) = asked.filter(|_| flow.workload.commands().is_some()) {
            return Err(KernelError::Unsupported {
                what: format!("flow.{group}.{key} with workload = \"programs\""),
                lacks: "sets no options of programs' sockets".into(),
                hint: "Leave it out, and let the programs ask for their buffers.".into(),
            });
        }
    }
    Ok(())
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

/// What traffic says of its failure.
fn told(error: traffic::Error) -> KernelError {
    match error {
        traffic::Error::System { what, source } => KernelError::System { what, source },
        traffic::Error::Unsupported { what, lacks, hint } => {
            KernelError::Unsupported { what, lacks, hint }
        }
        error @ traffic::Error::Command { .. } => KernelError::Command(error.to_string()),
        error @ traffic::Error::Connection { .. } => KernelError::Child {
            role: "connection".into(),
            message: error.to_string(),
        },
    }
}

/// Has those end who wait for it.
fn end(stop: &EventFd) -> Result<(), KernelError> {
    let told = stop.write(1).map(drop);
    told.map_err(KernelError::system("tell the lab's processes to end"))
}

/// A repetition under way.
struct Repetition<'a> {
    cell: &'a Cell,
    rep: u32,
    flows: &'a [Flow],
    lab: Lab,
    shared: Shared,
    /// Of the generators, and of the link, which programs need for longer.
    stop: EventFd,
    stop_link: EventFd,
    start_ns: u64,
    link: Child,
    generators: [Child; 2],
    programs: Programs<'a>,
    sampler: Sampler,
    captures: Option<Captures>,
    cpu: Cpu,
    warnings: Vec<String>,
}

impl<'a> Repetition<'a> {
    fn start(
        cell: &'a Cell,
        rep: u32,
        options: &'a Options,
        mut lab: Lab,
        flows: &'a [Flow],
        congestion: &(dyn Fn(&str) -> String + Sync),
    ) -> Result<Repetition<'a>, KernelError> {
        let event = || {
            EventFd::from_flags(EfdFlags::EFD_CLOEXEC)
                .map_err(KernelError::system("make an event descriptor"))
        };
        let (stop, stop_link) = (event()?, event()?);
        let shared = Shared::new(flows.len()).map_err(KernelError::system(
            "share memory between the lab's processes",
        ))?;
        let sampler = Sampler::new(cell, rep, flows, &lab, shared)?;
        let captures = match options.capture_bytes {
            0 => None,
            room_bytes => Some(Captures::start(&lab, room_bytes)?),
        };
        let config = lab.link_config(cell, cell.rep_seed(rep), flows.len() as u32);
        let joint = lab.joint.take().expect("a fresh lab has its path");
        if let Some(user) = &options.run_as {
            user.welcome(&lab.sender)?;
            user.welcome(&lab.receiver)?;
        }
        let programs = Programs::start_servers(cell, rep, options, &lab)?;

        let is_virtual = crate::netem::is_user_mode_linux();
        let start = Start::new().map_err(KernelError::system(
            "share memory between the lab's processes",
        ))?;
        let in_time = || monotonic_ns() + LEAD.as_nanos() as u64;
        if is_virtual {
            // A guest boots the same in each repetition, as no machine does.
            start.tell(in_time() + cell.phase_ns(rep));
        }
        let mut link = crate::spawn("link", || {
            joint.carry(&config, start.wait(&[stop_link.as_fd()]), stop_link.as_fd())
        })?;
        let of_flows = cell.flows.iter().map(Variant::of_flow);
        let far = |_: &_| cell.receiver.algorithm.clone();
        let algorithms = [
            of_flows
                .map(|variant| variant.to_string())
                .collect::<Vec<_>>(),
            cell.flows.iter().map(far).collect(),
        ];
        let algorithms = algorithms.map(|written| {
            let named = |written: String| Algorithm {
                called: congestion(&written),
                written,
            };
            written.into_iter().map(named).collect::<Vec<_>>()
        });
        let over = AtomicBool::new(false);
        let plan = |side| Plan {
            cell,
            side,
            flows,
            ends: Ends::Lab {
                addresses: &lab.addresses,
                first_port: crate::FIRST_PORT,
                service_port: SERVICE_PORT,
            },
            algorithms: &algorithms[side as usize],
            shared,
            start,
            // Nothing between: hosts are measured, and what a read costs counts.
            copies: cell.path.backend == Backend::Veth,
            is_virtual,
            opened: None,
            over: &over,
        };
        // The receivers first: they are who listens most.
        let generators =
            [("receiver", Side::Receiver), ("sender", Side::Sender)].map(|(role, side)| {
                crate::spawn(role, || {
                    let place = match side {
                        Side::Sender => &lab.sender,
                        Side::Receiver => &lab.receiver,
                    };
                    place.enter()?;
                    traffic::generate(&plan(side), stop.as_fd()).map_err(told)
                })
            });
        let [receiver, sender] = generators;
        let mut generators = [sender?, receiver?];
        if !is_virtual {
            let [sender, receiver] = &mut generators;
            await_all(
                &start,
                1 + cell.threads().iter().sum::<u32>(),
                [&mut link, sender, receiver],
            )?;
            start.tell(in_time());
        }
        Ok(Repetition {
            cell,
            rep,
            flows,
            shared,
            stop,
            stop_link,
            start_ns: start.wait(&[]),
            link,
            generators,
            programs,
            sampler,
            captures,
            cpu: Cpu::default(),
            warnings: Vec::new(),
            lab,
        })
    }

    fn run(mut self, progress: &mut dyn FnMut(Moment) -> bool) -> Result<Output, KernelError> {
        let punctual = Punctual::request();
        self.sampler.realtime = punctual.granted;
        let outcome = self.watch(progress).and_then(|()| self.end_traffic());
        drop(punctual);
        // Which takes its time.
        self.programs.stop();
        self.finish(outcome?)
    }

    /// Until the duration is over or all work is done.
    fn watch(&mut self, progress: &mut dyn FnMut(Moment) -> bool) -> Result<(), KernelError> {
        let end_ns = self.start_ns + self.cell.duration.0;
        sleep_until(self.start_ns);
        self.cpu.start();
        let interval_ns = self.cell.sample_interval.0;
        let warm_ns = self.start_ns + self.cell.warmup.0;
        let mut next_sample_ns = self.start_ns + interval_ns;
        let mut next_cpu_ns = self.start_ns;
        let mut warmed = false;
        loop {
            let now_ns = monotonic_ns();
            self.check_children()?;
            let since_start_ns = now_ns.saturating_sub(self.start_ns);
            self.programs.start_clients(&self.lab, since_start_ns)?;
            if now_ns >= next_cpu_ns {
                self.watch_cpu(now_ns);
                next_cpu_ns += CPU_INTERVAL_NS;
                tell(progress, Moment::At(Nanos(now_ns - self.start_ns)))?;
            }
            if !warmed && now_ns >= warm_ns {
                warmed = true;
                tell(progress, Moment::Warm)?;
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
                return tell(progress, Moment::Over);
            }
            let next_ns = next_sample_ns.min(next_cpu_ns).min(end_ns);
            let next_ns = if warmed {
                next_ns
            } else {
                next_ns.min(warm_ns)
            };
            let next_client_ns = self.programs.next_start_ns().map(|ns| self.start_ns + ns);
            // Children are looked after ten times a second at least.
            sleep_until(next_ns.min(next_client_ns.unwrap_or(u64::MAX)));
        }
    }

    /// Is all work complete, so that waiting would show nothing more?
    fn is_done(&mut self) -> bool {
        let complete =
            |flow: &Flow| Progress::when(&self.shared.get(flow.number).completed_ns).is_some();
        self.flows.iter().all(complete) && self.programs.are_done()
    }

    fn check_children(&mut self) -> Result<(), KernelError> {
        for child in self.generators.iter_mut().chain([&mut self.link]) {
            if child.poll().is_some() {
                return Err(child.died());
            }
        }
        self.programs.check()?;
        let ours = self.generators.iter().chain([&self.link]);
        let pids = ours.map(|child| child.pid).chain(self.programs.pids());
        crate::reap_orphans(|ended| pids.clone().any(|pid| pid == ended))
    }

    fn watch_cpu(&mut self, now_ns: u64) {
        let roles = self.roles();
        let t_ns = now_ns - self.start_ns;
        self.cpu.watch(self.cell.index, self.rep, t_ns, &roles);
    }

    /// Processes whose time counts, by their number in the lab.
    fn roles(&self) -> Vec<(String, i32)> {
        let ours = self.generators.iter().chain([&self.link]);
        ours.map(|child| (child.role.clone(), child.pid.as_raw()))
            .chain(self.programs.roles())
            .collect()
    }

    /// The last sample, and the end of our own traffic: when that was.
    fn end_traffic(&mut self) -> Result<u64, KernelError> {
        let now_ns = monotonic_ns();
        self.sampler.sample(now_ns - self.start_ns, self.start_ns)?;
        self.watch_cpu(now_ns);
        end(&self.stop)?;
        Ok(monotonic_ns())
    }

    /// The reports, and the rows made of them and of the samples. The run ended at `now_ns`.
    fn finish(mut self, now_ns: u64) -> Result<Output, KernelError> {
        end(&self.stop_link)?;
        let deadline = Instant::now() + REPORT_PATIENCE;
        let link: knee_link::Report = self.link.finish(deadline)?;
        let [sender, receiver] = &mut self.generators;
        let sender: Vec<EndReport> = sender.finish(deadline)?;
        let receiver: Vec<EndReport> = receiver.finish(deadline)?;
        let span_ns = now_ns - self.start_ns;
        let mut packets = Packets::default();
        if let Some(captures) = self.captures {
            let captured = captures.finish(self.start_ns)?;
            let into = (&mut packets, &mut self.warnings);
            packets::add(self.cell, self.rep, captured, span_ns, into);
        }
        self.warnings.extend(self.cpu.warn_of_saturation(span_ns));
        let mut output = Output {
            cpu: self.cpu.rows,
            facts: self.lab.facts,
            warnings: self.warnings,
            programs: self.programs.rows(self.start_ns),
            packets,
            ..Output::default()
        };
        let reports = Reports {
            link: Some(link),
            sender: &sender,
            receiver: &receiver,
            start_ns: self.start_ns,
            ended_ns: now_ns - self.start_ns,
        };
        rows::finish(self.sampler, reports, &mut output);
        Ok(output)
    }
}

/// Waits until so many are there.
fn await_all(start: &Start, count: u32, children: [&mut Child; 3]) -> Result<(), KernelError> {
    let until = Instant::now() + START_PATIENCE;
    let mut children = children;
    while start.there() < count {
        for child in &mut children {
            if child.poll().is_some() {
                return Err(child.died());
            }
        }
        if Instant::now() > until {
            return Err(KernelError::Child {
                role: "lab".into(),
                message: format!(
                    "its processes were not there within {} s; the machine is too busy",
                    START_PATIENCE.as_secs()
                ),
            });
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn tell(progress: &mut dyn FnMut(Moment) -> bool, moment: Moment) -> Result<(), KernelError> {
    match progress(moment) {
        true => Ok(()),
        false => Err(KernelError::Cancelled),
    }
}

fn sleep_until(at_ns: u64) {
    let now_ns = monotonic_ns();
    if at_ns > now_ns {
        std::thread::sleep(Duration::from_nanos(at_ns - now_ns));
    }
}

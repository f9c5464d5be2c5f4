//! The world of one run: the ends, the path between them and the clock, and the loop that moves them.

use knee_kit::odds::unlikely;
use std::sync::Arc;

use knee_cc::UnderWay;
use knee_host::Cost;
use knee_path::way::Way;
use knee_path::{Direction, Path};
use knee_scenario::{Cell, FlowSpec, Host};
use knee_units::Nanos;
use knee_units::rng::Stream;

use crate::event::{EndpointId, EventQueue, Side, Target, Work};
use crate::host::{self, HostType, Late};
use crate::machine::Machines;
use crate::{Options, Output, Progress, Rows, SimError};
use knee_tcp::Clock;
use knee_tcp::segment::Segment;

/// Hosts have been up for a while: clocks and jiffies never start at 0, which
/// several fields use for "unset".
const UPTIME_NS: u64 = 100_000_000_000;
/// Events between two calls of the progress callback.
const EVENTS_PER_PROGRESS: u32 = 1 << 14;
/// Jobs' ends in a row that no other event comes between, before the loop looks around.
const ENDS_IN_A_ROW: u32 = 64;

mod agent;
mod connections;
mod ends;
mod machines;
mod out;
mod passage;
mod plan;
mod records;

use agent::Seat;
pub use agent::{Sight, Truth};
use out::Outbox;
use passage::{Connections, Passage};
pub use plan::algorithm_of;
use plan::{Closing, Plan};
use records::Recorder;

/// One repetition of one cell, from its beginning to as far as it was taken.
pub struct World {
    /// By the side that packets go to: the data's way is that to the receiver.
    ways: [Way<()>; 2],
    cell: Arc<Cell>,
    rep: u32,
    options: Options,
    /// What the hosts at the sender's and the receiver's side are like.
    types: [HostType; 2],
    plan: Plan,
    /// What each host sends late, by side and number; `None`: nothing.
    late: [Vec<Option<Box<Late>>>; 2],
    /// Places of hosts whose only connection is over.
    free_hosts: [Vec<u32>; 2],
    conns: Connections,
    closing: Closing,
    machines: Machines,
    /// Are both sides' hosts on one machine, with a veth pair between them?
    crosses: bool,
    events: EventQueue,
    boot_ns: u64,
    now_ns: u64,
    /// How far the clock may go; 0 while an agent is asked, and when its connection is over.
    until_ns: u64,
    seat: Option<Seat>,
    /// Of the hosts at both sides, as of the last turn of an end there.
    clocks: [Clock; 2],
    unfinished: usize,
    recorder: Recorder,
    outbox: Outbox,
    // Scratch, kept to spare allocations.
    log: Vec<&'static str>,
    latencies: Vec<Nanos>,
    held: Vec<(EndpointId, Segment)>,
    woken: Vec<(EndpointId, bool)>,
}

impl World {
    /// Before its first event.
    ///
    /// # Errors
    /// The cell names an algorithm or a parameter that does not exist, asks for what only a lab has, or has nothing that
    /// takes time.
    pub fn new(cell: Arc<Cell>, rep: u32, options: &Options) -> Result<World, SimError> {
        refuse_lab_settings(&cell)?;
        refuse_timeless(&cell)?;
        let seed = cell.rep_seed(rep);
        let stream = |component: &str| Stream::new(seed, component);
        let plan = Plan::new(&cell, rep, options)?;
        let connections = plan.list.len();
        let types = [&cell.sender, &cell.receiver].map(|spec| HostType::new(spec, &cell));
        let crosses = host::crosses(&cell);
        let boot_ns = UPTIME_NS + cell.phase_ns(rep);
        let seat = Seat::find(&cell, &plan, options, boot_ns)?;
        let way = |direction, side: Side| {
            let coalesce = types[side as usize].rx_coalesce;
            let mut way = Way::new(cell.hops(), direction, stream, boot_ns, coalesce);
            if !options.step_links {
                way.foresee();
            }
            way
        };
        let mut world = World {
            ways: [
                way(Direction::Back, Side::Sender),
                way(Direction::Forward, Side::Receiver),
            ],
            cell: cell.clone(),
            rep,
            options: options.clone(),
            types,
            plan,
            late: Default::default(),
            free_hosts: Default::default(),
            conns: Connections::new(connections),
            closing: Closing::default(),
            machines: Default::default(),
            crosses,
            events: EventQueue::new(connections),
            boot_ns,
            now_ns: boot_ns,
            until_ns: boot_ns,
            seat,
            clocks: Default::default(),
            unfinished: connections,
            recorder: Recorder::new(&cell, rep, boot_ns, connections, options.accounts),
            outbox: Outbox::default(),
            log: Vec::new(),
            latencies: Vec::new(),
            held: Vec::new(),
            woken: Vec::new(),
        };
        world.announce();
        let events = &mut world.events;
        // The last rows are those of the end.
        if cell.sample_interval < cell.duration {
            events.push(boot_ns + cell.sample_interval.0, Target::Sample);
        }
        if cell.warmup > Nanos::ZERO {
            events.push(boot_ns + cell.warmup.0, Target::Warm);
        }
        Ok(world)
    }

    /// Runs on to `until` after the start, which is in it, or to the run's end where that is earlier; false: it is over.
    /// However a run is cut into steps, its output is the same.
    pub fn step(&mut self, until: Nanos) -> bool {
        self.advance(until, &mut |_, _| true);
        !self.is_over()
    }

    /// Runs to the end, or until `progress` says so.
    pub fn run(mut self, progress: &mut Progress) -> Output {
        self.advance(self.cell.duration, progress);
        self.finish()
    }

    /// What the algorithms are doing.
    pub fn under_way(&self) -> Arc<UnderWay> {
        self.plan.under_way.clone()
    }

    /// What the hosts' clocks read at the start, ns.
    pub fn boot_ns(&self) -> u64 {
        self.boot_ns
    }

    /// The time reached, after the start.
    pub fn now(&self) -> Nanos {
        Nanos(self.now_ns - self.boot_ns)
    }

    /// The rows that nobody took, which may be taken.
    pub fn rows(&mut self) -> &mut Rows {
        &mut self.recorder.rows
    }

    /// Has the duration passed, or is every flow's work complete?
    pub fn is_over(&self) -> bool {
        self.unfinished == 0 || self.now() >= self.cell.duration
    }

    /// What the hosts do at an instant comes before what arrives at it: an interrupt takes its time.
    fn advance(&mut self, until: Nanos, progress: &mut Progress) {
        self.until_ns = self.boot_ns + until.min(self.cell.duration).0;
        let mut until_progress = EVENTS_PER_PROGRESS;
        while self.unfinished > 0 {
            let [back, forward] = [self.ways[0].next(), self.ways[1].next()];
            let side = match forward <= back {
                true => Side::Receiver,
                false => Side::Sender,
            };
            let path_ns = self.ways[side as usize].next().at_ns();
            let host_ns = self.events.next_ns();
            let at_ns = path_ns.min(host_ns);
            if at_ns > self.until_ns {
                self.now_ns = self.until_ns.max(self.now_ns);
                return;
            }
            debug_assert!(at_ns >= self.now_ns, "it is in the past");
            self.now_ns = at_ns;
            if path_ns < host_ns {
                let (way, mut passage) = self.way_to(side);
                way.step(&mut passage);
                self.deliver(side);
                self.send_out();
            } else {
                self.do_next();
            }
            if unlikely(self.events.has_end()) {
                self.run_on(self.until_ns);
            }
            if self.closing.is_due() {
                self.reap();
            }
            until_progress -= 1;
            if until_progress == 0 {
                until_progress = EVENTS_PER_PROGRESS;
                if !progress(self.now(), &mut self.recorder.rows) {
                    return;
                }
            }
        }
    }

    /// Handles the end of a job that stands apart from other events, and the next such end, until another event comes first.
    #[inline(never)]
    fn run_on(&mut self, until_ns: u64) {
        for _ in 0..ENDS_IN_A_ROW {
            if self.unfinished == 0 {
                break;
            }
            let [back_ns, forward_ns] =
                [&self.ways[0], &self.ways[1]].map(|way| way.next().at_ns());
            let most_ns = back_ns.min(forward_ns).min(until_ns);
            let Some((at_ns, cpu)) = self.events.take_end(most_ns) else {
                break;
            };
            self.now_ns = at_ns;
            self.end_first_job(cpu);
            debug_assert!(
                self.outbox.handles.is_empty(),
                "a job's packets leave with it"
            );
            if !self.events.has_end() {
                break;
            }
        }
        self.events.leave_ends();
    }

    /// The way toward that side, and who is told what happens there.
    #[inline]
    fn way_to(&mut self, side: Side) -> (&mut Way<()>, Passage<'_>) {
        let passage = Passage {
            conns: &mut self.conns,
            side,
        };
        (&mut self.ways[side as usize], passage)
    }

    /// The hosts' next event. Out of line, like everything that is not done for each packet: the code that is should fit
    /// into the nearest cache.
    #[inline(never)]
    fn do_next(&mut self) {
        let target = self.events.take();
        self.dispatch(target);
        self.send_out();
        self.events.done();
    }

    fn dispatch(&mut self, target: Target) {
        match target {
            Target::Work(id, Work::Timer) => self.on_timer(id),
            Target::Work(id, Work::App) => self.on_app(id),
            Target::Work(id, Work::Transmit) => self.release(id),
            Target::Cpu(cpu) => self.end_job(cpu),
            Target::Tick => {
                let due = self.events.take_tick(self.now_ns);
                for (place, &id) in due.iter().enumerate() {
                    let (next, now_ns) = (&due[place + 1..], self.now_ns);
                    self.conns.flows.expect_timers(next, now_ns);
                    self.on_timer(id);
                }
                self.events.recycle(due);
            }
            _ => self.dispatch_rare(target),
        }
    }

    #[inline(never)]
    fn dispatch_rare(&mut self, target: Target) {
        let now_ns = self.now_ns;
        match target {
            Target::Work(..) | Target::Tick | Target::Cpu(_) => {}
            Target::Late(id) => self.release_late(id),
            Target::Reported(queue) => self.interrupt_for_sent(queue),
            Target::Napi(queue) => self.on_napi(queue),
            Target::Open(flow) => self.open(flow),
            Target::Warm => {
                self.settle(now_ns - 1);
                self.count_polling();
                self.machines.warm();
                for flow in self.conns.flows.iter_mut() {
                    // A transfer, and what is complete, counts as a whole.
                    if flow.open_ns <= now_ns && !flow.measured && flow.completed_ns().is_none() {
                        flow.start_measuring(now_ns);
                    }
                }
                self.remember_busy();
            }
            Target::Sample => {
                self.settle(now_ns - 1);
                self.sample();
                self.closing.sampled();
                let next_ns = now_ns + self.cell.sample_interval.0;
                if next_ns - self.boot_ns < self.cell.duration.0 {
                    self.events.push(next_ns, Target::Sample);
                }
            }
        }
    }

    /// Hears of all that has left a queue until then.
    fn settle(&mut self, until_ns: u64) {
        for side in [Side::Sender, Side::Receiver] {
            let (way, mut passage) = self.way_to(side);
            way.settle(until_ns, &mut passage);
        }
    }
}

/// Refuses what the scenario asks for and only a lab has, instead of leaving it out.
fn refuse_lab_settings(cell: &Cell) -> Result<(), SimError> {
    let runs_programs = |flow: &&FlowSpec| flow.workload.commands().is_some();
    if let Some(flow) = cell.flows.iter().find(runs_programs) {
        let what = format!("flow \"{}\" runs programs", flow.name);
        return Err(SimError::NeedsLab { what });
    }
    for (side, host) in [("sender", &cell.sender), ("receiver", &cell.receiver)] {
        if let Some(qdisc) = &host.qdisc {
            let what = format!("{side}.qdisc = \"{qdisc}\" puts a qdisc on a host's interface");
            return Err(SimError::NeedsLab { what });
        }
    }
    if let Some(column) = cell.samples.of_kernels() {
        let what = format!("samples = [..., \"{column}\"] names what real kernels tell");
        return Err(SimError::NeedsLab { what });
    }
    if cell.path.keep_super_packets && !host::crosses(cell) {
        let what = "path.super_packets = \"keep\" leaves TSO packets whole".into();
        return Err(SimError::NeedsLab { what });
    }
    Ok(())
}

/// Refuses a round trip that takes no time: an endless flow would go on for ever at its first instant.
fn refuse_timeless(cell: &Cell) -> Result<(), SimError> {
    let works = |host: &Host| {
        let costs = host.costs.as_ref();
        costs.is_some_and(|profile| profile.costs.ps(Cost::IpReceive) > 0)
    };
    if host::crosses(cell) && [&cell.sender, &cell.receiver].into_iter().all(works) {
        return Ok(());
    }
    let at_once = |flow: &FlowSpec| flow.rtt == Nanos::ZERO;
    let unlimited = |hop: &Path| hop.rate.is_none() && hop.ack.rate.is_none();
    let waits = [&cell.sender, &cell.receiver].map(|host| host.rx_coalesce);
    match cell.flows.iter().any(at_once) && cell.hops().all(unlimited) && waits == [Nanos::ZERO; 2]
    {
        true => Err(SimError::Timeless),
        false => Ok(()),
    }
}

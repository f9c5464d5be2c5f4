//! One side's process: listens, connects, and lets the applications run.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use knee_collect::KernelError;
use knee_link::SERVICE_PORT;
use knee_loader::Variant;
use knee_path::Backend;
use knee_scenario::{Bytes, Cell, Pacing};
use knee_tables::{Histogram, Reads};
use knee_units::Nanos;
use knee_units::cpus::Cpus;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{SockFlag, SockaddrIn, accept4, getpeername};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{
    ClockId as TimerClock, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags,
};
use serde::{Deserialize, Serialize};

use super::clock::Clock;
use super::connection::{self, Connection, Options};
use super::{Flow, Progress, Shared};
use crate::{Addresses, FIRST_PORT, nic};

const EVENTS: usize = 512;
/// The far end has closed, or something is wrong.
const CLOSING: EpollFlags = EpollFlags::EPOLLRDHUP
    .union(EpollFlags::EPOLLHUP)
    .union(EpollFlags::EPOLLERR);
/// epoll's name for the descriptor that says stop, for the timer of the next
/// opening, and for listeners from the last one on.
const STOP: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
const MAIL: u64 = u64::MAX - 2;
const LISTENER: u64 = 1 << 32;

/// Which end of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Sender,
    Receiver,
}

/// What a generator has to do.
pub struct Plan<'a> {
    pub cell: &'a Cell,
    pub side: Side,
    pub flows: &'a [Flow],
    pub addresses: &'a [Addresses],
    /// What the kernel calls a scenario's algorithm.
    pub congestion: &'a (dyn Fn(&str) -> String + Sync),
    pub shared: Shared,
    pub start_ns: u64,
}

/// What became of one end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EndReport {
    /// Requests answered in the steady part.
    pub latency_us: Histogram,
    /// Calls of its application that the socket took something of.
    pub writes: u64,
    /// Of a workload that counts how its receiver's reads come.
    pub reads: Option<Reads>,
    /// The last `tcp_info` of a connection that has closed; empty: it has not.
    pub tcp_info: Vec<u8>,
}

/// Runs one side until `stop` is readable, with as many threads as its applications have. Reports come by flow number.
///
/// # Errors
/// A socket cannot be made, or a connection fails: with the flow and why.
pub fn generate(plan: &Plan<'_>, stop: BorrowedFd<'_>) -> Result<Vec<EndReport>, KernelError> {
    allow_descriptors().map_err(KernelError::system("raise the limit of open files"))?;
    let side = plan.side as usize;
    let host = [&plan.cell.sender, &plan.cell.receiver][side];
    let cpus = host.app_cpus.numbers();
    let count = plan.cell.threads()[side] as usize;
    let failed = event(EfdFlags::EFD_CLOEXEC)?;
    let mailboxes: Vec<Mailbox> = (0..count)
        .map(|_| Mailbox::new())
        .collect::<Result<_, _>>()?;
    // Several threads have a processor each, in turn; a single one all of them.
    let pinned_to = |number: usize| match (count, cpus.len()) {
        (1, _) | (_, 0) => host.app_cpus.clone(),
        (_, len) => Cpus::of(cpus[number % len]),
    };
    let work = |number: usize| {
        let set = nic::affinity(&pinned_to(number))?;
        nic::pin(set).map_err(KernelError::system("pin a traffic generator"))?;
        Generator::new(plan, number, &mailboxes, [stop, failed.as_fd()])?.run()
    };
    let work = |number: usize| {
        work(number).inspect_err(|_| {
            // Without it the others would go on until the end of the run.
            let _ = failed.write(1);
        })
    };
    let found = std::thread::scope(|scope| {
        let others: Result<Vec<_>, _> = (1..count)
            .map(|number| {
                let named = std::thread::Builder::new().name(number.to_string());
                named.spawn_scoped(scope, move || work(number))
            })
            .collect();
        let others = others.map_err(|error| {
            let _ = failed.write(1);
            KernelError::system("start a thread of a traffic generator")(error)
        })?;
        let mut found = vec![work(0)];
        found.extend(
            others
                .into_iter()
                .map(|other| other.join().expect("it does not panic")),
        );
        found.into_iter().collect::<Result<Vec<_>, KernelError>>()
    })?;
    let mut reports = vec![EndReport::default(); plan.flows.len()];
    for (number, report) in found.into_iter().flatten() {
        reports[number as usize] = report;
    }
    Ok(reports)
}

fn event(flags: EfdFlags) -> Result<EventFd, KernelError> {
    EventFd::from_flags(flags).map_err(KernelError::system("make an event descriptor"))
}

/// Connections that the first thread accepted for another one.
struct Mailbox {
    arrived: Mutex<Vec<(Flow, OwnedFd)>>,
    bell: EventFd,
}

impl Mailbox {
    fn new() -> Result<Mailbox, KernelError> {
        Ok(Mailbox {
            arrived: Mutex::default(),
            bell: event(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?,
        })
    }

    fn put(&self, flow: Flow, fd: OwnedFd) -> nix::Result<()> {
        self.arrived
            .lock()
            .expect("nobody panics with it")
            .push((flow, fd));
        self.bell.write(1).map(drop)
    }

    fn take(&self) -> Vec<(Flow, OwnedFd)> {
        let _ = self.bell.read();
        std::mem::take(&mut *self.arrived.lock().expect("nobody panics with it"))
    }
}

/// As many as the system lets us have: thousands of connections need one each.
fn allow_descriptors() -> nix::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)
}

/// One thread of a side.
struct Generator<'a> {
    plan: &'a Plan<'a>,
    /// Which thread, and what the first one has for each.
    number: usize,
    mailboxes: &'a [Mailbox],
    /// The run is over; a thread of this side has failed.
    stops: [BorrowedFd<'a>; 2],
    clock: Clock,
    timer: TimerFd,
    epoll: Epoll,
    listeners: Vec<OwnedFd>,
    /// By flow number.
    ends: HashMap<u32, Connection>,
    /// Connections that broke off their turn to let others have one.
    unfinished: Vec<u32>,
    /// Connections whose application begins to write at a time, in order of time.
    sleeping: BTreeSet<(u64, u32)>,
    /// By flow number.
    reports: HashMap<u32, EndReport>,
    scratch: Vec<u8>,
    latencies: Vec<Nanos>,
}

impl<'a> Generator<'a> {
    fn new(
        plan: &'a Plan<'a>,
        number: usize,
        mailboxes: &'a [Mailbox],
        stops: [BorrowedFd<'a>; 2],
    ) -> Result<Generator<'a>, KernelError> {
        let mut generator = Generator {
            plan,
            number,
            mailboxes,
            stops,
            clock: Clock::new(),
            timer: TimerFd::new(TimerClock::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC)
                .map_err(KernelError::system("make a timer"))?,
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
                .map_err(KernelError::system("make an epoll"))?,
            listeners: Vec::new(),
            ends: HashMap::new(),
            unfinished: Vec::new(),
            sleeping: BTreeSet::new(),
            reports: HashMap::new(),
            scratch: Vec::new(),
            latencies: Vec::new(),
        };
        for stop in stops {
            generator.watch(stop, EpollFlags::EPOLLIN, STOP)?;
        }
        generator.watch(&generator.timer, EpollFlags::EPOLLIN, TIMER)?;
        generator.watch(&mailboxes[number].bell, EpollFlags::EPOLLIN, MAIL)?;
        if number == 0 {
            generator.listen()?;
        }
        Ok(generator)
    }

    /// Runs until it is told to stop. Returns what became of its ends.
    fn run(mut self) -> Result<HashMap<u32, EndReport>, KernelError> {
        self.serve_all()?;
        for (number, end) in self.ends {
            let report = self.reports.entry(number).or_default();
            report.writes = end.writes;
            report.reads = end.reads;
        }
        Ok(self.reports)
    }

    fn opens(&self, flow: &Flow) -> bool {
        flow.receiver_opens == (self.plan.side == Side::Receiver)
    }

    fn address(&self, group: usize, own: bool) -> Ipv4Addr {
        let addresses = self.plan.addresses[group];
        if own == (self.plan.side == Side::Sender) {
            addresses.sender
        } else {
            addresses.receiver
        }
    }

    /// A socket with what the scenario says of this side.
    fn socket(&self, flow: &Flow) -> Result<OwnedFd, KernelError> {
        let (cell, spec) = (self.plan.cell, &self.plan.cell.flows[flow.group]);
        let (algorithm, pacing, rate) = match self.plan.side {
            Side::Sender => (
                Variant::of_flow(spec).to_string(),
                spec.pacing.unwrap_or(cell.sender.pacing),
                spec.max_pacing_rate,
            ),
            Side::Receiver => (cell.receiver.algorithm.clone(), cell.receiver.pacing, None),
        };
        let congestion = (self.plan.congestion)(&algorithm);
        let receives = self.plan.side == Side::Receiver;
        let asked = |size: Option<Bytes>, most: u64| size.map(|Bytes(bytes)| bytes.min(most));
        let options = Options {
            congestion: &congestion,
            paced: pacing == Pacing::Timer,
            max_pacing_rate: rate,
            nodelay: spec.nodelay.unwrap_or(flow.receiver_opens),
            sndbuf: (asked(spec.sndbuf, cell.sender.wmem_max_bytes)).filter(|_| !receives),
            rcvbuf: (asked(spec.rcvbuf, cell.receiver.rmem_max_bytes)).filter(|_| receives),
            window_clamp: (spec.window_clamp)
                .map(|Bytes(bytes)| bytes)
                .filter(|_| receives),
        };
        let fd = connection::open(options).map_err(|error| match error {
            nix::Error::ENOENT => KernelError::Unsupported {
                what: format!("flow.{}.algorithm = \"{algorithm}\"", flow.group),
                lacks: format!("has no congestion control \"{congestion}\""),
                hint: "See `knee list algorithms` for what it has and what can be loaded.".into(),
            },
            nix::Error::EPERM => KernelError::Unsupported {
                what: format!("flow.{}.algorithm = \"{algorithm}\"", flow.group),
                lacks: format!("keeps the congestion control \"{congestion}\" for root"),
                hint: "Run as root, or have it allowed: net.ipv4.tcp_allowed_congestion_control."
                    .into(),
            },
            error => KernelError::system(format!("make a socket of flow {}", flow.number))(error),
        })?;
        let given = connection::buffers(&fd).map_err(KernelError::system("ask for a buffer"))?;
        let limits = [
            ("sndbuf", options.sndbuf, given[0], "wmem_max"),
            ("rcvbuf", options.rcvbuf, given[1], "rmem_max"),
        ];
        for (key, asked, given, limit) in limits {
            if asked.is_some_and(|bytes| given < 2 * bytes) {
                return Err(KernelError::Unsupported {
                    what: format!("flow.{}.{key}", flow.group),
                    lacks: format!("gives a socket that asks no more than {}B", given / 2),
                    hint: format!("Ask for less, or raise net.core.{limit}."),
                });
            }
        }
        Ok(fd)
    }

    fn watch(&self, fd: impl AsFd, flags: EpollFlags, name: u64) -> Result<(), KernelError> {
        self.epoll
            .add(fd, EpollEvent::new(flags, name))
            .map_err(KernelError::system("watch a socket"))
    }

    /// One listener for each `[[flow]]` whose far end opens.
    fn listen(&mut self) -> Result<(), KernelError> {
        let mut last = None;
        for flow in self.plan.flows {
            if self.opens(flow) || last == Some(flow.group) {
                continue;
            }
            last = Some(flow.group);
            let fd = self.socket(flow)?;
            connection::listen_at(&fd, self.address(flow.group, true), SERVICE_PORT).map_err(
                KernelError::system(format!("listen for flow.{}", flow.group)),
            )?;
            self.watch(
                &fd,
                EpollFlags::EPOLLIN,
                LISTENER + self.listeners.len() as u64,
            )?;
            self.listeners.push(fd);
        }
        Ok(())
    }

    /// Which thread of this side serves the flow.
    fn thread_of(&self, flow: &Flow) -> usize {
        flow.threads[self.plan.side as usize]
    }

    fn serve_all(&mut self) -> Result<(), KernelError> {
        let is_mine = |flow: &&Flow| self.opens(flow) && self.thread_of(flow) == self.number;
        let mut to_open: Vec<&Flow> = self.plan.flows.iter().filter(is_mine).collect();
        // The last is the next.
        to_open.sort_by_key(|flow| std::cmp::Reverse((flow.open, flow.number)));
        let mut events = vec![EpollEvent::empty(); EVENTS];
        loop {
            let now_ns = self.clock.now().0;
            while let Some(flow) = to_open.last()
                && self.plan.start_ns + flow.open.0 <= now_ns
            {
                let flow = to_open.pop().expect("it is there");
                self.connect(flow)?;
            }
            while let Some(&(at_ns, number)) = self.sleeping.first()
                && at_ns <= now_ns
            {
                self.sleeping.pop_first();
                self.serve(number, true)?;
            }
            let opens_ns = to_open.last().map(|flow| self.plan.start_ns + flow.open.0);
            let wakes_ns = self.sleeping.first().map(|&(at_ns, _)| at_ns);
            if let Some(next_ns) = opens_ns.into_iter().chain(wakes_ns).min() {
                let at = TimeSpec::from_duration(Duration::from_nanos(next_ns));
                self.timer
                    .set(
                        Expiration::OneShot(at),
                        TimerSetTimeFlags::TFD_TIMER_ABSTIME,
                    )
                    .map_err(KernelError::system("set a timer"))?;
            }
            let timeout = match self.unfinished.is_empty() {
                true => EpollTimeout::NONE,
                false => EpollTimeout::ZERO,
            };
            let count = self.epoll.wait(&mut events, timeout);
            self.clock.waited();
            let count = match count {
                Ok(count) => count,
                Err(nix::Error::EINTR) => 0,
                Err(error) => return Err(KernelError::system("wait for sockets")(error)),
            };
            for event in &events[..count] {
                match event.data() {
                    STOP => return Ok(()),
                    // Set anew before the next wait; a passed one stays readable.
                    TIMER => {
                        let _ = self.timer.unset();
                    }
                    MAIL => {
                        for (flow, fd) in self.mailboxes[self.number].take() {
                            self.add(&flow, fd)?;
                        }
                    }
                    name if name >= LISTENER => self.accept((name - LISTENER) as usize)?,
                    number => {
                        let events = event.events();
                        self.serve(number as u32, events.intersects(CLOSING))?;
                    }
                }
            }
            for number in std::mem::take(&mut self.unfinished) {
                self.serve(number, true)?;
            }
        }
    }

    fn connect(&mut self, flow: &Flow) -> Result<(), KernelError> {
        let progress = self.plan.shared.get(flow.number);
        Progress::note(&progress.opened_ns, self.clock.now().0);
        let fd = self.socket(flow)?;
        let own = (
            self.address(flow.group, true),
            FIRST_PORT + flow.number as u16,
        );
        let far = (self.address(flow.group, false), SERVICE_PORT);
        connection::connect_from(&fd, own, far)
            .map_err(KernelError::system(format!("connect flow {}", flow.number)))?;
        self.add(flow, fd)
    }

    fn accept(&mut self, listener: usize) -> Result<(), KernelError> {
        loop {
            use std::os::fd::{AsRawFd, FromRawFd};
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            let fd = match accept4(self.listeners[listener].as_raw_fd(), flags) {
                // SAFETY: the kernel has just given it to us.
                Ok(fd) => unsafe { OwnedFd::from_raw_fd(fd) },
                Err(nix::Error::EAGAIN) => return Ok(()),
                Err(nix::Error::EINTR | nix::Error::ECONNABORTED) => continue,
                Err(error) => return Err(KernelError::system("accept a connection")(error)),
            };
            let Ok(peer) = getpeername::<SockaddrIn>(fd.as_raw_fd()) else {
                continue;
            };
            let number = u32::from(peer.port().wrapping_sub(FIRST_PORT));
            let Some(flow) = self.plan.flows.get(number as usize) else {
                continue;
            };
            match self.thread_of(flow) {
                own if own == self.number => self.add(flow, fd)?,
                other => self.mailboxes[other]
                    .put(*flow, fd)
                    .map_err(KernelError::system("hand a connection to another thread"))?,
            }
        }
    }

    fn add(&mut self, flow: &Flow, fd: OwnedFd) -> Result<(), KernelError> {
        let workload = &self.plan.cell.flows[flow.group].workload;
        let apps = workload.apps(flow.bytes);
        let apps = apps.expect("programs have no flows here");
        let app = match self.plan.side {
            Side::Sender => apps.sender,
            Side::Receiver => apps.receiver,
        };
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
        self.watch(&fd, flags | EpollFlags::EPOLLRDHUP, u64::from(flow.number))?;
        // Nothing between: hosts are measured, and what a read costs counts.
        let copies = self.plan.cell.path.backend == Backend::Veth;
        let times_reads = workload.times_reads() && self.plan.side == Side::Receiver;
        let end = Connection::new(fd, app, copies, times_reads);
        self.ends.insert(flow.number, end);
        Ok(())
    }

    /// Something happened at a connection. `to_the_end`: see [`Connection::turn`].
    fn serve(&mut self, number: u32, to_the_end: bool) -> Result<(), KernelError> {
        match self.turn(number, to_the_end) {
            // The far end may be gone already when all are told to stop.
            Err(_) if self.is_told_to_stop() => Ok(()),
            Err(error) => Err(KernelError::Child {
                role: "connection".into(),
                message: format!("flow {number} failed: {error}"),
            }),
            Ok(()) => Ok(()),
        }
    }

    fn is_told_to_stop(&self) -> bool {
        let mut fds = self.stops.map(|stop| PollFd::new(stop, PollFlags::POLLIN));
        matches!(nix::poll::poll(&mut fds, PollTimeout::ZERO), Ok(1..))
    }

    fn turn(&mut self, number: u32, to_the_end: bool) -> io::Result<()> {
        let Some(end) = self.ends.get_mut(&number) else {
            return Ok(());
        };
        let progress = self.plan.shared.get(number);
        if Progress::when(&progress.established_ns).is_none() {
            if let Some(error) = connection::pending_error(&end.fd) {
                return Err(error);
            }
            Progress::note(&progress.established_ns, self.clock.now().0);
        }
        let wakes_at = end.app.wakes_at(self.clock.now());
        let turn = end.turn(&mut self.scratch, &self.clock, to_the_end)?;
        if turn.goes_on {
            self.unfinished.push(number);
        }
        // Either time may be in the pause in which it did not write.
        let wakes_at = wakes_at.or_else(|| end.app.wakes_at(self.clock.now()));
        if let Some(at) = wakes_at {
            self.sleeping.insert((at.0, number));
        }
        let report = self.reports.entry(number).or_default();
        if self.plan.side == Side::Receiver {
            let read = &progress.bytes_read;
            read.fetch_add(turn.read_bytes, Ordering::Relaxed);
            if let Some(at) = end.app.completed() {
                Progress::note(&progress.completed_ns, at.0);
            }
            end.app.take_latencies(&mut self.latencies);
            let measured = self.clock.now().0 >= self.plan.start_ns + self.plan.cell.warmup.0;
            for latency in self.latencies.drain(..).filter(|_| measured) {
                report.latency_us.add(latency.as_us());
            }
        }
        // Its socket stays: a FIN may have to be sent again.
        if end.is_over() && report.tcp_info.is_empty() {
            report.tcp_info = end.tcp_info();
            if self.plan.side == Side::Sender {
                Progress::note(&progress.closed_ns, self.clock.now().0);
            }
        }
        Ok(())
    }
}

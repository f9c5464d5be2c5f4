//! One side's process: listens, connects, and lets the applications run.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use knee_scenario::Cell;
use knee_tables::{Histogram, Reads};
use knee_units::Nanos;
use knee_units::cpus::Cpus;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{AddressFamily, SockFlag, SockaddrIn, accept4, getpeername};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{
    ClockId as TimerClock, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags,
};
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::connection::{self, Connection, read_tcp_info};
use crate::socket::connect_to;
use crate::strangers::Strangers;
use crate::{
    Addresses, Algorithm, Ends, Error, Flow, Progress, Shared, Side, Start, affinity, greeting,
    listen_at, pin, socket,
};

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
/// And for who has connected and has not said yet which flow it is, from the first one on.
const STRANGER: u64 = 1 << 33;

/// Hears of a connection by its flow's number.
type Opened<'a> = dyn Fn(u32, BorrowedFd<'_>) + Sync + 'a;

/// What a generator has to do.
pub struct Plan<'a> {
    pub cell: &'a Cell,
    pub side: Side,
    pub flows: &'a [Flow],
    pub ends: Ends<'a>,
    /// What this side runs, by `[[flow]]`.
    pub algorithms: &'a [Algorithm],
    pub shared: Shared,
    /// Known, or told once each thread of it listens.
    pub start: Start,
    /// Are bytes read as programs read them?
    pub copies: bool,
    /// Does the kernel's clock stand still between two waits?
    pub is_virtual: bool,
    /// Hears of each connection that is there, by its flow's number.
    pub opened: Option<&'a Opened<'a>>,
    /// Set once the run is over and its ends may go.
    pub over: &'a AtomicBool,
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
pub fn generate(plan: &Plan<'_>, stop: BorrowedFd<'_>) -> Result<Vec<EndReport>, Error> {
    allow_descriptors().map_err(Error::system("raise the limit of open files"))?;
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
        affinity(&pinned_to(number))
            .and_then(pin)
            .map_err(Error::system("pin a traffic generator"))?;
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
            Error::system("start a thread of a traffic generator")(error)
        })?;
        let mut found = vec![work(0)];
        found.extend(
            others
                .into_iter()
                .map(|other| other.join().expect("it does not panic")),
        );
        found.into_iter().collect::<Result<Vec<_>, Error>>()
    })?;
    let mut reports = vec![EndReport::default(); plan.flows.len()];
    for (number, report) in found.into_iter().flatten() {
        reports[number as usize] = report;
    }
    Ok(reports)
}

fn event(flags: EfdFlags) -> Result<EventFd, Error> {
    EventFd::from_flags(flags).map_err(Error::system("make an event descriptor"))
}

/// Connections that the first thread accepted for another one.
struct Mailbox {
    arrived: Mutex<Vec<(Flow, OwnedFd)>>,
    bell: EventFd,
}

impl Mailbox {
    fn new() -> Result<Mailbox, Error> {
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

/// Errors of `accept` that tell of one connection, which is gone, or of nothing: accept(2), "Error handling".
fn is_of_the_far_end(error: nix::Error) -> bool {
    use nix::Error as E;
    matches!(
        error,
        E::EINTR
            | E::ECONNABORTED
            | E::ENETDOWN
            | E::EPROTO
            | E::ENOPROTOOPT
            | E::EHOSTDOWN
            | E::ENONET
            | E::EHOSTUNREACH
            | E::EOPNOTSUPP
            | E::ENETUNREACH
            | E::EPERM
            | E::ETIMEDOUT
    )
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
    strangers: Strangers,
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
    start_ns: u64,
}

impl<'a> Generator<'a> {
    fn new(
        plan: &'a Plan<'a>,
        number: usize,
        mailboxes: &'a [Mailbox],
        stops: [BorrowedFd<'a>; 2],
    ) -> Result<Generator<'a>, Error> {
        let mut generator = Generator {
            plan,
            number,
            mailboxes,
            stops,
            clock: Clock::new(plan.is_virtual),
            timer: TimerFd::new(TimerClock::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC)
                .map_err(Error::system("make a timer"))?,
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
                .map_err(Error::system("make an epoll"))?,
            listeners: Vec::new(),
            strangers: Strangers::new(match plan.ends {
                Ends::Hosts { known, .. } => known,
                Ends::Lab { .. } => None,
            }),
            ends: HashMap::new(),
            unfinished: Vec::new(),
            sleeping: BTreeSet::new(),
            reports: HashMap::new(),
            scratch: Vec::new(),
            latencies: Vec::new(),
            start_ns: 0,
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
    fn run(mut self) -> Result<HashMap<u32, EndReport>, Error> {
        self.start_ns = self.plan.start.wait(&self.stops);
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

    /// The address of this side's host in a lab, or of the far one.
    fn address(&self, of_group: Addresses, own: bool) -> Ipv4Addr {
        match own == (self.plan.side == Side::Sender) {
            true => of_group.sender,
            false => of_group.receiver,
        }
    }

    fn socket(&self, flow: &Flow, family: AddressFamily) -> Result<OwnedFd, Error> {
        let Plan {
            cell,
            side,
            algorithms,
            ..
        } = *self.plan;
        let of = (flow.group, flow.receiver_opens);
        socket(cell, side, of, &algorithms[flow.group], family)
    }

    fn watch(&self, fd: impl AsFd, flags: EpollFlags, name: u64) -> Result<(), Error> {
        self.epoll
            .add(fd, EpollEvent::new(flags, name))
            .map_err(Error::system("watch a socket"))
    }

    /// One listener for each `[[flow]]` whose far end opens.
    fn listen(&mut self) -> Result<(), Error> {
        let mut last = None;
        for flow in self.plan.flows {
            if self.opens(flow) || last == Some(flow.group) {
                continue;
            }
            last = Some(flow.group);
            let fd = match &self.plan.ends {
                Ends::Lab {
                    addresses,
                    service_port,
                    ..
                } => {
                    let own = self.address(addresses[flow.group], true);
                    let fd = self.socket(flow, AddressFamily::Inet)?;
                    listen_at(&fd, (own, *service_port).into())
                        .map_err(Error::system(format!("listen for flow.{}", flow.group)))?;
                    fd
                }
                Ends::Hosts { listeners, .. } => {
                    let listener = listeners[flow.group].as_ref();
                    let listener = listener.expect("it listens before the run");
                    listener
                        .try_clone()
                        .map_err(Error::system("share a socket that listens"))?
                }
            };
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

    fn serve_all(&mut self) -> Result<(), Error> {
        let is_mine = |flow: &&Flow| self.opens(flow) && self.thread_of(flow) == self.number;
        let mut to_open: Vec<&Flow> = self.plan.flows.iter().filter(is_mine).collect();
        // The last is the next.
        to_open.sort_by_key(|flow| std::cmp::Reverse((flow.open, flow.number)));
        let mut events = vec![EpollEvent::empty(); EVENTS];
        loop {
            let now_ns = self.clock.now().0;
            while let Some(flow) = to_open.last()
                && self.start_ns + flow.open.0 <= now_ns
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
            let opens_ns = to_open.last().map(|flow| self.start_ns + flow.open.0);
            let wakes_ns = self.sleeping.first().map(|&(at_ns, _)| at_ns);
            if let Some(next_ns) = opens_ns.into_iter().chain(wakes_ns).min() {
                let at = TimeSpec::from_duration(Duration::from_nanos(next_ns));
                self.timer
                    .set(
                        Expiration::OneShot(at),
                        TimerSetTimeFlags::TFD_TIMER_ABSTIME,
                    )
                    .map_err(Error::system("set a timer"))?;
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
                Err(error) => return Err(Error::system("wait for sockets")(error)),
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
                    name if name >= STRANGER => self.hear(name - STRANGER)?,
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

    fn connect(&mut self, flow: &Flow) -> Result<(), Error> {
        let progress = self.plan.shared.get(flow.number);
        Progress::note(&progress.opened_ns, self.clock.now().0);
        let (own, far) = match &self.plan.ends {
            Ends::Lab {
                addresses,
                first_port,
                service_port,
            } => {
                let of_group = addresses[flow.group];
                let own = (
                    self.address(of_group, true),
                    first_port + flow.number as u16,
                );
                let far = (self.address(of_group, false), *service_port);
                (Some(own.into()), far.into())
            }
            Ends::Hosts { far, .. } => (None, far[flow.group].expect("it is told before the run")),
        };
        let family = match far {
            SocketAddr::V4(_) => AddressFamily::Inet,
            SocketAddr::V6(_) => AddressFamily::Inet6,
        };
        let fd = self.socket(flow, family)?;
        connect_to(&fd, own, far)
            .map_err(Error::system(format!("connect flow {}", flow.number)))?;
        self.add(flow, fd)
    }

    fn accept(&mut self, listener: usize) -> Result<(), Error> {
        loop {
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            let fd = match accept4(self.listeners[listener].as_raw_fd(), flags) {
                // SAFETY: the kernel has just given it to us.
                Ok(fd) => unsafe { OwnedFd::from_raw_fd(fd) },
                Err(nix::Error::EAGAIN) => return Ok(()),
                Err(error) if is_of_the_far_end(error) => continue,
                // Strangers have them.
                Err(nix::Error::EMFILE | nix::Error::ENFILE) if self.strangers.send_one_away() => {
                    continue;
                }
                // The kernel has no room just now; the connection waits.
                Err(nix::Error::ENOBUFS | nix::Error::ENOMEM) => return Ok(()),
                Err(error) => return Err(Error::system("accept a connection")(error)),
            };
            match self.plan.ends {
                Ends::Lab { first_port, .. } => {
                    let Ok(peer) = getpeername::<SockaddrIn>(fd.as_raw_fd()) else {
                        continue;
                    };
                    self.welcome(u32::from(peer.port().wrapping_sub(first_port)), fd)?;
                }
                Ends::Hosts { .. } => {
                    let name = self.strangers.add(fd);
                    let fd = self.strangers.get(name);
                    if let Some(fd) = fd {
                        self.watch(fd, EpollFlags::EPOLLIN, STRANGER + name)?;
                    }
                }
            }
        }
    }

    /// Serves a connection that came, or hands it to the thread that does.
    fn welcome(&mut self, number: u32, fd: OwnedFd) -> Result<(), Error> {
        let Some(flow) = self.plan.flows.get(number as usize) else {
            return Ok(());
        };
        match self.thread_of(flow) {
            own if own == self.number => self.add(flow, fd),
            other => self.mailboxes[other]
                .put(*flow, fd)
                .map_err(Error::system("hand a connection to another thread")),
        }
    }

    /// What a stranger says: a greeting, and it is one no longer; anything else, and it is sent away.
    fn hear(&mut self, name: u64) -> Result<(), Error> {
        let Ends::Hosts { secret, .. } = self.plan.ends else {
            return Ok(());
        };
        let Some((number, fd)) = self.strangers.hear(name, secret) else {
            return Ok(());
        };
        self.epoll
            .delete(&fd)
            .map_err(Error::system("watch a socket no longer"))?;
        match self.ends.contains_key(&number) {
            true => Ok(()),
            false => self.welcome(number, fd),
        }
    }

    fn add(&mut self, flow: &Flow, fd: OwnedFd) -> Result<(), Error> {
        let workload = &self.plan.cell.flows[flow.group].workload;
        let apps = workload.apps(flow.bytes);
        let apps = apps.expect("programs have no flows here");
        let app = match self.plan.side {
            Side::Sender => apps.sender,
            Side::Receiver => apps.receiver,
        };
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
        self.watch(&fd, flags | EpollFlags::EPOLLRDHUP, u64::from(flow.number))?;
        let times_reads = workload.times_reads() && self.plan.side == Side::Receiver;
        let greeting = match self.plan.ends {
            Ends::Hosts { secret, .. } if self.opens(flow) => greeting(secret, flow.number),
            _ => Vec::new(),
        };
        if let Some(opened) = self.plan.opened {
            opened(flow.number, fd.as_fd());
        }
        let end = Connection::new(fd, app, self.plan.copies, times_reads, greeting);
        self.ends.insert(flow.number, end);
        Ok(())
    }

    /// Something happened at a connection. `to_the_end`: see [`Connection::turn`].
    fn serve(&mut self, number: u32, to_the_end: bool) -> Result<(), Error> {
        match self.turn(number, to_the_end) {
            // The far end may be gone already when all are told to stop.
            Err(_) if self.plan.over.load(Ordering::Relaxed) || self.is_told_to_stop() => Ok(()),
            Err(source) => Err(Error::Connection { number, source }),
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
            let measured = self.clock.now().0 >= self.start_ns + self.plan.cell.warmup.0;
            for latency in self.latencies.drain(..).filter(|_| measured) {
                report.latency_us.add(latency.as_us());
            }
        }
        // Its socket stays: a FIN may have to be sent again.
        if end.is_over() && report.tcp_info.is_empty() {
            report.tcp_info = read_tcp_info(&end.fd);
            if self.plan.side == Side::Sender {
                Progress::note(&progress.closed_ns, self.clock.now().0);
            }
        }
        Ok(())
    }
}

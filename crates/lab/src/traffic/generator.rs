//! One side's process: listens, connects, and lets the applications run.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use knee_collect::KernelError;
use knee_collect::clock::monotonic_ns;
use knee_link::SERVICE_PORT;
use knee_loader::Variant;
use knee_path::Backend;
use knee_scenario::{Cell, Pacing};
use knee_tables::Histogram;
use knee_units::Nanos;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{SockFlag, SockaddrIn, accept4, getpeername};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{
    ClockId as TimerClock, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags,
};
use serde::{Deserialize, Serialize};

use super::connection::{self, Connection, Options};
use super::{Flow, Progress, Shared};
use crate::{Addresses, FIRST_PORT};

/// Longest single read and write.
const SCRATCH_BYTES: usize = 256 * 1024;
const EVENTS: usize = 512;
/// epoll's name for the descriptor that says stop, for the timer of the next
/// opening, and for listeners from the last one on.
const STOP: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
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
    pub congestion: &'a dyn Fn(&str) -> String,
    pub shared: Shared,
    pub start_ns: u64,
}

/// What became of one end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EndReport {
    /// Requests answered in the steady part.
    pub latency_us: Histogram,
    /// The last `tcp_info` of a connection that has closed; empty: it has not.
    pub tcp_info: Vec<u8>,
}

/// Runs one side until `stop` is readable. Reports come by flow number.
///
/// # Errors
/// A socket cannot be made, or a connection fails: with the flow and why.
pub fn generate(plan: &Plan<'_>, stop: BorrowedFd<'_>) -> Result<Vec<EndReport>, KernelError> {
    allow_descriptors().map_err(KernelError::system("raise the limit of open files"))?;
    let mut generator = Generator {
        plan,
        stop,
        timer: TimerFd::new(TimerClock::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC)
            .map_err(KernelError::system("make a timer"))?,
        epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
            .map_err(KernelError::system("make an epoll"))?,
        listeners: Vec::new(),
        ends: HashMap::new(),
        unfinished: Vec::new(),
        sleeping: BTreeSet::new(),
        reports: vec![EndReport::default(); plan.flows.len()],
        scratch: vec![0; SCRATCH_BYTES],
        latencies: Vec::new(),
    };
    generator.watch(stop, EpollFlags::EPOLLIN, STOP)?;
    generator.watch(&generator.timer, EpollFlags::EPOLLIN, TIMER)?;
    generator.listen()?;
    generator.run()?;
    Ok(generator.reports)
}

/// As many as the system lets us have: thousands of connections need one each.
fn allow_descriptors() -> nix::Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)
}

struct Generator<'a> {
    plan: &'a Plan<'a>,
    stop: BorrowedFd<'a>,
    timer: TimerFd,
    epoll: Epoll,
    listeners: Vec<OwnedFd>,
    /// By flow number.
    ends: HashMap<u32, Connection>,
    /// Connections that broke off their turn to let others have one.
    unfinished: Vec<u32>,
    /// Connections whose application begins to write at a time, in order of time.
    sleeping: BTreeSet<(u64, u32)>,
    reports: Vec<EndReport>,
    scratch: Vec<u8>,
    latencies: Vec<Nanos>,
}

impl Generator<'_> {
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
        let options = Options {
            congestion: &congestion,
            paced: pacing == Pacing::Timer,
            max_pacing_rate: rate,
            nodelay: flow.receiver_opens,
        };
        connection::open(options).map_err(|error| match error {
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
        })
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

    fn run(&mut self) -> Result<(), KernelError> {
        let mut to_open: Vec<&Flow> = self
            .plan
            .flows
            .iter()
            .filter(|flow| self.opens(flow))
            .collect();
        // The last is the next.
        to_open.sort_by_key(|flow| std::cmp::Reverse((flow.open, flow.number)));
        let mut events = vec![EpollEvent::empty(); EVENTS];
        loop {
            let now_ns = monotonic_ns();
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
                self.serve(number)?;
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
            let count = match self.epoll.wait(&mut events, timeout) {
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
                    name if name >= LISTENER => self.accept((name - LISTENER) as usize)?,
                    number => self.serve(number as u32)?,
                }
            }
            for number in std::mem::take(&mut self.unfinished) {
                self.serve(number)?;
            }
        }
    }

    fn connect(&mut self, flow: &Flow) -> Result<(), KernelError> {
        let progress = self.plan.shared.get(flow.number);
        Progress::note(&progress.opened_ns, monotonic_ns());
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
            if let Some(&flow) = self.plan.flows.get(number as usize) {
                self.add(&flow, fd)?;
            }
        }
    }

    fn add(&mut self, flow: &Flow, fd: OwnedFd) -> Result<(), KernelError> {
        let apps = self.plan.cell.flows[flow.group].workload.apps(flow.bytes);
        let apps = apps.expect("programs have no flows here");
        let app = match self.plan.side {
            Side::Sender => apps.sender,
            Side::Receiver => apps.receiver,
        };
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
        self.watch(&fd, flags | EpollFlags::EPOLLRDHUP, u64::from(flow.number))?;
        // Where the path costs nothing, hosts are measured: then what a read costs counts.
        let copies = self.plan.cell.path.backend == Backend::Veth;
        self.ends
            .insert(flow.number, Connection::new(fd, app, copies));
        Ok(())
    }

    /// Something happened at a connection.
    fn serve(&mut self, number: u32) -> Result<(), KernelError> {
        match self.turn(number) {
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
        let mut fds = [PollFd::new(self.stop, PollFlags::POLLIN)];
        matches!(nix::poll::poll(&mut fds, PollTimeout::ZERO), Ok(1))
    }

    fn turn(&mut self, number: u32) -> io::Result<()> {
        let Some(end) = self.ends.get_mut(&number) else {
            return Ok(());
        };
        let progress = self.plan.shared.get(number);
        if Progress::when(&progress.established_ns).is_none() {
            if let Some(error) = connection::pending_error(&end.fd) {
                return Err(error);
            }
            Progress::note(&progress.established_ns, monotonic_ns());
        }
        let wakes_at = end.app.wakes_at(Nanos(monotonic_ns()));
        let turn = end.turn(&mut self.scratch, || Nanos(monotonic_ns()))?;
        if turn.goes_on {
            self.unfinished.push(number);
        }
        // Either time may be in the pause in which it did not write.
        let wakes_at = wakes_at.or_else(|| end.app.wakes_at(Nanos(monotonic_ns())));
        if let Some(at) = wakes_at {
            self.sleeping.insert((at.0, number));
        }
        let report = &mut self.reports[number as usize];
        if self.plan.side == Side::Receiver {
            progress
                .bytes_read
                .fetch_add(turn.read_bytes, Ordering::Relaxed);
            if let Some(at) = end.app.completed() {
                Progress::note(&progress.completed_ns, at.0);
            }
            end.app.take_latencies(&mut self.latencies);
            let measured = monotonic_ns() >= self.plan.start_ns + self.plan.cell.warmup.0;
            for latency in self.latencies.drain(..).filter(|_| measured) {
                report.latency_us.add(latency.as_us());
            }
        }
        // Its socket stays: a FIN may have to be sent again.
        if end.is_over() && report.tcp_info.is_empty() {
            report.tcp_info = end.tcp_info();
            if self.plan.side == Side::Sender {
                Progress::note(&progress.closed_ns, monotonic_ns());
            }
        }
        Ok(())
    }
}

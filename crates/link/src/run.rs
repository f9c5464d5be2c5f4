//! The link at work: a thread per direction, each with its own half of the path.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use knee_clock::{be_punctual, monotonic_ns, thread_ns};
use knee_path::packet::{Packet, Train};
use knee_path::way::Way;
use knee_tables::QueueSample;
use knee_units::Nanos;
use knee_units::rng::Stream;
use nix::poll::{PollFd, PollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use serde::{Deserialize, Serialize};

use crate::buffers::Buffers;
use crate::flows::{FlowReport, Flows};
use crate::meter::{DirectionReport, Meter};
use crate::outlet::{Note, Outlet};
use crate::sleep::{Lead, Patience, REST_NS};
use crate::tun::{HEADER_BYTES, dropped_pkts};
use crate::wire;
use crate::{LinkConfig, Nic};

/// Packets read before the path is looked after again: at 10 Gbit/s of
/// super-packets 64 take 3 ms, of wire packets 80 us.
const READ_BATCH: usize = 32;
/// Caps the sleep, so that waiting forever needs no separate system call.
const LONGEST_SLEEP_NS: u64 = 1_000_000_000;
/// Most memory of packets under way: 10 Gbit/s for 0.8 s.
const MOST_HELD_BYTES: usize = 1 << 30;
/// Why the link ended.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("the link cannot {what}: {source}")]
    System {
        what: &'static str,
        source: io::Error,
    },
}

fn failed(what: &'static str) -> impl Fn(nix::Error) -> LinkError {
    move |error| LinkError::System {
        what,
        source: error.into(),
    }
}

/// What a link did in its life.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The bottleneck over time; `cell` and `rep` are for the caller to fill.
    pub queue: Vec<QueueSample>,
    /// Connections of the data direction, in order of appearance.
    pub flows: Vec<FlowReport>,
    /// Data, then back.
    pub directions: [DirectionReport; 2],
    /// Did the kernel grant real-time priority?
    pub realtime: bool,
}

/// Carries packets between the devices until `stop` becomes readable.
///
/// `start_ns`: the run's beginning on CLOCK_MONOTONIC; times in the report count from it.
///
/// # Errors
/// A device or a thread fails. Bad packets are no error: they pass as they are.
pub fn run(
    config: &LinkConfig,
    sender: OwnedFd,
    receiver: OwnedFd,
    start_ns: u64,
    stop: BorrowedFd<'_>,
) -> Result<Report, LinkError> {
    let stopped = AtomicBool::new(false);
    let wake = [(); 2].map(|()| EventFd::from_flags(EfdFlags::EFD_NONBLOCK));
    let [Ok(wake_data), Ok(wake_back)] = wake else {
        return Err(failed("make an event descriptor")(nix::Error::last()));
    };
    let least_rtt = config.groups.iter().map(|group| group.rtt).min();
    let least_rtt = least_rtt.unwrap_or(config.path.rtt);
    let [data_rate, back_rate] = config.constant_rates();
    let data = Direction::new(config, true, &sender, &receiver, start_ns);
    let back = Direction::new(config, false, &receiver, &sender, start_ns);
    let (stopped, wake_data, wake_back) = (&stopped, wake_data.as_fd(), wake_back.as_fd());
    std::thread::scope(|scope| {
        let data = spawn(scope, "data", move || data.run(stopped, wake_data))?;
        let back = spawn(scope, "back", move || back.run(stopped, wake_back))?;
        let waited = wait_for(stop);
        stopped.store(true, Ordering::Relaxed);
        for wake in [wake_data, wake_back] {
            // Its only failure is a counter that is full, which wakes as well.
            let _ = nix::unistd::write(wake, &1u64.to_ne_bytes());
        }
        let [data, back] =
            [data, back].map(|thread| thread.join().expect("a direction does not panic"));
        waited.map_err(failed("wait"))?;
        let (data, back) = (data?, back?);
        Ok(Report {
            queue: data.queue,
            flows: data.flows.reports,
            directions: [
                data.meter.finish(data_rate, least_rtt),
                back.meter.finish(back_rate, least_rtt),
            ],
            realtime: data.realtime && back.realtime,
        })
    })
}

fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<std::thread::ScopedJoinHandle<'scope, T>, LinkError> {
    std::thread::Builder::new()
        .name(name.into())
        .spawn_scoped(scope, work)
        .map_err(|source| LinkError::System {
            what: "start a thread",
            source,
        })
}

fn wait_for(stop: BorrowedFd<'_>) -> nix::Result<()> {
    let mut fds = [PollFd::new(stop, PollFlags::POLLIN)];
    loop {
        match nix::poll::poll(&mut fds, nix::poll::PollTimeout::NONE) {
            Err(nix::Error::EINTR) => {}
            other => return other.map(|_| ()),
        }
    }
}

/// One direction: what it reads from, the path, what it writes to.
struct Direction<'a> {
    from: BorrowedFd<'a>,
    way: Way<Note>,
    outlet: Outlet<'a>,
    config: &'a LinkConfig,
    is_data: bool,
    start_ns: u64,
    next_sample_ns: u64,
    queue: Vec<QueueSample>,
    lead: Lead,
    patience: Patience,
}

/// What is left of a direction.
struct Done {
    queue: Vec<QueueSample>,
    flows: Flows,
    meter: Meter,
    realtime: bool,
}

impl<'a> Direction<'a> {
    fn new(
        config: &'a LinkConfig,
        is_data: bool,
        from: &'a OwnedFd,
        to: &'a OwnedFd,
        start_ns: u64,
    ) -> Direction<'a> {
        let Nic { coalesce, gro, .. } = if is_data {
            config.receiver
        } else {
            config.sender
        };
        let direction = match is_data {
            true => knee_path::Direction::Forward,
            false => knee_path::Direction::Back,
        };
        let stream = |component: &str| Stream::new(config.seed, component);
        let mut way = Way::new(config.hops(), direction, stream, start_ns, coalesce);
        way.foresee();
        Direction {
            from: from.as_fd(),
            way,
            outlet: Outlet {
                to: to.as_fd(),
                buffers: Buffers::default(),
                flows: Flows::new(config),
                meter: Meter::default(),
                gro,
                measure_from_ns: config
                    .groups
                    .iter()
                    .map(|group| start_ns + group.warmup.0)
                    .collect(),
            },
            config,
            is_data,
            start_ns,
            next_sample_ns: if is_data {
                start_ns + config.sample_interval.0
            } else {
                u64::MAX
            },
            queue: Vec::new(),
            lead: Lead::default(),
            patience: Patience::default(),
        }
    }

    fn run(mut self, stopped: &AtomicBool, wake: BorrowedFd<'_>) -> Result<Done, LinkError> {
        let realtime = be_punctual();
        let mut idle_since_ns = monotonic_ns();
        while !stopped.load(Ordering::Relaxed) {
            let read = self.read_batch()?;
            let now_ns = monotonic_ns();
            self.way.advance(now_ns, &mut self.outlet);
            while self.next_sample_ns <= now_ns {
                self.sample();
            }
            if read == READ_BATCH {
                continue;
            }
            let next_ns = self.way.next().at_ns().min(self.next_sample_ns);
            let wake_ns = next_ns.saturating_sub(self.lead.ns());
            let now_ns = monotonic_ns();
            if wake_ns > now_ns {
                if !self.sleep(wake_ns - now_ns, wake)? {
                    self.lead.woke(monotonic_ns().saturating_sub(wake_ns));
                }
            } else if read == 0 && self.patience.is_over(now_ns, now_ns - idle_since_ns) {
                std::thread::sleep(Duration::from_nanos(REST_NS));
                self.patience.rested();
            }
            idle_since_ns = monotonic_ns();
        }
        self.way.settle(monotonic_ns(), &mut self.outlet);
        self.outlet.meter.report.cpu_ns = thread_ns();
        self.outlet.meter.report.overflowed_pkts = dropped_pkts(self.from);
        Ok(Done {
            queue: self.queue,
            flows: self.outlet.flows,
            meter: self.outlet.meter,
            realtime,
        })
    }

    /// Until a packet comes, or for that long; did something else than the time end it?
    fn sleep(&mut self, ns: u64, wake: BorrowedFd<'_>) -> Result<bool, LinkError> {
        self.outlet.meter.report.syscalls += 1;
        let mut fds = [
            PollFd::new(self.from, PollFlags::POLLIN),
            PollFd::new(wake, PollFlags::POLLIN),
        ];
        let timeout = TimeSpec::from_duration(Duration::from_nanos(ns.min(LONGEST_SLEEP_NS)));
        match nix::poll::ppoll(&mut fds, Some(timeout), None) {
            // A sleep cut short tells nothing about waking up on time.
            Ok(0) => Ok(ns > LONGEST_SLEEP_NS),
            Ok(_) | Err(nix::Error::EINTR) => Ok(true),
            Err(error) => Err(failed("wait")(error)),
        }
    }

    /// Reads what is there, up to a batch; returns how many packets it was.
    fn read_batch(&mut self) -> Result<usize, LinkError> {
        let from = if self.is_data {
            self.config.sender
        } else {
            self.config.receiver
        };
        let large = from.tso || self.config.path.mtu_bytes > 1_500;
        for count in 0..READ_BATCH {
            if self.outlet.buffers.held_bytes > MOST_HELD_BYTES {
                self.outlet.meter.report.memory_full += 1;
                return Ok(count);
            }
            let mut room = self.outlet.buffers.room(large);
            self.outlet.meter.report.syscalls += 1;
            match nix::unistd::read(self.from, &mut room) {
                Ok(len) if len > HEADER_BYTES => self.admit(room, len),
                Ok(_) | Err(nix::Error::EAGAIN | nix::Error::EINTR) => {
                    self.outlet.buffers.give_back(room);
                    return Ok(count);
                }
                Err(error) => return Err(failed("read from its device")(error)),
            }
        }
        Ok(READ_BATCH)
    }

    /// A packet was read: each of its wire packets enters the path.
    fn admit(&mut self, data: Vec<u8>, len: usize) {
        let head = wire::head(&data[HEADER_BYTES..len]);
        let now_ns = monotonic_ns();
        self.way.advance(now_ns, &mut self.outlet);
        let pure_ack = wire::pure_ack(&data[HEADER_BYTES..len], &head);
        let flow = self.outlet.flows.index(head.tuple);
        while self.way.flows() <= flow as usize {
            let number = self.way.flows();
            let (hops, rtt) = self.route_of(number);
            self.way.add_flow(hops, rtt);
            let nic = number as u32;
            self.way.set_nic(nic, nic, nic);
        }
        let buffers = &mut self.outlet.buffers;
        let packet_bytes = len - HEADER_BYTES;
        let header_bytes = usize::from(head.bytes);
        let overhead = self.config.path.overhead_bytes;
        let payload = packet_bytes - header_bytes;
        let buffer = buffers.keep(data, len, head);
        let segment = match buffers.gso_size(buffer) {
            0 => payload.max(1),
            size => size,
        };
        let pieces = payload.div_ceil(segment).max(1);
        if head.tcp && payload > 0 {
            self.outlet.flows.reports[flow as usize].data_pkts += pieces as u64;
        }
        if self.way.loses_whole(flow, pieces as u32) {
            self.outlet.flows.reports[flow as usize].path_lost_pkts += pieces as u64;
            let handle = buffers.cut(buffer, header_bytes, packet_bytes);
            return buffers.release(handle);
        }
        let [sender, receiver] = self.outlet.flows.hosts(flow);
        let hosts = match self.is_data {
            true => [sender, receiver],
            false => [receiver, sender],
        };
        let packet = |handle, bytes| Packet {
            handle,
            bytes,
            flow,
            hosts,
            ecn: head.ecn,
            dscp: head.dscp,
            pure_ack,
            enqueued: Nanos(now_ns),
        };
        if self.config.path.keep_super_packets || pieces == 1 {
            let handle = buffers.cut(buffer, header_bytes, packet_bytes);
            let bytes = payload as u32 + pieces as u32 * (u32::from(head.bytes) + overhead);
            self.way
                .enter(now_ns, Train::of(packet(handle, bytes)), &mut self.outlet);
            return;
        }
        // All are named before the first may leave and free the buffer.
        let handles: Vec<(u32, u32)> = (0..pieces)
            .map(|n| {
                let start = header_bytes + n * segment;
                let end = (start + segment).min(packet_bytes);
                let bytes = (end - start) as u32 + u32::from(head.bytes) + overhead;
                (buffers.cut(buffer, start, end), bytes)
            })
            .collect();
        for (handle, bytes) in handles {
            self.way
                .enter(now_ns, Train::of(packet(handle, bytes)), &mut self.outlet);
        }
    }

    /// The hops that a flow crosses, and its base round-trip time.
    fn route_of(&self, flow: usize) -> (Range<usize>, Nanos) {
        let group = self.outlet.flows.reports[flow].group as usize;
        match self.config.groups.get(group) {
            Some(group) => (group.hops.clone(), group.rtt),
            None => {
                let rtts = self.config.hops().map(|hop| hop.rtt.0);
                (0..self.config.hops().count(), Nanos(rtts.sum()))
            }
        }
    }

    fn sample(&mut self) {
        let t_ns = (self.next_sample_ns - self.start_ns) as i64;
        self.way.settle(self.next_sample_ns, &mut self.outlet);
        let rows = self.way.sample(self.next_sample_ns);
        self.queue
            .extend(rows.map(|row| QueueSample { t_ns, ..row }));
        self.next_sample_ns += self.config.sample_interval.0;
    }
}

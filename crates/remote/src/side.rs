//! One end of a repetition.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use knee_clock::{Punctual, monotonic_ns};
use knee_scenario::{AlgorithmFile, AlgorithmInfo, Cell, Names};
use knee_traffic::{Algorithm, Ends, Flow, Plan, Progress, Secret, Shared, listen_at, socket};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{AddressFamily, SockaddrStorage, getsockname};

use crate::asked::{PathAsked, Prepare, SideName, Start};
use crate::connections::Connections;
use crate::path;
use crate::programs::Programs;
use crate::said::{Done, Listening, Said, tell};
use crate::sampler::{Open, Records, attribute_of};

/// How often a generator is looked after.
const LOOK_NS: u64 = 100_000_000;
/// How often the processors are looked at.
const PROCESSORS_NS: u64 = 100_000_000;

/// What was prepared, and what runs.
#[derive(Default)]
pub struct Side {
    prepared: Option<Prepared>,
    running: Option<Running>,
    /// Where the other host was seen.
    far: Arc<Mutex<Option<IpAddr>>>,
}

struct Prepared {
    cell: Cell,
    side: knee_traffic::Side,
    flows: Vec<Flow>,
    algorithms: Vec<Algorithm>,
    secret: Secret,
    listeners: Vec<Option<OwnedFd>>,
    programs: Programs,
    /// Answers whoever measures the path, until it is told to stop.
    answering: Option<(EventFd, JoinHandle<()>)>,
}

struct Running {
    stop: Arc<EventFd>,
    thread: JoinHandle<()>,
}

fn event() -> Result<EventFd, String> {
    let made = EventFd::from_flags(EfdFlags::EFD_CLOEXEC);
    made.map_err(|error| format!("cannot make an event descriptor: {error}"))
}

impl Side {
    /// Reads the cell and listens. Returns the port of each `[[flow]]` whose far end opens.
    pub fn prepare(&mut self, asked: Prepare) -> Result<Listening, String> {
        self.stop();
        let named = |(name, linux_name): (String, String)| AlgorithmInfo {
            name,
            linux_name,
            params: Vec::new(),
        };
        let of_file = |(path, name, digest): (String, String, String)| AlgorithmFile {
            path,
            digest,
            info: named((name.clone(), name)),
        };
        let names = Names {
            algorithm_files: asked.files.into_iter().map(of_file).collect(),
            algorithms: asked.names.into_iter().map(named).collect(),
            ..Names::default()
        };
        let cell = knee_scenario::read_cell(&asked.cell, "the cell", &names)
            .map_err(|error| error.to_string())?;
        let side = match asked.side {
            SideName::Sender => knee_traffic::Side::Sender,
            SideName::Receiver => knee_traffic::Side::Receiver,
        };
        let written = |group: usize| match side {
            knee_traffic::Side::Sender => cell.flows[group].algorithm.clone(),
            knee_traffic::Side::Receiver => cell.receiver.algorithm.clone(),
        };
        let algorithms: Vec<Algorithm> = (0..cell.flows.len())
            .map(|group| {
                let written = written(group);
                let called = asked.algorithms.get(&written).cloned();
                Algorithm {
                    called: called.unwrap_or_else(|| written.clone()),
                    written,
                }
            })
            .collect();
        let flows = knee_traffic::flows(&cell, asked.rep);
        let (family, any): (_, IpAddr) = match asked.own.is_ipv6() {
            true => (AddressFamily::Inet6, Ipv6Addr::UNSPECIFIED.into()),
            false => (AddressFamily::Inet, Ipv4Addr::UNSPECIFIED.into()),
        };
        let mut everywhere = false;
        let mut listeners = Vec::new();
        let mut ports = Vec::new();
        for (group, algorithm) in algorithms.iter().enumerate() {
            let asks = (cell.flows[group].workload.apps(0)).is_some_and(|apps| apps.receiver_opens);
            let listens = asks == matches!(side, knee_traffic::Side::Sender);
            if !listens {
                listeners.push(None);
                ports.push(None);
                continue;
            }
            let fd = socket(&cell, side, (group, asks), algorithm, family)
                .map_err(|error| error.to_string())?;
            let port = match asked.port {
                0 => 0,
                first => first + group as u16,
            };
            let mut listened = listen_at(&fd, SocketAddr::new(asked.own, port));
            if listened == Err(nix::Error::EADDRNOTAVAIL) {
                // What leads here from there is translated on the way.
                everywhere = true;
                listened = listen_at(&fd, SocketAddr::new(any, port));
            }
            listened.map_err(|error| {
                let named = match port {
                    0 => "a port".into(),
                    port => format!("port {port}"),
                };
                let hint = match error {
                    nix::Error::EACCES => "Ports below net.ipv4.ip_unprivileged_port_start are root's there; name a higher one, or leave --port out",
                    nix::Error::EADDRINUSE => "Another program has it, or an earlier run that has not ended; leave --port out, or name another",
                    _ => "Leave --port out, or name another",
                };
                format!("cannot listen at {named}: {error}. {hint}")
            })?;
            ports.push(Some(port_of(&fd)?));
            listeners.push(Some(fd));
        }
        let (programs, servers) = Programs::prepare(&cell, side, [asked.own, asked.other])?;
        let first = listeners.iter().flatten().next();
        let answering = match first.map(|fd| fd.try_clone()) {
            None => None,
            Some(fd) => {
                let fd = fd.map_err(|error| format!("cannot share a socket: {error}"))?;
                let stop = event()?;
                let (seen, secret) = (stop.as_fd().try_clone_to_owned(), asked.secret);
                let seen = seen.map_err(|error| format!("cannot share an event: {error}"))?;
                let far = self.far.clone();
                let thread = std::thread::spawn(move || path::answer(fd, &seen, secret, &far));
                Some((stop, thread))
            }
        };
        self.prepared = Some(Prepared {
            cell,
            side,
            flows,
            algorithms,
            secret: asked.secret,
            listeners,
            programs,
            answering,
        });
        Ok(Listening {
            ports,
            everywhere,
            servers,
        })
    }

    /// Measures the path, and knows then where the other host is.
    pub fn measure(&self, asked: &PathAsked) -> Result<path::Measured, String> {
        *self.far.lock().expect("nobody panics with it") = Some(asked.far.ip());
        path::measure(asked)
    }

    /// Begins what was prepared.
    pub fn start(&mut self, asked: Start) -> Result<(), String> {
        let mut prepared = self.prepared.take().ok_or("nothing was prepared")?;
        prepared.be_silent();
        let known = *self.far.lock().expect("nobody panics with it");
        let stop = Arc::new(event()?);
        let seen = stop.clone();
        let thread = std::thread::spawn(move || {
            let told = prepared.run(&asked, known, &seen);
            tell(&told.map_or_else(Said::Error, |done| Said::Done(Box::new(done))));
        });
        self.running = Some(Running { stop, thread });
        Ok(())
    }

    /// Ends what runs, which then says what became of it.
    pub fn stop(&mut self) {
        if let Some(mut prepared) = self.prepared.take() {
            prepared.be_silent();
        }
        if let Some(running) = self.running.take() {
            let _ = running.stop.write(1);
            let _ = running.thread.join();
        }
    }
}

fn port_of(fd: &OwnedFd) -> Result<u16, String> {
    use std::os::fd::AsRawFd;
    let own: SockaddrStorage =
        getsockname(fd.as_raw_fd()).map_err(|error| format!("cannot ask for a port: {error}"))?;
    let v4 = own.as_sockaddr_in().map(|address| address.port());
    let v6 = own.as_sockaddr_in6().map(|address| address.port());
    v4.or(v6)
        .ok_or_else(|| "a socket without a port".to_owned())
}

impl Prepared {
    /// Nobody answers any more who measures the path.
    fn be_silent(&mut self) {
        if let Some((stop, thread)) = self.answering.take() {
            let _ = stop.write(1);
            let _ = thread.join();
        }
    }

    fn run(
        &mut self,
        asked: &Start,
        known: Option<IpAddr>,
        stop: &EventFd,
    ) -> Result<Done, String> {
        let shared = Shared::new(self.flows.len())
            .map_err(|error| format!("cannot share memory between threads: {error}"))?;
        let start = knee_traffic::Start::new()
            .map_err(|error| format!("cannot share memory between threads: {error}"))?;
        start.tell(asked.at_ns);
        let (open, over) = (Open::default(), AtomicBool::new(false));
        let opened = |number: u32, fd: std::os::fd::BorrowedFd<'_>| open.add(number, fd);
        let plan = Plan {
            cell: &self.cell,
            side: self.side,
            flows: &self.flows,
            ends: Ends::Hosts {
                secret: self.secret,
                known,
                listeners: &self.listeners,
                far: &asked.far,
            },
            algorithms: &self.algorithms,
            shared,
            start,
            copies: true,
            is_virtual: false,
            opened: Some(&opened),
            over: &over,
        };
        let mut watch = Watch {
            cell: &self.cell,
            flows: &self.flows,
            algorithms: &self.algorithms,
            start_ns: asked.at_ns,
            open: &open,
            shared,
            records: Records::default(),
            connections: Connections::new(self.side, &asked.servers),
            programs: &mut self.programs,
        };
        let (ended_ns, reports) = std::thread::scope(|scope| {
            let traffic = scope.spawn(|| knee_traffic::generate(&plan, stop.as_fd()));
            let ended_ns = watch.until_the_end(&|| traffic.is_finished());
            over.store(true, Ordering::Relaxed);
            match &ended_ns {
                Ok(ended_ns) if !traffic.is_finished() => tell(&Said::Over(*ended_ns)),
                Ok(_) => {}
                Err(_) => drop(stop.write(1)),
            }
            (ended_ns, traffic.join().expect("it does not panic"))
        });
        let ended_ns = ended_ns?;
        watch.programs.stop();
        let programs = watch.programs.outcomes(watch.since_ns());
        let (records, connections) = (watch.records, watch.connections.found);
        let reports = reports.map_err(|error| error.to_string())?;
        let since = |slot| Progress::when(slot).map(|ns| ns.saturating_sub(asked.at_ns));
        let progress = |flow: &Flow| {
            let progress = shared.get(flow.number);
            let times = [
                &progress.opened_ns,
                &progress.established_ns,
                &progress.completed_ns,
                &progress.closed_ns,
            ];
            (
                progress.bytes_read.load(Ordering::Relaxed),
                times.map(since),
            )
        };
        Ok(Done {
            ended_ns,
            progress: self.flows.iter().map(progress).collect(),
            reports,
            congestion: open.congestion(),
            connections,
            programs,
            samples: records.count,
            missed: records.missed,
            records_bytes: records.bytes.len(),
            records: records.bytes,
        })
    }
}

/// What samples, and looks after programs, while a repetition runs.
struct Watch<'a> {
    cell: &'a Cell,
    flows: &'a [Flow],
    algorithms: &'a [Algorithm],
    start_ns: u64,
    open: &'a Open,
    shared: Shared,
    records: Records,
    connections: Connections,
    programs: &'a mut Programs,
}

impl Watch<'_> {
    fn since_ns(&self) -> u64 {
        monotonic_ns().saturating_sub(self.start_ns)
    }

    /// One sample of everything.
    fn take(&mut self) -> Result<(), String> {
        let since_ns = || monotonic_ns().saturating_sub(self.start_ns);
        let of_algorithm =
            |number: u32| attribute_of(&self.algorithms[self.flows[number as usize].group].called);
        (self.records).take(since_ns, self.open, self.shared, of_algorithm);
        let (records, first) = (&mut self.records, self.flows.len());
        (self.connections)
            .each(|index, told| records.add_told(since_ns(), (first + index) as u32, told))
    }

    /// Is all work complete? Servers go on until they are ended.
    fn is_done(&mut self) -> bool {
        let complete =
            |flow: &Flow| Progress::when(&self.shared.get(flow.number).completed_ns).is_some();
        match self.programs.are_done() {
            Some(done) => done && self.flows.iter().all(complete),
            None => !self.flows.is_empty() && self.flows.iter().all(complete),
        }
    }

    /// Until the duration is over, all work is done, or the traffic has ended. Returns when that was, since the start.
    fn until_the_end(&mut self, is_over: &dyn Fn() -> bool) -> Result<u64, String> {
        let _punctual = Punctual::request();
        let end_ns = self.start_ns + self.cell.duration.0;
        let interval_ns = self.cell.sample_interval.0;
        let mut next_ns = self.start_ns + interval_ns;
        let mut warm_ns = Some(self.start_ns + self.cell.warmup.0);
        sleep_until(self.start_ns);
        let mut next_processors_ns = self.start_ns;
        loop {
            self.programs.look(self.cell, self.since_ns())?;
            let now_ns = monotonic_ns();
            let is_over = now_ns >= end_ns || self.is_done() || is_over();
            if now_ns >= next_processors_ns || is_over {
                self.records.processors(self.since_ns());
                next_processors_ns += PROCESSORS_NS;
            }
            if is_over {
                self.take()?;
                return Ok(self.since_ns());
            }
            if warm_ns.is_some_and(|ns| now_ns >= ns) {
                warm_ns = None;
                self.take()?;
                self.records.warm(self.since_ns());
            }
            if now_ns >= next_ns {
                self.take()?;
                // Samples that could not be taken in time are left out, not made up.
                let missed = monotonic_ns().saturating_sub(next_ns) / interval_ns;
                self.records.missed += missed;
                next_ns += interval_ns * (1 + missed);
            }
            // Nothing is said meanwhile: whatever goes to the front may share the path with what is measured.
            let client_ns = (self.programs.next_start_ns()).map(|ns| self.start_ns + ns);
            let wakes = [warm_ns, client_ns, Some(next_processors_ns)]
                .into_iter()
                .flatten();
            let soonest_ns = next_ns.min(monotonic_ns() + LOOK_NS).min(end_ns);
            sleep_until(wakes.fold(soonest_ns, u64::min));
        }
    }
}

fn sleep_until(at_ns: u64) {
    let now_ns = monotonic_ns();
    if at_ns > now_ns {
        std::thread::sleep(Duration::from_nanos(at_ns - now_ns));
    }
}

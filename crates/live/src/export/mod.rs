//! Sums over the sockets of a namespace and the counters of its host, for whoever
//! scrapes them.
//!
//! The sockets are sampled at an interval of its own and not when somebody asks:
//! two scrapers cost what one does, an answer never waits for a dump, and a
//! connection's counters are differences between samples, of which each has one.

mod counter;
mod group;
mod histogram;
mod labels;
mod queues;
mod tally;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use group::GroupView;
use knee_collect::KernelError;
use knee_collect::proc_net;
use knee_collect::routing::Routing;
use knee_units::parse;
use labels::By;
use queues::{QueueView, Queues};
use serde::{Deserialize, Serialize};
use tally::Tally;

use crate::record::events::{Chunk, Events};
use crate::record::moment::{Moment, thread_cpu};
use crate::record::pace::Pace;
use crate::record::{Cpu, Selection, Wanted, within};

/// Of an interval, at most, for finding out which process holds a socket.
const PROCESSES_SHARE: u32 = 20;
/// A shorter interval would cost more than anybody scrapes.
const SHORTEST: Duration = Duration::from_millis(100);

/// What is to be summed, as texts.
#[derive(Clone, Debug, Deserialize)]
pub struct Asked {
    pub every: String,
    /// `port=443,8000-8100`, `cgroup=system.slice/nginx.service`, `process=nginx,redis-server`.
    pub by: Option<String>,
    #[serde(flatten)]
    pub wanted: Wanted,
}

/// What is to be summed.
#[derive(Clone)]
pub struct Options {
    pub selection: Selection,
    pub every: Duration,
    pub by: By,
}

impl Options {
    /// # Errors
    /// An invalid text.
    pub fn new(asked: &Asked) -> Result<Options, KernelError> {
        let every = match parse::duration(&asked.every) {
            Ok(time) if Duration::from_nanos(time.0) >= SHORTEST => Duration::from_nanos(time.0),
            Ok(_) => {
                return Err(KernelError::Option {
                    what: "every",
                    got: asked.every.clone(),
                    expected: "at least \"100ms\"".to_owned(),
                });
            }
            Err(error) => {
                return Err(KernelError::Quantity {
                    what: "every",
                    error,
                });
            }
        };
        let by = asked.by.as_deref().map(By::parse).transpose()?;
        let by = by.unwrap_or(By::Nothing);
        let mut selection = Selection::new(&asked.wanted)?;
        selection.processes = matches!(by, By::Process(_));
        Ok(Options {
            selection,
            every,
            by,
        })
    }
}

/// How the sampling itself goes, since its beginning.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Sampling {
    pub samples: u64,
    /// Intervals left out because a sample took longer than one.
    pub missed: u64,
    /// Samples that the kernel refused or cut short.
    pub failed: u64,
    /// Dumps that the kernel called interrupted.
    pub interrupted: u64,
    /// Destroy events that the kernel dropped.
    pub events_lost: u64,
    /// Can connections' ends be listened to?
    pub events: bool,
    /// Destroyed sockets left out because the filters ask for what an event does not tell.
    pub final_left_out: u64,
    /// When the last sample was whole.
    pub t_unix_ns: i64,
    /// What it took.
    pub elapsed_us: i64,
    /// Of the thread that samples.
    pub cpu: Cpu,
}

/// Everything as of one sample.
#[derive(Serialize)]
pub struct Snapshot<'a> {
    /// What groups are told apart by, besides the algorithm.
    pub by: Option<&'static str>,
    /// Values of it that this host has nothing of now.
    pub absent: Vec<&'a str>,
    pub groups: Vec<GroupView<'a>>,
    /// Counters of `/proc/net` as `Group.Name`, summed over processors.
    pub host: &'a BTreeMap<String, i64>,
    pub queues: Vec<QueueView<'a>>,
    pub sampling: Sampling,
}

/// Samples until `stop` becomes readable or `publish` returns false, which gets each
/// sample's sums, from another thread.
///
/// # Errors
/// sock_diag or the namespace is not available.
pub fn export(
    options: &Options,
    stop: BorrowedFd<'_>,
    publish: &mut (dyn FnMut(&Snapshot<'_>) -> bool + Send),
) -> Result<(), KernelError> {
    within(&options.selection, || {
        Exporter::new(options)?.run(stop, publish)
    })
}

struct Exporter<'a> {
    options: &'a Options,
    tally: Tally,
    events: Option<Events>,
    routing: Routing,
    queues: Queues,
    host: BTreeMap<String, i64>,
    sampling: Sampling,
    text: String,
}

impl<'a> Exporter<'a> {
    fn new(options: &'a Options) -> Result<Exporter<'a>, KernelError> {
        // Before the first dump, so that nothing is lost between them.
        let events = Events::start().ok();
        Ok(Exporter {
            options,
            tally: Tally::new(options.selection.clone(), options.by.clone())?,
            routing: Routing::new().map_err(KernelError::system("reach the kernel's routing"))?,
            queues: Queues::default(),
            host: BTreeMap::new(),
            sampling: Sampling {
                events: events.is_some(),
                ..Sampling::default()
            },
            events,
            text: String::new(),
        })
    }

    fn run(
        mut self,
        stop: BorrowedFd<'_>,
        publish: &mut (dyn FnMut(&Snapshot<'_>) -> bool + Send),
    ) -> Result<(), KernelError> {
        let pace = Pace::new(self.options.every)?;
        loop {
            let due = pace.wait(stop, self.events.as_ref(), None)?;
            if due.stop {
                return Ok(());
            }
            if due.events {
                self.take_events();
            }
            if due.ticks > 0 {
                self.sampling.missed += due.ticks - 1;
                self.sample()?;
                if !publish(&self.snapshot()) {
                    return Ok(());
                }
            }
        }
    }

    fn sample(&mut self) -> Result<(), KernelError> {
        let began = Instant::now();
        match self.tally.sample() {
            Ok(dump) => {
                self.sampling.samples += 1;
                self.sampling.interrupted += u64::from(dump.interrupted);
                self.sampling.t_unix_ns = Moment::now().unix_ns;
                if self.sampling.samples == 1 {
                    self.begin();
                }
            }
            // Without a first one there is nothing to tell; later the next may go well.
            Err(error) if self.sampling.samples == 0 => return Err(error),
            Err(_) => self.sampling.failed += 1,
        }
        self.take_events();
        self.read_host();
        self.tally
            .find_processes(self.options.every / PROCESSES_SHARE);
        self.sampling.elapsed_us = began.elapsed().as_micros() as i64;
        self.sampling.cpu = thread_cpu();
        Ok(())
    }

    /// From now on a connection that no sample has seen is new, and counts whole.
    fn begin(&mut self) {
        if let Some(events) = &self.events {
            let Ok(_) = events.catch_up(take(&mut self.tally, &mut self.sampling));
        }
        self.tally.begin();
    }

    fn take_events(&mut self) {
        let Some(events) = &self.events else {
            return;
        };
        let Ok(goes_on) = events.take(take(&mut self.tally, &mut self.sampling));
        self.sampling.events_lost = events.lost.load(Ordering::Relaxed);
        if !goes_on {
            self.events = None;
            self.sampling.events = false;
        }
    }

    /// What cannot be read keeps its last values.
    fn read_host(&mut self) {
        let mut read = BTreeMap::new();
        for &(file, parse) in proc_net::FILES {
            let _ = proc_net::read(file, parse, &mut self.text, &mut |counter| {
                let group = match counter.group {
                    "" => "softnet",
                    group => group,
                };
                *read.entry(format!("{group}.{}", counter.name)).or_insert(0) += counter.value;
            });
        }
        self.host.append(&mut read);
        self.queues.read(&mut self.routing);
    }

    fn snapshot(&self) -> Snapshot<'_> {
        Snapshot {
            by: self.options.by.name(),
            absent: self.tally.absent(),
            groups: self.tally.groups(),
            host: &self.host,
            queues: self.queues.views(),
            sampling: self.sampling,
        }
    }
}

/// Counts what ended.
fn take(
    tally: &mut Tally,
    sampling: &mut Sampling,
) -> impl FnMut(&Chunk) -> Result<(), Infallible> {
    |chunk| {
        for (now, body) in chunk.events() {
            let told = tally.destroyed(now, body);
            sampling.final_left_out += u64::from(!told);
        }
        Ok(())
    }
}

impl Drop for Exporter<'_> {
    fn drop(&mut self) {
        if let Some(events) = self.events.take() {
            events.stop(|_| {});
        }
    }
}

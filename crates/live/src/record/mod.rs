//! Recording the TCP sockets of a namespace and the counters of its host.
//!
//! One thread dumps, fills rows and writes files, at each tick of a timer. A
//! second one takes destroy events off the kernel's queue, so that none is lost
//! while the first is at work. Both are in the namespace that is recorded; the
//! caller's thread is not.

pub(crate) mod cookies;
pub(crate) mod dumper;
pub(crate) mod events;
mod exclusions;
mod files;
mod host;
mod marks;
pub(crate) mod moment;
mod options;
pub(crate) mod pace;
mod report;
pub(crate) mod rows;
mod settings;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::fs::{self, File};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use events::{Chunk, Events, Listened};
pub use exclusions::{Exclusions, exclusions};
use files::Sink;
use host::Host;
use knee_collect::KernelError;
use knee_collect::sock_diag::SocketRows;
use knee_store::RecordBatch;
use knee_store::arrow::take_columns;
use knee_store::folder::Folder;
use knee_store::segment::{Error, Recovered, recover};
use knee_tables::{Batch, Sockets, Table};
use moment::{peak_rss_bytes, thread_cpu};
use nix::sched::{CloneFlags, setns};
pub use options::{Asked, Netns, Options, Selection, Wanted};
use pace::Pace;
pub use report::{Cpu, Report};
use rows::Rows;

/// Of an interval, at most, for finding out which process holds a socket.
const PROCESSES_SHARE: u32 = 20;

/// Records until the duration is over or `stop` becomes readable. `progress` is
/// called after each sample, from another thread.
///
/// # Errors
/// sock_diag or the namespace is not available, or a file cannot be written. Rows
/// written so far are in whole files then.
pub fn record(
    options: &Options,
    stop: BorrowedFd<'_>,
    progress: &mut (dyn FnMut(&Report) + Send),
) -> Result<Report, KernelError> {
    within(&options.selection, || {
        let mut recorder = Recorder::new(options)?;
        let ended = recorder.run(stop, progress);
        recorder.finish(ended)
    })
}

/// The sockets as they are now, in batches of the table `sockets`, of which only
/// these columns; empty: all. What is left out is given up with each batch, so
/// that a table of few columns never takes the memory of the whole.
///
/// # Errors
/// There is no such column, or sock_diag or the namespace is not available.
pub fn sockets(selection: &Selection, columns: &[String]) -> Result<Vec<RecordBatch>, KernelError> {
    let chosen = chosen(columns)?;
    let take = |table: &mut SocketRows| match &chosen[..] {
        [] => knee_store::take(table),
        chosen => take_columns(table, chosen),
    };
    within(selection, || {
        let mut rows = Rows::new(selection.clone(), selection.processes)?;
        let mut table = SocketRows::default();
        let mut batches = Vec::new();
        // A second dump has the processes that the first one asked for.
        let dumps = 1 + u64::from(selection.processes);
        for number in 0..dumps {
            batches.clear();
            table = SocketRows::default();
            rows.dump(number, &mut table, |table| {
                batches.push(take(table));
                Ok(())
            })?;
            rows.find_processes(Duration::MAX);
        }
        batches.push(take(&mut table));
        Ok(batches)
    })
}

/// Gives freed memory back to the system, which the C library keeps for later.
pub fn give_back_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointer, and any thread may call it at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Where these columns of `sockets` stand.
fn chosen(columns: &[String]) -> Result<Vec<usize>, KernelError> {
    let place = |name: &String| {
        let found = Sockets::COLUMNS
            .iter()
            .position(|column| column.name == name);
        found.ok_or_else(|| KernelError::Option {
            what: "columns",
            got: name.clone(),
            expected: "a column of sockets; `knee list tables` has them".to_owned(),
        })
    };
    columns.iter().map(place).collect()
}

/// Does it in a thread of its own, in the namespace asked for.
pub(crate) fn within<T: Send>(
    selection: &Selection,
    work: impl FnOnce() -> Result<T, KernelError> + Send,
) -> Result<T, KernelError> {
    in_namespace(selection.netns.as_ref(), work)
}

/// Does it in a thread of its own, in this network namespace or in the caller's.
pub(crate) fn in_namespace<T: Send>(
    netns: Option<&Netns>,
    work: impl FnOnce() -> Result<T, KernelError> + Send,
) -> Result<T, KernelError> {
    let work = || {
        if let Some(netns) = netns {
            let refused = |source| KernelError::Netns {
                name: netns.name.clone(),
                source,
            };
            let file = File::open(&netns.path).map_err(refused)?;
            // Where we are already nobody has to be let in.
            if !is_here(&file).map_err(refused)? {
                setns(file, CloneFlags::CLONE_NEWNET).map_err(|errno| refused(errno.into()))?;
            }
        }
        work()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("record".to_owned())
            .spawn_scoped(scope, work)
            .map_err(KernelError::system("start a thread"))?;
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Is it the network namespace of the calling thread?
fn is_here(netns: &File) -> io::Result<bool> {
    let own = fs::metadata("/proc/thread-self/ns/net")?;
    let of = |about: &fs::Metadata| (about.dev(), about.ino());
    Ok(of(&own) == of(&netns.metadata()?))
}

struct Recorder<'a> {
    options: &'a Options,
    rows: Rows,
    sockets: Sink<SocketRows>,
    host: Option<Host>,
    events: Option<Events>,
    report: Report,
    began: Instant,
}

impl<'a> Recorder<'a> {
    fn new(options: &'a Options) -> Result<Recorder<'a>, KernelError> {
        let mut report = Report::default();
        let found = match options.dir.exists() {
            true => recover(&Folder::open(&options.dir).map_err(Error::from)?)?,
            false => Vec::new(),
        };
        let whole = |(_, outcome): &&(_, Recovered)| matches!(outcome, Recovered::Whole { .. });
        match found.iter().filter(whole).count() {
            0 => {}
            whole => {
                let are = if whole == 1 {
                    "file of an earlier recording that was killed is"
                } else {
                    "files of an earlier recording that was killed are"
                };
                report.notes.push(format!("{whole} {are} whole again"));
            }
        }
        for (_, outcome) in found {
            if let Recovered::Foreign(why) = outcome {
                report.notes.push(why);
            }
        }
        let events = Events::start()
            .inspect_err(|error| {
                report.notes.push(format!(
                    "{error}: rows of closed connections end with their last sample"
                ));
            })
            .ok();
        Ok(Recorder {
            options,
            rows: Rows::new(options.selection.clone(), true)?,
            sockets: Sink::new(options, Duration::ZERO)?,
            host: options.host.then(|| Host::new(options)).transpose()?,
            events,
            report,
            began: Instant::now(),
        })
    }

    fn run(
        &mut self,
        stop: BorrowedFd<'_>,
        progress: &mut (dyn FnMut(&Report) + Send),
    ) -> Result<&'static str, KernelError> {
        let pace = Pace::new(self.options.every)?;
        loop {
            let rest = self
                .options
                .duration
                .map(|all| all.saturating_sub(self.began.elapsed()));
            if rest == Some(Duration::ZERO) {
                return Ok("duration");
            }
            let due = pace.wait(stop, self.events.as_ref(), rest)?;
            if due.stop {
                return Ok("stopped");
            }
            if due.events {
                self.take_events()?;
            }
            if due.ticks > 0 {
                self.report.missed += due.ticks - 1;
                self.sample()?;
                progress(&self.report);
            }
        }
    }

    fn sample(&mut self) -> Result<(), KernelError> {
        let before = thread_cpu();
        let number = self.report.samples;
        let (table, mut full) = self.sockets.parts();
        let outcome = (self.rows).dump(number, table, |table| Ok(full(table)?));
        drop(full);
        let (dump, rows) = match outcome {
            // One dump is missing; the next one may go well.
            Err(error @ KernelError::System { .. }) if number > 0 => {
                note(&mut self.report, error.to_string());
                self.report.failed += 1;
                return Ok(());
            }
            outcome => outcome?,
        };
        let report = &mut self.report;
        report.dump_cpu = report.dump_cpu.plus(thread_cpu().since(before));
        report.samples += 1;
        report.sockets = dump.sockets;
        report.sockets_max = report.sockets_max.max(dump.sockets);
        report.rows += rows;
        report.interrupted += u64::from(dump.interrupted);
        report.not_understood += dump.not_understood;
        if number == 0 && dump.sockets > 0 && !self.rows.marks_told {
            note(
                report,
                "marks of sockets are told to CAP_NET_ADMIN only: the column mark is null"
                    .to_owned(),
            );
        }
        self.take_events()?;
        self.sockets.commit()?;
        if let Some(host) = &mut self.host {
            let report = &mut self.report;
            host.sample(self.rows.place(), |text| note(report, text))?;
        }
        if self.options.selection.processes {
            self.rows
                .find_processes(self.options.every / PROCESSES_SHARE);
            if self.rows.processes_denied() > 0 {
                note(&mut self.report, "processes of other users cannot be looked into (CAP_SYS_PTRACE): their sockets have no process".to_owned());
            }
        }
        self.tell_cost();
        Ok(())
    }

    fn take_events(&mut self) -> Result<(), KernelError> {
        let Some(events) = &self.events else {
            return Ok(());
        };
        let goes_on = events
            .take(|chunk| take_chunk(chunk, &mut self.rows, &mut self.sockets, &mut self.report))?;
        if !goes_on && let Some(events) = self.events.take() {
            self.count_events(&events.stop(|_| {}));
        }
        Ok(())
    }

    /// What the thread that listens to sockets being destroyed said at its end.
    fn count_events(&mut self, listened: &Listened) {
        let report = &mut self.report;
        report.event_cpu = listened.cpu;
        report.events_lost = listened.lost;
        report.event_overruns = listened.overruns;
        if let Some(why) = &listened.failed {
            report.events_ended_us = Some(self.began.elapsed().as_micros() as i64);
            note(
                report,
                format!(
                    "{why}: rows of connections that were closed later end with their last sample"
                ),
            );
        }
    }

    fn tell_cost(&mut self) {
        let report = &mut self.report;
        report.cpu = thread_cpu().plus(report.event_cpu);
        report.peak_rss_bytes = peak_rss_bytes();
        report.elapsed_us = self.began.elapsed().as_micros() as i64;
    }

    /// Takes what events are still on their way and closes every file, also when
    /// the run failed.
    fn finish(mut self, ended: Result<&'static str, KernelError>) -> Result<Report, KernelError> {
        let mut outcome = ended.map(|ended| self.report.ended = ended);
        if let Some(events) = self.events.take() {
            let mut take = |chunk: &Chunk| {
                if outcome.is_ok() {
                    outcome =
                        take_chunk(chunk, &mut self.rows, &mut self.sockets, &mut self.report);
                }
            };
            let Ok(all) = events.catch_up(|chunk| {
                take(chunk);
                Ok::<_, Infallible>(())
            });
            let listened = events.stop(take);
            if !all && listened.failed.is_none() {
                let late = "it is not known whether the kernel has told of every closed connection: rows of connections that were closed last may end with their last sample";
                note(&mut self.report, late.to_owned());
            }
            self.count_events(&listened);
        }
        self.tell_cost();
        if let (Ok(()), Some(host)) = (&outcome, &mut self.host) {
            outcome = host.last(self.rows.place()).map_err(KernelError::from);
        }
        let Recorder {
            sockets,
            host,
            mut report,
            ..
        } = self;
        let ends = [Some(sockets.finish()), host.map(Host::finish)];
        for end in ends.into_iter().flatten() {
            match end {
                Ok(files) => report.files.extend(files),
                // The first error is the reason for the others.
                Err(error) => outcome = outcome.and(Err(error.into())),
            }
        }
        outcome?;
        report.bytes = report
            .files
            .iter()
            .filter_map(|file| fs::metadata(file).ok())
            .map(|about| about.len())
            .sum();
        report.peak_rss_bytes = peak_rss_bytes();
        Ok(report)
    }
}

fn take_chunk(
    chunk: &Chunk,
    rows: &mut Rows,
    sockets: &mut Sink<SocketRows>,
    report: &mut Report,
) -> Result<(), KernelError> {
    for (now, body) in chunk.events() {
        if sockets.table.is_full() {
            sockets.empty()?;
        }
        match rows.destroyed(now, body, &mut sockets.table) {
            Some(true) => {
                report.rows += 1;
                report.final_rows += 1;
            }
            Some(false) => {}
            None => report.final_left_out += 1,
        }
    }
    Ok(())
}

/// Each once.
fn note(report: &mut Report, text: String) {
    if !report.notes.contains(&text) {
        report.notes.push(text);
    }
}

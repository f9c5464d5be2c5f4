//! Sums over sockets from dumps and destroy events, by what each has moved on
//! since it was last seen.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use knee_collect::KernelError;
use knee_collect::processes::Processes;
use knee_collect::sock_diag::tcp_info::TcpInfo;
use knee_collect::sock_diag::{Diag, Dump, Extensions};

use super::group::{Group, GroupView, Values, values};
use super::labels::{Algorithms, By, Owner, Places};
use crate::record::Selection;
use crate::record::cookies::{Cookies, Entry};
use crate::record::dumper::Dumper;
use crate::record::moment::Moment;
use crate::record::rows::SOCKETS_PER_MOMENT;

/// `tcpi_state` of a socket that waits for connections.
const LISTEN: u8 = 10;

/// Where a connection stood when it was last counted.
#[derive(Clone, Debug, Default)]
pub struct Base {
    /// 0: it began after the last sample.
    mono_ns: i64,
    values: Values,
    /// Its process is being looked for; until then it is not counted.
    waiting: bool,
}

/// The sums, and where each connection stands.
pub struct Tally {
    selection: Selection,
    dumper: Dumper,
    sums: Sums,
    cookies: Cookies<Base>,
    processes: Processes,
    /// Inodes whose process is looked for, with their cookies.
    wanted: HashMap<u32, u64>,
    /// The first sample was taken.
    sampled: bool,
    /// What is destroyed from now on was there in the first sample, or began after it.
    begun: bool,
}

/// Groups by algorithm and second label; those that nothing was in yet are not there.
struct Sums {
    algorithms: Algorithms,
    places: Places,
    values: Vec<String>,
    groups: Vec<Option<Box<Group>>>,
    by_process: bool,
    /// There are processes that may not be looked into, whose any socket may be.
    denied: bool,
}

impl Tally {
    /// # Errors
    /// sock_diag is not available.
    pub fn new(selection: Selection, by: By) -> Result<Tally, KernelError> {
        Ok(Tally {
            dumper: Dumper::new(&selection, Extensions::INFO_AND_ALGORITHM)?,
            selection,
            sums: Sums::new(by),
            cookies: Cookies::default(),
            processes: Processes::default(),
            wanted: HashMap::new(),
            sampled: false,
            begun: false,
        })
    }

    /// A dump, and what every connection has moved on. Of the first one only where
    /// they stand: what they did before is nobody's.
    ///
    /// # Errors
    /// The kernel refuses the dump.
    pub fn sample(&mut self) -> Result<Dump, KernelError> {
        let Tally {
            selection,
            dumper,
            sums,
            cookies,
            processes,
            wanted,
            sampled,
            begun: _,
        } = self;
        let first = !std::mem::replace(sampled, true);
        sums.begin();
        cookies.begin();
        let (mut seen, mut now) = (0u64, Moment::default());
        let dump = dumper.dump(|diag| {
            if seen.is_multiple_of(SOCKETS_PER_MOMENT) {
                now = Moment::now();
            }
            seen += 1;
            let entry = cookies.see(&diag);
            let Some(info) = connection(&diag) else {
                return;
            };
            if selection.processes && !entry.asked && entry.inode != 0 {
                (entry.asked, entry.kept.waiting) = (true, true);
                processes.want(entry.inode);
                wanted.insert(entry.inode, diag.cookie);
            }
            let takes = selection.takes(diag.congestion, Some(&info));
            sums.count(&diag, &info, entry, now, takes, first);
        })?;
        cookies.end(seen);
        Ok(dump)
    }

    /// Whatever was destroyed before the first sample has been told of.
    pub fn begin(&mut self) {
        self.begun = true;
    }

    /// A connection that ended. False: whether it is wanted cannot be told.
    pub fn destroyed(&mut self, now: Moment, body: &[u8]) -> bool {
        let Some(mut diag) = Diag::decode(body) else {
            return true;
        };
        let entry = self.cookies.get(diag.cookie);
        let algorithm = entry.and_then(|entry| self.cookies.algorithm(entry));
        diag.mark = entry.and_then(|entry| entry.mark);
        diag.cgroup_id = entry.and_then(|entry| entry.cgroup_id);
        let takes = self
            .selection
            .takes_destroyed(entry.is_some(), algorithm, &diag);
        // Whose beginning nobody saw: it may be older than the first sample.
        let old = entry.is_none() && !self.begun;
        if takes == Some(true)
            && !old
            && let Some(info) = connection(&diag)
            && (entry.is_some() || was_connected(&info))
        {
            let new = Entry::default();
            let entry = entry.unwrap_or(&new);
            self.sums.close(&diag, &info, entry, algorithm, now);
        }
        self.cookies.forget(diag.cookie);
        takes.is_some()
    }

    /// Looks for processes of sockets that are new, for at most about `budget`.
    pub fn find_processes(&mut self, budget: Duration) {
        let (cookies, wanted) = (&mut self.cookies, &mut self.wanted);
        self.processes.walk(budget, |inode, process| {
            if let Some(cookie) = wanted.remove(&inode) {
                cookies.set_process(cookie, inode, Arc::clone(process));
                cookies.change(cookie, |base| base.waiting = false);
            }
        });
        let processes = &self.processes;
        self.sums.denied = processes.denied() > 0;
        wanted.retain(|inode, cookie| {
            let still = processes.is_wanted(*inode);
            if !still {
                cookies.change(*cookie, |base| base.waiting = false);
            }
            still
        });
    }

    /// Values of the second label that this host has nothing of now.
    pub fn absent(&self) -> Vec<&str> {
        self.sums.places.absent()
    }

    pub fn groups(&self) -> Vec<GroupView<'_>> {
        self.sums.views()
    }
}

/// What it tells, if it is one: TIME_WAIT and the like tell nothing.
fn connection<'a>(diag: &Diag<'a>) -> Option<TcpInfo<'a>> {
    diag.info.filter(|_| diag.state != LISTEN)
}

/// Was it ever more than a socket? One that listened, or was never connected, ends too.
fn was_connected(info: &TcpInfo<'_>) -> bool {
    info.segs_out().unwrap_or(0) > 0 || info.segs_in().unwrap_or(0) > 0
}

impl Sums {
    fn new(by: By) -> Sums {
        let values = by.values();
        let groups = (0..Algorithms::MOST * values.len()).map(|_| None).collect();
        Sums {
            by_process: matches!(by, By::Process(_)),
            denied: false,
            algorithms: Algorithms::default(),
            places: Places::new(by),
            values,
            groups,
        }
    }

    fn begin(&mut self) {
        self.places.refresh();
        for group in self.groups.iter_mut().flatten() {
            group.connections = 0;
        }
    }

    fn group(
        &mut self,
        diag: &Diag<'_>,
        algorithm: Option<&str>,
        entry: &Entry<Base>,
    ) -> &mut Group {
        let owner = Owner {
            local_port: diag.source.1,
            cgroup_id: diag.cgroup_id,
            process: entry.process.as_ref().map(|process| &*process.comm),
            process_looked_for: entry.asked && !entry.kept.waiting && !self.denied,
        };
        let place = self.places.of(&owner);
        let at = self.algorithms.number(algorithm) * self.values.len() + place;
        self.groups[at].get_or_insert_default()
    }

    /// A connection of a dump.
    fn count(
        &mut self,
        diag: &Diag<'_>,
        info: &TcpInfo<'_>,
        entry: &mut Entry<Base>,
        now: Moment,
        takes: bool,
        first: bool,
    ) {
        let waiting = entry.kept.waiting && self.by_process;
        if takes {
            let group = self.group(diag, diag.congestion, entry);
            group.connections += 1;
            if !first && !waiting {
                let base = &entry.kept;
                group.add(info, &base.values, base.elapsed_us(now), true);
            }
        }
        if first || takes && !waiting {
            entry.kept.mono_ns = now.mono_ns;
            entry.kept.values = values(info);
        }
    }

    /// A connection's last part.
    fn close(
        &mut self,
        diag: &Diag<'_>,
        info: &TcpInfo<'_>,
        entry: &Entry<Base>,
        algorithm: Option<&str>,
        now: Moment,
    ) {
        let group = self.group(diag, algorithm, entry);
        group.closed += 1;
        let base = &entry.kept;
        group.add(info, &base.values, base.elapsed_us(now), false);
    }

    fn views(&self) -> Vec<GroupView<'_>> {
        let width = self.values.len();
        let named = |at: usize, group| {
            let by = (width > 1).then(|| &*self.values[at % width]);
            Group::view(group, self.algorithms.name(at / width), by)
        };
        self.groups
            .iter()
            .enumerate()
            .filter_map(|(at, group)| Some(named(at, group.as_deref()?)))
            .collect()
    }
}

impl Base {
    fn elapsed_us(&self, now: Moment) -> Option<u64> {
        let since = (self.mono_ns != 0).then_some(self.mono_ns)?;
        u64::try_from((now.mono_ns - since) / 1_000).ok()
    }
}

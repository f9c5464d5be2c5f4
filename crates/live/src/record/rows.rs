//! Rows of `sockets` from dumps and destroy events.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use knee_collect::KernelError;
use knee_collect::identity::Identity;
use knee_collect::processes::Processes;
use knee_collect::sock_diag::{Diag, Dump, Extensions, SocketRows};
use knee_tables::{Batch, Sockets};

use super::cookies::{Cookies, Entry};
use super::dumper::Dumper;
use super::moment::Moment;
use super::options::Selection;

/// The clocks are read once for so many sockets, about as many as one answer holds.
pub const SOCKETS_PER_MOMENT: u64 = 64;

/// Where rows are from: columns that every table of a recording has.
#[derive(Clone, Debug, Default)]
pub struct Place {
    pub host: String,
    pub boot_id: Option<String>,
    pub host_id: Option<String>,
    pub netns: String,
}

impl Place {
    /// Of the namespace that the calling thread is in.
    fn here(selection: &Selection) -> Place {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let netns = match &selection.netns {
            Some(netns) => netns.name.clone(),
            None => std::fs::read_link("/proc/thread-self/ns/net")
                .map(|link| link.to_string_lossy().into_owned())
                .unwrap_or_default(),
        };
        let id = Identity::here();
        let stored = |id: Option<String>| id.map(|id| selection.anonymiser.id(&id));
        Place {
            host: host.trim_end().to_owned(),
            boot_id: stored(id.boot_id),
            host_id: stored(id.host_id),
            netns,
        }
    }
}

/// Makes rows of what the kernel tells of the namespace in which it was made.
pub struct Rows {
    selection: Selection,
    place: Place,
    dumper: Dumper,
    cookies: Cookies,
    processes: Processes,
    /// Inodes whose process is looked for, with their cookies.
    waiting: HashMap<u32, u64>,
    pub marks_told: bool,
    /// Will later dumps or events ask for what this one told?
    remember: bool,
}

impl Rows {
    /// # Errors
    /// sock_diag is not available.
    pub fn new(selection: Selection, remember: bool) -> Result<Rows, KernelError> {
        let dumper = Dumper::new(&selection, Extensions::ALL_WITH_CLASSES)?;
        Ok(Rows {
            place: Place::here(&selection),
            selection,
            dumper,
            cookies: Cookies::default(),
            processes: Processes::default(),
            waiting: HashMap::new(),
            marks_told: false,
            remember,
        })
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    /// A row for each socket that is wanted. `full` empties the table when it has
    /// no more room, and may refuse to go on.
    ///
    /// # Errors
    /// The kernel refuses the dump, or `full` does.
    pub fn dump(
        &mut self,
        sample: u64,
        table: &mut SocketRows,
        mut full: impl FnMut(&mut SocketRows) -> Result<(), KernelError>,
    ) -> Result<(Dump, u64), KernelError> {
        let Rows {
            selection,
            place,
            dumper,
            cookies,
            waiting,
            processes,
            marks_told,
            remember,
        } = self;
        let (mut seen, mut rows) = (0u64, 0u64);
        let mut failed = None;
        let mut now = Moment::default();
        cookies.begin();
        let dump = dumper.dump(|diag| {
            if failed.is_some() {
                return;
            }
            if seen.is_multiple_of(SOCKETS_PER_MOMENT) {
                now = Moment::now();
            }
            seen += 1;
            *marks_told |= diag.mark.is_some();
            let entry = match *remember {
                true => cookies.see(&diag),
                false => cookies.see_once(&diag),
            };
            if selection.processes && !entry.asked && entry.inode != 0 {
                entry.asked = true;
                processes.want(entry.inode);
                waiting.insert(entry.inode, diag.cookie);
            }
            if !selection.takes(diag.congestion, diag.info.as_ref()) {
                return;
            }
            if table.is_full()
                && let Err(error) = full(table)
            {
                failed = Some(error);
                return;
            }
            let row = table.add_row();
            rows += 1;
            fill_place(table, row, now, place);
            table.sample.set(row, sample as i64);
            table.r#final.set(row, false);
            table.fill(row, &diag, &selection.anonymiser);
            table.fill_dumped(row, &diag);
            fill_interface(table, row, diag.interface);
            fill_owner(table, row, entry);
        })?;
        cookies.end(seen);
        match failed {
            Some(error) => Err(error),
            None => Ok((dump, rows)),
        }
    }

    /// A row for a socket that was destroyed; the table has room. False: it is not
    /// wanted; `None`: whether it is cannot be told.
    pub fn destroyed(&mut self, now: Moment, body: &[u8], table: &mut SocketRows) -> Option<bool> {
        let Some(mut diag) = Diag::decode(body) else {
            return Some(false);
        };
        let entry = self.cookies.get(diag.cookie);
        let algorithm = entry.and_then(|entry| self.cookies.algorithm(entry));
        diag.mark = entry.and_then(|entry| entry.mark);
        diag.cgroup_id = entry.and_then(|entry| entry.cgroup_id);
        if !(self.selection).takes_destroyed(entry.is_some(), algorithm, &diag)? {
            self.cookies.forget(diag.cookie);
            return Some(false);
        }
        let row = table.add_row();
        fill_place(table, row, now, &self.place);
        table.r#final.set(row, true);
        table.fill(row, &diag, &self.selection.anonymiser);
        if let Some(name) = algorithm {
            table.algorithm.set(row, name);
        }
        if let Some(entry) = entry {
            fill_owner(table, row, entry);
        }
        self.cookies.forget(diag.cookie);
        Some(true)
    }

    /// Looks for processes of sockets that are new, for at most about `budget`.
    pub fn find_processes(&mut self, budget: Duration) {
        let (cookies, waiting) = (&mut self.cookies, &mut self.waiting);
        self.processes.walk(budget, |inode, process| {
            if let Some(cookie) = waiting.remove(&inode) {
                cookies.set_process(cookie, inode, Arc::clone(process));
            }
        });
        let processes = &self.processes;
        waiting.retain(|inode, _| processes.is_wanted(*inode));
    }

    /// Processes whose sockets cannot be told.
    pub fn processes_denied(&self) -> u64 {
        self.processes.denied()
    }
}

fn fill_place(table: &mut Sockets, row: usize, now: Moment, place: &Place) {
    table.t_unix_ns.set(row, now.unix_ns);
    table.t_mono_ns.set(row, now.mono_ns);
    table.host.set(row, &place.host);
    if let Some(id) = &place.boot_id {
        table.boot_id.set(row, id);
    }
    table.netns.set(row, &place.netns);
}

fn fill_interface(table: &mut Sockets, row: usize, index: u32) {
    // Few sockets are bound to a device; then it is asked for each time.
    if index == 0 {
        return;
    }
    match nix::net::if_::if_indextoname(index) {
        Ok(name) => table.interface.set(row, &name.to_string_lossy()),
        Err(_) => table.interface.set(row, &index.to_string()),
    }
}

fn fill_owner(table: &mut Sockets, row: usize, entry: &Entry<()>) {
    if !entry.is_told() {
        return;
    }
    table.uid.set(row, entry.uid.into());
    table.inode.set(row, entry.inode.into());
    if let Some(mark) = entry.mark {
        table.mark.set(row, mark.into());
    }
    if let Some(id) = entry.cgroup_id {
        table.cgroup_id.set(row, id);
    }
    if let Some(process) = &entry.process {
        table.process.set(row, &process.comm);
        table.pid.set(row, process.pid.into());
    }
}

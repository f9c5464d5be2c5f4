//! Gives connections of a cgroup the algorithms of an experiment's arms.
//!
//! The program is `bpf/assign.bpf.c`. It, its link and the algorithms that the
//! kernel lacked are held by descriptors alone: the kernel takes them out with
//! the process, however that ends. Connections that were assigned keep their
//! algorithm until they close.

mod place;
mod plan;
mod record;
mod request;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use knee_clock::monotonic_ns;
use knee_collect::KernelError;
use knee_collect::identity::Identity;
use knee_loader::{ForRun, NOT_BUILT, hold, log, lost, programs, requirements};
use knee_store::RecordBatch;
use knee_tables::{Assignments, Batch, ROWS};
use libbpf_rs::{Map, MapCore, MapFlags, Object, ObjectBuilder, RingBuffer, RingBufferBuilder};
use nix::time::{ClockId, clock_gettime};
use record::Record;
use request::Resolved;
pub use request::{Allocation, Arm, Link, Request, Unit};

/// Sections of variables that are maps.
const HELD: &str = ".bss.held";

/// The rows since the last call, and the counts since the beginning.
#[derive(Debug)]
pub struct Taken {
    pub rows: RecordBatch,
    /// Connections of each arm so far.
    pub assigned: Vec<u64>,
    /// Of those, the ones whose algorithm the kernel refused.
    pub refused: u64,
    /// Connections left as they were, because they could not have been recorded.
    pub lost: u64,
}

/// Assigns connections while it lives.
pub struct Assigner {
    /// Reads records into `gathered`.
    ring: RingBuffer<'static>,
    gathered: Arc<Mutex<Vec<Record>>>,
    object: Object,
    /// `None`: it has ended.
    link: Option<libbpf_rs::Link>,
    held: ForRun,
    request: Request,
    resolved: Resolved,
    /// Present and past allocations, by their number in the plan.
    phases: Vec<Allocation>,
    host: String,
    identity: Identity,
    table: Assignments,
    /// Of a unit.
    text: String,
    assigned: Vec<u64>,
    refused: u64,
}

impl Assigner {
    /// Loads what the kernel lacks, and begins to assign the connections of the
    /// cgroup that is mounted there.
    ///
    /// # Errors
    /// Why the kernel or the caller's rights do not allow it, or an option is invalid.
    pub fn new(
        request: Request,
        allocation: Allocation,
        cgroup: &Path,
    ) -> Result<Assigner, KernelError> {
        let cannot = |(why, hint)| KernelError::Assign { why, hint };
        if programs::ASSIGN.is_empty() {
            return Err(cannot((NOT_BUILT.into(), "Build it again.".into())));
        }
        requirements::check(requirements::STRUCT_OPS).map_err(cannot)?;
        let identity = Identity::here();
        let own = match request.unit {
            Unit::Prefix => [0; 2],
            Unit::Connection => place::words_of(identity.boot_id.as_deref().unwrap_or_default()),
            Unit::Host => match &identity.host_id {
                Some(id) => place::words_of(id),
                None => {
                    return Err(cannot((
                        "this host has no id, by which hosts are drawn".into(),
                        "systemd-machine-id-setup(1) makes /etc/machine-id.".into(),
                    )));
                }
            },
        };
        let algorithms: BTreeSet<String> = request
            .arms
            .iter()
            .map(|arm| arm.algorithm.clone())
            .collect();
        let held = hold(&algorithms, request.ours)?;
        let names: Vec<String> = (request.arms.iter())
            .map(|arm| held.names[&arm.algorithm].clone())
            .collect();
        let mut resolved = request.resolve(&names, own)?;
        resolved.allocate(&allocation);
        let folder = File::open(cgroup).map_err(KernelError::system(format!(
            "open the cgroup {}",
            cgroup.display()
        )))?;
        let (loaded, said) = log::of(|| load(&resolved, &folder));
        let (object, link) = loaded.map_err(|error| {
            use libbpf_rs::ErrorKind::PermissionDenied;
            cannot(match error.kind() {
                PermissionDenied if !said.contains("BEGIN PROG LOAD LOG") => (
                    format!("the cgroup {} does not take it ({error})", cgroup.display()),
                    "Another program of sockops may be there that stands others neither beside nor above it: `bpftool cgroup tree` shows it.".into(),
                ),
                _ => log::explained("assign", &error, &said),
            })
        })?;
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let gathered = Arc::new(Mutex::new(Vec::with_capacity(ROWS)));
        let ring = read_into(&object, Arc::clone(&gathered));
        let ring = ring.map_err(|error| {
            KernelError::system("map what was assigned")(io::Error::other(error))
        })?;
        Ok(Assigner {
            ring,
            gathered,
            text: String::new(),
            object,
            link: Some(link),
            held,
            assigned: vec![0; request.arms.len()],
            request,
            resolved,
            phases: vec![allocation],
            host: host.trim().to_owned(),
            identity,
            table: Assignments::default(),
            refused: 0,
        })
    }

    /// Returns the kernel's name for each algorithm.
    pub fn algorithms(&self) -> &BTreeMap<String, String> {
        &self.held.names
    }

    /// Changes the allocation for connections that open from now on; others keep their algorithm.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn allocate(&mut self, allocation: Allocation) -> Result<(), KernelError> {
        self.resolved.allocate(&allocation);
        let phase = u32::try_from(self.phases.len()).expect("nobody waits for so many");
        self.resolved.plan.phase = phase;
        // The plan that does not hold is changed, and then it holds.
        put(&self.object, &self.resolved, phase % 2).map_err(|error| {
            KernelError::system("change the allocation")(io::Error::other(error))
        })?;
        self.phases.push(allocation);
        Ok(())
    }

    /// Returns the assignments since the last call. If the table is full, more are waiting.
    ///
    /// # Errors
    /// What the program wrote cannot be read.
    pub fn take(&mut self) -> Result<Taken, KernelError> {
        let unreadable = |error: libbpf_rs::Error| {
            KernelError::system("cannot read what was assigned")(io::Error::other(error))
        };
        let unix_minus_mono = unix_ns() - monotonic_ns().cast_signed();
        let taken = self.ring.consume_raw_n(ROWS);
        if taken < 0 {
            let error = io::Error::from_raw_os_error(-taken);
            return Err(KernelError::system("cannot read what was assigned")(error));
        }
        let mut gathered = std::mem::take(&mut *lock(&self.gathered));
        self.add(&gathered, unix_minus_mono);
        gathered.clear();
        *lock(&self.gathered) = gathered;
        Ok(Taken {
            rows: knee_store::take(&mut self.table),
            assigned: self.assigned.clone(),
            refused: self.refused,
            lost: lost(&self.object).map_err(unreadable)?,
        })
    }

    /// Stops assigning. Assignments already made can still be taken.
    pub fn end(&mut self) {
        self.link = None;
    }

    /// Fills the empty table with a row per record. A column that has one value for
    /// all of them is filled at once.
    fn add(&mut self, records: &[Record], unix_minus_mono: i64) {
        let Assigner { table, request, .. } = self;
        let rows = records.len();
        table.host.fill(rows, &self.host);
        if let Some(id) = &self.identity.host_id {
            table.host_id.fill(rows, id);
        }
        if let Some(id) = &self.identity.boot_id {
            table.boot_id.fill(rows, id);
        }
        table.design.fill(rows, &request.design);
        table.seed.fill(rows, request.seed);
        let keys: Vec<(i32, i32)> = (request.arms.iter())
            .map(|arm| {
                let algorithm = &self.held.names[&arm.algorithm];
                (table.arm.key(&arm.name), table.algorithm.key(algorithm))
            })
            .collect();
        for record in records {
            let (arm, link) = (
                record.arm as usize,
                self.resolved.links[record.link as usize],
            );
            let held = &self.phases[record.phase as usize];
            let row = table.add_row();
            let (arm_key, algorithm_key) = keys[arm];
            table.arm.set_key(row, arm_key);
            table.allocation_pct.set(row, held.shares_pct[link][arm]);
            if let Some(period) = held.period {
                table.period.set(row, period);
            }
            if let Some(name) = &request.links[link].name {
                table.link.set(row, name);
            }
            let t_unix_ns = record.t_ns.cast_signed() + unix_minus_mono;
            table.t_unix_ns.set(row, t_unix_ns);
            table.cookie.set(row, record.cookie);
            self.text.clear();
            match request.unit {
                Unit::Prefix => {
                    record.write_prefix(request.v4_bits, request.v6_bits, &mut self.text);
                }
                Unit::Connection => {
                    write!(self.text, "{}", record.cookie).expect("a string takes all");
                }
                Unit::Host => self.text.push_str("host"),
            }
            table.unit.set(row, &self.text);
            if record.error == 0 {
                table.algorithm.set_key(row, algorithm_key);
            } else {
                table.errno.set(row, -record.error);
                self.refused += 1;
            }
            self.assigned[arm] += 1;
        }
    }
}

/// Returns the number of the arm that each client address gets, without touching
/// the kernel. Units are prefixes, and there is one link.
///
/// # Errors
/// A namespace or device is not there, or there are too many of something.
pub fn arms_of(
    request: &Request,
    allocation: &Allocation,
    remotes: &[IpAddr],
) -> Result<Vec<Option<u32>>, KernelError> {
    let names: Vec<String> = (request.arms.iter())
        .map(|arm| arm.algorithm.clone())
        .collect();
    let mut resolved = request.resolve(&names, [0; 2])?;
    resolved.allocate(allocation);
    let arm = |remote: &IpAddr| {
        // One that the filters let through.
        let connection = plan::Connection {
            remote: plan::words(*remote),
            netns: resolved.plan.netns,
            local_port: request.ports.first().map_or(0, |&(low, _)| low),
            ..plan::Connection::default()
        };
        (resolved.plan.choose(&connection)).map(|choice| choice.arm)
    };
    Ok(remotes.iter().map(arm).collect())
}

fn load(resolved: &Resolved, cgroup: &File) -> libbpf_rs::Result<(Object, libbpf_rs::Link)> {
    let mut open = ObjectBuilder::default();
    let object = open.name("assign")?.open_memory(programs::ASSIGN)?.load()?;
    put(&object, resolved, 0)?;
    let program = object
        .progs_mut()
        .next()
        .ok_or_else(|| libbpf_rs::Error::from_raw_os_error(libc::ENOENT))?;
    let link = program.attach_cgroup(cgroup.as_raw_fd())?;
    Ok((object, link))
}

fn read_into(
    object: &Object,
    to: Arc<Mutex<Vec<Record>>>,
) -> libbpf_rs::Result<RingBuffer<'static>> {
    let records = map(object, "records");
    let mut builder = RingBufferBuilder::new();
    builder.add(&records, move |bytes| {
        let record = Record::from_bytes(bytes);
        lock(&to).push(record.expect("a record of bpf/assign.bpf.c"));
        0
    })?;
    builder.build()
}

fn lock(gathered: &Mutex<Vec<Record>>) -> MutexGuard<'_, Vec<Record>> {
    gathered.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the plan to one of the two places and makes it the current one.
fn put(object: &Object, resolved: &Resolved, place: u32) -> libbpf_rs::Result<()> {
    let plan = resolved.plan.as_bytes();
    map(object, "plans").update(&place.to_ne_bytes(), plan, MapFlags::ANY)?;
    map(object, HELD).update(&0u32.to_ne_bytes(), &place.to_ne_bytes(), MapFlags::ANY)
}

fn map<'a>(object: &'a Object, name: &str) -> Map<'a> {
    object
        .maps()
        .find(|map| map.name() == name)
        .unwrap_or_else(|| panic!("the object has a map {name}"))
}

fn unix_ns() -> i64 {
    let now = clock_gettime(ClockId::CLOCK_REALTIME).expect("the clock is always there");
    now.tv_sec() * 1_000_000_000 + now.tv_nsec()
}

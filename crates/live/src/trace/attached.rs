//! An observing object in the kernel.

use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::{fs, io};

use knee_collect::KernelError;
use knee_loader::{NOT_BUILT, arguments, log, requirements};
use libbpf_rs::btf::types::Typedef;
use libbpf_rs::btf::{Btf, ReferencesType};
use libbpf_rs::{Link, Map, MapCore, Object, ObjectBuilder, ProgramType};

use super::cost::{Cost, Meter};

/// The section of the filter.
const FILTER: &str = ".rodata.filter";

/// Programs of which the one is loaded whose tracepoint tells as many arguments as the running kernel's.
const BY_ARGUMENTS: [(&str, usize); 2] = [("trace_retransmit", 2), ("trace_retransmit_err", 3)];

/// What an object is, and what it needs.
pub struct Wanted<'a> {
    /// For errors and for the kernel's lists.
    pub name: &'a str,
    pub bytes: &'a [u8],
    /// The filter, as the program's `struct trace_filter` has it.
    pub filter: &'a [u8],
    /// Tracepoints without which it makes no sense.
    pub tracepoints: &'a [&'a str],
    /// Tracepoints whose programs are not loaded.
    pub left_out: &'a [&'a str],
    /// The first Linux that has all it needs, for errors.
    pub since: &'a str,
}

/// Programs that look on while this lives.
pub struct Attached {
    object: Object,
    // Links before the meter: nothing runs unmeasured.
    links: Vec<Link>,
    meter: Meter,
}

/// Whether this process may load programs that look on.
pub fn check_permitted() -> Result<(), KernelError> {
    requirements::check(requirements::TRACING)
        .map_err(|(why, hint)| KernelError::Trace { why, hint })
}

impl Attached {
    /// Loads the object and attaches its programs.
    pub fn attach(wanted: &Wanted<'_>) -> Result<Attached, KernelError> {
        let cannot = |(why, hint)| KernelError::Trace { why, hint };
        if wanted.bytes.is_empty() {
            return Err(cannot((NOT_BUILT.into(), "Build it again.".into())));
        }
        check_permitted()?;
        let known = tracepoints().map_err(cannot)?;
        if let Some(lacking) = wanted.tracepoints.iter().find(|one| known(one).is_none()) {
            let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
            return Err(cannot((
                format!(
                    "this kernel ({}) has no tracepoint {lacking}",
                    release.trim()
                ),
                format!("It needs Linux {} or later.", wanted.since),
            )));
        }
        let meter = Meter::start();
        let (loaded, said) = log::of(|| load(wanted, &known));
        let (object, links) =
            loaded.map_err(|error| cannot(log::explained(wanted.name, &error, &said)))?;
        Ok(Attached {
            object,
            links,
            meter,
        })
    }

    /// One of its maps.
    pub fn map(&self, name: &str) -> Map<'_> {
        self.object
            .maps()
            .find(|map| map.name() == name)
            .unwrap_or_else(|| panic!("the object has a map {name}"))
    }

    /// What found no room so far.
    pub fn lost(&self) -> Result<u64, KernelError> {
        knee_loader::lost(&self.object).map_err(unreadable)
    }

    /// Runs its program that is for perf events at this one too.
    pub fn run_at(&mut self, event: OwnedFd) -> Result<(), KernelError> {
        let mut programs = self.object.progs_mut();
        let program = programs
            .find(|program| program.prog_type() == ProgramType::PerfEvent)
            .expect("the object has a program for perf events");
        let link = program
            .attach_perf_event(event.as_raw_fd())
            .map_err(|error| {
                KernelError::system("run a program at a perf event")(io::Error::other(error))
            })?;
        // The link closes it.
        let _ = event.into_raw_fd();
        self.links.push(link);
        Ok(())
    }

    /// Takes the programs off their tracepoints; what they wrote can still be read.
    pub fn detach(&mut self) {
        self.links.clear();
    }

    /// What its programs cost so far.
    pub fn cost(&self) -> Cost {
        self.meter.read(self.object.progs())
    }
}

/// What the programs wrote cannot be read.
pub fn unreadable(error: libbpf_rs::Error) -> KernelError {
    KernelError::system("cannot read what the trace's programs wrote")(io::Error::other(error))
}

/// How many arguments the running kernel's tracepoint of that name tells; `None`: it has none.
fn tracepoints() -> Result<impl Fn(&str) -> Option<usize>, (String, String)> {
    let btf = Btf::from_vmlinux().map_err(|error| {
        (
            format!("the kernel's BTF cannot be read ({error})"),
            "It needs a kernel built with CONFIG_DEBUG_INFO_BTF.".to_owned(),
        )
    })?;
    Ok(move |name: &str| {
        let typedef = btf.type_by_name::<Typedef<'_>>(&format!("btf_trace_{name}"))?;
        // The first is the tracepoint's own.
        Some(arguments(&btf, typedef.referenced_type().type_id())? - 1)
    })
}

fn load(
    wanted: &Wanted<'_>,
    known: &impl Fn(&str) -> Option<usize>,
) -> libbpf_rs::Result<(Object, Vec<Link>)> {
    let mut open = ObjectBuilder::default()
        .name(wanted.name)?
        .open_memory(wanted.bytes)?;
    for mut map in open.maps_mut() {
        if map.name() == FILTER {
            map.set_initial_value(wanted.filter)?;
        }
    }
    for mut program in open.progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        let Some((_, tracepoint)) = section.rsplit_once('/') else {
            continue;
        };
        // Those that came with later kernels are done without.
        let told = known(tracepoint);
        let fits =
            |&(name, arguments): &(&str, usize)| program.name() != name || told == Some(arguments);
        let is_known = told.is_some() && BY_ARGUMENTS.iter().all(fits);
        if !is_known || wanted.left_out.contains(&tracepoint) {
            program.set_autoload(false);
        }
    }
    let object = open.load()?;
    let links = object
        .progs_mut()
        .filter(|program| program.autoload() && program.prog_type() != ProgramType::PerfEvent)
        .map(|program| program.attach())
        .collect::<libbpf_rs::Result<Vec<Link>>>()?;
    Ok((object, links))
}

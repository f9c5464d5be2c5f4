//! Call stacks of the processors, at each tick of the software clock.

use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::fs;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use blazesym::symbolize::source::{Kernel, Process, Source};
use blazesym::symbolize::{Input, Symbolizer};
use blazesym::{MaybeDefault, Pid};
use knee_collect::KernelError;
use knee_collect::cpu::processors;
use knee_collect::stacks::{UNKNOWN, class_of, fold};
use knee_loader::programs;
use libbpf_rs::{MapCore, MapFlags, libbpf_sys};

use crate::trace::Cost;
use crate::trace::attached::{Attached, Wanted, unreadable};

/// Bytes of `struct trace_sample`.
const PROGRAM_AT: usize = 12;

/// Samples of the table `stacks`, and those that it does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sampled {
    /// Folded stack, class, samples; the most samples first.
    pub stacks: Vec<(String, &'static str, u64)>,
    /// Samples of idle processors.
    pub idle: u64,
    /// Samples for which there was no room.
    pub lost: u64,
}

/// A stack as the program found it: process, places of its traces, name.
type Key = Vec<u8>;

/// Samples under way.
pub struct Stacks {
    attached: Attached,
    hz: u64,
}

impl Stacks {
    /// Loads what samples every processor `hz` times a second, of all processes or of one.
    pub fn attach(hz: u64, pid: Option<u32>) -> Result<Stacks, KernelError> {
        let pids = fs::metadata("/proc/self/ns/pid")
            .map_err(KernelError::system("look at /proc/self/ns/pid"))?;
        let mut filter = (pids.ino() as u32).to_ne_bytes().to_vec();
        filter.extend(pid.unwrap_or(0).to_ne_bytes());
        let attached = Attached::attach(&Wanted {
            name: "trace_stacks",
            bytes: programs::TRACE_STACKS,
            filter: &filter,
            tracepoints: &[],
            left_out: &[],
            since: "5.8",
        })?;
        Ok(Stacks { attached, hz })
    }

    /// The interval begins: so do the samples, since earlier ones would take places of later ones.
    pub fn begin(&mut self) -> Result<(), KernelError> {
        for processor in processors() {
            let event =
                open_clock(processor.number, self.hz).map_err(|error| KernelError::Trace {
                    why: format!("instrument stacks: perf_event_open is refused ({error})"),
                    hint: "Leave the instrument out, or let CAP_PERFMON through.".into(),
                })?;
            self.attached.run_at(event)?;
        }
        Ok(())
    }

    /// What was found since.
    pub fn finish(mut self) -> Result<Sampled, KernelError> {
        self.attached.detach();
        let found = self.samples()?;
        self.folded(&found, self.attached.lost()?)
    }

    pub fn cost(&self) -> Cost {
        self.attached.cost()
    }

    fn samples(&self) -> Result<HashMap<Key, u64>, KernelError> {
        let map = self.attached.map("samples");
        let mut found = HashMap::new();
        for key in map.keys() {
            let value = map.lookup(&key, MapFlags::ANY).map_err(unreadable)?;
            let count = value.and_then(|value| Some(u64::from_ne_bytes(value.try_into().ok()?)));
            found.insert(key, count.unwrap_or(0));
        }
        Ok(found)
    }

    /// The addresses of a trace in that map, the innermost first.
    fn trace(&self, map: &str, place: i32) -> Result<Vec<u64>, KernelError> {
        if place < 0 {
            return Ok(Vec::new());
        }
        let value = (self.attached.map(map))
            .lookup(&place.to_ne_bytes(), MapFlags::ANY)
            .map_err(unreadable)?
            .unwrap_or_default();
        let words = value.as_chunks().0.iter();
        let addresses = words.map(|word| u64::from_ne_bytes(*word));
        Ok(addresses.take_while(|address| *address != 0).collect())
    }

    fn folded(&self, found: &HashMap<Key, u64>, lost: u64) -> Result<Sampled, KernelError> {
        let mut names = Names::new();
        let mut stacks: BTreeMap<(String, &'static str), u64> = BTreeMap::new();
        let mut idle = 0;
        for (key, count) in found {
            let word = |at: usize| -> [u8; 4] { key[at..at + 4].try_into().expect("four bytes") };
            let pid = u32::from_ne_bytes(word(0));
            let kernel =
                names.of_kernel(&self.trace("kernel_traces", i32::from_ne_bytes(word(4)))?);
            let user = names.of_process(
                pid,
                &self.trace("user_traces", i32::from_ne_bytes(word(8)))?,
            );
            match class_of(kernel.iter().map(String::as_str)) {
                None => idle += count,
                Some(class) => {
                    let program = key[PROGRAM_AT..].split(|byte| *byte == 0).next();
                    let program = String::from_utf8_lossy(program.unwrap_or_default());
                    let stack = fold(&program, &user, &kernel);
                    *stacks.entry((stack, class)).or_default() += count;
                }
            }
        }
        let mut stacks: Vec<_> = stacks
            .into_iter()
            .map(|((stack, class), count)| (stack, class, count))
            .collect();
        stacks.sort_by_key(|(_, _, count)| std::cmp::Reverse(*count));
        Ok(Sampled { stacks, idle, lost })
    }
}

/// Names of functions by their addresses.
struct Names {
    symbolizer: Symbolizer,
    kernel: HashMap<u64, String>,
    processes: HashMap<(u32, u64), String>,
}

impl Names {
    fn new() -> Names {
        Names {
            symbolizer: Symbolizer::builder()
                .enable_auto_reload(false)
                .enable_code_info(false)
                .enable_inlined_fns(false)
                .build(),
            kernel: HashMap::new(),
            processes: HashMap::new(),
        }
    }

    fn of_kernel(&mut self, addresses: &[u64]) -> Vec<String> {
        let source = Source::Kernel(Kernel {
            vmlinux: MaybeDefault::None,
            debug_syms: false,
            ..Kernel::default()
        });
        let named = |addresses: &[u64]| named(&self.symbolizer, &source, addresses);
        lookup(&mut self.kernel, addresses, |address| *address, named)
    }

    /// Functions of a process, which may have ended.
    fn of_process(&mut self, pid: u32, addresses: &[u64]) -> Vec<String> {
        let source = Source::Process(Process {
            debug_syms: false,
            // A file in /tmp that anybody may have put there.
            perf_map: false,
            ..Process::new(Pid::from(pid))
        });
        let named = |addresses: &[u64]| match pid {
            0 => vec![UNKNOWN.to_owned(); addresses.len()],
            _ => named(&self.symbolizer, &source, addresses),
        };
        lookup(
            &mut self.processes,
            addresses,
            |address| (pid, *address),
            named,
        )
    }
}

/// Names of addresses, those that are not known yet by `named`.
fn lookup<K: std::hash::Hash + Eq>(
    known: &mut HashMap<K, String>,
    addresses: &[u64],
    key: impl Fn(&u64) -> K,
    named: impl Fn(&[u64]) -> Vec<String>,
) -> Vec<String> {
    let is_new = |address: &&u64| !known.contains_key(&key(address));
    let new: Vec<u64> = addresses.iter().filter(is_new).copied().collect();
    if !new.is_empty() {
        let keys = new.iter().map(&key);
        known.extend(keys.zip(named(&new)));
    }
    let names = addresses.iter().map(|address| known[&key(address)].clone());
    names.collect()
}

fn named(symbolizer: &Symbolizer, source: &Source<'_>, addresses: &[u64]) -> Vec<String> {
    let found = symbolizer.symbolize(source, Input::AbsAddr(addresses));
    let unknown = || UNKNOWN.to_owned();
    let Ok(found) = found else {
        return addresses.iter().map(|_| unknown()).collect();
    };
    found
        .iter()
        .map(|one| {
            one.as_sym()
                .map_or_else(unknown, |symbol| symbol.name.clone().into_owned())
        })
        .collect()
}

/// The software clock of a processor, which ticks on every machine, without hardware counters.
fn open_clock(processor: u32, hz: u64) -> io::Result<OwnedFd> {
    // SAFETY: every field is an integer, and 0 is a valid one.
    let mut event: libbpf_sys::perf_event_attr = unsafe { mem::zeroed() };
    event.type_ = libbpf_sys::PERF_TYPE_SOFTWARE;
    event.size = size_of_val(&event) as u32;
    event.config = u64::from(libbpf_sys::PERF_COUNT_SW_CPU_CLOCK);
    event.set_freq(1);
    event.__bindgen_anon_1.sample_freq = hz;
    let everybody = -1;
    let no_group = -1;
    // SAFETY: the kernel reads `event`, which lives, and returns a descriptor or -1.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            (&raw const event).cast::<c_void>(),
            everybody,
            processor as i32,
            no_group,
            u64::from(libbpf_sys::PERF_FLAG_FD_CLOEXEC),
        )
    };
    match i32::try_from(fd) {
        // SAFETY: the descriptor is new and nobody else's.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd.as_raw_fd()) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_this_process_and_of_one_that_is_not_there_are_told_apart() {
        let mut names = Names::new();
        let address = open_clock as *const () as u64;
        let found = names.of_process(std::process::id(), &[address]);
        assert!(found[0].contains("open_clock"), "{found:?}");
        assert_eq!(names.of_process(0, &[address]), [UNKNOWN]);
        // The greatest number that a process may have is 2^22.
        assert_eq!(names.of_process(1 << 30, &[address]), [UNKNOWN]);
    }
}

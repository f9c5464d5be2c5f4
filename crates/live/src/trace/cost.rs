//! What the programs cost, by the kernel's own account of their run time.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::{Program, libbpf_sys};

/// What one program cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramCost {
    /// What it looks on at.
    pub tracepoint: String,
    /// How often it ran, also for what the filter leaves out.
    pub runs: u64,
    pub run_time_ns: u64,
    /// How often it could not run, because it was interrupted on the same
    /// processor by what would have run it again.
    pub missed: u64,
}

/// What all of them cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    pub programs: Vec<ProgramCost>,
    /// Why run times are not known.
    pub not_measured: Option<String>,
}

/// The kernel measures while this lives. It measures every program of the
/// machine then, at two readings of the clock each.
pub struct Meter(Result<OwnedFd, String>);

impl Meter {
    pub fn start() -> Meter {
        // SAFETY: takes a number and returns a descriptor or a negative error.
        let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        if fd < 0 {
            let error = io::Error::from_raw_os_error(-fd);
            return Meter(Err(format!(
                "the kernel refuses to measure run times ({error}); that needs CAP_SYS_ADMIN and Linux 5.8"
            )));
        }
        // SAFETY: the descriptor is new and nobody else's.
        Meter(Ok(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub fn read<'a>(&self, programs: impl Iterator<Item = Program<'a>>) -> Cost {
        Cost {
            programs: programs
                .filter(|program| program.autoload())
                .map(|program| of(&program))
                .collect(),
            not_measured: self.0.as_ref().err().cloned(),
        }
    }
}

fn of(program: &Program<'_>) -> ProgramCost {
    let section = program.section().to_string_lossy();
    // SAFETY: integers and pointers, of which 0 is a value.
    let mut info: libbpf_sys::bpf_prog_info = unsafe { mem::zeroed() };
    let mut length = u32::try_from(size_of_val(&info)).expect("it has a few hundred bytes");
    // SAFETY: the descriptor is open, and the kernel writes `length` bytes at
    // most. An older kernel writes fewer, and the rest stays 0.
    unsafe {
        libbpf_sys::bpf_prog_get_info_by_fd(
            program.as_fd().as_raw_fd(),
            &raw mut info,
            &raw mut length,
        )
    };
    ProgramCost {
        tracepoint: section.rsplit('/').next().unwrap_or_default().to_owned(),
        runs: info.run_cnt,
        run_time_ns: info.run_time_ns,
        missed: info.recursion_misses,
    }
}

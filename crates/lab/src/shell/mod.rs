//! `knee shell`: any command behind an emulated path.
//!
//! ```text
//! knee ─┬─ porter                  in the host's network
//!       └─ waits ── first process of the lab ─┬─ link
//!                                             ├─ relay    far end's network
//!                                             └─ command  its own network
//! ```
//!
//! The command has knee's streams, terminal and process group; the lab's own
//! processes have groups of their own, so that keys typed reach only the command.

mod command;
mod names;
mod porter;
mod relay;
mod routes;
mod supervise;

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixDatagram;

use knee_collect::KernelError;
use knee_scenario::Cell;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Gid, Pid, Uid, fork, getpid, getppid, pipe2, setpgid};
use serde::{Deserialize, Serialize};

/// Signals that are the command's when they are sent to knee.
const FORWARDED: [Signal; 6] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// What is to be run.
pub struct Request {
    /// The command and its arguments; at least the command.
    pub command: Vec<OsString>,
    /// The kernel's name of each algorithm that the cell names.
    pub algorithms: HashMap<String, String>,
}

/// How it ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The command's, or 128 + the number of the signal that ended it; 127 when
    /// there is no such command, 126 when it cannot be run.
    pub exit_code: i32,
    /// What the link carried: towards the command, then from it.
    pub links: [Carried; 2],
    /// What makes the path another than was asked for, and why a command was not run.
    pub warnings: Vec<String>,
}

/// What one direction of the link did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Carried {
    pub forwarded_pkts: u64,
    pub forwarded_bytes: u64,
    /// `None`: not told for this direction.
    pub lost_pkts: Option<u64>,
    pub dropped_pkts: Option<u64>,
    /// While the bottleneck was never idle; `None`: it never was busy for long.
    pub achieved_rate_bits_per_sec: Option<f64>,
    /// How much later than asked packets left; `None`: none did.
    pub added_delay_us_p99: Option<f64>,
}

/// Why there is no lab.
#[derive(Clone, Debug, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    pub message: String,
    /// Would another kernel or other settings of the system do?
    pub unsupported: bool,
}

impl From<KernelError> for Refused {
    fn from(error: KernelError) -> Self {
        Self {
            message: error.to_string(),
            unsupported: error.is_unsupported(),
        }
    }
}

/// Who asked: the lab's user namespace knows them by another name.
#[derive(Clone, Copy)]
struct User {
    uid: Uid,
    gid: Gid,
}

/// The lab's ends of the lines to this process.
struct Lines {
    /// A byte is the number of a signal for the command.
    signals: UnixDatagram,
    report: OwnedFd,
}

/// Runs the command behind the path of `cell` and waits for it. The scenario's
/// workload, duration and samples do not matter.
///
/// # Errors
/// There can be no lab, or a process of it ended before the command did.
pub fn run(cell: &Cell, request: &Request) -> Result<Outcome, Refused> {
    let user = User {
        uid: Uid::effective(),
        gid: Gid::effective(),
    };
    let (signals, lab_signals) = UnixDatagram::pair().map_err(KernelError::system(
        "make the line for the command's signals",
    ))?;
    let (report, lab_report) =
        pipe2(OFlag::O_CLOEXEC).map_err(KernelError::system("make a pipe for the lab's report"))?;
    let forwarded = SigSet::from_iter(FORWARDED);
    let before = forwarded
        .thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK)
        .map_err(KernelError::system("block signals"))?;
    let parent = getpid();
    // SAFETY: the child runs Rust code alone and leaves by _exit.
    let outcome = match unsafe { fork() } {
        Ok(ForkResult::Child) => {
            drop((signals, report));
            let lines = Lines {
                signals: lab_signals,
                report: lab_report,
            };
            be_the_lab(parent, user, cell, request, lines)
        }
        Ok(ForkResult::Parent { child }) => {
            drop((lab_signals, lab_report));
            attend(child, &forwarded, &signals, File::from(report))
        }
        Err(error) => Err(KernelError::system("start the lab")(error)),
    };
    // It was got from the kernel and is valid.
    let _ = before.thread_set_mask();
    outcome?
}

/// Passes signals on until the lab has reported and ended.
fn attend(
    lab: Pid,
    forwarded: &SigSet,
    signals: &UnixDatagram,
    mut report: File,
) -> Result<Result<Outcome, Refused>, KernelError> {
    let ours = SignalFd::with_flags(forwarded, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(KernelError::system("take signals"))?;
    let mut bytes = Vec::new();
    loop {
        let mut fds = [
            PollFd::new(ours.as_fd(), PollFlags::POLLIN),
            PollFd::new(report.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(KernelError::system("wait for the lab")(error)),
        }
        let [signalled, reported] = fds.map(|fd| fd.any().unwrap_or(false));
        while signalled && let Ok(Some(signal)) = ours.read_signal() {
            // A key's signal went to the whole process group, the command in it.
            if signal.ssi_code != libc::SI_KERNEL {
                // A lab that is gone needs no signals.
                let _ = signals.send(&[signal.ssi_signo as u8]);
            }
        }
        if reported {
            report
                .read_to_end(&mut bytes)
                .map_err(KernelError::system("read the lab's report"))?;
            break;
        }
    }
    let ended = waitpid(lab, None);
    postcard::from_bytes(&bytes).map_err(|_| KernelError::ChildDied {
        role: "first process".into(),
        how: format!("ended without a report ({ended:?})"),
    })
}

/// The lab, from its first line to its end; does not return.
fn be_the_lab(parent: Pid, user: User, cell: &Cell, request: &Request, lines: Lines) -> ! {
    let outcome = open_porter()
        .and_then(|porter| {
            crate::enter(parent.as_raw())?;
            supervise::run(user, cell, request, porter, &lines.signals)
        })
        .map_err(Refused::from);
    let bytes = postcard::to_stdvec(&outcome).expect("an outcome is plain data");
    // Whom it is for may be gone; then nobody minds.
    let _ = File::from(lines.report).write_all(&bytes);
    // SAFETY: the buffers of the process that we were forked from are not ours to flush.
    unsafe { libc::_exit(0) }
}

/// Leaves a process in the host's network, which ends with this one.
fn open_porter() -> Result<porter::Porter, KernelError> {
    let (porter, desk) =
        porter::line().map_err(KernelError::system("make the line to the porter"))?;
    let lab = getpid();
    // SAFETY: this process has one thread; the child leaves by _exit.
    match unsafe { fork() }.map_err(KernelError::system("start the porter"))? {
        ForkResult::Parent { .. } => Ok(porter),
        ForkResult::Child => {
            drop(porter);
            let served = die_with(lab).and_then(|()| {
                desk.serve()
                    .map_err(KernelError::system("hand sockets to the lab"))
            });
            // SAFETY: as in `be_the_lab`.
            unsafe { libc::_exit(i32::from(served.is_err())) }
        }
    }
}

/// Ends this process when `parent` ends, and keeps the terminal's keys from it.
fn die_with(parent: Pid) -> Result<(), KernelError> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)
        .map_err(KernelError::system("tie the porter to the lab"))?;
    if getppid() != parent {
        return Err(KernelError::Cancelled);
    }
    leave_terminal("porter")
}

/// Keys typed at the terminal are signals for its foreground process group:
/// the lab's own processes each have another.
fn leave_terminal(role: &str) -> Result<(), KernelError> {
    setpgid(Pid::from_raw(0), Pid::from_raw(0)).map_err(KernelError::system(format!(
        "give the {role} a process group"
    )))
}

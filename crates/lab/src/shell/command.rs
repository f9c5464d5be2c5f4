//! The command itself, as the first process of the lab starts it.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};

use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::unistd::{Gid, Uid};

/// Exit code of a command that is not there, as in POSIX shells.
const NOT_FOUND: i32 = 127;
/// Exit code of a command that cannot be run.
const NOT_RUN: i32 = 126;
/// What a shell adds to the number of the signal that ended a command.
const SIGNAL_BASE: i32 = 128;

/// Who the command runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// As this process: the lab was made by root.
    Same,
    /// As the user who made the lab, by a user namespace within the lab's own,
    /// and so without power over the lab.
    User(Uid, Gid),
}

/// Starts the command in a network namespace, with this process's streams,
/// terminal and process group, and with signals as a command expects them.
///
/// # Errors
/// The exit code that a shell would give, and why.
pub fn start(
    words: &[OsString],
    network: BorrowedFd<'_>,
    identity: Identity,
) -> Result<Child, (i32, io::Error)> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    let network = network.as_raw_fd();
    // SAFETY: the closure makes system calls only; it neither allocates nor locks,
    // but for the three small files of a user namespace, in a process with one thread.
    unsafe {
        command.pre_exec(move || {
            // It is the caller's, who waits until exec.
            let network = BorrowedFd::borrow_raw(network);
            setns(network, CloneFlags::CLONE_NEWNET)?;
            if let Identity::User(uid, gid) = identity {
                become_user(uid, gid)?;
            }
            default_signals()
        });
    }
    command.spawn().map_err(|error| {
        let code = match error.kind() {
            io::ErrorKind::NotFound => NOT_FOUND,
            _ => NOT_RUN,
        };
        (code, error)
    })
}

/// As a shell puts it.
pub fn exit_code(status: ExitStatus) -> i32 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => SIGNAL_BASE + signal,
        (None, None) => NOT_RUN,
    }
}

/// Maps back what the lab's user namespace maps to root.
fn become_user(uid: Uid, gid: Gid) -> io::Result<()> {
    let (inside_uid, inside_gid) = (Uid::current(), Gid::current());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/gid_map", format!("{gid} {inside_gid} 1"))?;
    std::fs::write("/proc/self/uid_map", format!("{uid} {inside_uid} 1"))
}

/// Python and the supervisor ignore or block some, which exec would pass on.
fn default_signals() -> io::Result<()> {
    for number in Signal::iterator() {
        // SAFETY: the default action runs no code of ours.
        match unsafe { signal(number, SigHandler::SigDfl) } {
            Ok(_) | Err(nix::Error::EINVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(SigSet::empty().thread_set_mask()?)
}

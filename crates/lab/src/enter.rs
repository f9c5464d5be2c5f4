//! From an ordinary process to the first process of a lab.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use knee_collect::KernelError;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getegid, geteuid, getppid};

/// Makes the calling process the first of a lab: in a user namespace of its own
/// when it is not root's, and in PID and mount namespaces.
///
/// Returns in a child of the caller; the caller itself waits for it and ends as
/// it does, so this returns once. Both are killed when `parent`, the process
/// that asked for the lab, ends, however it ends.
///
/// # Errors
/// Namespaces are refused, or `parent` is gone.
///
/// # Panics
/// The process has more threads than one: those may not enter namespaces.
pub fn enter(parent: i32) -> Result<(), KernelError> {
    let threads = fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    assert_eq!(threads, 1, "a process that enters a lab has one thread");
    die_with_parent()?;
    if getppid() != Pid::from_raw(parent) {
        // It ended before the line above.
        return Err(KernelError::Cancelled);
    }
    let rootless = !geteuid().is_root();
    if rootless {
        enter_user_namespace()?;
    }
    unshare(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS).map_err(|error| {
        KernelError::NoNamespaces {
            what: "PID and mount namespaces",
            source: error.into(),
            hint: limit_hint("max_pid_namespaces"),
        }
    })?;
    // Mounts of the lab do not reach the host.
    mount(
        None::<&str>,
        "/",
        None::<&str>,
        MsFlags::MS_REC | MsFlags::MS_PRIVATE,
        None::<&str>,
    )
    .map_err(KernelError::system("make the lab's mounts private"))?;
    let (alive, ours) = nix::unistd::pipe().map_err(KernelError::system("make a pipe"))?;
    // SAFETY: there is one thread, so the child may do anything.
    match unsafe { fork() }.map_err(KernelError::system("start the lab's first process"))? {
        ForkResult::Parent { child } => {
            drop(alive);
            wait_and_end(child, ours)
        }
        ForkResult::Child => {
            drop(ours);
            die_with_parent()?;
            if has_hung_up(&alive) {
                std::process::exit(1);
            }
            Ok(())
        }
    }
}

/// The kernel kills this process when its parent ends.
pub(super) fn die_with_parent() -> Result<(), KernelError> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)
        .map_err(KernelError::system("tie the lab to its parent"))
}

/// Did the parent end before we asked to be told? Its end of the pipe knows.
fn has_hung_up(alive: &OwnedFd) -> bool {
    use std::os::fd::AsFd;
    let mut fds = [nix::poll::PollFd::new(
        alive.as_fd(),
        nix::poll::PollFlags::empty(),
    )];
    matches!(
        nix::poll::poll(&mut fds, nix::poll::PollTimeout::ZERO),
        Ok(1)
    )
}

/// Ends as the child does. The pipe stays open until then.
fn wait_and_end(child: Pid, _alive: OwnedFd) -> ! {
    loop {
        match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, code)) => {
                // SAFETY: nothing is to be flushed: what was said, the child says.
                unsafe { libc::_exit(code) }
            }
            Ok(WaitStatus::Signaled(_, signal, _)) => {
                let _ = nix::sys::signal::raise(signal);
                // SAFETY: as above.
                unsafe { libc::_exit(128 + signal as i32) }
            }
            Ok(_) | Err(nix::Error::EINTR) => {}
            // SAFETY: as above.
            Err(_) => unsafe { libc::_exit(1) },
        }
    }
}

/// The caller becomes root of a user namespace that maps nobody but itself.
fn enter_user_namespace() -> Result<(), KernelError> {
    let (uid, gid) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| KernelError::NoNamespaces {
        what: "user namespace",
        source: error.into(),
        hint: user_namespace_hint(),
    })?;
    let write = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text)
            .map_err(KernelError::system(format!("write the lab's {file}")))
    };
    write("setgroups", "deny".into())?;
    write("uid_map", format!("0 {uid} 1"))?;
    write("gid_map", format!("0 {gid} 1"))
}

fn user_namespace_hint() -> String {
    let forbidden = [
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "1"),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "0",
        ),
    ];
    for (file, forbids, allows) in forbidden {
        if fs::read_to_string(file).is_ok_and(|text| text.trim() == forbids) {
            return format!(
                "{file} is {forbids}, which forbids them to ordinary users: run as root, or have it set to {allows}."
            );
        }
    }
    limit_hint("max_user_namespaces")
}

/// What the limit of that name says.
pub(super) fn limit_hint(name: &str) -> String {
    let file = format!("/proc/sys/user/{name}");
    match fs::read_to_string(&file) {
        Ok(limit) => format!(
            "The limit, {file}, is {}; raise it, or end what uses them.",
            limit.trim()
        ),
        Err(_) => "This kernel may be built without them.".into(),
    }
}

/// The reason in an [`io::Error`], for callers outside of this crate.
pub(super) fn refused(
    what: &'static str,
    limit: &str,
    source: impl Into<io::Error>,
) -> KernelError {
    KernelError::NoNamespaces {
        what,
        source: source.into(),
        hint: limit_hint(limit),
    }
}

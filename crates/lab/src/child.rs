//! The lab's own processes: forks of its first process, each with one task and
//! a report at its end.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use knee_collect::KernelError;
use knee_traffic::Ended;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::enter::die_with_parent;

/// A process of the lab.
#[derive(Debug)]
pub struct Child {
    pub role: String,
    pub pid: Pid,
    report: Option<OwnedFd>,
    ended: Option<Ended>,
}

/// The first process of a PID namespace inherits the others' children. Takes leave
/// of those that have ended; the caller's own are left for the caller to look at.
pub fn reap_orphans(is_own: impl Fn(Pid) -> bool) -> Result<(), KernelError> {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    loop {
        let ended = match waitid(Id::All, flags) {
            Ok(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..)) => pid,
            Ok(_) | Err(nix::Error::ECHILD) => return Ok(()),
            Err(nix::Error::EINTR) => continue,
            Err(error) => return Err(KernelError::system("look for ended processes")(error)),
        };
        if is_own(ended) {
            return Ok(());
        }
        waitpid(ended, None).map_err(KernelError::system("reap a process"))?;
    }
}

/// Starts a process that does `work` and reports what it returns.
///
/// The process is a fork: it has all that the caller has. It is named after its
/// role and dies with the caller.
///
/// # Errors
/// The kernel refuses another process.
pub fn spawn<T: Serialize>(
    role: &str,
    work: impl FnOnce() -> Result<T, KernelError>,
) -> Result<Child, KernelError> {
    let cannot = || format!("start the lab's {role}");
    let (read, write) =
        nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(KernelError::system(cannot()))?;
    // SAFETY: the lab's first process has one thread, so the child may do anything.
    match unsafe { fork() }.map_err(KernelError::system(cannot()))? {
        ForkResult::Parent { child } => Ok(Child {
            role: role.to_owned(),
            pid: child,
            report: Some(read),
            ended: None,
        }),
        ForkResult::Child => {
            drop(read);
            let code = act(role, work, write);
            // SAFETY: the parent's buffers are not ours to flush.
            unsafe { libc::_exit(code) }
        }
    }
}

fn act<T: Serialize>(
    role: &str,
    work: impl FnOnce() -> Result<T, KernelError>,
    write: OwnedFd,
) -> i32 {
    let name = std::ffi::CString::new(role).expect("a role is a plain word");
    let _ = nix::sys::prctl::set_name(&name);
    let done = die_with_parent().and_then(|()| {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
            Err(KernelError::Child {
                role: role.into(),
                message: "a defect: it panicked".into(),
            })
        })
    });
    let report: Result<T, String> = done.map_err(|error| error.to_string());
    let bytes = postcard::to_stdvec(&report).expect("reports are plain data");
    match File::from(write).write_all(&bytes) {
        Ok(()) if report.is_ok() => 0,
        _ => 1,
    }
}

impl Child {
    /// Has it ended? Does not wait.
    pub fn poll(&mut self) -> Option<Ended> {
        if self.ended.is_none() {
            self.ended = Ended::poll(self.pid);
        }
        self.ended
    }

    pub fn signal(&mut self, signal: Signal) {
        if self.poll().is_none() {
            let _ = kill(self.pid, signal);
        }
    }

    /// Its report, when it has one by `deadline`; it ends then.
    ///
    /// # Errors
    /// It failed and says why, it died, or the deadline passed.
    pub fn finish<T: DeserializeOwned>(&mut self, deadline: Instant) -> Result<T, KernelError> {
        let bytes = self.read_report(deadline)?;
        let role = self.role.clone();
        if bytes.is_empty() {
            let how = match self.wait(Duration::from_secs(1)) {
                Some(ended) => ended.words(),
                None => "closed its report without a word".into(),
            };
            return Err(KernelError::ChildDied { role, how });
        }
        match postcard::from_bytes::<Result<T, String>>(&bytes) {
            Ok(Ok(report)) => Ok(report),
            Ok(Err(message)) => Err(KernelError::Child { role, message }),
            Err(_) => Err(KernelError::ChildDied {
                role,
                how: "broke off its report".into(),
            }),
        }
    }

    fn read_report(&mut self, deadline: Instant) -> Result<Vec<u8>, KernelError> {
        let mut bytes = Vec::new();
        let Some(report) = self.report.take() else {
            return Ok(bytes);
        };
        let mut file = File::from(report);
        let mut chunk = vec![0; 1 << 16];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if !readable(&file, left) {
                return Err(KernelError::ChildDied {
                    role: self.role.clone(),
                    how: "did not report in time".into(),
                });
            }
            match file.read(&mut chunk) {
                Ok(0) => return Ok(bytes),
                Ok(count) => bytes.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(KernelError::system(format!(
                        "read the report of the lab's {}",
                        self.role
                    ))(error));
                }
            }
        }
    }

    /// Waits for its end.
    pub fn wait(&mut self, at_most: Duration) -> Option<Ended> {
        let deadline = Instant::now() + at_most;
        while self.poll().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.ended
    }

    /// The error that an end before the run's end is, with the reason when it
    /// gave one.
    pub fn died(&mut self) -> KernelError {
        match self.finish::<()>(Instant::now()) {
            Err(error) => error,
            Ok(()) => KernelError::ChildDied {
                role: self.role.clone(),
                how: "ended".into(),
            },
        }
    }
}

fn readable(file: &File, within: Duration) -> bool {
    use std::os::fd::AsFd;
    let mut fds = [nix::poll::PollFd::new(
        file.as_fd(),
        nix::poll::PollFlags::POLLIN,
    )];
    let millis = u16::try_from(within.as_millis() + 1).unwrap_or(u16::MAX);
    loop {
        match nix::poll::poll(&mut fds, nix::poll::PollTimeout::from(millis)) {
            Err(nix::Error::EINTR) => {}
            Ok(0) | Err(_) => return false,
            Ok(_) => return true,
        }
    }
}

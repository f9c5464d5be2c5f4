//! Programs of the user's: the servers and clients of `workload = "programs"`.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use knee_units::cpus::Cpus;
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::{Error, affinity, pin};

/// How much of what a program printed stands in an error.
const LAST_WORDS_BYTES: u64 = 400;
/// How much a program may print. Its output is a file of ours, on our disk or in memory.
const MOST_OUTPUT_MIB: u64 = 64;
/// What a program gets between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// How long a server program may take to listen.
const SERVER_PATIENCE: Duration = Duration::from_secs(10);

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Exited(i32),
    Killed(i32),
}

impl Ended {
    /// Looks whether a process has ended, without waiting.
    pub fn poll(pid: Pid) -> Option<Ended> {
        match waitpid(pid, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(_, code)) => Some(Ended::Exited(code)),
            Ok(WaitStatus::Signaled(_, signal, _)) => Some(Ended::Killed(signal as i32)),
            // It was waited for elsewhere, which nobody does.
            Err(nix::Error::ECHILD) => Some(Ended::Exited(0)),
            _ => None,
        }
    }

    /// In words: "was ended by SIGKILL".
    pub fn words(self) -> String {
        match self {
            Ended::Exited(code) => format!("ended with exit code {code}"),
            Ended::Killed(signal) => match Signal::try_from(signal) {
                Ok(signal) => format!("was ended by {signal}"),
                Err(_) => format!("was ended by signal {signal}"),
            },
        }
    }
}

/// What is to be run.
pub struct Task<'a> {
    /// `server` or `client`.
    pub role: &'static str,
    pub group: usize,
    /// A command line, in which `{server}` and `{client}` stand for the hosts' addresses.
    pub command: &'a str,
    pub server: IpAddr,
    pub client: IpAddr,
    /// Processors that it may use; none: all.
    pub cpus: &'a Cpus,
    /// Said where it cannot be started.
    pub hint: String,
}

/// A running program.
#[derive(Debug)]
pub struct Program {
    pub group: usize,
    /// `server` or `client`.
    pub role: &'static str,
    /// As run.
    pub command: String,
    pub started: Instant,
    pub ended: Option<(Ended, Instant)>,
    pub pid: Pid,
    /// What it prints.
    printed: File,
}

impl Program {
    /// Starts it in the caller's network namespace; it dies with the calling thread. What it prints goes to `printed`,
    /// which must be open for reading too. The addresses are in KNEE_SERVER and KNEE_CLIENT too. `change`: what else is to be
    /// different for it, such as its user.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(
        task: &Task<'_>,
        printed: File,
        change: impl FnOnce(&mut Command),
    ) -> Result<Program, Error> {
        let (server, client) = (task.server.to_string(), task.client.to_string());
        let command = task
            .command
            .replace("{server}", &server)
            .replace("{client}", &client);
        let cannot = |why: String| Error::Command {
            group: task.group,
            role: task.role,
            command: command.clone(),
            why,
        };
        let words = shell_words::split(&command).map_err(|error| cannot(error.to_string()))?;
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| cannot("it is empty".into()))?;
        // It can neither read nor write over what was printed before.
        let path = format!("/proc/self/fd/{}", printed.as_raw_fd());
        let again = || {
            let opened = OpenOptions::new().append(true).open(&path);
            opened.map_err(Error::system("give a program its output"))
        };
        let (out, err) = (again()?, again()?);
        let cpus =
            affinity(task.cpus).map_err(Error::system("name the processors of a program"))?;
        let mut spawning = Command::new(program);
        spawning.args(arguments);
        // SAFETY: system calls alone, which are allowed between fork and exec.
        unsafe {
            spawning.pre_exec(move || {
                close_others_at_exec()?;
                Ok(pin(cpus)?)
            });
        }
        change(&mut spawning);
        spawning
            .env("KNEE_SERVER", server)
            .env("KNEE_CLIENT", client)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .process_group(0);
        // SAFETY: as above.
        unsafe {
            // A process that becomes another user is untied from its parent.
            spawning.pre_exec(|| Ok(nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?));
        }
        let child = spawning.spawn().map_err(|error| {
            let why = match error.kind() {
                std::io::ErrorKind::NotFound => {
                    let package =
                        package_of(program).map_or_else(String::new, |name| format!(" ({name})"));
                    format!("\"{program}\" is not installed, or not in PATH{package}")
                }
                // So it ends too where a folder of PATH is closed to that user.
                std::io::ErrorKind::PermissionDenied if !program.contains('/') => {
                    format!("\"{program}\" is not installed, or in no folder of PATH that is open")
                }
                _ => error.to_string(),
            };
            cannot(why + &task.hint)
        })?;
        Ok(Program {
            group: task.group,
            role: task.role,
            pid: Pid::from_raw(child.id() as i32),
            command,
            started: Instant::now(),
            ended: None,
            printed,
        })
    }

    /// It did what it should not.
    pub fn failed(&self, why: String) -> Error {
        Error::Command {
            group: self.group,
            role: self.role,
            command: self.command.clone(),
            why,
        }
    }

    /// Refuses a server that has ended, and a program that fills the disk.
    ///
    /// # Errors
    /// It is one of these.
    pub fn check(&mut self) -> Result<(), Error> {
        if self.printed_too_much() {
            return Err(self.failed(format!(
                "it printed more than {MOST_OUTPUT_MIB} MiB; expected less. Have it print elsewhere, as in \"sh -c '… > /dev/null'\""
            )));
        }
        match self.poll() {
            Some(ended) if self.role == "server" => {
                let how = ended.words();
                Err(self.failed(format!("it {how} during the run{}", self.last_words())))
            }
            _ => Ok(()),
        }
    }

    fn printed_too_much(&self) -> bool {
        let about = self.printed.metadata();
        about.is_ok_and(|about| about.len() > MOST_OUTPUT_MIB << 20)
    }

    /// Has it ended? Does not wait.
    pub fn poll(&mut self) -> Option<Ended> {
        if self.ended.is_none() {
            self.ended = Ended::poll(self.pid).map(|ended| (ended, Instant::now()));
        }
        self.ended.map(|(ended, _)| ended)
    }

    /// Ends it and all that it started, by asking first.
    pub fn stop(&mut self) -> Ended {
        let group = Pid::from_raw(-self.pid.as_raw());
        let asked = Instant::now();
        // Once: to some programs a second one says not to end in order.
        if self.ended.is_none() {
            let _ = kill(group, Signal::SIGTERM);
        }
        loop {
            if let Some(ended) = self.poll() {
                let _ = kill(group, Signal::SIGKILL);
                if self.printed_too_much() {
                    let _ = self.printed.set_len(MOST_OUTPUT_MIB << 20);
                }
                return ended;
            }
            if asked.elapsed() > GRACE {
                let _ = kill(group, Signal::SIGKILL);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The end of what it printed, for an error; with a lead, or empty.
    pub fn last_words(&self) -> String {
        match self.printed(LAST_WORDS_BYTES).trim() {
            "" => String::new(),
            text => format!("; it last printed: {}", text.replace('\n', " / ")),
        }
    }

    /// The end of what it printed, as far as it can be read.
    pub fn printed(&self, most_bytes: u64) -> String {
        let length = self.printed.metadata().map_or(0, |about| about.len());
        let mut bytes = vec![0; length.min(most_bytes) as usize];
        let from = length.saturating_sub(most_bytes);
        match self.printed.read_exact_at(&mut bytes, from) {
            Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(_) => String::new(),
        }
    }
}

/// Where a program that measures hosts comes from.
fn package_of(program: &str) -> Option<&'static str> {
    Some(match program.rsplit('/').next()? {
        "redis-server" => "Debian: redis-server",
        "redis-benchmark" | "redis-cli" => "Debian: redis-tools",
        "memtier_benchmark" => "packages.redis.io: memtier-benchmark",
        "netperf" | "netserver" => "Debian: netperf, in non-free",
        "iperf3" => "Debian: iperf3",
        "wrk" => "Debian: wrk",
        _ => return None,
    })
}

/// Descriptors beyond the standard three do not reach the program that is run next.
fn close_others_at_exec() -> std::io::Result<()> {
    // SAFETY: a system call on numbers.
    let closed = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if closed == 0 {
        return Ok(());
    }
    match Errno::last() {
        // Before Linux 5.11, and 5.9.
        Errno::EINVAL | Errno::ENOSYS => {
            let (most, _) = getrlimit(Resource::RLIMIT_NOFILE)?;
            for fd in 3..most as RawFd {
                // SAFETY: it changes a flag of a descriptor, where there is one.
                unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
            }
            Ok(())
        }
        errno => Err(errno.into()),
    }
}

/// TCP sockets that listen in a network namespace: the port of each, by its inode.
#[derive(Clone, Debug, Default)]
pub struct Listeners(BTreeMap<String, u16>);

impl Listeners {
    /// Of the namespace that the caller is in.
    pub fn here() -> Listeners {
        let tables = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"]
            .map(|file| std::fs::read_to_string(file).unwrap_or_default());
        let rows = tables.iter().flat_map(|table| table.lines().skip(1));
        let listening = rows.filter_map(|row| {
            // The 2nd column is the address, the 4th the state, 0A to listen; the 10th is the inode.
            let mut words = row.split_whitespace().skip(1);
            let (_, port) = words.next()?.rsplit_once(':')?;
            let port = u16::from_str_radix(port, 16).ok()?;
            (words.nth(1)? == "0A").then(|| Some((words.nth(5)?.to_owned(), port)))?
        });
        Listeners(listening.collect())
    }
}

/// Waits until something listens in the namespace that the caller is in that did not `before` the server was started:
/// the server is ready. Returns the ports.
///
/// # Errors
/// The server ends, or does not listen in time.
pub fn await_listener(
    server: &mut Program,
    before: &Listeners,
    at: IpAddr,
) -> Result<Vec<u16>, Error> {
    let deadline = Instant::now() + SERVER_PATIENCE;
    loop {
        let mut found = Listeners::here().0;
        found.retain(|inode, _| !before.0.contains_key(inode));
        if !found.is_empty() {
            return Ok(found.into_values().collect());
        }
        if let Some(ended) = server.poll() {
            let how = ended.words();
            let last = server.last_words();
            return Err(server.failed(format!("it {how} before it listened{last}")));
        }
        if Instant::now() > deadline {
            return Err(server.failed(format!(
                "it has not begun to listen within {} s{}. Let it listen on the address {at} or on all, and stay in the foreground",
                SERVER_PATIENCE.as_secs(),
                server.last_words()
            )));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

//! Programs of the user's, inside a lab.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use knee_collect::KernelError;
use knee_store::folder::{self, Folder, Readers};
use knee_units::cpus::Cpus;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::child::{self, Ended};
use super::{Namespace, RunAs, enter, run_as};
use knee_traffic::{Addresses, affinity, pin};

/// How much of what a program printed stands in an error.
const LAST_WORDS_BYTES: u64 = 400;
/// How much a program may print. Its output is a file of ours, on our disk.
const MOST_OUTPUT_MIB: u64 = 64;
/// What a program gets between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// Where a program runs.
pub struct Place<'a> {
    pub namespace: &'a Namespace,
    /// Of the two hosts.
    pub addresses: Addresses,
    /// Processors that it may use; none: all.
    pub cpus: &'a Cpus,
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
    pub output: PathBuf,
    pub pid: Pid,
    /// `output`, as the program has it.
    printed: File,
}

impl Program {
    /// Starts a command line in a namespace: `{server}` and `{client}` in it stand
    /// for the hosts' addresses, which are in KNEE_SERVER and KNEE_CLIENT as
    /// well. What it prints goes to the file `output`, which it gets open.
    /// `run_as`: who it runs as; `None`: as the lab does.
    pub fn start(
        role: &'static str,
        group: usize,
        command: &str,
        place: &Place<'_>,
        run_as: Option<&RunAs>,
        output: &Path,
    ) -> Result<Program, KernelError> {
        let Addresses { sender, receiver } = place.addresses;
        let (server, client) = (sender.to_string(), receiver.to_string());
        let command = command
            .replace("{server}", &server)
            .replace("{client}", &client);
        let cannot = |why: String| KernelError::Command {
            group,
            role,
            command: command.clone(),
            why,
        };
        let words = shell_words::split(&command).map_err(|error| cannot(error.to_string()))?;
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| cannot("it is empty".into()))?;
        let file = output_file(output)
            .map_err(KernelError::system(format!("write {}", output.display())))?;
        let again = || {
            file.try_clone()
                .map_err(KernelError::system(format!("write {}", output.display())))
        };
        let (out, err) = (again()?, again()?);
        place.namespace.enter()?;
        let cpus = affinity(place.cpus)
            .map_err(KernelError::system("name the processors of a program"))?;
        let mut spawning = Command::new(program);
        let become_user = match run_as {
            Some(user) => {
                spawning.env_clear().envs(user.environment());
                Some(user.prepare()?)
            }
            None => None,
        };
        spawning
            .args(arguments)
            .env("KNEE_SERVER", server)
            .env("KNEE_CLIENT", client)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .process_group(0);
        // SAFETY: system calls alone, which are allowed between fork and exec.
        unsafe {
            spawning.pre_exec(move || {
                run_as::close_others_at_exec()?;
                pin(cpus)?;
                if let Some(become_user) = &become_user {
                    become_user.now()?;
                }
                // A process that becomes another user is untied from its parent.
                enter::die_with_parent().map_err(std::io::Error::other)
            });
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
            cannot(why + &run_as.map_or_else(String::new, RunAs::hint))
        })?;
        Ok(Program {
            group,
            role,
            pid: Pid::from_raw(child.id() as i32),
            command,
            started: Instant::now(),
            ended: None,
            output: output.to_owned(),
            printed: file,
        })
    }

    /// Refuses a program that fills the disk.
    ///
    /// # Errors
    /// It has printed more than it may.
    pub fn check_output(&self) -> Result<(), KernelError> {
        if !self.printed_too_much() {
            return Ok(());
        }
        Err(KernelError::Command {
            group: self.group,
            role: self.role,
            command: self.command.clone(),
            why: format!(
                "it printed more than {MOST_OUTPUT_MIB} MiB; expected less. Have it print elsewhere, as in \"sh -c '… > /dev/null'\""
            ),
        })
    }

    fn printed_too_much(&self) -> bool {
        let about = self.printed.metadata();
        about.is_ok_and(|about| about.len() > MOST_OUTPUT_MIB << 20)
    }

    /// Has it ended? Does not wait.
    pub fn poll(&mut self) -> Option<Ended> {
        if self.ended.is_none() {
            self.ended = child::poll(self.pid).map(|ended| (ended, Instant::now()));
        }
        self.ended.map(|(ended, _)| ended)
    }

    /// Ends it and all that it started, by asking first.
    pub fn stop(&mut self) -> Ended {
        let group = Pid::from_raw(-self.pid.as_raw());
        let asked = Instant::now();
        let mut signal = Signal::SIGTERM;
        loop {
            if let Some(ended) = self.poll() {
                let _ = kill(group, Signal::SIGKILL);
                if self.printed_too_much() {
                    let _ = self.printed.set_len(MOST_OUTPUT_MIB << 20);
                }
                return ended;
            }
            let _ = kill(group, signal);
            if asked.elapsed() > GRACE {
                signal = Signal::SIGKILL;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The end of what it printed, for an error; with a lead, or empty.
    pub fn last_words(&self) -> String {
        let read = || -> std::io::Result<String> {
            let mut file = File::open(&self.output)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(LAST_WORDS_BYTES)))?;
            let mut bytes = Vec::new();
            file.take(LAST_WORDS_BYTES).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).trim().replace('\n', " / "))
        };
        match read() {
            Ok(text) if !text.is_empty() => format!("; it last printed: {text}"),
            _ => String::new(),
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

/// A new file for what it prints; one of a repetition that was cut short goes.
fn output_file(path: &Path) -> Result<File, folder::Error> {
    let (folder, name) = Folder::of(path)?;
    folder.remove(&name)?;
    folder.create_for_appending(&name, Readers::Own)
}

/// TCP sockets that listen in a namespace.
#[derive(Clone, Debug, Default)]
pub struct Listeners(BTreeSet<String>);

impl Listeners {
    /// Of the namespace that the caller is in.
    pub fn here() -> Listeners {
        let tables = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"]
            .map(|file| std::fs::read_to_string(file).unwrap_or_default());
        let rows = tables.iter().flat_map(|table| table.lines().skip(1));
        let listening = rows.filter_map(|row| {
            // The 4th column is the state, 0A to listen; the 10th is the inode.
            let mut words = row.split_whitespace().skip(3);
            (words.next()? == "0A").then(|| words.nth(5).map(str::to_owned))?
        });
        Listeners(listening.collect())
    }
}

/// Waits until something listens in the namespace that the caller is in that did
/// not `before` the server was started: the server is ready.
///
/// # Errors
/// The server ends, or does not listen in time.
pub fn await_listener(
    server: &mut Program,
    before: &Listeners,
    addresses: Addresses,
    at_most: Duration,
) -> Result<(), KernelError> {
    let deadline = Instant::now() + at_most;
    loop {
        if !Listeners::here().0.is_subset(&before.0) {
            return Ok(());
        }
        if let Some(ended) = server.poll() {
            return Err(KernelError::Command {
                group: server.group,
                role: server.role,
                command: server.command.clone(),
                why: format!(
                    "it {} before it listened{}",
                    ended.words(),
                    server.last_words()
                ),
            });
        }
        if Instant::now() > deadline {
            return Err(KernelError::NeverListened {
                group: server.group,
                command: server.command.clone(),
                seconds: at_most.as_secs(),
                address: addresses.sender,
                last_words: server.last_words(),
            });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

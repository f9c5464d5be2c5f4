//! The process that puts back. It starts before the first change, in a session of its own, and hears of each change before
//! that is made. It acts on an order, when the process that made the changes ends in whatever way, when the deadline
//! passes, and on SIGTERM, as at a shutdown.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, chdir, dup2_stderr, dup2_stdin, dup2_stdout, fork, setsid};
use serde::{Deserialize, Serialize};

use super::change::{Back, Change, State};
use super::journal;

/// A message to the watchdog.
#[derive(Serialize, Deserialize)]
enum Told {
    /// This is going to be made.
    Intended(Change),
    /// The last one was made, and this is what came of it.
    Made(State),
    PutBack,
}

/// What it answers.
#[derive(Serialize, Deserialize)]
pub enum Answer {
    Noted,
    Back(Vec<Back>, String),
}

/// The watchdog, for who makes the changes.
pub struct Watchdog {
    to: UnixStream,
    pub lines: Lines<UnixStream>,
}

impl Watchdog {
    /// Starts it. The caller has one thread.
    ///
    /// # Errors
    /// There is no other process.
    pub fn start(deadline: Duration) -> io::Result<Watchdog> {
        let (here, there) = UnixStream::pair()?;
        // SAFETY: this process has one thread, so that the fork may do all that it could.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => {
                drop(there);
                waitpid(child, None)?;
                let to = here.try_clone()?;
                Ok(Watchdog {
                    to,
                    lines: Lines::new(here),
                })
            }
            ForkResult::Child => {
                drop(here);
                // Whoever ends the session of who started us, does not end us.
                let begun = setsid();
                // SAFETY: as above.
                match (begun, unsafe { fork() }) {
                    (Ok(_), Ok(ForkResult::Child)) => process::exit(watch(there, deadline)),
                    (Ok(_), Ok(ForkResult::Parent { .. })) => process::exit(0),
                    _ => process::exit(1),
                }
            }
        }
    }

    /// Takes down a change, and waits until it has.
    ///
    /// # Errors
    /// It is not there any more.
    pub fn note(&mut self, change: &Change) -> io::Result<()> {
        tell(&mut self.to, &Told::Intended(change.clone()))?;
        match self.answer()? {
            Answer::Noted => Ok(()),
            Answer::Back(..) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Takes down what came of the last one.
    ///
    /// # Errors
    /// It is not there any more.
    pub fn made(&mut self, state: &State) -> io::Result<()> {
        tell(&mut self.to, &Told::Made(state.clone()))
    }

    /// Has everything put back.
    ///
    /// # Errors
    /// It is not there any more.
    pub fn put_back(&mut self) -> io::Result<Vec<Back>> {
        tell(&mut self.to, &Told::PutBack)?;
        loop {
            if let Answer::Back(back, _) = self.answer()? {
                return Ok(back);
            }
        }
    }

    fn answer(&mut self) -> io::Result<Answer> {
        loop {
            match self.lines.next(None)? {
                Next::Line(line) => return Ok(serde_json::from_str(&line)?),
                Next::Ended => return Err(io::ErrorKind::UnexpectedEof.into()),
                Next::Nothing => {}
            }
        }
    }
}

fn tell(to: &mut impl io::Write, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_string(what)?;
    line.push('\n');
    to.write_all(line.as_bytes())
}

/// The watchdog's life. Returns its exit code.
fn watch(mut stream: UnixStream, deadline: Duration) -> i32 {
    let signals = set_apart(&stream);
    let until = Instant::now() + deadline;
    let mut lines = match stream.try_clone() {
        Ok(stream) => Lines::new(stream),
        Err(_) => return 1,
    };
    let mut changes: Vec<Change> = Vec::new();
    let why = loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break "the deadline passed";
        }
        match lines.next_or(Some(left), signals.as_ref().ok()) {
            Ok(Next::Nothing) if is_pending(signals.as_ref().ok()) => {
                break "the host asked for its end (SIGTERM)";
            }
            Ok(Next::Nothing) => {}
            Ok(Next::Ended) | Err(_) => break "who asked for it ended without a word",
            Ok(Next::Line(line)) => match serde_json::from_str(&line) {
                Ok(Told::Intended(change)) => {
                    changes.push(change);
                    if tell(&mut stream, &Answer::Noted).is_err() {
                        break "who asked for it ended without a word";
                    }
                }
                Ok(Told::Made(state)) => {
                    if let Some(change) = changes.last_mut() {
                        change.after = Some(state);
                    }
                }
                Ok(Told::PutBack) => break "the end of the test",
                Err(_) => break "a message to the watchdog made no sense",
            },
        }
    };
    let back = all_back(&changes);
    let is_whole = back.iter().all(|one| one.is_back);
    let _ = tell(&mut stream, &Answer::Back(back, why.into()));
    i32::from(!is_whole)
}

/// Puts back all changes, the last one first.
pub fn all_back(changes: &[Change]) -> Vec<Back> {
    let back = |change: &Change| {
        let back = change.take_back();
        if !change.stands() {
            journal::forget(&change.target);
        }
        back
    };
    changes.iter().rev().map(back).collect()
}

/// Nothing of who started it ties it: neither folder nor terminal nor pipe.
fn set_apart(stream: &UnixStream) -> io::Result<SignalFd> {
    let _ = chdir("/");
    let _ = prctl::set_name(c"knee-watchdog");
    // Where there is no memory left, others go first. Only root may say so.
    let _ = fs::write("/proc/self/oom_score_adj", "-1000");
    if let Ok(nothing) = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
    {
        let _ = dup2_stdin(&nothing);
        let _ = dup2_stdout(&nothing);
        let _ = dup2_stderr(&nothing);
    }
    for one in [Signal::SIGINT, Signal::SIGHUP, Signal::SIGPIPE] {
        // SAFETY: to ignore a signal runs no code of ours.
        let _ = unsafe { signal(one, SigHandler::SigIgn) };
    }
    stream.set_write_timeout(Some(Duration::from_secs(5)))?;
    let mut set = SigSet::empty();
    set.add(Signal::SIGTERM);
    set.thread_block()?;
    Ok(SignalFd::with_flags(
        &set,
        SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC,
    )?)
}

fn is_pending(signals: Option<&SignalFd>) -> bool {
    signals.is_some_and(|signals| matches!(signals.read_signal(), Ok(Some(_))))
}

/// Lines that come through a descriptor, waited for no longer than is wanted.
pub struct Lines<T> {
    from: T,
    bytes: Vec<u8>,
}

/// What came.
pub enum Next {
    Line(String),
    /// Nothing within the time, or something else happened.
    Nothing,
    Ended,
}

/// Of a line; what is asked for is far below.
const MOST_BYTES: usize = 1 << 20;

impl<T: AsFd> Lines<T> {
    pub fn new(from: T) -> Lines<T> {
        Lines {
            from,
            bytes: Vec::new(),
        }
    }

    /// The next line, within the time.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn next(&mut self, within: Option<Duration>) -> io::Result<Next> {
        self.next_or::<T>(within, None)
    }

    /// The next line, or nothing when something is to be read of `other`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn next_or<U: AsFd>(
        &mut self,
        within: Option<Duration>,
        other: Option<&U>,
    ) -> io::Result<Next> {
        let until = within.map(|within| Instant::now() + within);
        loop {
            if let Some(end) = self.bytes.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.bytes.drain(..=end).collect();
                return Ok(Next::Line(String::from_utf8_lossy(&line).trim().into()));
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let wait = match left {
                None => PollTimeout::NONE,
                Some(left) => PollTimeout::try_from(left.as_millis().min(i32::MAX as u128) as i32)
                    .unwrap_or(PollTimeout::MAX),
            };
            let mut wanted = vec![PollFd::new(self.from.as_fd(), PollFlags::POLLIN)];
            wanted.extend(other.map(|other| PollFd::new(other.as_fd(), PollFlags::POLLIN)));
            match poll(&mut wanted, wait) {
                Ok(0) => return Ok(Next::Nothing),
                Ok(_) => {}
                Err(nix::Error::EINTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let is_ready = |one: &PollFd| one.any().unwrap_or(true);
            if !is_ready(&wanted[0]) {
                return Ok(Next::Nothing);
            }
            let mut room = [0; 4096];
            match nix::unistd::read(self.from.as_fd(), &mut room) {
                Ok(0) => return Ok(Next::Ended),
                Ok(got) => self.bytes.extend(&room[..got]),
                Err(nix::Error::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
            if self.bytes.len() > MOST_BYTES {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
    }
}

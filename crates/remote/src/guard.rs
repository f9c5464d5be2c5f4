//! A process that ends the programs of a helper, and all that they have started, once the helper is gone, however that
//! came about.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// What a program gets between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// The guard, as its helper has it.
pub struct Guard(ChildStdin);

impl Guard {
    pub fn start() -> io::Result<Guard> {
        // The file may be gone already; the program is in memory.
        let mut child = Command::new("/proc/self/exe")
            .arg("guard")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Guard(child.stdin.take().expect("it is piped")))
    }

    /// This process leads a group that is to end.
    pub fn add(&mut self, leader: Pid) -> io::Result<()> {
        writeln!(self.0, "+{leader}")
    }

    /// It has ended.
    pub fn remove(&mut self, leader: Pid) {
        let _ = writeln!(self.0, "-{leader}");
    }
}

/// Until nobody can write orders any more.
pub fn watch(orders: impl BufRead) {
    let mut groups = BTreeSet::new();
    for line in orders.lines().map_while(Result::ok) {
        match line.split_at_checked(1) {
            Some(("+", leader)) => groups.extend(leader.parse::<i32>().ok().filter(|&pid| pid > 1)),
            Some(("-", leader)) => groups.retain(|group| *leader != group.to_string()),
            _ => {}
        }
    }
    let begun = Instant::now();
    let mut signal = Signal::SIGTERM;
    groups.retain(|&group| killpg(Pid::from_raw(group), signal).is_ok());
    while !groups.is_empty() {
        if begun.elapsed() > GRACE {
            signal = Signal::SIGKILL;
            groups.retain(|&group| killpg(Pid::from_raw(group), signal).is_ok());
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
        groups.retain(|&group| kill(Pid::from_raw(-group), None).is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_end_that_were_not_taken_back() {
        let start = || {
            let mut shell = Command::new("sh");
            // A child that the shell does not wait for, in its group.
            let shell = shell
                .args(["-c", "sleep 60 & exec sleep 60"])
                .process_group(0);
            shell.spawn().unwrap()
        };
        let (mut kept, mut ended) = (start(), start());
        let orders = format!(
            "+{}\n+{}\n-{}\nnoise\n+1\n",
            kept.id(),
            ended.id(),
            kept.id()
        );
        watch(orders.as_bytes());
        assert!(!ended.wait().unwrap().success());
        let group = |id: u32| Pid::from_raw(-(id as i32));
        assert!(kill(group(ended.id()), None).is_err(), "all of the group");
        assert!(kept.try_wait().unwrap().is_none());
        killpg(Pid::from_raw(kept.id() as i32), Signal::SIGKILL).unwrap();
        kept.wait().unwrap();
    }
}

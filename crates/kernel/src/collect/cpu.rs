//! Processor time: of threads, and of the processors themselves.

use std::fs;
use std::path::PathBuf;

/// A thread that is watched.
#[derive(Clone, Debug)]
pub struct Watched {
    /// As in the table: `link/data`.
    pub name: String,
    schedstat: PathBuf,
}

/// The threads of a process, found by its PID in the caller's PID namespace.
///
/// `/proc` may be that of another namespace: the process is then found among
/// the caller's children by the last number of its NSpid.
pub fn threads_of(role: &str, pid: i32) -> Vec<Watched> {
    let Some(process) = children()
        .into_iter()
        .map(|child| PathBuf::from(format!("/proc/{child}")))
        .find(|process| inner_pid(process) == Some(pid))
    else {
        return Vec::new();
    };
    let Ok(tasks) = fs::read_dir(process.join("task")) else {
        return Vec::new();
    };
    tasks
        .flatten()
        .map(|task| {
            let comm = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            let comm = match comm.trim() {
                // The process's own name says nothing more.
                name if name == role => "main",
                name => name,
            };
            Watched {
                name: format!("{role}/{comm}"),
                schedstat: task.path().join("schedstat"),
            }
        })
        .collect()
}

/// The caller's children, in the numbers of the mounted `/proc`.
fn children() -> Vec<i32> {
    fs::read_to_string("/proc/thread-self/children")
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// Its number in its own PID namespace.
fn inner_pid(process: &std::path::Path) -> Option<i32> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    let numbers = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().last()?.parse().ok()
}

impl Watched {
    /// Time on a processor so far, ns; `None`: it has ended.
    pub fn run_ns(&self) -> Option<u64> {
        let text = fs::read_to_string(&self.schedstat).ok()?;
        text.split_whitespace().next()?.parse().ok()
    }
}

/// One processor's times so far, µs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Processor {
    pub number: u32,
    pub user_us: i64,
    pub system_us: i64,
    pub softirq_us: i64,
    pub steal_us: i64,
}

/// Every processor, from `/proc/stat`.
pub fn processors() -> Vec<Processor> {
    parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
}

fn parse(text: &str) -> Vec<Processor> {
    // /proc/stat counts in USER_HZ, which is 100 on every architecture we run on.
    const TICK_US: i64 = 10_000;
    text.lines()
        .filter_map(|line| {
            let mut words = line.strip_prefix("cpu")?.split_whitespace();
            // The line of all together has no number.
            let number = line[3..].split(' ').next()?.parse().ok()?;
            words.next();
            let ticks: Vec<i64> = words.filter_map(|word| word.parse().ok()).collect();
            let us = |n: usize| ticks.get(n).copied().unwrap_or(0) * TICK_US;
            // user nice system idle iowait irq softirq steal
            Some(Processor {
                number,
                user_us: us(0) + us(1),
                system_us: us(2),
                softirq_us: us(5) + us(6),
                steal_us: us(7),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_processor_has_a_row_and_their_sum_has_none() {
        let text = "cpu  30 2 6 900 1 0 8 4 0 0\ncpu0 10 1 2 400 1 1 5 3 0 0\ncpu1 20 1 4 500 0 0 3 1 0 0\nintr 5\n";
        let found = parse(text);
        assert_eq!(found.len(), 2);
        let first = Processor {
            number: 0,
            user_us: 110_000,
            system_us: 20_000,
            softirq_us: 60_000,
            steal_us: 30_000,
        };
        assert_eq!(found[0], first);
    }
}

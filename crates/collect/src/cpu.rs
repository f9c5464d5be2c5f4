//! Processor time: of threads, and of the processors themselves.

use std::fs;
use std::path::PathBuf;

use knee_tables::Cpu;

use crate::text;

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
            let comm = text::read(task.path().join("comm")).unwrap_or_default();
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

/// One processor's times so far, µs. Before Linux 2.6.33 the last are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Processor {
    pub number: u32,
    pub user_us: i64,
    pub nice_us: i64,
    pub system_us: i64,
    pub idle_us: i64,
    pub iowait_us: i64,
    pub irq_us: i64,
    pub softirq_us: i64,
    pub steal_us: i64,
    pub guest_us: i64,
    pub guest_nice_us: i64,
}

impl Processor {
    /// In programs, of whatever priority.
    pub fn programs_us(&self) -> i64 {
        self.user_us + self.nice_us
    }

    /// In interrupts of both kinds.
    pub fn interrupts_us(&self) -> i64 {
        self.irq_us + self.softirq_us
    }
}

/// Every processor, from `/proc/stat`.
pub fn processors() -> Vec<Processor> {
    parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
}

/// Fills the processor's columns of a row.
pub fn fill(table: &mut Cpu, row: usize, processor: &Processor) {
    table.cpu.set(row, processor.number as i32);
    table.user_us.set(row, processor.user_us);
    table.nice_us.set(row, processor.nice_us);
    table.system_us.set(row, processor.system_us);
    table.idle_us.set(row, processor.idle_us);
    table.iowait_us.set(row, processor.iowait_us);
    table.irq_us.set(row, processor.irq_us);
    table.softirq_us.set(row, processor.softirq_us);
    table.steal_us.set(row, processor.steal_us);
    table.guest_us.set(row, processor.guest_us);
    table.guest_nice_us.set(row, processor.guest_nice_us);
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
            Some(Processor {
                number,
                user_us: us(0),
                nice_us: us(1),
                system_us: us(2),
                idle_us: us(3),
                iowait_us: us(4),
                irq_us: us(5),
                softirq_us: us(6),
                steal_us: us(7),
                guest_us: us(8),
                guest_nice_us: us(9),
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
            user_us: 100_000,
            nice_us: 10_000,
            system_us: 20_000,
            idle_us: 4_000_000,
            iowait_us: 10_000,
            irq_us: 10_000,
            softirq_us: 50_000,
            steal_us: 30_000,
            guest_us: 0,
            guest_nice_us: 0,
        };
        assert_eq!(
            (first.programs_us(), first.interrupts_us()),
            (110_000, 60_000)
        );
        assert_eq!(found[0], first);
    }
}

//! Processors: the time of threads and of themselves, their frequency, idle states and nodes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use knee_tables::Cpu;
use serde::Serialize;

use crate::files::{self, Files};
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

    /// All that was counted; guests are in user and nice already.
    fn time_us(&self) -> i64 {
        self.programs_us()
            + self.system_us
            + self.idle_us
            + self.iowait_us
            + self.interrupts_us()
            + self.steal_us
    }
}

/// Every processor, from `/proc/stat`.
pub fn processors() -> Vec<Processor> {
    processors_of(&fs::read_to_string("/proc/stat").unwrap_or_default())
}

/// Every processor of a text of `/proc/stat`.
pub fn processors_of(stat: &str) -> Vec<Processor> {
    let lines = parse(stat);
    lines.into_iter().filter_map(|(_, times)| times).collect()
}

/// A processor of a snapshot.
#[derive(Debug, Default, Serialize)]
pub struct CpuState {
    pub cpu: u32,
    pub numa_node: Option<u32>,
    pub siblings: Option<Vec<u32>>,
    pub governor: Option<String>,
    pub driver: Option<String>,
    pub max_khz: Option<i64>,
    pub hardware_max_khz: Option<i64>,
    pub idle_state: Option<String>,
    pub idle_exit_us: Option<i64>,
    pub isolated: Option<bool>,
    /// The time since boot that was counted, and of it neither idle nor waiting for a disk, in soft interrupts, given
    /// to others by the hypervisor. `None`: its line is damaged.
    pub time_us: Option<i64>,
    pub busy_us: Option<i64>,
    pub softirq_us: Option<i64>,
    pub steal_us: Option<i64>,
}

/// Reads the processors of a snapshot; `settings`: not only their times.
pub fn states(files: &mut Files, settings: bool) -> Vec<CpuState> {
    let stat = files.roots.proc.join("stat");
    let mut found: Vec<_> = (parse(&files.text(&stat, "").unwrap_or_default()).into_iter())
        .map(|(cpu, times)| CpuState {
            cpu,
            time_us: times.map(|times| times.time_us()),
            busy_us: times.map(|times| times.time_us() - times.idle_us - times.iowait_us),
            softirq_us: times.map(|times| times.softirq_us),
            steal_us: times.map(|times| times.steal_us),
            ..CpuState::default()
        })
        .collect();
    if found.is_empty() {
        let why = format!("{} is not there", stat.display());
        files.miss("processors", why, "a mounted /proc");
    }
    if settings {
        let base = files.roots.sys.join("devices/system");
        let nodes = nodes(files, &base.join("node"));
        let isolated = files
            .cpu_list(base.join("cpu/isolated"), "")
            .unwrap_or_default();
        for cpu in &mut found {
            cpu.numa_node = nodes.get(&cpu.cpu).copied();
            cpu.isolated = Some(isolated.contains(&cpu.cpu));
            let folder = base.join(format!("cpu/cpu{}", cpu.cpu));
            read_settings(files, &folder, cpu);
        }
    }
    found
}

fn read_settings(files: &mut Files, folder: &Path, cpu: &mut CpuState) {
    cpu.siblings = files.cpu_list(folder.join("topology/thread_siblings_list"), "");
    cpu.governor = files.text(folder.join("cpufreq/scaling_governor"), "");
    cpu.driver = files.text(folder.join("cpufreq/scaling_driver"), "");
    cpu.max_khz = files.number(folder.join("cpufreq/scaling_max_freq"), "");
    cpu.hardware_max_khz = files.number(folder.join("cpufreq/cpuinfo_max_freq"), "");
    // The deepest idle state that may be taken.
    let idle = folder.join("cpuidle");
    for number in files::numbered(&idle, "state").into_iter().rev() {
        let state = idle.join(format!("state{number}"));
        if files.text(state.join("disable"), "").as_deref() != Some("1") {
            cpu.idle_state = files.text(state.join("name"), "");
            cpu.idle_exit_us = files.number(state.join("latency"), "");
            return;
        }
    }
}

/// The NUMA node of each processor.
fn nodes(files: &mut Files, folder: &Path) -> BTreeMap<u32, u32> {
    let mut found = BTreeMap::new();
    for node in files::numbered(folder, "node") {
        let list = files.cpu_list(folder.join(format!("node{node}/cpulist")), "");
        found.extend(list.into_iter().flatten().map(|cpu| (cpu, node)));
    }
    found
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

/// Each processor's number, and its times; `None`: its line is damaged.
fn parse(text: &str) -> Vec<(u32, Option<Processor>)> {
    // The line of all together has no number.
    let numbered = |line: &str| {
        let (number, times) = line.strip_prefix("cpu")?.split_once(' ')?;
        let number = number.parse().ok()?;
        Some((number, times_of(number, times)))
    };
    text.lines().filter_map(numbered).collect()
}

fn times_of(number: u32, text: &str) -> Option<Processor> {
    // /proc/stat counts in USER_HZ, which is 100 on every architecture we run on.
    const TICK_US: i64 = 10_000;
    // Linux 2.6.11; those of guests came later.
    const LEAST: usize = 8;
    let ticks: Vec<i64> = text
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    if ticks.len() < LEAST {
        return None;
    }
    let us = |n: usize| ticks.get(n).copied().unwrap_or(0).saturating_mul(TICK_US);
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
        assert_eq!(found[0], (0, Some(first)));
        assert_eq!(
            parse("cpu0 1 2\ncpu1 1 0 0 x 0 0 0 0\ncpus 1\n"),
            [(0, None), (1, None)]
        );
    }
}

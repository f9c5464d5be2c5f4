//! Processor time of every thread of this host.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::text;

/// /proc counts in USER_HZ, which is 100 on every architecture we run on.
const TICK_US: i64 = 10_000;

/// A thread's time so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    pub pid: i32,
    /// Its process's name, and its own.
    pub program: String,
    pub name: String,
    /// On a processor.
    pub run_ns: i64,
    /// Ready, with no processor free.
    pub wait_ns: i64,
    pub user_us: i64,
    pub system_us: i64,
}

/// Every thread by its number, or those of the process `pid`. Threads that end meanwhile are left out.
pub fn all(pid: Option<i32>) -> BTreeMap<i32, Thread> {
    let mut found = BTreeMap::new();
    match pid {
        Some(pid) => of_process(pid, &mut found),
        None => {
            for pid in numbers(Path::new("/proc")) {
                of_process(pid, &mut found);
            }
        }
    }
    found
}

fn of_process(pid: i32, found: &mut BTreeMap<i32, Thread>) {
    let process = format!("/proc/{pid}");
    let program = comm(Path::new(&process));
    for tid in numbers(&Path::new(&process).join("task")) {
        let folder = format!("{process}/task/{tid}");
        let folder = Path::new(&folder);
        let (Ok(stat), Ok(schedstat)) = (
            text::read(folder.join("stat")),
            fs::read_to_string(folder.join("schedstat")),
        ) else {
            continue;
        };
        let Some((name, user_us, system_us)) = of_stat(&stat) else {
            continue;
        };
        let mut times = schedstat.split_whitespace().map(str::parse);
        let mut next = || times.next().and_then(Result::ok).unwrap_or(0);
        let thread = Thread {
            pid,
            program: program.clone(),
            name: name.to_owned(),
            run_ns: next(),
            wait_ns: next(),
            user_us,
            system_us,
        };
        found.insert(tid, thread);
    }
}

fn comm(process: &Path) -> String {
    let name = text::read(process.join("comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

fn numbers(folder: &Path) -> Vec<i32> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Name, time in the program and time in the kernel. The name may hold anything, brackets too.
pub fn of_stat(text: &str) -> Option<(&str, i64, i64)> {
    let (before, after) = text.rsplit_once(')')?;
    let name = before.split_once('(')?.1;
    // utime and stime are the 14th and 15th field of proc(5), and the third follows the name.
    let mut fields = after.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<i64>().ok();
    Some((name, ticks()? * TICK_US, ticks()? * TICK_US))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_is_read_whole() {
        let text = "7 (a) b (c) S 1 7 7 0 -1 4194304 1 2 3 4 25 9 5 6 20 0 1 0 30 40 50";
        assert_eq!(of_stat(text), Some(("a) b (c", 250_000, 90_000)));
        assert_eq!(of_stat("7 (a"), None);
        assert_eq!(of_stat("7 (a) S 1 2"), None);
    }

    #[test]
    fn this_thread_is_among_those_of_its_process_and_of_the_host() {
        let tid = nix::unistd::gettid().as_raw();
        let pid = nix::unistd::getpid().as_raw();
        // The kernel books a thread's time when it leaves its processor.
        std::thread::sleep(std::time::Duration::from_millis(1));
        let ours = all(Some(pid));
        assert!(ours[&tid].run_ns > 0);
        assert!(ours.values().all(|thread| thread.pid == pid));
        assert!(all(None).contains_key(&tid));
        assert!(all(Some(0)).is_empty());
    }
}

//! Which process holds a socket, from the links in `/proc/PID/fd`.
//!
//! The walk over all processes is done in pieces of bounded time, and only while
//! there are sockets whose process is not known.

use std::collections::HashMap;
use std::fs;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use nix::dir::{Dir, OwningIter};
use nix::errno::Errno;
use nix::fcntl::{OFlag, readlinkat};
use nix::sys::stat::Mode;

use crate::text;
use knee_clock::thread_ns;

/// A process that holds a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    /// Its name, of 15 bytes at most.
    pub comm: String,
}

/// Finds processes by inode.
#[derive(Default)]
pub struct Processes {
    /// Inodes looked for, and the number of the first whole walk that can tell.
    wanted: HashMap<u32, u64>,
    /// Walks begun.
    walks: u64,
    walk: Option<Walk>,
    /// Processes of others, which the kernel does not let us look into, of the last whole walk.
    denied: u64,
}

/// A walk that is under way.
struct Walk {
    pids: Vec<i32>,
    current: Option<(Arc<Process>, fs::File, OwningIter)>,
    denied: u64,
}

impl Processes {
    /// Looks for the inode's process from now on, until a whole walk has been done.
    pub fn want(&mut self, inode: u32) {
        self.wanted.entry(inode).or_insert(self.walks + 1);
    }

    /// Walks on for at most about `budget` of processor time. Whoever holds a wanted inode is handed
    /// to `found`, which is asked for once.
    pub fn walk(&mut self, budget: Duration, mut found: impl FnMut(u32, &Arc<Process>)) {
        let began_ns = thread_ns();
        let mut looked = 0u32;
        while !self.wanted.is_empty() {
            if self.walk.is_none() {
                self.walks += 1;
                self.walk = Some(Walk::new());
            }
            let walk = self.walk.as_mut().expect("made above");
            match walk.next() {
                Step::Link(inode) => {
                    if self.wanted.remove(&inode).is_some() {
                        let (process, ..) = walk.current.as_ref().expect("a link is of a process");
                        found(inode, process);
                    }
                }
                Step::Other => {}
                Step::End => {
                    self.denied = walk.denied;
                    self.walk = None;
                    // Who was not found in a walk begun after the question has no process.
                    let walks = self.walks;
                    self.wanted.retain(|_, first| *first > walks);
                }
            }
            looked += 1;
            if looked.is_multiple_of(32) && Duration::from_nanos(thread_ns() - began_ns) >= budget {
                return;
            }
        }
    }

    /// Is it still looked for?
    pub fn is_wanted(&self, inode: u32) -> bool {
        self.wanted.contains_key(&inode)
    }

    /// Processes that could not be looked into.
    pub fn denied(&self) -> u64 {
        self.denied
    }
}

enum Step {
    /// A descriptor that is a socket.
    Link(u32),
    /// Another descriptor, or another process.
    Other,
    End,
}

impl Walk {
    fn new() -> Walk {
        let mut pids: Vec<i32> = fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        // Ended processes' numbers are used again; the newest come first.
        pids.sort_unstable();
        Walk {
            pids,
            current: None,
            denied: 0,
        }
    }

    fn next(&mut self) -> Step {
        if let Some((_, folder, links)) = &mut self.current {
            let Some(entry) = links.next() else {
                self.current = None;
                return Step::Other;
            };
            let inode = entry
                .ok()
                .and_then(|entry| readlinkat(folder.as_fd(), entry.file_name()).ok())
                .and_then(|target| {
                    let target = target.to_str()?;
                    target
                        .strip_prefix("socket:[")?
                        .strip_suffix(']')?
                        .parse()
                        .ok()
                });
            return inode.map_or(Step::Other, Step::Link);
        }
        let Some(pid) = self.pids.pop() else {
            return Step::End;
        };
        let path = format!("/proc/{pid}/fd");
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        match (
            Dir::open(path.as_str(), flags, Mode::empty()),
            fs::File::open(&path),
        ) {
            (Ok(links), Ok(folder)) => {
                let comm = text::read(format!("/proc/{pid}/comm")).unwrap_or_default();
                let comm = comm.trim_end().to_owned();
                let process = Arc::new(Process { pid, comm });
                self.current = Some((process, folder, links.into_iter()));
            }
            (Err(Errno::EACCES | Errno::EPERM), _) => self.denied += 1,
            // It has ended meanwhile.
            _ => {}
        }
        Step::Other
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    use super::*;

    fn inode(socket: &impl AsRawFd) -> u32 {
        let link = fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
        let link = link.to_str().unwrap();
        link.strip_prefix("socket:[")
            .unwrap()
            .strip_suffix(']')
            .unwrap()
            .parse()
            .unwrap()
    }

    #[test]
    fn socket_of_this_process_is_found_under_its_name() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let inode = inode(&socket);
        let mut processes = Processes::default();
        processes.want(inode);
        let mut found = Vec::new();
        processes.walk(Duration::from_secs(20), |inode, process| {
            found.push((inode, process.pid));
        });
        assert_eq!(found, [(inode, std::process::id() as i32)]);
        assert!(processes.wanted.is_empty());
    }

    #[test]
    fn inode_that_nobody_holds_is_given_up_after_one_whole_walk() {
        let mut processes = Processes::default();
        processes.want(u32::MAX);
        processes.walk(Duration::from_secs(20), |_, _| panic!("nobody holds it"));
        assert!(processes.wanted.is_empty());
        assert_eq!(processes.walks, 1);
    }

    #[test]
    fn walk_without_time_goes_on_where_it_stopped() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut processes = Processes::default();
        processes.want(inode(&socket));
        let mut pieces = 0;
        let mut found = 0;
        while found == 0 {
            processes.walk(Duration::ZERO, |_, _| found += 1);
            pieces += 1;
            assert!(pieces < 1_000_000);
        }
        assert_eq!(processes.walks, 1);
    }
}

//! Which sockets use a congestion control.

use std::fs::{self, File};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;

use knee_collect::sock_diag::{Extensions, Family, Question, SockDiag};
use nix::sched::{CloneFlags, setns};

/// Sockets in every state, listeners too.
const EVERY: Question = Question::of(Family::Both, 0xfff, Extensions::ALL);

/// A socket that runs an algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Network namespace: a name of /run/netns, or "" for the caller's own.
    pub namespace: String,
    pub source: (IpAddr, u16),
    pub destination: (IpAddr, u16),
}

/// Sockets of the caller's namespace and of those with a name. Others cannot be
/// seen from here: labs, containers.
pub fn of(called: &str) -> Vec<User> {
    let mut places = vec![(String::new(), None)];
    // The caller's own may have a name, too.
    let own = fs::metadata("/proc/thread-self/ns/net")
        .map(|about| about.ino())
        .ok();
    for entry in fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        if let Ok(file) = File::open(entry.path())
            && file.metadata().map(|about| about.ino()).ok() != own
        {
            places.push((entry.file_name().to_string_lossy().into_owned(), Some(file)));
        }
    }
    places
        .into_iter()
        .flat_map(|(name, file)| {
            let called = called.to_owned();
            // A thread of its own: entering a namespace is a thread's affair.
            std::thread::spawn(move || {
                let entered = file.is_none_or(|file| setns(file, CloneFlags::CLONE_NEWNET).is_ok());
                if entered {
                    here(&name, &called)
                } else {
                    Vec::new()
                }
            })
            .join()
            .unwrap_or_default()
        })
        .collect()
}

fn here(namespace: &str, called: &str) -> Vec<User> {
    let mut users = Vec::new();
    let Ok(mut diag) = SockDiag::new() else {
        return users;
    };
    // A namespace that cannot be asked shows nothing.
    let _ = diag.dump(&EVERY, |socket| {
        if socket.congestion == Some(called) {
            users.push(User {
                namespace: namespace.to_owned(),
                source: socket.source,
                destination: socket.destination,
            });
        }
    });
    users
}

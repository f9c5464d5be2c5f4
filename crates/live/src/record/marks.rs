//! Sockets of our own, closed to be told of: what the kernel tells of them stands behind whatever was destroyed before.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use knee_collect::sock_diag::Diag;
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::unistd::Pid;

/// The marks that are on their way.
#[derive(Default)]
pub struct Marks {
    /// Of the sockets whose event was not seen yet.
    cookies: Mutex<Vec<u64>>,
    waiting: AtomicUsize,
}

impl Marks {
    /// Closes a socket on each processor that the calling thread may run on: the kernel has a work queue for each.
    /// False: there is no such socket, as where IPv4 is forbidden; nothing can be waited for then.
    pub fn set(&self) -> bool {
        let this_thread = Pid::from_raw(0);
        let Ok(all) = sched_getaffinity(this_thread) else {
            return self.set_here();
        };
        let mut is_set = false;
        let is_ours = |&cpu: &usize| all.is_set(cpu).unwrap_or(false);
        for cpu in (0..CpuSet::count()).filter(is_ours) {
            let mut one = CpuSet::new();
            let _ = (one.set(cpu)).and_then(|()| sched_setaffinity(this_thread, &one));
            is_set |= self.set_here();
        }
        let _ = sched_setaffinity(this_thread, &all);
        is_set
    }

    /// A process that has no room for a socket, and a Linux before 4.12, which does not tell cookies, have no mark.
    fn set_here(&self) -> bool {
        let tcp = socket(
            AddressFamily::Inet,
            SockType::Stream,
            SockFlag::SOCK_CLOEXEC,
            None,
        );
        let Ok(socket) = tcp else {
            return false;
        };
        let Ok(cookie) = cookie_of(&socket) else {
            return false;
        };
        self.cookies
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(cookie);
        self.waiting.fetch_add(1, Ordering::Release);
        drop(socket);
        true
    }

    /// Is this event that of a mark? True once for each.
    pub fn is_one(&self, event: &[u8]) -> bool {
        if self.have_come() {
            return false;
        }
        let Some(diag) = Diag::decode(event) else {
            return false;
        };
        let mut cookies = self.cookies.lock().unwrap_or_else(PoisonError::into_inner);
        let at = cookies.iter().position(|&cookie| cookie == diag.cookie);
        at.map(|at| cookies.swap_remove(at)).is_some()
    }

    /// So many marks have come, and what came before them is where it belongs.
    pub fn come(&self, marks: usize) {
        self.waiting.fetch_sub(marks, Ordering::Release);
    }

    /// No mark is on its way.
    pub fn have_come(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }
}

/// The number by which sock_diag tells of the socket.
fn cookie_of(socket: &OwnedFd) -> nix::Result<u64> {
    let mut cookie = 0u64;
    let mut length = size_of_val(&cookie) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `cookie`, which outlives the call.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    Errno::result(done).map(|_| cookie)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::time::{Duration, Instant};

    use knee_collect::sock_diag::Destroyed;
    use nix::poll::{PollFd, PollFlags, poll};

    use super::*;

    #[test]
    fn each_processor_has_a_mark_whose_event_is_known_once() {
        let mut destroyed = Destroyed::new().unwrap();
        let all = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let processors = (0..CpuSet::count())
            .filter(|&cpu| all.is_set(cpu).unwrap())
            .count();
        let marks = Marks::default();
        assert!(marks.have_come());
        assert!(marks.set());
        assert_eq!(sched_getaffinity(Pid::from_raw(0)), Ok(all));
        let (mut found, began) = (0, Instant::now());
        while found < processors && began.elapsed() < Duration::from_secs(10) {
            let _ = poll(
                &mut [PollFd::new(destroyed.as_fd(), PollFlags::POLLIN)],
                100u16,
            );
            destroyed
                .receive(|event| {
                    let is_one = marks.is_one(event);
                    assert!(!is_one || !marks.is_one(event));
                    found += usize::from(is_one);
                })
                .unwrap();
            assert!(!marks.have_come());
        }
        assert_eq!(found, processors);
        marks.come(found);
        assert!(marks.have_come());
    }
}

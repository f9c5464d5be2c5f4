//! Keeps algorithm and owner of each socket from one dump to the next, by its
//! cookie: a destroy event has neither.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use knee_collect::processes::Process;
use knee_collect::sock_diag::Diag;

/// A socket that so many dumps in a row lack is forgotten, once that has taken [`KEPT`]. Its destroy event may
/// still be on its way until then.
const KEPT_DUMPS: u64 = 3;

/// Destroy events come from a work queue of the kernel, which may be late on a machine that is busy.
const KEPT: Duration = Duration::from_secs(10);

/// A socket, and what its user keeps beside it.
#[derive(Clone, Debug, Default)]
pub struct Entry<T> {
    cookie: u64,
    /// The socket that followed it in the last dump.
    next: u32,
    seen: u64,
    /// Number of the algorithm's name, from 1.
    algorithm: u16,
    pub uid: u32,
    pub inode: u32,
    pub mark: Option<u32>,
    pub cgroup_id: Option<u64>,
    pub process: Option<Arc<Process>>,
    /// Has its process been asked for?
    pub asked: bool,
    pub kept: T,
}

impl<T> Entry<T> {
    /// True once a dump has had its owner. Dumps of TIME_WAIT never have.
    pub fn is_told(&self) -> bool {
        self.algorithm != 0
    }
}

/// The sockets, by cookie.
#[derive(Default)]
pub struct Cookies<T = ()> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
    by_cookie: AHashMap<u64, u32>,
    last: u32,
    dump: u64,
    /// Dumps that are younger than [`KEPT`], by when they began.
    young: VecDeque<(u64, Instant)>,
    algorithms: Vec<Box<str>>,
}

impl<T: Default> Cookies<T> {
    /// Begins a dump.
    pub fn begin(&mut self) {
        self.begin_at(Instant::now());
    }

    fn begin_at(&mut self, now: Instant) {
        self.dump += 1;
        let is_old = |&(_, began): &(u64, Instant)| now.duration_since(began) > KEPT;
        while self.young.front().is_some_and(is_old) {
            self.young.pop_front();
        }
        self.young.push_back((self.dump, now));
    }

    /// Ends a dump, and forgets sockets that are long gone.
    pub fn end(&mut self, sockets: u64) {
        if self.by_cookie.len() as u64 <= sockets {
            return;
        }
        let first = self.young.front().map_or(self.dump, |&(dump, _)| dump);
        let least = first.min(self.dump.saturating_sub(KEPT_DUMPS));
        let (entries, free) = (&mut self.entries, &mut self.free);
        self.by_cookie.retain(|_, &mut at| {
            let entry = &mut entries[at as usize];
            let stays = entry.seen >= least;
            if !stays {
                *entry = Entry::default();
                free.push(at);
            }
            stays
        });
    }

    /// Returns the entry of a dump's socket, brought up to date from its row.
    pub fn see(&mut self, diag: &Diag<'_>) -> &mut Entry<T> {
        let at = self.find_or_add(diag.cookie);
        self.tell(at, diag)
    }

    fn tell(&mut self, at: u32, diag: &Diag<'_>) -> &mut Entry<T> {
        let algorithm = self.number(at, diag.congestion);
        let entry = &mut self.entries[at as usize];
        entry.seen = self.dump;
        // TIME_WAIT and the like keep the cookie and nothing else.
        if let Some(number) = algorithm {
            entry.algorithm = number;
            entry.uid = diag.uid;
            entry.inode = diag.inode;
            entry.mark = diag.mark;
            entry.cgroup_id = diag.cgroup_id;
        }
        entry
    }

    /// Like `see`, for a single dump: the entry is not kept.
    pub fn see_once(&mut self, diag: &Diag<'_>) -> &mut Entry<T> {
        if self.entries.is_empty() {
            self.entries.push(Entry::default());
        }
        self.entries[0].algorithm = 0;
        self.tell(0, diag)
    }

    pub fn get(&self, cookie: u64) -> Option<&Entry<T>> {
        let at = *self.by_cookie.get(&cookie)?;
        Some(&self.entries[at as usize])
    }

    /// Returns the name of its algorithm.
    pub fn algorithm(&self, entry: &Entry<T>) -> Option<&str> {
        let at = usize::from(entry.algorithm).checked_sub(1)?;
        Some(&self.algorithms[at])
    }

    pub fn forget(&mut self, cookie: u64) {
        if let Some(at) = self.by_cookie.remove(&cookie) {
            self.entries[at as usize] = Entry::default();
            self.free.push(at);
        }
    }

    /// Sets the process that holds the socket, unless its inode has changed.
    pub fn set_process(&mut self, cookie: u64, inode: u32, process: Arc<Process>) {
        if let Some(&at) = self.by_cookie.get(&cookie) {
            let entry = &mut self.entries[at as usize];
            if entry.inode == inode {
                entry.process = Some(process);
            }
        }
    }

    /// Changes what its user keeps of the socket, if it has an entry.
    pub fn change(&mut self, cookie: u64, change: impl FnOnce(&mut T)) {
        if let Some(&at) = self.by_cookie.get(&cookie) {
            change(&mut self.entries[at as usize].kept);
        }
    }

    /// Finds a socket by cookie. Dumps come in nearly the same order, so the socket
    /// that followed last time is tried before the map.
    fn find_or_add(&mut self, cookie: u64) -> u32 {
        let guess = self
            .entries
            .get(self.last as usize)
            .map_or(0, |entry| entry.next);
        let at = match self.entries.get(guess as usize) {
            Some(entry) if entry.cookie == cookie && cookie != 0 => guess,
            _ => {
                let at = match self.by_cookie.get(&cookie) {
                    Some(&at) => at,
                    None => self.add(cookie),
                };
                if let Some(last) = self.entries.get_mut(self.last as usize) {
                    last.next = at;
                }
                at
            }
        };
        self.last = at;
        at
    }

    fn add(&mut self, cookie: u64) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry::default());
            (self.entries.len() - 1) as u32
        });
        self.entries[at as usize].cookie = cookie;
        self.by_cookie.insert(cookie, at);
        at
    }

    /// Returns the name's number, or `None` for a socket without congestion control.
    fn number(&mut self, at: u32, name: Option<&str>) -> Option<u16> {
        let name = name?;
        let entry = &self.entries[at as usize];
        if self.algorithm(entry) == Some(name) {
            return Some(entry.algorithm);
        }
        let known = self.algorithms.iter().position(|known| **known == *name);
        let at = known.unwrap_or_else(|| {
            self.algorithms.push(name.into());
            self.algorithms.len() - 1
        });
        u16::try_from(at + 1).ok()
    }
}

#[cfg(test)]
mod tests {
    use knee_collect::testing::diag;

    use super::*;

    fn of(cookie: u64, congestion: Option<&str>) -> Diag<'_> {
        Diag {
            cookie,
            congestion,
            inode: cookie as u32 + 100,
            ..diag(&[])
        }
    }

    #[test]
    fn facts_of_the_last_dump_are_found_by_cookie_in_whatever_order_sockets_come() {
        let mut cookies = Cookies::<()>::default();
        for order in [[1, 2, 3, 4], [4, 2, 3, 1], [1, 3, 2, 4], [1, 2, 3, 4]] {
            cookies.begin();
            for cookie in order {
                cookies.see(&of(cookie, Some(if cookie < 3 { "cubic" } else { "bbr" })));
            }
            cookies.end(4);
            for cookie in 1..=4 {
                let entry = cookies.get(cookie).unwrap();
                assert_eq!(u64::from(entry.inode), cookie + 100);
                let expected = if cookie < 3 { "cubic" } else { "bbr" };
                assert_eq!(cookies.algorithm(entry), Some(expected));
            }
        }
        assert_eq!(cookies.entries.len(), 4);
    }

    #[test]
    fn time_wait_keeps_what_its_connection_told() {
        let mut cookies = Cookies::<()>::default();
        cookies.begin();
        cookies.see(&of(9, Some("cubic")));
        let mut rest = of(9, None);
        rest.inode = 0;
        cookies.see(&rest);
        let entry = cookies.get(9).unwrap();
        assert_eq!(
            (entry.inode, cookies.algorithm(entry)),
            (109, Some("cubic"))
        );
    }

    #[test]
    fn socket_without_a_destroy_event_is_forgotten_after_some_dumps_and_some_time() {
        let (mut cookies, start) = (Cookies::<()>::default(), Instant::now());
        cookies.begin_at(start);
        cookies.see(&of(1, Some("cubic")));
        cookies.see(&of(2, Some("cubic")));
        for _ in 0..=KEPT_DUMPS {
            cookies.begin_at(start);
            cookies.see(&of(2, Some("cubic")));
            cookies.end(1);
            assert!(cookies.get(1).is_some(), "its event may still come");
        }
        cookies.begin_at(start + 2 * KEPT);
        cookies.see(&of(2, Some("cubic")));
        cookies.end(1);
        assert!(cookies.get(1).is_none());
        cookies.begin();
        cookies.see(&of(3, Some("bbr")));
        assert_eq!(cookies.entries.len(), 2, "its place is used again");
    }
}

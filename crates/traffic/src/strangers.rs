//! Who has connected and has not said yet who they are.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::sys::socket::{MsgFlags, SockaddrStorage, getpeername, recv};

use crate::{GREETING_BYTES, Secret, greeted};

/// Those that wait at once; for one more, another one is sent away.
const MOST: usize = 64;

struct Stranger {
    fd: OwnedFd,
    from: Option<IpAddr>,
    since: Instant,
    said: Vec<u8>,
}

/// By name, in the order in which they came.
#[derive(Default)]
pub struct Strangers {
    /// The far host's address, as far as it has been seen: those that come from there are sent away last.
    known: Option<IpAddr>,
    waiting: BTreeMap<u64, Stranger>,
    next: u64,
}

impl Strangers {
    pub fn new(known: Option<IpAddr>) -> Strangers {
        Strangers {
            known,
            ..Strangers::default()
        }
    }

    /// Lets one more wait, whose socket does not block. Returns its name.
    pub fn add(&mut self, fd: OwnedFd) -> u64 {
        let from = peer(&fd);
        let name = self.next;
        self.next += 1;
        let stranger = Stranger {
            fd,
            from,
            since: Instant::now(),
            said: Vec::new(),
        };
        self.waiting.insert(name, stranger);
        if self.waiting.len() > MOST {
            self.send_one_away();
        }
        name
    }

    /// The oldest that comes from elsewhere than the far host; where there is none, the oldest. Is there one?
    pub fn send_one_away(&mut self) -> bool {
        let elsewhere = |one: &Stranger| self.known.is_some() && one.from != self.known;
        let mut names = self.waiting.iter();
        let first = names.find(|(_, one)| elsewhere(one));
        let name = first
            .or(self.waiting.first_key_value())
            .map(|(&name, _)| name);
        name.is_some_and(|name| self.waiting.remove(&name).is_some())
    }

    /// Those that have waited for longer than this go.
    pub fn send_late_away(&mut self, patience: Duration) {
        self.waiting.retain(|_, one| one.since.elapsed() < patience);
    }

    pub fn get(&self, name: u64) -> Option<&OwnedFd> {
        self.waiting.get(&name).map(|one| &one.fd)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, &OwnedFd)> {
        self.waiting.iter().map(|(&name, one)| (name, &one.fd))
    }

    /// What one says: a greeting, and it is a stranger no longer; anything else, and it is sent away.
    pub fn hear(&mut self, name: u64, secret: Secret) -> Option<(u32, OwnedFd)> {
        let one = self.waiting.get_mut(&name)?;
        let mut bytes = [0; GREETING_BYTES];
        let rest = &mut bytes[one.said.len()..];
        match recv(one.fd.as_raw_fd(), rest, MsgFlags::empty()) {
            Ok(0) => {}
            Ok(count) => {
                one.said.extend_from_slice(&rest[..count]);
                if one.said.len() < GREETING_BYTES {
                    return None;
                }
            }
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => return None,
            Err(_) => {}
        }
        let one = self.waiting.remove(&name)?;
        greeted(secret, &one.said).map(|number| (number, one.fd))
    }
}

/// The address at the far end of a connection.
pub fn peer(fd: &impl AsRawFd) -> Option<IpAddr> {
    let far: SockaddrStorage = getpeername(fd.as_raw_fd()).ok()?;
    let v4 = far.as_sockaddr_in().map(|far| far.ip().into());
    v4.or(far.as_sockaddr_in6().map(|far| far.ip().into()))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use super::*;
    use crate::greeting;

    /// Both ends of a connection that comes from 127.0.0.`last`.
    fn pair(listener: &TcpListener, last: u8) -> (TcpStream, OwnedFd) {
        use nix::sys::socket::{
            AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket,
        };
        let flags = SockFlag::SOCK_CLOEXEC;
        let near = socket(AddressFamily::Inet, SockType::Stream, flags, None).unwrap();
        bind(near.as_raw_fd(), &SockaddrIn::new(127, 0, 0, last, 0)).unwrap();
        let to = SockaddrStorage::from(listener.local_addr().unwrap());
        connect(near.as_raw_fd(), &to).unwrap();
        let (far, _) = listener.accept().unwrap();
        far.set_nonblocking(true).unwrap();
        (near.into(), far.into())
    }

    #[test]
    fn a_flood_from_elsewhere_sends_nobody_of_the_far_host_away() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let known = Some(Ipv4Addr::new(127, 0, 0, 2).into());
        let mut strangers = Strangers::new(known);
        let (mut near, far) = pair(&listener, 2);
        let name = strangers.add(far);
        let flood: Vec<_> = (0..2 * MOST).map(|_| pair(&listener, 3)).collect();
        let flood: Vec<_> = (flood.into_iter())
            .map(|(near, far)| (near, strangers.add(far)))
            .collect();
        assert_eq!(strangers.iter().count(), MOST);
        let secret = [7; 16];
        near.write_all(&greeting(secret, 5)).unwrap();
        assert_eq!(
            strangers.hear(name, secret).map(|(number, _)| number),
            Some(5)
        );
        // One that says something else goes at once, one that says nothing when its time is over.
        let (mut other, name) = flood.into_iter().next_back().unwrap();
        other.write_all(&[0; GREETING_BYTES]).unwrap();
        assert!(strangers.hear(name, secret).is_none() && strangers.get(name).is_none());
        strangers.send_late_away(Duration::ZERO);
        assert!(!strangers.send_one_away());
    }
}

//! One test at a time: a name in the host's network, without a file, that whoever tests listens at, and that says who it
//! is. It is of all users, and goes with the process.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, getsockopt, listen, socket,
};
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};

const NAME: &str = "tcpknee-hosts";
/// Of what it says.
const MOST_BYTES: u64 = 1_000;
/// Of the name of who tests.
const WHO_CHARACTERS: usize = 200;
/// How long it may take to say it: it may be anybody's.
const PATIENCE: Duration = Duration::from_millis(500);

/// Who tests with this host, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub who: String,
    pub since_unix_s: u64,
}

/// Takes the lock for `who`, until this process ends. Returns who else has it.
///
/// # Errors
/// There can be no lock; in words.
pub fn take(who: &str) -> Result<Option<Holder>, String> {
    take_as(NAME, who).map_err(|error| format!("cannot lock this host: {error}"))
}

fn take_as(name: &str, who: &str) -> io::Result<Option<Holder>> {
    let address = UnixAddr::new_abstract(name.as_bytes())?;
    let fd = open(SockFlag::empty())?;
    match bind(fd.as_raw_fd(), &address) {
        Ok(()) => {}
        Err(nix::Error::EADDRINUSE) => return Ok(Some(holder(&address, who))),
        Err(error) => return Err(error.into()),
    }
    listen(&fd, Backlog::new(16)?)?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let holder = Holder {
        who: who.chars().take(WHO_CHARACTERS).collect(),
        since_unix_s: since.map_or(0, |since| since.as_secs()),
    };
    let text = serde_json::to_vec(&holder)?;
    std::thread::spawn(move || {
        for stream in UnixListener::from(fd).incoming() {
            match stream {
                // It fits into the socket's buffer, so that nobody can delay it.
                Ok(mut stream) => drop(stream.write_all(&text)),
                Err(_) => std::thread::sleep(PATIENCE),
            }
        }
    });
    Ok(None)
}

fn open(flags: SockFlag) -> nix::Result<OwnedFd> {
    let flags = flags | SockFlag::SOCK_CLOEXEC;
    socket(AddressFamily::Unix, SockType::Stream, flags, None)
}

/// Who listens there: in his own words, with his user where that is another one than this.
fn holder(address: &UnixAddr, asks: &str) -> Holder {
    let ask = || -> io::Result<(Option<Holder>, u32)> {
        // One that lets others wait in line is not waited for.
        let fd = open(SockFlag::SOCK_NONBLOCK)?;
        connect(fd.as_raw_fd(), address)?;
        let uid = getsockopt(&fd.as_fd(), PeerCredentials)?.uid();
        let stream = UnixStream::from(fd);
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut text = String::new();
        let read = stream.take(MOST_BYTES).read_to_string(&mut text);
        let said = read.ok().and_then(|_| serde_json::from_str(&text).ok());
        Ok((said, uid))
    };
    let (said, uid) = ask().map_or((None, None), |(said, uid)| (said, Some(uid)));
    let mut holder: Holder = said.unwrap_or(Holder {
        who: "somebody".into(),
        since_unix_s: 0,
    });
    let own = geteuid().as_raw();
    if let Some(uid) = uid.filter(|&uid| uid != own && holder.who != asks) {
        holder.who.push_str(&format!(" (user ID {uid} there)"));
    }
    holder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_is_told_who_holds_it() {
        let name = format!("tcpknee-test-{}", std::process::id());
        assert_eq!(take_as(&name, "ann@desk").unwrap(), None);
        let holder = take_as(&name, "bob@desk").unwrap().unwrap();
        assert_eq!(holder.who, "ann@desk");
        assert!(holder.since_unix_s > 1_700_000_000);
    }

    #[test]
    fn one_that_says_nothing_is_somebody_and_is_not_waited_for() {
        let name = format!("tcpknee-test-silent-{}", std::process::id());
        let address = UnixAddr::new_abstract(name.as_bytes()).unwrap();
        let silent = open(SockFlag::empty()).unwrap();
        bind(silent.as_raw_fd(), &address).unwrap();
        listen(&silent, Backlog::new(0).unwrap()).unwrap();
        for _ in 0..3 {
            assert_eq!(take_as(&name, "bob").unwrap().unwrap().who, "somebody");
        }
    }
}

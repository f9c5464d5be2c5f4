//! The porter: a process that stays in the host's network and hands sockets of
//! it to the lab.
//!
//! A socket belongs to the network namespace of the process that made it, for
//! good, and an ordinary user's process cannot go back to the host's namespace
//! once it is in a user namespace of its own. So one process stays behind.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg,
    sendmsg, socket, socketpair,
};

/// What a socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Stream,
    Datagram,
}

/// A request: one byte each for kind and family.
type Request = [u8; 2];

/// The lab's end of the line to the porter.
pub struct Porter {
    line: OwnedFd,
}

/// The host's end.
pub struct Desk {
    line: OwnedFd,
}

/// A line between a lab and its porter. Errors: no file descriptor is left.
pub fn line() -> io::Result<(Porter, Desk)> {
    let (lab, host) = socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )?;
    Ok((Porter { line: lab }, Desk { line: host }))
}

impl Porter {
    /// A non-blocking socket in the host's network namespace, not connected;
    /// `ipv6` says of which family. Errors are those of socket(2) there, and
    /// EPIPE when the porter is gone.
    pub fn socket(&self, kind: Kind, ipv6: bool) -> io::Result<OwnedFd> {
        let request: Request = [u8::from(kind == Kind::Stream), u8::from(ipv6)];
        sendmsg::<()>(
            self.line.as_raw_fd(),
            &[IoSlice::new(&request)],
            &[],
            MsgFlags::MSG_NOSIGNAL,
            None,
        )?;
        let mut status = [0; 4];
        let mut parts = [IoSliceMut::new(&mut status)];
        let mut space = nix::cmsg_space!(i32);
        let answer = recvmsg::<()>(
            self.line.as_raw_fd(),
            &mut parts,
            Some(&mut space),
            MsgFlags::MSG_CMSG_CLOEXEC,
        )?;
        if answer.bytes == 0 {
            return Err(Errno::EPIPE.into());
        }
        let sent = answer.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::ScmRights(fds) => fds.first().copied(),
            _ => None,
        });
        match sent {
            // SAFETY: the kernel has just made this descriptor for us; nobody
            // else knows it.
            Some(fd) => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
            None => Err(io::Error::from_raw_os_error(i32::from_le_bytes(status))),
        }
    }
}

impl Desk {
    /// Serves until the lab hangs up. Errors: the line broke.
    pub fn serve(&self) -> io::Result<()> {
        loop {
            let mut request: Request = [0; 2];
            let mut parts = [IoSliceMut::new(&mut request)];
            let received =
                match recvmsg::<()>(self.line.as_raw_fd(), &mut parts, None, MsgFlags::empty()) {
                    Ok(message) => message.bytes,
                    Err(Errno::EINTR) => continue,
                    Err(error) => return Err(error.into()),
                };
            if received == 0 {
                return Ok(());
            }
            self.answer(make(request))?;
        }
    }

    fn answer(&self, made: nix::Result<OwnedFd>) -> io::Result<()> {
        let status = made.as_ref().err().map_or(0, |errno| *errno as i32);
        let fds: Vec<i32> = made.iter().map(AsRawFd::as_raw_fd).collect();
        let rights = [ControlMessage::ScmRights(&fds)];
        let rights = if fds.is_empty() { &[] } else { &rights[..] };
        let status = status.to_le_bytes();
        match sendmsg::<()>(
            self.line.as_raw_fd(),
            &[IoSlice::new(&status)],
            rights,
            MsgFlags::MSG_NOSIGNAL,
            None,
        ) {
            // The lab's end shows as end of file at the next request.
            Ok(_) | Err(Errno::EPIPE) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn make([stream, ipv6]: Request) -> nix::Result<OwnedFd> {
    let family = if ipv6 == 0 {
        AddressFamily::Inet
    } else {
        AddressFamily::Inet6
    };
    let kind = if stream == 0 {
        SockType::Datagram
    } else {
        SockType::Stream
    };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    socket(family, kind, flags, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{getsockopt, sockopt};

    #[test]
    fn porter_hands_over_the_kind_of_socket_asked_for() {
        let (porter, desk) = line().unwrap();
        let host = std::thread::spawn(move || desk.serve());
        for (kind, expected) in [
            (Kind::Stream, SockType::Stream),
            (Kind::Datagram, SockType::Datagram),
        ] {
            let socket = porter.socket(kind, false).unwrap();
            assert_eq!(getsockopt(&socket, sockopt::SockType).unwrap(), expected);
        }
        drop(porter);
        host.join().unwrap().unwrap();
    }

    #[test]
    fn porter_that_is_gone_is_an_error_and_not_a_wait() {
        let (porter, desk) = line().unwrap();
        drop(desk);
        let error = porter.socket(Kind::Stream, false).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::EPIPE as i32));
    }
}

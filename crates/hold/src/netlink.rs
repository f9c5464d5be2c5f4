//! Questions and orders to the kernel by netlink. Source: Linux 6.18, include/uapi/linux/{netlink,rtnetlink}.h.

use std::io;
use std::os::fd::AsRawFd;

use knee_uapi::netlink::{self, HEADER_BYTES, Messages, NLMSG_DONE, NLMSG_ERROR};
use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send,
    setsockopt, socket,
};
use nix::sys::time::{TimeVal, TimeValLike};

pub const NEWROUTE: u16 = 24;
pub const DELROUTE: u16 = 25;
pub const GETROUTE: u16 = 26;
pub const NEWQDISC: u16 = 36;
pub const DELQDISC: u16 = 37;
pub const GETQDISC: u16 = 38;
pub const GETFILTER: u16 = 46;

const REQUEST: u16 = 1;
const ACK: u16 = 4;
pub const DUMP: u16 = 0x300;
pub const REPLACE: u16 = 0x100;
pub const EXCL: u16 = 0x200;
pub const CREATE: u16 = 0x400;

/// The kernel answers with messages of 32 KiB at most.
const ROOM_BYTES: usize = 1 << 17;
const ANSWER_SECONDS: i64 = 5;

/// Asks rtnetlink, and gives the bodies of the answers. An order has none.
pub fn ask(kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    ask_of(SockProtocol::NetlinkRoute, kind, flags, body)
}

/// The same of another part of the kernel.
///
/// # Errors
/// The kernel refuses, or does not answer in time.
pub fn ask_of(
    protocol: SockProtocol,
    kind: u16,
    flags: u16,
    body: &[u8],
) -> io::Result<Vec<Vec<u8>>> {
    let socket = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        protocol,
    )?;
    bind(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
    setsockopt(&socket, ReceiveTimeout, &TimeVal::seconds(ANSWER_SECONDS))?;
    // A question about one thing is answered by one message, which an ACK follows.
    let flags = flags | REQUEST | if flags & DUMP == DUMP { 0 } else { ACK };
    let mut message = Vec::with_capacity(HEADER_BYTES + body.len());
    message.extend(((HEADER_BYTES + body.len()) as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend(1u32.to_ne_bytes());
    message.extend(0u32.to_ne_bytes());
    message.extend(body);
    send(socket.as_raw_fd(), &message, MsgFlags::empty())?;
    let mut room = vec![0; ROOM_BYTES];
    let mut found = Vec::new();
    loop {
        let got = recv(socket.as_raw_fd(), &mut room, MsgFlags::empty())?;
        for message in Messages(&room[..got]) {
            let message = message?;
            match message.kind {
                NLMSG_DONE => return Ok(found),
                NLMSG_ERROR => match word(message.body, 0) as i32 {
                    0 => return Ok(found),
                    error => return Err(io::Error::from_raw_os_error(-error)),
                },
                _ => found.push(message.body.to_vec()),
            }
        }
    }
}

/// The number of 4 bytes at a place; 0 behind the end.
pub fn word(bytes: &[u8], at: usize) -> u32 {
    netlink::word(bytes, at).unwrap_or(0)
}

/// The attributes of a body, without what says how they are stored.
pub fn attributes(bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mut found = Vec::new();
    netlink::each(bytes, |kind, content| found.push((kind, content.to_vec())));
    found
}

/// The first attribute of a kind.
pub fn first(attributes: &[(u16, Vec<u8>)], kind: u16) -> Option<&[u8]> {
    let found = attributes.iter().find(|(one, _)| *one == kind);
    found.map(|(_, content)| content.as_slice())
}

/// Attributes as bytes.
pub fn packed(attributes: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (kind, content) in attributes {
        netlink::put(&mut bytes, *kind, content);
    }
    bytes
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_they_were_packed() {
        let some = vec![(1, vec![1, 2, 3]), (7, Vec::new()), (9, vec![0; 8])];
        assert_eq!(attributes(&packed(&some)), some);
        assert_eq!(first(&some, 7), Some(&[][..]));
        assert_eq!(first(&some, 8), None);
    }

    #[test]
    fn what_claims_to_be_longer_than_its_message_is_left_out() {
        let mut bytes = packed(&[(1, vec![1, 2, 3, 4])]);
        bytes[0] = 200;
        assert_eq!(attributes(&bytes), []);
    }
}

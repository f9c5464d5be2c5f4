//! Dumps by rtnetlink.

use std::io;

use knee_uapi::netlink;
use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use super::text;

/// A connection to the kernel's routing, in the namespace where it was made.
pub struct Routing {
    socket: Socket,
    sequence: u32,
}

impl Routing {
    pub fn new() -> io::Result<Routing> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Routing {
            socket,
            sequence: 0,
        })
    }

    /// Hands every answer to `take`; messages that the library does not
    /// understand are passed over.
    ///
    /// # Errors
    /// The kernel refuses the dump.
    pub fn dump(
        &mut self,
        question: RouteNetlinkMessage,
        mut take: impl FnMut(RouteNetlinkMessage),
    ) -> io::Result<()> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        header.sequence_number = self.sequence;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::from(question));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            if answers(&datagram, self.sequence, &mut take)? {
                return Ok(());
            }
        }
    }
}

/// The message of a device whose names the library refuses, as they are no UTF-8: with escapes in them. Names that it
/// has besides are left out.
fn with_plain_names(message: &[u8]) -> Option<Vec<u8>> {
    const RTM_NEWLINK: u16 = 16;
    /// `struct nlmsghdr` and `struct ifinfomsg`.
    const HEADERS_BYTES: usize = netlink::HEADER_BYTES + 16;
    const IFNAME: u16 = 3;
    const IFALIAS: u16 = 20;
    const PHYS_PORT_NAME: u16 = 38;
    const PROP_LIST: u16 = 53;
    let kind = message.get(4..6)?;
    if u16::from_ne_bytes([kind[0], kind[1]]) != RTM_NEWLINK {
        return None;
    }
    let mut plain = message.get(..HEADERS_BYTES)?.to_vec();
    netlink::each(&message[HEADERS_BYTES..], |kind, value| match kind {
        IFNAME | IFALIAS | PHYS_PORT_NAME => {
            netlink::put(&mut plain, kind, text::escaped(value).as_bytes());
        }
        PROP_LIST => {}
        kind => netlink::put(&mut plain, kind, value),
    });
    let length = plain.len() as u32;
    plain[..4].copy_from_slice(&length.to_ne_bytes());
    Some(plain)
}

/// Takes the messages of one datagram; true: it was the dump's last. Messages that
/// the library does not understand are passed over, and those with another
/// sequence number than the request's.
///
/// # Errors
/// The kernel's refusal, or a message that is longer than its datagram.
pub fn answers(
    datagram: &[u8],
    sequence: u32,
    take: &mut impl FnMut(RouteNetlinkMessage),
) -> io::Result<bool> {
    let mut rest = datagram;
    while let Some(&length) = rest.first_chunk::<4>() {
        let length = u32::from_ne_bytes(length) as usize;
        if length < 16 || length > rest.len() {
            return Err(io::Error::other(
                "rtnetlink: a message longer than its datagram",
            ));
        }
        let parse = NetlinkMessage::<RouteNetlinkMessage>::deserialize;
        let message = parse(&rest[..length])
            .or_else(|error| parse(&with_plain_names(&rest[..length]).ok_or(error)?));
        rest = &rest[length.next_multiple_of(4).min(rest.len())..];
        let Ok(message) = message else { continue };
        if message.header.sequence_number != sequence {
            continue;
        }
        match message.payload {
            NetlinkPayload::InnerMessage(message) => take(message),
            NetlinkPayload::Done(_) => return Ok(true),
            NetlinkPayload::Error(error) => {
                let code = error.code.map_or(0, |code| code.get().saturating_neg());
                return Err(io::Error::from_raw_os_error(code));
            }
            _ => {}
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nic;

    #[test]
    fn device_whose_name_is_no_utf8_is_told_with_escapes() {
        let mut message = vec![0; 32];
        message[4..6].copy_from_slice(&16u16.to_ne_bytes());
        message[8..12].copy_from_slice(&7u32.to_ne_bytes());
        message[20..24].copy_from_slice(&5u32.to_ne_bytes());
        netlink::put(&mut message, 3, b"\xff\xfe\0");
        netlink::put(&mut message, 4, &1400u32.to_ne_bytes());
        netlink::put(&mut message, 20, b"a\xc3b\0");
        let mut names = Vec::new();
        netlink::put(&mut names, 52, b"\xfd\0");
        netlink::put(&mut message, 53 | netlink::NESTED, &names);
        let length = message.len() as u32;
        message[..4].copy_from_slice(&length.to_ne_bytes());
        let mut found = Vec::new();
        let ended = answers(&message, 7, &mut |answer| {
            if let RouteNetlinkMessage::NewLink(link) = answer {
                found.push(nic::device(link));
            }
        });
        assert!(!ended.expect("it is an answer"));
        let [device] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(device.name, "\\xff\\xfe");
        assert_eq!((device.index, device.mtu_bytes), (5, Some(1400)));
    }
}

//! Dumps by rtnetlink.

use std::io;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

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
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&rest[..length]);
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

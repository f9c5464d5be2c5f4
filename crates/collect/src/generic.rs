//! Generic netlink: families of commands that are found by their names.

use std::io;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_GENERIC};

use knee_uapi::netlink::{HEADER_BYTES, Messages, NLMSG_DONE, NLMSG_ERROR, each, number, put};

/// A connection to the families of the namespace in which it was made.
pub struct Generic {
    socket: Socket,
    sequence: u32,
}

impl Generic {
    pub fn new() -> io::Result<Generic> {
        let mut socket = Socket::new(NETLINK_GENERIC)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Generic {
            socket,
            sequence: 0,
        })
    }

    /// The number of a family.
    ///
    /// # Errors
    /// ENOENT: the kernel has none of that name.
    pub fn family(&mut self, name: &str) -> io::Result<u16> {
        const CONTROL: u16 = 16;
        const GETFAMILY: u8 = 3;
        const FAMILY_ID: u16 = 1;
        const FAMILY_NAME: u16 = 2;
        let mut attributes = Vec::new();
        put(
            &mut attributes,
            FAMILY_NAME,
            &[name.as_bytes(), b"\0"].concat(),
        );
        let mut found = None;
        self.ask(CONTROL, GETFAMILY, &attributes, |body| {
            each(body, |kind, bytes| {
                if kind == FAMILY_ID {
                    found = number(bytes, 0, 2).map(|id| id as u16);
                }
            });
        })?;
        found.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
    }

    /// Hands the attributes of the answer to `take`.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn ask(
        &mut self,
        family: u16,
        command: u8,
        attributes: &[u8],
        take: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        const NLM_F_ACK: u16 = 4;
        self.exchange(family, NLM_F_ACK, command, attributes, take)
    }

    /// Hands the attributes of every answer to `take`.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn dump(
        &mut self,
        family: u16,
        command: u8,
        attributes: &[u8],
        take: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        const NLM_F_DUMP: u16 = 0x300;
        self.exchange(family, NLM_F_DUMP, command, attributes, take)
    }

    fn exchange(
        &mut self,
        family: u16,
        flags: u16,
        command: u8,
        attributes: &[u8],
        mut take: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        const NLM_F_REQUEST: u16 = 1;
        /// `struct genlmsghdr`.
        const GENERIC_BYTES: usize = 4;
        self.sequence += 1;
        let length = HEADER_BYTES + GENERIC_BYTES + attributes.len();
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&(length as u32).to_ne_bytes());
        bytes.extend_from_slice(&family.to_ne_bytes());
        bytes.extend_from_slice(&(NLM_F_REQUEST | flags).to_ne_bytes());
        bytes.extend_from_slice(&self.sequence.to_ne_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&[command, 1, 0, 0]);
        bytes.extend_from_slice(attributes);
        self.socket.send(&bytes, 0)?;
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            for message in Messages(&datagram) {
                let message = message?;
                if message.sequence != self.sequence {
                    continue;
                }
                match message.kind {
                    NLMSG_DONE => return Ok(()),
                    NLMSG_ERROR => {
                        return match number(message.body, 0, 4).unwrap_or(0) as i32 {
                            0 => Ok(()),
                            code => Err(io::Error::from_raw_os_error(code.saturating_neg())),
                        };
                    }
                    _ => take(message.body.get(GENERIC_BYTES..).unwrap_or_default()),
                }
            }
        }
    }
}

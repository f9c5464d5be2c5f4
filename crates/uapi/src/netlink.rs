//! Messages of netlink and their attributes, read where they lie.

use std::io;

use netlink_packet_core::NlasIterator;

pub const NLMSG_ERROR: u16 = 2;
pub const NLMSG_DONE: u16 = 3;
pub const HEADER_BYTES: usize = 16;
/// Of the kind of an attribute that holds others (NLA_F_NESTED).
pub const NESTED: u16 = 0x8000;

/// One netlink message.
pub struct Message<'a> {
    pub kind: u16,
    pub flags: u16,
    pub sequence: u32,
    pub body: &'a [u8],
}

/// The messages of a datagram.
pub struct Messages<'a>(pub &'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = io::Result<Message<'a>>;

    #[inline]
    fn next(&mut self) -> Option<io::Result<Message<'a>>> {
        let bytes = self.0;
        if bytes.len() < HEADER_BYTES {
            return None;
        }
        let length = word(bytes, 0)? as usize;
        if length < HEADER_BYTES || length > bytes.len() {
            self.0 = &[];
            return Some(Err(io::Error::other(
                "netlink: a message longer than its datagram",
            )));
        }
        self.0 = &bytes[length.next_multiple_of(4).min(bytes.len())..];
        Some(Ok(Message {
            kind: u16::from_ne_bytes([bytes[4], bytes[5]]),
            flags: u16::from_ne_bytes([bytes[6], bytes[7]]),
            sequence: word(bytes, 8)?,
            body: &bytes[HEADER_BYTES..length],
        }))
    }
}

#[inline]
pub fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Calls `take` with kind and value of each attribute, up to one that is cut off.
pub fn each(attributes: &[u8], mut take: impl FnMut(u16, &[u8])) {
    for attribute in NlasIterator::new(attributes).map_while(Result::ok) {
        take(attribute.kind(), attribute.value());
    }
}

/// The number of one, two, four or eight bytes that stands there.
#[inline]
pub fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + length)?;
    match *bytes {
        [byte] => Some(byte.into()),
        [a, b] => Some(u16::from_ne_bytes([a, b]).into()),
        [a, b, c, d] => Some(u32::from_ne_bytes([a, b, c, d]).into()),
        _ => bytes.try_into().ok().map(u64::from_ne_bytes),
    }
}

/// Appends an attribute.
pub fn put(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    bytes.extend_from_slice(&(value.len() as u16 + 4).to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

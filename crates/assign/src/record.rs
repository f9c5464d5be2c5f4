//! What `bpf/assign.bpf.c` writes of each connection.

use std::fmt::Write;
use std::net::IpAddr;

use super::plan::{self, Words};

/// `struct assign_record`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub t_ns: u64,
    pub cookie: u64,
    pub unit: Words,
    pub phase: u32,
    pub error: i32,
    pub link: u32,
    pub arm: u32,
}

impl Record {
    /// From the bytes that the program wrote; none when there are fewer or more.
    pub fn from_bytes(bytes: &[u8]) -> Option<Record> {
        let bytes: &[u8; size_of::<Record>()] = bytes.try_into().ok()?;
        // SAFETY: Record holds integers alone and no padding, so that all bytes are a value of it.
        Some(unsafe { std::mem::transmute_copy(bytes) })
    }

    /// Appends the far end's prefix, where prefixes are the units.
    pub fn write_prefix(&self, v4_bits: u8, v6_bits: u8, text: &mut String) {
        match plan::address(self.unit) {
            // Ten times as fast as formatting it.
            IpAddr::V4(address) => {
                for (at, octet) in address.octets().into_iter().enumerate() {
                    if at > 0 {
                        text.push('.');
                    }
                    push_octet(text, octet);
                }
                text.push('/');
                push_octet(text, v4_bits);
            }
            IpAddr::V6(address) => {
                write!(text, "{address}/{v6_bits}").expect("a string takes all");
            }
        }
    }
}

fn push_octet(text: &mut String, octet: u8) {
    for (power, least) in [(100, 100), (10, 10), (1, 0)] {
        if octet >= least {
            text.push(char::from(b'0' + octet / power % 10));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_another_length_are_refused() {
        assert!(Record::from_bytes(&[0; size_of::<Record>()]).is_some());
        assert!(Record::from_bytes(&[0; size_of::<Record>() - 1]).is_none());
    }

    #[test]
    fn a_prefix_is_written_as_its_family_does() {
        let of = |address: &str| {
            let address: IpAddr = address.parse().unwrap();
            let record = Record {
                unit: plan::words(address),
                ..Record::from_bytes(&[0; size_of::<Record>()]).unwrap()
            };
            let mut text = String::new();
            record.write_prefix(24, 48, &mut text);
            text
        };
        assert_eq!(of("192.0.2.0"), "192.0.2.0/24");
        assert_eq!(of("2001:db8:7::"), "2001:db8:7::/48");
        for octet in 0..=u8::MAX {
            let address = std::net::Ipv4Addr::new(octet, 0, octet, 9);
            assert_eq!(of(&address.to_string()), format!("{address}/24"));
        }
    }
}

//! Addresses and ids made unrecognisable before they touch the disk.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What becomes of addresses. A v4-mapped IPv6 address is treated as the IPv4
/// address within it; unspecified addresses (`0.0.0.0`, `::`) name nobody and
/// stay.
#[derive(Clone)]
pub enum Anonymiser {
    /// They stay.
    Keep,
    /// Bits after the prefix are 0: `/24` and `/48` keep a site apart from
    /// others and its hosts together. At most 32 and 128.
    Truncate { v4_bits: u8, v6_bits: u8 },
    /// A keyed hash stands for the address, as in `h1f0c…`: equal addresses
    /// stay equal, and without the key none can be found by trying all.
    Hash(Key),
}

/// The key of a keyed hash. It is never printed and never written.
#[derive(Clone)]
pub struct Key([u8; blake3::KEY_LEN]);

impl Key {
    /// A new key that nobody knows: two recordings cannot be joined on addresses.
    ///
    /// # Errors
    /// The system has no randomness to give.
    pub fn random() -> Result<Key, getrandom::Error> {
        let mut bytes = [0; blake3::KEY_LEN];
        getrandom::fill(&mut bytes)?;
        Ok(Key(bytes))
    }

    /// A key of the user's, from a text of any length: recordings made with the
    /// same one can be joined.
    pub fn from_text(text: &str) -> Key {
        const CONTEXT: &str = "tcpknee address anonymisation v1";
        Key(blake3::derive_key(CONTEXT, text.as_bytes()))
    }
}

impl Anonymiser {
    /// What [`from_text`](Anonymiser::from_text) reads, for messages. They must
    /// not repeat what was got: it may hold a key, and terminals are logged.
    pub const FORMS: &str = "none, truncate (to /24 and /48), truncate:V4BITS/V6BITS, hash (a new key that is forgotten) or hash:KEY";

    /// From the text of a command line; `None`: not one of
    /// [`FORMS`](Anonymiser::FORMS).
    ///
    /// # Errors
    /// The system has no randomness to give for a key.
    pub fn from_text(text: &str) -> Result<Option<Anonymiser>, getrandom::Error> {
        let (how, rest) = text
            .split_once(':')
            .map_or((text, None), |(how, rest)| (how, Some(rest)));
        Ok(match (how, rest) {
            ("none", None) => Some(Anonymiser::Keep),
            ("truncate", None) => Some(Anonymiser::Truncate {
                v4_bits: 24,
                v6_bits: 48,
            }),
            ("truncate", Some(rest)) => bits(rest),
            ("hash", None) => Some(Anonymiser::Hash(Key::random()?)),
            ("hash", Some(key)) if !key.is_empty() => Some(Anonymiser::Hash(Key::from_text(key))),
            _ => None,
        })
    }

    /// Replaces `text` by the address as it may be stored.
    pub fn write(&self, address: IpAddr, text: &mut String) {
        text.clear();
        let address = match address {
            IpAddr::V6(six) if !matches!(self, Anonymiser::Keep) => {
                six.to_ipv4_mapped().map_or(address, IpAddr::V4)
            }
            _ => address,
        };
        match self {
            _ if address.is_unspecified() => push(text, address),
            Anonymiser::Keep => push(text, address),
            Anonymiser::Truncate { v4_bits, v6_bits } => {
                push(text, truncated(address, *v4_bits, *v6_bits))
            }
            Anonymiser::Hash(Key(key)) => {
                let hash = match address {
                    IpAddr::V4(four) => blake3::keyed_hash(key, &four.octets()),
                    IpAddr::V6(six) => blake3::keyed_hash(key, &six.octets()),
                };
                push_hash(text, &hash);
            }
        }
    }

    /// A random id of 128 bits, of a host or a boot, as it may be stored. Where
    /// addresses are cut it becomes a hash without a key: equal in all recordings, as
    /// the rest of an address is, and nobody can try all ids.
    pub fn id(&self, id: &str) -> String {
        const CONTEXT: &str = "tcpknee id anonymisation v1";
        let hash = match self {
            Anonymiser::Keep => return id.to_owned(),
            Anonymiser::Truncate { .. } => {
                blake3::keyed_hash(&blake3::derive_key(CONTEXT, &[]), id.as_bytes())
            }
            Anonymiser::Hash(Key(key)) => {
                blake3::keyed_hash(&blake3::derive_key(CONTEXT, key), id.as_bytes())
            }
        };
        let mut text = String::new();
        push_hash(&mut text, &hash);
        text
    }
}

/// 64 bits: among a million addresses the chance that any two share one is 3e-8.
fn push_hash(text: &mut String, hash: &blake3::Hash) {
    text.push('h');
    hash.as_bytes()[..8].iter().for_each(|byte| {
        text.push(char::from(HEX[usize::from(byte >> 4)]));
        text.push(char::from(HEX[usize::from(byte & 15)]));
    });
}

/// `16/32`.
fn bits(text: &str) -> Option<Anonymiser> {
    let (v4, v6) = text.split_once('/')?;
    let (v4_bits, v6_bits) = (v4.parse().ok()?, v6.parse().ok()?);
    (v4_bits <= 32 && v6_bits <= 128).then_some(Anonymiser::Truncate { v4_bits, v6_bits })
}

const HEX: &[u8; 16] = b"0123456789abcdef";

fn truncated(address: IpAddr, v4_bits: u8, v6_bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(four) => {
            let mask = u32::MAX
                .checked_shl(32 - u32::from(v4_bits.min(32)))
                .unwrap_or(0);
            Ipv4Addr::from_bits(four.to_bits() & mask).into()
        }
        IpAddr::V6(six) => {
            let mask = u128::MAX
                .checked_shl(128 - u32::from(v6_bits.min(128)))
                .unwrap_or(0);
            Ipv6Addr::from_bits(six.to_bits() & mask).into()
        }
    }
}

/// The standard's text of an address; IPv4 by hand, because a recorder writes
/// two per socket and `Display` takes three times as long.
fn push(text: &mut String, address: IpAddr) {
    match address {
        IpAddr::V4(four) => {
            for (position, octet) in four.octets().into_iter().enumerate() {
                if position > 0 {
                    text.push('.');
                }
                if octet >= 100 {
                    text.push(char::from(b'0' + octet / 100));
                }
                if octet >= 10 {
                    text.push(char::from(b'0' + octet / 10 % 10));
                }
                text.push(char::from(b'0' + octet % 10));
            }
        }
        IpAddr::V6(six) => write!(text, "{six}").expect("a String takes everything"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3d1219c7c4c5404aaa1f6d2a48adfda4";

    fn id(text: &str) -> String {
        Anonymiser::from_text(text).unwrap().unwrap().id(ID)
    }

    #[test]
    fn ids_are_hashed_wherever_addresses_are_changed() {
        assert_eq!(id("none"), ID);
        for text in ["truncate", "hash", "hash:key"] {
            let told = id(text);
            assert_eq!(told.len(), 17, "{text}: {told}");
            assert!(!told.contains(&ID[..8]));
        }
    }

    #[test]
    fn recordings_join_on_hashed_ids_exactly_where_they_join_on_addresses() {
        assert_eq!(id("truncate"), id("truncate:16/32"));
        assert_eq!(id("hash:key"), id("hash:key"));
        assert_ne!(id("hash:key"), id("hash:other"));
        assert_ne!(id("hash"), id("hash"));
    }
}

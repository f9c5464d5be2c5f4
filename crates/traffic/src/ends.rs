//! How the two ends of a connection find each other.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

/// The addresses of one `[[flow]]` table's hosts.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    pub sender: Ipv4Addr,
    pub receiver: Ipv4Addr,
}

impl Addresses {
    /// Of the table with that number: 10.77.x.y and 10.78.x.y.
    pub fn of(group: usize) -> Addresses {
        let (high, low) = ((group / 250) as u8, (group % 250 + 1) as u8);
        Addresses {
            sender: Ipv4Addr::new(10, 77, high, low),
            receiver: Ipv4Addr::new(10, 78, high, low),
        }
    }
}

/// Where connections begin and end.
pub enum Ends<'a> {
    /// Hosts that are ours alone: each `[[flow]]` has addresses of its own there. All listen at one port, and who
    /// connects binds the first port plus the flow's number, which tells the flow.
    Lab {
        addresses: &'a [Addresses],
        first_port: u16,
        service_port: u16,
    },
    /// Hosts of the user's, on whose ports others may knock: the first bytes of a connection tell the flow, and that
    /// whoever sends them may.
    Hosts {
        secret: Secret,
        /// The far host's address, as its helper was seen.
        known: Option<IpAddr>,
        /// By `[[flow]]`, of those whose far end opens: a socket that listens already.
        listeners: &'a [Option<OwnedFd>],
        /// By `[[flow]]`, of those that this end opens.
        far: &'a [Option<SocketAddr>],
    },
}

/// What both helpers of a run know, and nobody else.
pub type Secret = [u8; 16];

/// Length of a [`greeting`].
pub const GREETING_BYTES: usize = size_of::<Secret>() + size_of::<u32>();

/// The first bytes of a connection between two hosts.
pub fn greeting(secret: Secret, number: u32) -> Vec<u8> {
    [&secret[..], &number.to_le_bytes()].concat()
}

/// The number in a greeting; `None`: it is not of one who knows the secret.
pub fn greeted(secret: Secret, bytes: &[u8]) -> Option<u32> {
    let (told, number) = bytes.split_at_checked(size_of::<Secret>())?;
    // Every byte is looked at, so that the time tells nobody how many were right.
    let differs = secret.iter().zip(told).fold(0, |all, (a, b)| all | (a ^ b));
    (differs == 0).then_some(u32::from_le_bytes(number.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_understood_by_who_knows_the_secret_alone() {
        let secret = *b"0123456789abcdef";
        let said = greeting(secret, 70_000);
        assert_eq!(said.len(), GREETING_BYTES);
        assert_eq!(greeted(secret, &said), Some(70_000));
        let mut other = secret;
        other[15] ^= 1;
        assert_eq!(greeted(other, &said), None);
        assert_eq!(greeted(secret, &said[..GREETING_BYTES - 1]), None);
        assert_eq!(greeted(secret, &[]), None);
    }
}

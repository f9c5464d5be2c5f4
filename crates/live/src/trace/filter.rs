//! Which connections are traced.

use std::net::IpAddr;

/// Addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    pub address: IpAddr,
    /// Bits that count: 0 to 32 of IPv4, to 128 of IPv6.
    pub bits: u8,
}

/// What is asked of a connection; by default nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFilter {
    /// SO_COOKIE of the socket.
    pub cookie: Option<u64>,
    /// Inode of its network namespace.
    pub netns: Option<u32>,
    /// Of either end.
    pub port: Option<u16>,
    pub local_port: Option<u16>,
    pub remote_port: Option<u16>,
    /// An address of either end.
    pub address: Option<Prefix>,
    pub local: Option<Prefix>,
    pub remote: Option<Prefix>,
}

impl TcpFilter {
    /// As `struct trace_filter` of bpf/trace_tcp.bpf.c has it.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(120);
        bytes.extend(self.cookie.unwrap_or(0).to_ne_bytes());
        bytes.extend(self.netns.unwrap_or(0).to_ne_bytes());
        for port in [self.port, self.local_port, self.remote_port] {
            bytes.extend(port.unwrap_or(0).to_ne_bytes());
        }
        bytes.extend([0; 6]);
        for prefix in [self.address, self.local, self.remote] {
            let (address, mask) = prefix.map_or((0, 0), Prefix::masked);
            bytes.extend(address.to_be_bytes());
            bytes.extend(mask.to_be_bytes());
        }
        bytes
    }
}

impl Prefix {
    /// Address and mask among those of IPv6, where IPv4 is ::ffff:a.b.c.d.
    fn masked(self) -> (u128, u128) {
        let (address, skipped) = match self.address {
            IpAddr::V4(address) => (address.to_ipv6_mapped(), 96),
            IpAddr::V6(address) => (address, 0),
        };
        let bits = (u32::from(self.bits) + skipped).min(128);
        let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
        (address.to_bits() & mask, mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str, bits: u8) -> (u128, u128) {
        let address = text.parse().expect("a test's address is one");
        Prefix { address, bits }.masked()
    }

    #[test]
    fn a_prefix_of_ipv4_is_one_of_mapped_addresses() {
        let (address, mask) = prefix("10.1.2.3", 8);
        assert_eq!(address, 0xffff_0a00_0000);
        assert_eq!(mask, u128::MAX << 24);
    }

    #[test]
    fn a_prefix_of_no_bits_matches_all_addresses_of_its_family() {
        assert_eq!(prefix("2001:db8::1", 0), (0, 0));
        assert_eq!(prefix("10.1.2.3", 0), (0xffff_0000_0000, u128::MAX << 32));
    }

    #[test]
    fn a_whole_address_matches_itself_alone() {
        assert_eq!(prefix("::1", 128), (1, u128::MAX));
        assert_eq!(prefix("10.0.0.1", 32), (0xffff_0a00_0001, u128::MAX));
    }
}

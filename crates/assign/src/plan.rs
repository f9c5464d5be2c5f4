//! A plan as `bpf/assign.h` has it, and whom it gives which arm.

use std::net::{IpAddr, Ipv6Addr};

/// Arms of an experiment, links and ranges of ports at most.
pub const ARMS: usize = 8;
pub const LINKS: usize = 8;
pub const PORTS: usize = 8;
/// Draws are below it.
const DRAWS: f64 = (1u64 << 32) as f64;

/// Values of `unit`.
pub const PREFIX: u32 = 0;
pub const CONNECTION: u32 = 1;
pub const HOST: u32 = 2;

/// Words of an address; IPv4 is `::ffff:a.b.c.d`.
pub type Words = [u64; 2];

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Prefix {
    address: Words,
    mask: Words,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Ports {
    pub low: u16,
    pub high: u16,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    netns: u64,
    local: Prefix,
    draw_below: [u64; ARMS],
}

/// `struct assign_plan`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    pub seed: u64,
    pub netns: u64,
    pub own: Words,
    mask_v4: Words,
    mask_v6: Words,
    pub unit: u32,
    pub phase: u32,
    arms: u32,
    links: u32,
    ports: u32,
    by_netns: u32,
    port: [Ports; PORTS],
    algorithm: [[u8; 16]; ARMS],
    link: [Link; LINKS],
}

/// `struct assign_connection`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Connection {
    pub local: Words,
    pub remote: Words,
    pub cookie: u64,
    pub netns: u64,
    pub local_port: u16,
    pub remote_port: u16,
    pub unused: u32,
}

/// `struct assign_choice`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    pub unit: Words,
    pub link: u32,
    pub arm: u32,
}

unsafe extern "C" {
    fn knee_assign_choose(
        plan: *const Plan,
        connection: *const Connection,
        choice: *mut Choice,
    ) -> i32;
}

impl Prefix {
    /// # Panics
    /// There are more bits than the address has.
    pub fn new(address: IpAddr, bits: u8) -> Prefix {
        let mask = mask(address.is_ipv4(), bits);
        let address = words(address);
        Prefix {
            address: [address[0] & mask[0], address[1] & mask[1]],
            mask,
        }
    }
}

impl Link {
    /// Connections of a network namespace, by its cookie (0: any), and of local addresses.
    pub fn new(netns: u64, local: Prefix) -> Link {
        Link {
            netns,
            local,
            ..Link::default()
        }
    }
}

impl Plan {
    /// `netns`: connections of that network namespace alone, by its cookie (0: any).
    ///
    /// # Panics
    /// There are more arms, links or ranges of ports than a plan has room for.
    pub fn set(&mut self, netns: u64, algorithms: &[String], links: &[Link], ports: &[Ports]) {
        for (to, name) in self.algorithm.iter_mut().zip(algorithms) {
            let name = &name.as_bytes()[..name.len().min(15)];
            to[..name.len()].copy_from_slice(name);
        }
        self.link[..links.len()].copy_from_slice(links);
        self.port[..ports.len()].copy_from_slice(ports);
        [self.arms, self.links, self.ports] = [algorithms.len(), links.len(), ports.len()]
            .map(|count| u32::try_from(count).expect("there are few"));
        self.netns = netns;
        self.by_netns = u32::from(netns != 0 || links.iter().any(|link| link.netns != 0));
    }

    pub fn cut_to(&mut self, v4_bits: u8, v6_bits: u8) {
        self.mask_v4 = mask(true, v4_bits);
        self.mask_v6 = mask(false, v6_bits);
    }

    /// Sets which share of a link's units each arm has, in percent.
    pub fn share(&mut self, link: usize, shares_pct: &[f64]) {
        let last = shares_pct.iter().rposition(|&share| share > 0.0);
        let mut sum = 0.0;
        let below = self.link[link].draw_below.iter_mut().zip(shares_pct);
        for (arm, (below, share)) in below.enumerate() {
            sum += share;
            // The last arm has what rounding left.
            *below = match last {
                Some(last) if arm >= last => 1 << 32,
                _ => (sum / 100.0 * DRAWS) as u64,
            };
        }
    }

    /// Whom the program gives what.
    pub fn choose(&self, connection: &Connection) -> Option<Choice> {
        let mut choice = Choice::default();
        // SAFETY: the three are of the layout that assign.h has, and the function writes to the choice alone.
        let chosen = unsafe { knee_assign_choose(self, connection, &raw mut choice) };
        (chosen != 0).then_some(choice)
    }

    /// As the program's map has it.
    pub fn as_bytes(&self) -> &[u8] {
        let from = std::ptr::from_ref(self).cast::<u8>();
        // SAFETY: a plan holds integers alone and no padding.
        unsafe { std::slice::from_raw_parts(from, size_of::<Plan>()) }
    }
}

/// Of bits of an address; those of IPv4 stand at the end of the words.
fn mask(is_v4: bool, bits: u8) -> Words {
    let (before, width) = if is_v4 { (96, 32) } else { (0, 128) };
    assert!(bits <= width, "an address has no {bits} bits");
    let bits = before + u32::from(bits);
    halves(u128::MAX.checked_shl(128 - bits).unwrap_or(0))
}

pub fn words(address: IpAddr) -> Words {
    let address = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    halves(address.to_bits())
}

pub fn halves(whole: u128) -> Words {
    [(whole >> 64) as u64, whole as u64]
}

/// The address that has these words.
pub fn address(words: Words) -> IpAddr {
    let whole = u128::from(words[0]) << 64 | u128::from(words[1]);
    Ipv6Addr::from_bits(whole).to_canonical()
}

#[cfg(test)]
mod tests;

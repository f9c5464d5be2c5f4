//! Where connections are assigned: network namespaces, links, and this host.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::path::Path;

use knee_collect::KernelError;
use knee_loader::namespace;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::plan::{Prefix, Words, halves};

/// include/uapi/asm-generic/socket.h, Linux 5.14.
const SO_NETNS_COOKIE: i32 = 71;

/// What the kernel calls a network namespace in BPF.
pub fn netns_cookie(path: &Path) -> Result<u64, KernelError> {
    within(Some(path), || {
        let family = AddressFamily::Inet;
        let socket = socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        let mut cookie = 0u64;
        let mut length = libc::socklen_t::try_from(size_of::<u64>()).expect("it is 8");
        // SAFETY: the kernel writes eight bytes at most to the number.
        let failed = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                SO_NETNS_COOKIE,
                (&raw mut cookie).cast(),
                &raw mut length,
            )
        };
        match failed {
            0 => Ok(cookie),
            _ => Err(io::Error::last_os_error()),
        }
    })
    .map_err(KernelError::system(format!(
        "ask for the network namespace {}",
        path.display()
    )))
}

/// The addresses of an interface, each as a prefix of its whole length.
pub fn addresses(netns: Option<&Path>, interface: &str) -> Result<Vec<Prefix>, KernelError> {
    let name = interface.to_owned();
    let found = within(netns, move || {
        let mut known = Vec::new();
        let mut prefixes = Vec::new();
        for one in getifaddrs()? {
            known.push(one.interface_name.clone());
            if one.interface_name != name || !one.flags.contains(InterfaceFlags::IFF_UP) {
                continue;
            }
            let Some(address) = one.address else { continue };
            if let Some(v4) = address.as_sockaddr_in() {
                prefixes.push(Prefix::new(IpAddr::V4(v4.ip()), 32));
            } else if let Some(v6) = address.as_sockaddr_in6() {
                prefixes.push(Prefix::new(IpAddr::V6(v6.ip()), 128));
            }
        }
        known.sort();
        known.dedup();
        Ok((prefixes, known))
    });
    let (prefixes, known) = found.map_err(KernelError::system("list the addresses of devices"))?;
    if prefixes.is_empty() {
        return Err(KernelError::Option {
            what: "link",
            got: interface.to_owned(),
            expected: format!(
                "a prefix of local addresses, netns:NAME, or a device that is up and has an address; devices are {}",
                known.join(", ")
            ),
        });
    }
    Ok(prefixes)
}

/// The digits of an id as a unit.
pub fn words_of(id: &str) -> Words {
    let digits: String = id.chars().filter(char::is_ascii_hexdigit).collect();
    halves(u128::from_str_radix(&digits, 16).unwrap_or(0))
}

/// In a network namespace, or where we are.
fn within<T: Send + 'static>(
    netns: Option<&Path>,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    match netns {
        Some(path) => namespace::within(path, work),
        None => work(),
    }
}

//! The way to the other host: its device, and a route of its own with what we give it, which is taken away again.
//! Source: Linux 6.18, include/uapi/linux/rtnetlink.h.

use std::io;
use std::net::IpAddr;

use super::netlink::{self, CREATE, DELROUTE, DUMP, EXCL, GETROUTE, NEWROUTE};

const HEAD_BYTES: usize = 12;
const DST: u16 = 1;
const OIF: u16 = 4;
const GATEWAY: u16 = 5;
const PREFSRC: u16 = 7;
const METRICS: u16 = 8;
const CACHEINFO: u16 = 12;
const VIA: u16 = 18;
const INITCWND: u16 = 11;
const CC_ALGO: u16 = 16;
const TABLE_MAIN: u8 = 254;
const UNICAST: u8 = 1;
const SCOPE_LINK: u8 = 253;
/// Who made the route: none of those that other programs use.
const OUR_PROTOCOL: u8 = 0x4b;
/// Protocols of routes that a redirect, the kernel or a router's advertisement made.
const BY_THEMSELVES: [u8; 3] = [1, 2, 9];
/// Of a route's flags: it is a copy for one destination.
const CLONED: u32 = 0x200;

/// How the kernel would reach an address now.
#[derive(Debug)]
pub struct Way {
    pub device: String,
    is_unicast: bool,
    attributes: Vec<(u16, Vec<u8>)>,
}

fn octets(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (libc::AF_INET as u8, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6 as u8, address.octets().to_vec()),
    }
}

fn head(family: u8, bits: usize, scope: u8) -> Vec<u8> {
    let mut bytes = vec![
        family,
        bits as u8,
        0,
        0,
        TABLE_MAIN,
        OUR_PROTOCOL,
        scope,
        UNICAST,
    ];
    bytes.resize(HEAD_BYTES, 0);
    bytes
}

/// # Errors
/// The kernel has no route, or cannot be asked.
pub fn way(to: IpAddr) -> io::Result<Way> {
    let (family, address) = octets(to);
    let mut body = vec![0; HEAD_BYTES];
    (body[0], body[1]) = (family, 8 * address.len() as u8);
    body.extend(netlink::packed(&[(DST, address)]));
    let answers = netlink::ask(GETROUTE, 0, &body)?;
    let answer = answers.first().ok_or(io::ErrorKind::NotFound)?;
    let attributes = netlink::attributes(answer.get(HEAD_BYTES..).unwrap_or_default());
    let index = netlink::first(&attributes, OIF).map_or(0, |bytes| netlink::word(bytes, 0));
    Ok(Way {
        device: device(index)?,
        is_unicast: answer.get(7) == Some(&UNICAST),
        attributes,
    })
}

/// The device by which this host reaches that one.
///
/// # Errors
/// As [`way`].
pub fn device_towards(to: IpAddr) -> io::Result<String> {
    Ok(way(to)?.device)
}

fn device(index: u32) -> io::Result<String> {
    let name = nix::net::if_::if_indextoname(index)?;
    Ok(name.to_string_lossy().into_owned())
}

/// The route that gives connections that window and congestion control, as an order to the kernel.
///
/// # Errors
/// Nothing of the kind can be made, in words.
pub fn goal(to: IpAddr, initcwnd: Option<u32>, congctl: Option<&str>) -> Result<Vec<u8>, String> {
    let way = way(to).map_err(|error| format!("route to {to}: {error}."))?;
    if !way.is_unicast {
        return Err(format!(
            "route to {to}: is an address of this very host, whose routes are the kernel's own; leave out what it would give."
        ));
    }
    let (family, address) = octets(to);
    let metrics = netlink::first(&way.attributes, METRICS).unwrap_or_default();
    let mut metrics = netlink::attributes(metrics);
    let window = initcwnd.map(|value| (INITCWND, value.to_ne_bytes().to_vec()));
    let name = congctl.map(|name| (CC_ALGO, [name.as_bytes(), &[0]].concat()));
    for (kind, value) in [window, name].into_iter().flatten() {
        metrics.retain(|(one, _)| *one != kind);
        metrics.push((kind, value));
    }
    let kept = |kind: &u16| [OIF, GATEWAY, PREFSRC, VIA].contains(kind);
    let kept: Vec<_> = (way.attributes.iter())
        .filter(|(kind, _)| kept(kind))
        .cloned()
        .collect();
    let is_direct = kept.iter().all(|(kind, _)| ![GATEWAY, VIA].contains(kind));
    // IPv6 has no such scope.
    let scope = if is_direct && to.is_ipv4() {
        SCOPE_LINK
    } else {
        0
    };
    let mut body = head(family, 8 * address.len(), scope);
    let mut attributes = vec![(DST, address)];
    attributes.extend(kept);
    attributes.push((METRICS, netlink::packed(&metrics)));
    body.extend(netlink::packed(&attributes));
    Ok(body)
}

/// # Errors
/// `AlreadyExists`: somebody has such a route.
pub fn add(route: &[u8]) -> io::Result<()> {
    netlink::ask(NEWROUTE, CREATE | EXCL, route)?;
    Ok(())
}

pub fn remove(route: &[u8]) -> io::Result<()> {
    netlink::ask(DELROUTE, 0, route)?;
    Ok(())
}

/// Whether there is a route of ours to the address that this one leads to.
pub fn is_there(route: &[u8]) -> io::Result<bool> {
    let wanted = netlink::attributes(route.get(HEAD_BYTES..).unwrap_or_default());
    let wanted = netlink::first(&wanted, DST).unwrap_or_default();
    Ok(dump(route.first().copied().unwrap_or(0))?
        .iter()
        .any(|one| {
            let attributes = netlink::attributes(&one[HEAD_BYTES..]);
            one[5] == OUR_PROTOCOL && netlink::first(&attributes, DST) == Some(wanted)
        }))
}

fn dump(family: u8) -> io::Result<Vec<Vec<u8>>> {
    let mut body = vec![0; HEAD_BYTES];
    body[0] = family;
    let mut found = netlink::ask(GETROUTE, DUMP, &body)?;
    found.retain(|one| {
        one.len() >= HEAD_BYTES && one[4] == TABLE_MAIN && netlink::word(one, 8) & CLONED == 0
    });
    Ok(found)
}

/// Routes of the main table that somebody made, each in a line, without what only counts time. Those of the kernel and of
/// routers come and go by themselves.
pub fn lines() -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for family in [libc::AF_INET as u8, libc::AF_INET6 as u8] {
        for one in dump(family)? {
            if BY_THEMSELVES.contains(&one[5]) {
                continue;
            }
            let mut attributes = netlink::attributes(&one[HEAD_BYTES..]);
            attributes.retain(|(kind, _)| *kind != CACHEINFO);
            let head = netlink::hex(&one[..8]);
            found.push(format!(
                "route {head} {}",
                netlink::hex(&netlink::packed(&attributes))
            ));
        }
    }
    found.sort_unstable();
    Ok(found)
}

//! Routes of a lab whose hosts talk to more than each other.

use std::net::Ipv4Addr;

use knee_collect::KernelError;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
    RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::net::if_::if_nametoindex;

use crate::netlink::Netlink;

/// Every address without a route of its own is reached over `device`, from
/// `own`, by connections of the congestion control `algorithm`.
pub fn lead_everything_over(
    netlink: &mut Netlink,
    device: &str,
    own: Ipv4Addr,
    algorithm: &str,
    initcwnd: u32,
) -> Result<(), KernelError> {
    let attributes = vec![
        RouteAttribute::PrefSource(RouteAddress::Inet(own)),
        RouteAttribute::Metrics(vec![
            RouteMetric::InitCwnd(initcwnd),
            RouteMetric::CcAlgo(algorithm.to_owned()),
        ]),
    ];
    let header = RouteHeader {
        table: RouteHeader::RT_TABLE_MAIN,
        scope: RouteScope::Link,
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    add_default(netlink, device, header, attributes)
}

/// Every address without a route of its own is this host's.
pub fn own_every_address(netlink: &mut Netlink) -> Result<(), KernelError> {
    let header = RouteHeader {
        table: RouteHeader::RT_TABLE_MAIN,
        scope: RouteScope::Host,
        kind: RouteType::Local,
        ..RouteHeader::default()
    };
    add_default(netlink, "lo", header, Vec::new())
}

fn add_default(
    netlink: &mut Netlink,
    device: &str,
    header: RouteHeader,
    mut attributes: Vec<RouteAttribute>,
) -> Result<(), KernelError> {
    let what = format!("add the default route over {device}");
    let index = if_nametoindex(device).map_err(KernelError::system(what.clone()))?;
    attributes.push(RouteAttribute::Oif(index));
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: AddressFamily::Inet,
        protocol: RouteProtocol::Static,
        ..header
    };
    message.attributes = attributes;
    netlink
        .ask(
            RouteNetlinkMessage::NewRoute(message),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
        .map_err(KernelError::system(what))
}

//! The router between two hosts: a veth pair to each, and qdiscs on its ends.

use std::fs;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};

use knee_collect::KernelError;
use knee_link::LinkConfig;
use knee_scenario::{Cell, Host};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::net::if_::if_nametoindex;

use super::super::ethtool;
use super::{TO_RECEIVER, TO_SENDER, commands};
use crate::namespace::{DEVICE, Namespace};
use crate::netlink::Netlink;
use crate::tool;

/// The router's own address.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 76, 0, 1);

/// One of the router's two pairs.
struct Pair {
    /// The router's end.
    device: &'static str,
    router: [u8; 6],
    host: [u8; 6],
}

const PAIRS: [Pair; 2] = [
    Pair {
        device: TO_SENDER,
        router: [2, 0, 0, 0, 0, 0x11],
        host: [2, 0, 0, 0, 0, 1],
    },
    Pair {
        device: TO_RECEIVER,
        router: [2, 0, 0, 0, 0, 0x12],
        host: [2, 0, 0, 0, 0, 2],
    },
];

/// Has this kernel what a path needs? `Ok(())`, or what it lacks. Looks in a
/// network namespace of its own, in which it leaves the caller.
pub fn check(config: &LinkConfig) -> Result<(), KernelError> {
    batch(config)?;
    Namespace::new()?;
    let mut netlink = Netlink::new()?;
    let bucket = config.path.rate.map(|_| "tbf");
    for kind in ["netem"].into_iter().chain(bucket) {
        // Another refusal is for want of parameters, and tells that it is there.
        if let Err(KernelError::Unsupported { lacks, .. }) = netlink.set_qdisc("lo", kind) {
            return Err(KernelError::Unsupported {
                what: format!("path.backend = \"netem\" needs the qdisc {kind}"),
                lacks,
                hint: "Load the module, or use path.backend = \"user\".".into(),
            });
        }
    }
    Ok(())
}

/// Gives each host, which has no device yet, the end of a pair, and makes the
/// router between them. Leaves the caller in the router.
pub fn join(sender: &Namespace, receiver: &Namespace) -> Result<Namespace, KernelError> {
    let router = Namespace::new()?;
    let mut netlink = Netlink::new()?;
    netlink.set_up("lo", Vec::new())?;
    for (pair, host) in PAIRS.iter().zip([sender, receiver]) {
        add_pair(&mut netlink, pair, host)?;
    }
    let forward = "/proc/sys/net/ipv4/ip_forward";
    fs::write(forward, "1").map_err(KernelError::system(format!("write 1 to {forward}")))?;
    Ok(router)
}

fn add_pair(netlink: &mut Netlink, pair: &Pair, host: &Namespace) -> Result<(), KernelError> {
    let mut peer = LinkMessage::default();
    peer.attributes = vec![
        LinkAttribute::IfName(DEVICE.into()),
        LinkAttribute::Address(pair.host.to_vec()),
        LinkAttribute::NetNsFd(host.as_fd().as_raw_fd()),
    ];
    let mut message = LinkMessage::default();
    message.attributes = vec![
        LinkAttribute::IfName(pair.device.into()),
        LinkAttribute::Address(pair.router.to_vec()),
        LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]),
    ];
    netlink
        .ask(
            RouteNetlinkMessage::NewLink(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
        .map_err(KernelError::system(format!(
            "make the veth pair {} (CONFIG_VETH, module veth)",
            pair.device
        )))
}

/// Finishes the router once both hosts' ends are up: routes, neighbours and
/// the qdiscs that are the path. The caller is in the router.
pub fn shape(config: &LinkConfig) -> Result<(), KernelError> {
    let mut netlink = Netlink::new()?;
    for pair in &PAIRS {
        let mtu = LinkAttribute::Mtu(config.path.mtu_bytes);
        netlink.set_up(pair.device, vec![mtu])?;
        netlink.add_address(pair.device, ADDRESS)?;
    }
    for group in &config.groups {
        for (pair, host) in PAIRS.iter().zip([group.sender, group.receiver]) {
            netlink.add_route(pair.device, host, ADDRESS, Vec::new())?;
            add_neighbour(&mut netlink, pair.device, host, pair.host)?;
        }
    }
    run_tc(&batch(config)?)
}

fn batch(config: &LinkConfig) -> Result<String, KernelError> {
    commands(config).map_err(|error| KernelError::Unsupported {
        what: error.to_string(),
        lacks: "has no such qdisc".into(),
        hint: "Use path.backend = \"user\".".into(),
    })
}

/// Finishes a host, whose namespace the caller is in: who answers for the far
/// hosts (asking would take a round trip through netem), and what its NIC does.
/// `ends`: own and far address of each group.
pub fn introduce(
    cell: &Cell,
    host: &Host,
    is_sender: bool,
    ends: &[(Ipv4Addr, Ipv4Addr)],
) -> Result<(), KernelError> {
    let pair = &PAIRS[usize::from(!is_sender)];
    let mut netlink = Netlink::new()?;
    for &(_, far) in ends {
        add_neighbour(&mut netlink, DEVICE, far, pair.router)?;
    }
    // TCP makes super-packets in any case; without this offload its host cuts
    // them before the router sees them.
    let keeps = cell.path.keep_super_packets && host.gso_max_bytes > 0;
    ethtool::set(DEVICE, ethtool::TSO, keeps)?;
    ethtool::set(DEVICE, ethtool::GRO, host.gro)
}

fn add_neighbour(
    netlink: &mut Netlink,
    device: &str,
    address: Ipv4Addr,
    hardware: [u8; 6],
) -> Result<(), KernelError> {
    let what = format!("tell {device} of the neighbour {address}");
    let mut message = NeighbourMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.ifindex = if_nametoindex(device).map_err(KernelError::system(what.clone()))?;
    message.header.state = NeighbourState::Permanent;
    message.attributes = vec![
        NeighbourAttribute::Destination(NeighbourAddress::Inet(address)),
        NeighbourAttribute::LinkLayerAddress(hardware.to_vec()),
    ];
    netlink
        .ask(
            RouteNetlinkMessage::NewNeighbour(message),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
        .map_err(KernelError::system(what))
}

/// Runs a batch of commands for tc in the caller's network namespace.
fn run_tc(batch: &str) -> Result<(), KernelError> {
    let what = "make the path of netem and qdiscs, with tc";
    let ran = tool::feed("tc", &["-batch", "-"], batch).map_err(|error| match error.kind() {
        ErrorKind::NotFound => KernelError::Unsupported {
            what: "path.backend = \"netem\" needs the command tc".into(),
            lacks: "may have netem, but tc is not installed".into(),
            hint: "Install the package iproute2, or use path.backend = \"user\".".into(),
        },
        _ => KernelError::system(what)(error),
    })?;
    let Err(said) = ran else {
        return Ok(());
    };
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let hint = match unknown_qdisc(&said) {
        Some(kind) => format!(
            "{kind} is missing (CONFIG_NET_SCH_{}, module sch_{kind}).",
            kind.to_uppercase()
        ),
        None => "Use path.backend = \"user\".".into(),
    };
    Err(KernelError::Unsupported {
        what: what.into(),
        lacks: format!("refused it: {said}"),
        hint,
    })
}

/// The qdisc that tc says the kernel does not know: `Unknown qdisc "fq_pie"`.
fn unknown_qdisc(said: &str) -> Option<&str> {
    said.split("Unknown qdisc \"").nth(1)?.split('"').next()
}

//! veth pairs: the devices of two namespaces, joined as if by a cable. A lab's hosts have one with a router between them
//! that is the path, or one with each other.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use knee_collect::KernelError;
use knee_link::{DirectionReport, Report};
use knee_scenario::{Cell, Host};
use knee_uapi::ioctl;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::net::if_::if_nametoindex;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::namespace::{DEVICE, Namespace};
use crate::netlink::Netlink;

/// One end of a pair.
pub struct End {
    pub device: &'static str,
    pub hardware: [u8; 6],
}

/// Those of the sender's host and of the receiver's.
pub const HOSTS: [End; 2] = [
    End {
        device: DEVICE,
        hardware: [2, 0, 0, 0, 0, 1],
    },
    End {
        device: DEVICE,
        hardware: [2, 0, 0, 0, 0, 2],
    },
];

/// Makes a pair: one end in the namespace that `netlink` is of, the other in `place`. Each end comes with the number of queues
/// in which packets arrive there.
pub fn join(
    netlink: &mut Netlink,
    (near, near_queues): (&End, u32),
    (far, far_queues): (&End, u32),
    place: &Namespace,
) -> Result<(), KernelError> {
    let mut peer = LinkMessage::default();
    peer.attributes = attributes(far, far_queues, near_queues);
    peer.attributes
        .push(LinkAttribute::NetNsFd(place.as_fd().as_raw_fd()));
    let mut message = LinkMessage::default();
    message.attributes = attributes(near, near_queues, far_queues);
    message.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(InfoKind::Veth),
        LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
    ]));
    netlink
        .ask(
            RouteNetlinkMessage::NewLink(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
        .map_err(KernelError::system(format!(
            "make the veth pair {} (CONFIG_VETH, module veth)",
            near.device
        )))
}

/// What leaves in a queue arrives at the far end in the one of that number, so there are as many here as there.
fn attributes(end: &End, queues: u32, far_queues: u32) -> Vec<LinkAttribute> {
    vec![
        LinkAttribute::IfName(end.device.into()),
        LinkAttribute::Address(end.hardware.to_vec()),
        LinkAttribute::NumRxQueues(queues),
        LinkAttribute::NumTxQueues(far_queues),
    ]
}

/// Finishes a host, whose namespace the caller is in: who answers for the far hosts (asking would take a round trip through
/// the path), and what its NIC does. `ends`: own and far address of each group; `far`: the other end of the host's pair.
pub fn finish_host(
    cell: &Cell,
    host: &Host,
    far: &End,
    ends: &[(Ipv4Addr, Ipv4Addr)],
) -> Result<(), KernelError> {
    let mut netlink = Netlink::new()?;
    for &(_, address) in ends {
        introduce(&mut netlink, DEVICE, address, far)?;
    }
    // TCP makes super-packets in any case; without this offload its host cuts
    // them before anybody else sees them.
    let keeps = cell.path.keep_super_packets && host.gso_max_bytes > 0;
    for (offload, is_on) in [(ioctl::TSO, keeps), (ioctl::GRO, host.gro)] {
        ioctl::turn(&ioctl::Kernel, DEVICE.as_ref(), offload, is_on)
            .map_err(KernelError::system(format!("set an offload of {DEVICE}")))?;
    }
    Ok(())
}

/// Tells a device which end of a pair has that address.
pub fn introduce(
    netlink: &mut Netlink,
    device: &str,
    address: Ipv4Addr,
    far: &End,
) -> Result<(), KernelError> {
    let what = format!("tell {device} of the neighbour {address}");
    let mut message = NeighbourMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.ifindex = if_nametoindex(device).map_err(KernelError::system(what.clone()))?;
    message.header.state = NeighbourState::Permanent;
    message.attributes = vec![
        NeighbourAttribute::Destination(NeighbourAddress::Inet(address)),
        NeighbourAttribute::LinkLayerAddress(far.hardware.to_vec()),
    ];
    netlink
        .ask(
            RouteNetlinkMessage::NewNeighbour(message),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
        .map_err(KernelError::system(what))
}

/// Sleeps until `stop` becomes readable, then says what the hosts' devices have sent. A pair has no queue, no rate and no
/// lateness of its own.
pub fn watch(hosts: &[Namespace; 2], stop: BorrowedFd<'_>) -> Result<Report, KernelError> {
    let mut fds = [PollFd::new(stop, PollFlags::POLLIN)];
    while let Err(nix::Error::EINTR) = poll(&mut fds, PollTimeout::NONE) {}
    let carried = |host: &Namespace| -> Result<DirectionReport, KernelError> {
        host.enter()?;
        let device = Netlink::new()?.device(DEVICE)?;
        Ok(DirectionReport {
            forwarded_pkts: device.sent_pkts,
            forwarded_bytes: device.sent_bytes,
            kept_up: true,
            ..DirectionReport::default()
        })
    };
    Ok(Report {
        directions: [carried(&hosts[0])?, carried(&hosts[1])?],
        queue: Vec::new(),
        flows: Vec::new(),
        realtime: false,
    })
}

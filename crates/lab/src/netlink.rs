//! Devices, addresses and routes of a namespace, by rtnetlink.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use knee_collect::KernelError;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
    RouteScope, RouteType,
};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::net::if_::if_nametoindex;

/// Parent of a device's root qdisc (TC_H_ROOT).
const ROOT: TcHandle = TcHandle {
    major: 0xffff,
    minor: 0xffff,
};

/// A device as the kernel has it.
#[derive(Clone, Debug, Default)]
pub struct Device {
    pub mtu_bytes: u32,
    pub gso_max_bytes: u32,
    pub qdisc: String,
    /// Since it was made; a TSO packet counts once.
    pub sent_pkts: u64,
    pub sent_bytes: u64,
}

/// A connection to the kernel's routing, in the namespace where it was made.
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    pub fn new() -> Result<Netlink, KernelError> {
        let open = || -> io::Result<Socket> {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(socket)
        };
        let socket = open().map_err(KernelError::system("reach the kernel's routing"))?;
        Ok(Netlink {
            socket,
            sequence: 0,
        })
    }

    /// Brings a device up with that MTU and queue.
    pub fn set_up(
        &mut self,
        device: &str,
        attributes: Vec<LinkAttribute>,
    ) -> Result<(), KernelError> {
        let mut message = LinkMessage::default();
        message.header.index = index(device)?;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        message.attributes = attributes;
        self.ask(RouteNetlinkMessage::SetLink(message), 0)
            .map_err(KernelError::system(format!("set up {device}")))
    }

    /// What a device is now.
    pub fn device(&mut self, device: &str) -> Result<Device, KernelError> {
        let mut message = LinkMessage::default();
        message.header.index = index(device)?;
        let answer = self
            .exchange(RouteNetlinkMessage::GetLink(message), 0)
            .map_err(KernelError::system(format!("look at {device}")))?;
        let mut found = Device::default();
        if let Some(RouteNetlinkMessage::NewLink(link)) = answer {
            for attribute in link.attributes {
                match attribute {
                    LinkAttribute::Mtu(bytes) => found.mtu_bytes = bytes,
                    LinkAttribute::GsoMaxSize(bytes) => found.gso_max_bytes = bytes,
                    LinkAttribute::Qdisc(kind) => found.qdisc = kind,
                    LinkAttribute::Stats64(counts) => {
                        found.sent_pkts = counts.tx_packets;
                        found.sent_bytes = counts.tx_bytes;
                    }
                    _ => {}
                }
            }
        }
        Ok(found)
    }

    pub fn add_address(&mut self, device: &str, address: Ipv4Addr) -> Result<(), KernelError> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.prefix_len = 32;
        message.header.index = index(device)?;
        message.attributes = vec![
            AddressAttribute::Local(IpAddr::V4(address)),
            AddressAttribute::Address(IpAddr::V4(address)),
        ];
        self.ask(
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
        .map_err(KernelError::system(format!(
            "give {device} the address {address}"
        )))
    }

    /// A route to one address.
    pub fn add_route(
        &mut self,
        device: &str,
        to: Ipv4Addr,
        from: Ipv4Addr,
        metrics: Vec<RouteMetric>,
    ) -> Result<(), KernelError> {
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: AddressFamily::Inet,
            destination_prefix_length: 32,
            table: RouteHeader::RT_TABLE_MAIN,
            protocol: RouteProtocol::Static,
            scope: RouteScope::Link,
            kind: RouteType::Unicast,
            ..RouteHeader::default()
        };
        message.attributes = vec![
            RouteAttribute::Destination(RouteAddress::Inet(to)),
            RouteAttribute::PrefSource(RouteAddress::Inet(from)),
            RouteAttribute::Oif(index(device)?),
        ];
        if !metrics.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(metrics));
        }
        self.ask(
            RouteNetlinkMessage::NewRoute(message),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
        .map_err(KernelError::system(format!("add the route to {to}")))
    }

    /// A device's root qdisc, with its defaults.
    pub fn set_qdisc(&mut self, device: &str, kind: &str) -> Result<(), KernelError> {
        let mut message = TcMessage::default();
        message.header.index = index(device)? as i32;
        message.header.parent = ROOT;
        message.attributes = vec![TcAttribute::Kind(kind.to_owned())];
        self.ask(
            RouteNetlinkMessage::NewQueueDiscipline(message),
            NLM_F_CREATE | NLM_F_REPLACE,
        )
        .map_err(|source| match source.raw_os_error() {
            Some(libc::ENOENT | libc::EOPNOTSUPP) => KernelError::Unsupported {
                what: format!("the qdisc \"{kind}\" is asked for"),
                lacks: format!(
                    "has none (CONFIG_NET_SCH_{}, module sch_{kind})",
                    kind.to_uppercase()
                ),
                hint: "Choose another sender.qdisc or sender.pacing, or load the module.".into(),
            },
            _ => KernelError::System {
                what: format!("give {device} the qdisc {kind}"),
                source,
            },
        })
    }

    /// Sends a request and waits for the kernel's consent.
    pub(crate) fn ask(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.exchange(message, flags).map(drop)
    }

    /// Sends a request and waits for the kernel's consent; what it said before that.
    fn exchange(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<Option<RouteNetlinkMessage>> {
        let mut said = None;
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        header.sequence_number = self.sequence;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::from(message));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        loop {
            let (answer, _) = self.socket.recv_from_full()?;
            let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
                .map_err(io::Error::other)?;
            if answer.header.sequence_number != self.sequence {
                continue;
            }
            match answer.payload {
                NetlinkPayload::InnerMessage(message) => said = Some(message),
                NetlinkPayload::Error(error) => {
                    return match error.code {
                        None => Ok(said),
                        Some(code) => Err(io::Error::from_raw_os_error(-code.get())),
                    };
                }
                _ => {}
            }
        }
    }
}

fn index(device: &str) -> Result<u32, KernelError> {
    if_nametoindex(device).map_err(KernelError::system(format!("find the device {device}")))
}

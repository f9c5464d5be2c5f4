//! A lab from a cell: two namespaces, a device in each, addresses and routes.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use knee_collect::KernelError;
use knee_link::{Group, LinkConfig, Nic, Offloads, open_tun};
use knee_loader::Variant;
use knee_path::Backend;
use knee_scenario::{Cell, Host};
pub use knee_traffic::Addresses;
use netlink_packet_route::route::RouteMetric;

use super::facts::HostFacts;
use super::netlink::Netlink;
use super::{DEVICE, Facts, Joint, Namespace, netem, nic, settings, veth};

/// Connecting ends bind this port plus the flow's number.
pub const FIRST_PORT: u16 = 10_000;
/// Flows whose number fits into a port.
const MOST_PORTS: u32 = 50_000;

/// Two hosts whose devices nothing joins yet.
pub struct Lab {
    pub sender: Namespace,
    pub receiver: Namespace,
    /// The path between them, for the link's process to take.
    pub joint: Option<Joint>,
    pub addresses: Vec<Addresses>,
    pub facts: Facts,
}

impl Lab {
    /// Makes the hosts of a cell and what joins them. `congestion`: what the
    /// kernel calls a scenario's algorithm.
    ///
    /// The caller is the first process of a lab ([`super::enter`]) and ends up
    /// in a namespace of the lab's.
    pub fn build(cell: &Cell, congestion: &dyn Fn(&str) -> String) -> Result<Lab, KernelError> {
        let addresses: Vec<Addresses> = (0..cell.flows.len()).map(Addresses::of).collect();
        // Of this one only its children are of use: they have tables of sockets of their own. It stays until they are made.
        // While a kernel takes a namespace away it holds the lock of the devices, and a write of a setting that wants the
        // lock begins again and again: in a guest, whose time stands still meanwhile, for ever.
        let _nursery = Namespace::new()?;
        let medium = medium(cell, &addresses)?;
        nic::check_on(cell, medium == Medium::Link)?;
        let mut facts = Facts::here();
        let (sender, receiver, joint) = match medium {
            Medium::Link => {
                let (sender, sender_tun) = with_tun(&cell.sender)?;
                let (receiver, receiver_tun) = with_tun(&cell.receiver)?;
                let joint = Joint::Tuns {
                    sender: sender_tun,
                    receiver: receiver_tun,
                };
                (sender, receiver, joint)
            }
            Medium::Netem => {
                let (sender, receiver) = (Namespace::new()?, Namespace::new()?);
                let router = netem::join(cell, &sender, &receiver)?;
                (sender, receiver, Joint::Router(router))
            }
            Medium::Veth => {
                let (sender, receiver) = (Namespace::new()?, Namespace::new()?);
                let [of_sender, of_receiver] = &veth::HOSTS;
                let near = (of_receiver, cell.receiver.queues);
                let far = (of_sender, cell.sender.queues);
                veth::join(&mut Netlink::new()?, near, far, &sender)?;
                let joint = Joint::Pair([sender.again()?, receiver.again()?]);
                (sender, receiver, joint)
            }
        };

        sender.enter()?;
        let ends: Vec<_> = addresses.iter().map(|a| (a.sender, a.receiver)).collect();
        let netlink = &mut host(cell, &cell.sender, &ends, &|group| {
            let flow = &cell.flows[group];
            let of_programs = |_| congestion(&Variant::of_flow(flow).to_string());
            flow.workload.commands().map(of_programs)
        })?;
        if let Some(far) = medium.far_end(true) {
            veth::finish_host(cell, &cell.sender, far, &ends)?;
        }
        facts.sender = HostFacts::here(&cell.sender, &ends, netlink)?;
        facts.sender.nic = nic::set(&cell.sender)?;
        receiver.enter()?;
        let ends: Vec<_> = addresses.iter().map(|a| (a.receiver, a.sender)).collect();
        let netlink = &mut host(cell, &cell.receiver, &ends, &|group| {
            let commands = cell.flows[group].workload.commands();
            commands.map(|_| congestion(&cell.receiver.algorithm))
        })?;
        if let Some(far) = medium.far_end(false) {
            veth::finish_host(cell, &cell.receiver, far, &ends)?;
        }
        facts.receiver = HostFacts::here(&cell.receiver, &ends, netlink)?;
        facts.receiver.nic = nic::set(&cell.receiver)?;
        if let Joint::Router(router) = &joint {
            router.enter()?;
            netem::shape(&link_config(cell, &addresses, 0, 0))?;
        }
        facts.backend = joint.backend();
        Ok(Lab {
            sender,
            receiver,
            joint: Some(joint),
            addresses,
            facts,
        })
    }

    /// What the link has to be.
    pub fn link_config(&self, cell: &Cell, seed: u64, flows: u32) -> LinkConfig {
        link_config(cell, &self.addresses, seed, flows)
    }
}

fn link_config(cell: &Cell, addresses: &[Addresses], seed: u64, flows: u32) -> LinkConfig {
    let nic = |host: &Host| Nic {
        tso: host.gso_max_bytes > 0,
        coalesce: host.rx_coalesce,
        gro: host.gro,
    };
    let groups = addresses.iter().zip(&cell.flows);
    LinkConfig {
        path: cell.path.clone(),
        further: cell.further.clone(),
        groups: groups
            .map(|(addresses, flow)| Group {
                sender: addresses.sender,
                receiver: addresses.receiver,
                rtt: flow.rtt,
                warmup: cell.warmup_of(flow),
                hops: flow.hops.clone(),
            })
            .collect(),
        first_port: FIRST_PORT,
        flows,
        hosts: [&cell.sender, &cell.receiver].map(Host::shared_hosts),
        seed,
        sample_interval: cell.sample_interval,
        receiver: nic(&cell.receiver),
        sender: nic(&cell.sender),
    }
}

/// What lies between the two hosts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Medium {
    /// tcpknee's own link, between two TUN devices.
    Link,
    /// A router that is the path, with a veth pair to each host.
    Netem,
    /// Nothing: a veth pair.
    Veth,
}

impl Medium {
    /// The other end of a host's veth pair, where it has one.
    fn far_end(self, is_sender: bool) -> Option<&'static veth::End> {
        match self {
            Medium::Link => None,
            Medium::Netem => Some(netem::end_at(is_sender)),
            Medium::Veth => Some(&veth::HOSTS[usize::from(is_sender)]),
        }
    }
}

/// What the cell's path is made of here.
///
/// # Errors
/// The kernel's emulation is asked for, and this kernel lacks a part of it.
fn medium(cell: &Cell, addresses: &[Addresses]) -> Result<Medium, KernelError> {
    let config = link_config(cell, addresses, 0, 0);
    match cell.path.backend {
        Backend::User => Ok(Medium::Link),
        Backend::Netem => netem::check(&config).map(|()| Medium::Netem),
        Backend::Veth => Ok(Medium::Veth),
        // netem stands in for one bottleneck.
        Backend::Auto if !cell.further.is_empty() => Ok(Medium::Link),
        Backend::Auto if netem::is_faster(&cell.path) => match netem::check(&config) {
            Err(KernelError::Unsupported { .. }) => Ok(Medium::Link),
            checked => checked.map(|()| Medium::Netem),
        },
        Backend::Auto => Ok(Medium::Link),
    }
}

/// A host's namespace with its device, and the device's other end.
fn with_tun(host: &Host) -> Result<(Namespace, OwnedFd), KernelError> {
    let namespace = Namespace::new()?;
    let offloads = Offloads {
        tso: host.gso_max_bytes > 0,
    };
    let tun = open_tun(DEVICE, offloads).map_err(|source| KernelError::NoTun { source })?;
    Ok((namespace, tun))
}

/// Refuses a cell with more flows than ports.
pub fn check_flows(flows: u32) -> Result<(), KernelError> {
    if flows > MOST_PORTS {
        return Err(KernelError::Unsupported {
            what: format!("{flows} flows are asked for"),
            lacks: format!("has ports for {MOST_PORTS} of them in a lab"),
            hint: "Set fewer, or simulate them.".into(),
        });
    }
    Ok(())
}

/// One side's host, in the namespace that the caller is in. `ends`: own and far
/// address of each group; `congctl`: the route's congestion control, for
/// programs that do not choose one. Returns the way to the kernel's routing there.
fn host(
    cell: &Cell,
    host: &Host,
    ends: &[(Ipv4Addr, Ipv4Addr)],
    congctl: &dyn Fn(usize) -> Option<String>,
) -> Result<Netlink, KernelError> {
    let mut netlink = Netlink::new()?;
    settings::set_sysctls(host)?;
    settings::set_device(&mut netlink, host, cell.path.mtu_bytes)?;
    for (group, &(own, far)) in ends.iter().enumerate() {
        netlink.add_address(DEVICE, own)?;
        let mut metrics = vec![RouteMetric::InitCwnd(host.initcwnd)];
        if host.quickack {
            metrics.push(RouteMetric::QuickAck(1));
        }
        metrics.extend(congctl(group).map(RouteMetric::CcAlgo));
        netlink.add_route(DEVICE, far, own, metrics)?;
    }
    Ok(netlink)
}

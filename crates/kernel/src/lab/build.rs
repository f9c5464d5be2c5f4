//! A lab from a cell: two namespaces, a device in each, addresses and routes.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use knee_link::{Group, LinkConfig, Nic, Offloads, open_tun};
use knee_model::scenario::{Cell, Host, WorkloadSpec};
use netlink_packet_route::route::RouteMetric;

use super::facts::HostFacts;
use super::netlink::Netlink;
use super::{DEVICE, Facts, Namespace, settings};
use crate::KernelError;

/// Connecting ends bind this port plus the flow's number.
pub const FIRST_PORT: u16 = 10_000;
/// Flows whose number fits into a port.
const MOST_PORTS: u32 = 50_000;

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

/// Two hosts whose devices nothing joins yet.
pub struct Lab {
    pub sender: Namespace,
    pub receiver: Namespace,
    /// The devices' other ends, for the link to read and write.
    pub tuns: Option<(OwnedFd, OwnedFd)>,
    pub addresses: Vec<Addresses>,
    pub facts: Facts,
}

impl Lab {
    /// Makes the hosts of a cell. `congestion`: what the kernel calls a
    /// scenario's algorithm.
    ///
    /// The caller is the first process of a lab ([`super::enter`]) and ends up
    /// in the receiver's namespace.
    pub fn build(cell: &Cell, congestion: &dyn Fn(&str) -> String) -> Result<Lab, KernelError> {
        let mut lab = Lab::hosts(cell, congestion)?;
        lab.facts.backend = "user".into();
        Ok(lab)
    }

    fn hosts(cell: &Cell, congestion: &dyn Fn(&str) -> String) -> Result<Lab, KernelError> {
        let addresses: Vec<Addresses> = (0..cell.flows.len()).map(Addresses::of).collect();
        let mut facts = Facts::here();

        let sender = Namespace::new()?;
        let ends: Vec<_> = addresses.iter().map(|a| (a.sender, a.receiver)).collect();
        let (sender_tun, sender_facts) = host(cell, &cell.sender, &ends, &|group| {
            let flow = &cell.flows[group];
            is_programs(&flow.workload).then(|| congestion(&flow.algorithm))
        })?;
        let receiver = Namespace::new()?;
        let ends: Vec<_> = addresses.iter().map(|a| (a.receiver, a.sender)).collect();
        let (receiver_tun, receiver_facts) = host(cell, &cell.receiver, &ends, &|group| {
            is_programs(&cell.flows[group].workload).then(|| congestion(&cell.receiver.algorithm))
        })?;
        facts.sender = sender_facts;
        facts.receiver = receiver_facts;
        Ok(Lab {
            sender,
            receiver,
            tuns: Some((sender_tun, receiver_tun)),
            addresses,
            facts,
        })
    }

    /// What the link has to be.
    pub fn link_config(&self, cell: &Cell, seed: u64, flows: u32) -> LinkConfig {
        let nic = |host: &Host| Nic {
            tso: host.gso_max_bytes > 0,
            coalesce: host.rx_coalesce,
            gro: host.gro,
        };
        let groups = self.addresses.iter().zip(&cell.flows);
        LinkConfig {
            path: cell.path.clone(),
            groups: groups
                .map(|(addresses, flow)| Group {
                    sender: addresses.sender,
                    receiver: addresses.receiver,
                    rtt: flow.rtt,
                })
                .collect(),
            first_port: FIRST_PORT,
            flows,
            seed,
            warmup: cell.warmup,
            sample_interval: cell.sample_interval,
            receiver: nic(&cell.receiver),
            sender: nic(&cell.sender),
        }
    }
}

fn is_programs(workload: &WorkloadSpec) -> bool {
    matches!(workload, WorkloadSpec::Programs { .. })
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
/// programs that do not choose one.
fn host(
    cell: &Cell,
    host: &Host,
    ends: &[(Ipv4Addr, Ipv4Addr)],
    congctl: &dyn Fn(usize) -> Option<String>,
) -> Result<(OwnedFd, HostFacts), KernelError> {
    let offloads = Offloads {
        tso: host.gso_max_bytes > 0,
    };
    let tun = open_tun(DEVICE, offloads).map_err(|source| KernelError::NoTun { source })?;
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
    let own = ends.iter().map(|(own, _)| own.to_string()).collect();
    Ok((tun, HostFacts::here(cell, host, own)))
}

//! The router between two hosts: a veth pair to each, and qdiscs on its ends.

use std::fs;
use std::io::ErrorKind;
use std::net::Ipv4Addr;

use knee_collect::KernelError;
use knee_link::LinkConfig;
use knee_scenario::Cell;
use netlink_packet_route::link::LinkAttribute;

use super::{TO_RECEIVER, TO_SENDER, commands, qdiscs};
use crate::Namespace;
use crate::netlink::Netlink;
use crate::tool;
use crate::veth::{self, End};

/// The router's own address.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 76, 0, 1);

/// The router's ends of its two pairs, whose others are the hosts'.
const ENDS: [End; 2] = [
    End {
        device: TO_SENDER,
        hardware: [2, 0, 0, 0, 0, 0x11],
    },
    End {
        device: TO_RECEIVER,
        hardware: [2, 0, 0, 0, 0, 0x12],
    },
];

/// Has this kernel what a path needs? `Ok(())`, or what it lacks. Changes the
/// loopback device of the caller's namespace.
pub fn check(config: &LinkConfig) -> Result<(), KernelError> {
    batch(config)?;
    let mut netlink = Netlink::new()?;
    for kind in qdiscs(&config.path) {
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
pub fn join(
    cell: &Cell,
    sender: &Namespace,
    receiver: &Namespace,
) -> Result<Namespace, KernelError> {
    let router = Namespace::new()?;
    let mut netlink = Netlink::new()?;
    netlink.set_up("lo", Vec::new())?;
    let hosts = [(sender, &cell.sender), (receiver, &cell.receiver)];
    for ((end, far), (place, host)) in ENDS.iter().zip(&veth::HOSTS).zip(hosts) {
        veth::join(&mut netlink, (end, 1), (far, host.queues), place)?;
    }
    let forward = "/proc/sys/net/ipv4/ip_forward";
    fs::write(forward, "1").map_err(KernelError::system(format!("write 1 to {forward}")))?;
    Ok(router)
}

/// Finishes the router once both hosts' ends are up: routes, neighbours and
/// the qdiscs that are the path. The caller is in the router.
pub fn shape(config: &LinkConfig) -> Result<(), KernelError> {
    let mut netlink = Netlink::new()?;
    for end in &ENDS {
        let mtu = LinkAttribute::Mtu(config.path.mtu_bytes);
        netlink.set_up(end.device, vec![mtu])?;
        netlink.add_address(end.device, ADDRESS)?;
    }
    for group in &config.groups {
        let hosts = [group.sender, group.receiver].into_iter().zip(&veth::HOSTS);
        for (end, (host, far)) in ENDS.iter().zip(hosts) {
            netlink.add_route(end.device, host, ADDRESS, Vec::new())?;
            veth::introduce(&mut netlink, end.device, host, far)?;
        }
    }
    run_tc(&batch(config)?)
}

fn batch(config: &LinkConfig) -> Result<String, KernelError> {
    commands(config).map_err(|error| KernelError::Unsupported {
        what: error.to_string(),
        lacks: "has no qdisc that does that".into(),
        hint: error.hint(),
    })
}

/// The far end of a host's pair.
pub fn end_at(is_sender: bool) -> &'static End {
    &ENDS[usize::from(!is_sender)]
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

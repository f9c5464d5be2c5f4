//! What joins a lab's two hosts: the path of the scenario, or nothing but a pair of devices.

use std::os::fd::{BorrowedFd, OwnedFd};

use knee_collect::KernelError;
use knee_link::{LinkConfig, Report};

use super::{Namespace, netem, veth};

/// The path, laid but not yet at work.
#[derive(Debug)]
pub enum Joint {
    /// The other ends of the hosts' devices: tcpknee's own link.
    Tuns { sender: OwnedFd, receiver: OwnedFd },
    /// A router that is the path: netem and qdiscs of the kernel.
    Router(Namespace),
    /// The hosts' devices are the two ends of a veth pair: the data's sender, and its receiver.
    Pair([Namespace; 2]),
}

impl Joint {
    /// As `links` and the facts name it.
    pub fn backend(&self) -> &'static str {
        match self {
            Joint::Tuns { .. } => "user",
            Joint::Router(_) => "netem",
            Joint::Pair(_) => "veth",
        }
    }

    /// Works, or watches the kernel work, until `stop` becomes readable.
    ///
    /// `start_ns`: the run's beginning on CLOCK_MONOTONIC; times in the report count from it.
    ///
    /// # Errors
    /// A device or the kernel's counters fail.
    pub fn carry(
        self,
        config: &LinkConfig,
        start_ns: u64,
        stop: BorrowedFd<'_>,
    ) -> Result<Report, KernelError> {
        match self {
            Joint::Tuns { sender, receiver } => {
                knee_link::run(config, sender, receiver, start_ns, stop).map_err(|error| {
                    KernelError::Child {
                        role: "link".into(),
                        message: error.to_string(),
                    }
                })
            }
            Joint::Router(router) => {
                router.enter()?;
                netem::watch(config, start_ns, stop).map_err(KernelError::system(
                    "read the counters of the path's qdiscs",
                ))
            }
            Joint::Pair(hosts) => veth::watch(&hosts, stop),
        }
    }
}

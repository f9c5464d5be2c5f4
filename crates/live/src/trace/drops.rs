//! Packets that the qdiscs of devices have dropped.

use std::path::Path;

use knee_collect::{KernelError, qdisc};

use super::qdisc::with_devices;

/// The root qdisc of a device. It counts what those below it dropped as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootQdisc {
    pub device: String,
    pub kind: String,
    /// As tc prints it: `8001:`.
    pub handle: String,
    /// Packets dropped since it was made, modulo 2^32.
    pub dropped: u32,
}

/// Lists the root qdiscs of the network namespace of this path, or of the caller's.
///
/// # Errors
/// The namespace, its devices or their qdiscs cannot be read.
pub fn root_qdiscs(netns: Option<&Path>) -> Result<Vec<RootQdisc>, KernelError> {
    with_devices(netns, |routing, devices| {
        let found = qdisc::qdiscs(routing).map_err(KernelError::system("list the qdiscs"))?;
        let roots = found.into_iter().filter_map(|found| {
            let device = devices
                .iter()
                .find(|device| device.index == found.interface)?;
            (qdisc::handle(found.parent) == "root").then(|| RootQdisc {
                device: device.name.clone(),
                kind: found.kind,
                handle: qdisc::handle(found.handle),
                dropped: found.queue.map_or(0, |queue| queue.drops),
            })
        });
        Ok(roots.collect())
    })
}

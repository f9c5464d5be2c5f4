//! How long packets wait in the root qdisc of each device.

use std::path::Path;
use std::time::Duration;

use knee_collect::KernelError;
use knee_collect::nic;
use knee_collect::routing::Routing;
use knee_collect::text::escaped;
use knee_loader::programs;
use libbpf_rs::{MapCore, MapFlags};

use super::attached::{Attached, Wanted, unreadable};
use super::cost::Cost;
use crate::record::{Netns, in_namespace};

/// How often the caller is asked whether it is over.
const LOOK: Duration = Duration::from_millis(50);
/// TRACE_BUCKETS of bpf/trace_qdisc.bpf.c.
const BUCKETS: usize = 336;
/// IFNAMSIZ: a device's name with the 0 at its end.
const NAME_BYTES: usize = 16;
/// Buckets to each power of two.
const PER_OCTAVE: usize = 8;

/// Which devices; by default all.
#[derive(Clone, Debug, Default)]
pub struct QdiscFilter {
    /// Name of the device, cut to the 15 characters that it can have.
    pub device: Option<String>,
    /// Inode of the network namespace.
    pub netns: Option<u32>,
}

impl QdiscFilter {
    /// As `struct trace_filter` of bpf/trace_qdisc.bpf.c has it.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; NAME_BYTES];
        let name = self.device.as_deref().unwrap_or_default().as_bytes();
        let length = name.len().min(NAME_BYTES - 1);
        bytes[..length].copy_from_slice(&name[..length]);
        bytes.extend(self.netns.unwrap_or(0).to_ne_bytes());
        bytes
    }
}

/// What was seen of the qdisc of one handle at one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QdiscLatency {
    /// Inode of the device's network namespace.
    pub netns: u32,
    pub ifindex: i32,
    /// `8001:` is 0x80010000. The queues below an mq have 0, and are one here.
    pub handle: u32,
    pub device: String,
    /// Of the qdisc: `fq`, `fq_codel`, ….
    pub kind: String,
    /// Packets that the qdisc took in.
    pub taken_in: u64,
    /// Of those: that left, and whose wait is known.
    pub measured: u64,
    /// Packets that left without having been seen to arrive.
    pub unknown: u64,
    pub sum_ns: u64,
    pub max_ns: u64,
    /// Waits by length; see [`bucket_begin_ns`].
    pub buckets: Vec<u64>,
}

/// The shortest wait of a bucket. Up to 8 ns each has its own, then there are
/// eight to each power of two: a bucket's ends are 12.5 % apart at most.
pub fn bucket_begin_ns(bucket: usize) -> u64 {
    if bucket < PER_OCTAVE {
        return bucket as u64;
    }
    let octave = bucket / PER_OCTAVE - 1;
    ((PER_OCTAVE + bucket % PER_OCTAVE) as u64) << octave
}

/// What a trace came to.
#[derive(Clone, Debug)]
pub struct Ended {
    /// By namespace, device and handle.
    pub qdiscs: Vec<QdiscLatency>,
    /// Packets of devices for which there was no room.
    pub lost: u64,
    pub cost: Cost,
}

/// Names of the devices that there are now, in the network namespace of this path
/// or in the caller's.
///
/// # Errors
/// The namespace or its devices cannot be looked at.
pub fn devices(netns: Option<&Path>) -> Result<Vec<String>, KernelError> {
    with_devices(netns, |_, devices| {
        Ok(devices.into_iter().map(|device| device.name).collect())
    })
}

/// Does `work` with the kernel's routing and the devices of the network namespace of this path, or of the caller's.
pub(super) fn with_devices<T>(
    netns: Option<&Path>,
    work: impl FnOnce(&mut Routing, Vec<nic::Device>) -> Result<T, KernelError> + Send,
) -> Result<T, KernelError>
where
    T: Send,
{
    let netns = netns.map(|path| Netns {
        name: path.display().to_string(),
        path: path.to_owned(),
    });
    in_namespace(netns.as_ref(), || {
        let mut routing =
            Routing::new().map_err(KernelError::system("reach the kernel's routing"))?;
        let devices =
            nic::devices(&mut routing).map_err(KernelError::system("list the devices"))?;
        work(&mut routing, devices)
    })
}

/// Watches what `filter` lets through until `is_over`, which is first asked as
/// soon as all is attached.
///
/// # Errors
/// Why the kernel or the caller's rights do not allow it.
pub fn trace(
    filter: &QdiscFilter,
    mut is_over: impl FnMut() -> bool,
) -> Result<Ended, KernelError> {
    let mut attached = Attached::attach(&Wanted {
        name: "trace_qdisc",
        bytes: programs::TRACE_QDISC,
        filter: &filter.to_bytes(),
        tracepoints: &["qdisc_enqueue", "qdisc_dequeue"],
        left_out: &[],
        since: "5.15",
    })?;
    while !is_over() {
        std::thread::sleep(LOOK);
    }
    attached.detach();
    let cost = attached.cost();
    let lost = attached.lost()?;
    let map = attached.map("latencies");
    let mut qdiscs = Vec::new();
    for key in map.keys() {
        let value = map.lookup(&key, MapFlags::ANY).map_err(unreadable)?;
        qdiscs.extend(value.and_then(|value| read(&key, &value)));
    }
    qdiscs.sort_by_key(|one: &QdiscLatency| (one.netns, one.ifindex, one.handle));
    Ok(Ended { qdiscs, lost, cost })
}

/// From `struct trace_device` and `struct trace_latency`.
fn read(key: &[u8], value: &[u8]) -> Option<QdiscLatency> {
    let word = |at: usize| Some(u32::from_ne_bytes(key.get(at..at + 4)?.try_into().ok()?));
    let number = |at: usize| Some(u64::from_ne_bytes(value.get(at..at + 8)?.try_into().ok()?));
    let text = |at: usize| {
        let bytes = value
            .get(at..at + NAME_BYTES)?
            .split(|byte| *byte == 0)
            .next()?;
        Some(escaped(bytes))
    };
    const BUCKETS_AT: usize = 72;
    Some(QdiscLatency {
        netns: word(0)?,
        ifindex: word(4)?.cast_signed(),
        handle: word(8)?,
        device: text(0)?,
        kind: text(16)?,
        taken_in: number(32)?,
        measured: number(40)?,
        unknown: number(48)?,
        sum_ns: number(56)?,
        max_ns: number(64)?,
        buckets: (0..BUCKETS)
            .map(|bucket| number(BUCKETS_AT + 8 * bucket))
            .collect::<Option<Vec<u64>>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_are_an_eighth_wide_at_most() {
        for bucket in 0..BUCKETS {
            let (begin, end) = (bucket_begin_ns(bucket), bucket_begin_ns(bucket + 1));
            assert!(begin < end, "bucket {bucket}");
            assert!(
                end - begin <= 1 || (end - begin) * 8 <= begin,
                "bucket {bucket}"
            );
        }
        assert_eq!(bucket_begin_ns(8), 8);
        assert_eq!(bucket_begin_ns(16), 16);
        assert!(bucket_begin_ns(BUCKETS) >= 1 << 44);
    }

    #[test]
    fn devices_of_this_namespace_are_found_by_its_path_too() {
        let here = devices(None).unwrap();
        assert!(here.iter().any(|name| name == "lo"));
        // Entering a namespace, even one's own, needs CAP_SYS_ADMIN.
        if nix::unistd::geteuid().is_root() {
            assert_eq!(devices(Some(Path::new("/proc/self/ns/net"))).unwrap(), here);
        }
        let error = devices(Some(Path::new("/run/netns/no-such"))).unwrap_err();
        assert!(error.to_string().contains("no-such"));
    }
}

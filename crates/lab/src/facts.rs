//! What a lab was: settings as they stood, for `run.json`.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;

use knee_collect::KernelError;
use knee_scenario::Host;
use knee_uapi::ioctl;
use nix::unistd::geteuid;
use serde::Serialize;

use super::netlink::Netlink;
use super::settings;
use crate::namespace::DEVICE;

/// Facts of one repetition's lab.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Facts {
    /// Release of the running kernel.
    pub kernel: String,
    /// Jiffies per second, where the kernel tells its configuration.
    pub hz: Option<u32>,
    /// Made in a user namespace, without root?
    pub rootless: bool,
    /// What joined the hosts: `user`, `netem` or `veth`.
    pub backend: &'static str,
    pub available_congestion_control: String,
    pub sender: HostFacts,
    pub receiver: HostFacts,
    /// The link's own measurements and what sampling cost.
    pub measured: BTreeMap<String, f64>,
}

/// Facts of one side's host.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HostFacts {
    /// Addresses, by `[[flow]]` table.
    pub addresses: Vec<String>,
    /// Of the host's device, as read back.
    pub mtu_bytes: u32,
    pub tso: bool,
    pub gso_max_bytes: u32,
    /// Root qdisc of the device, as read back.
    pub qdisc: String,
    /// Merging of packets that arrive, and how long the NIC gathers them. tcpknee's link does both; a veth device merges, and
    /// gathers nothing.
    pub gro: bool,
    pub rx_coalesce_us: u64,
    pub initcwnd: u32,
    pub quickack: bool,
    /// Processors of the host's applications, as a list; empty: any.
    pub app_cpus: String,
    /// Queues in which packets arrive.
    pub queues: u32,
    /// What was set of how those are polled and steered, by the file of sysfs, as read back.
    pub nic: BTreeMap<String, String>,
    /// As read back.
    pub sysctls: BTreeMap<String, String>,
}

impl HostFacts {
    /// Of the namespace that the caller is in. `ends`: own and far address of each group.
    pub fn here(
        host: &Host,
        ends: &[(Ipv4Addr, Ipv4Addr)],
        netlink: &mut Netlink,
    ) -> Result<HostFacts, KernelError> {
        let device = netlink.device(DEVICE)?;
        Ok(HostFacts {
            addresses: ends.iter().map(|(own, _)| own.to_string()).collect(),
            mtu_bytes: device.mtu_bytes,
            tso: ioctl::is_on(&ioctl::Kernel, DEVICE.as_ref(), ioctl::TSO)
                .map_err(KernelError::system(format!("read an offload of {DEVICE}")))?,
            gso_max_bytes: device.gso_max_bytes,
            qdisc: device.qdisc,
            gro: host.gro,
            rx_coalesce_us: host.rx_coalesce.as_us(),
            initcwnd: host.initcwnd,
            quickack: host.quickack,
            app_cpus: host.app_cpus.list(),
            queues: host.queues,
            nic: BTreeMap::new(),
            sysctls: settings::read_sysctls(host).into_iter().collect(),
        })
    }
}

impl Facts {
    /// As an object of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("facts are plain data")
    }

    /// Of the machine.
    pub fn here() -> Facts {
        let read = |file: &str| {
            fs::read_to_string(file)
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        Facts {
            kernel: read("/proc/sys/kernel/osrelease"),
            hz: kernel_hz(),
            // Inside of the user namespace everybody is root; the map tells.
            rootless: !geteuid().is_root() || !read("/proc/self/uid_map").ends_with("4294967295"),
            available_congestion_control: read(
                "/proc/sys/net/ipv4/tcp_available_congestion_control",
            ),
            ..Facts::default()
        }
    }
}

/// HZ of the running kernel, from its configuration.
fn kernel_hz() -> Option<u32> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let text = read_config_gz()
        .or_else(|| fs::read_to_string(format!("/boot/config-{}", release.trim())).ok())?;
    text.lines()
        .find_map(|line| line.strip_prefix("CONFIG_HZ=")?.parse().ok())
}

fn read_config_gz() -> Option<String> {
    use std::io::Read;
    let file = fs::File::open("/proc/config.gz").ok()?;
    let mut text = String::new();
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}

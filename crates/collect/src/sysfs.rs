//! What /sys tells of interfaces: drivers, queues, the link of the device.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use serde::Serialize;

use super::files::{Files, names, target};
use super::nic::Interface;

/// Queues that are read. A veth has one for each processor in each direction: thousands of them would take seconds.
const MOST_QUEUES: usize = 8_192;

/// A queue of an interface.
#[derive(Debug, Serialize)]
pub struct Queue {
    pub interface: String,
    /// `rx`, `tx`.
    pub direction: &'static str,
    pub number: u32,
    pub rps_cpus: Option<Vec<u32>>,
    pub rps_flow_cnt: Option<i64>,
    pub xps_cpus: Option<Vec<u32>>,
}

/// The device of an interface, on PCI.
#[derive(Debug, Serialize)]
pub struct Pci {
    pub interface: String,
    pub vendor: Option<String>,
    pub device: Option<String>,
    pub speed_gt_per_sec: Option<f64>,
    pub max_speed_gt_per_sec: Option<f64>,
    /// Lanes.
    pub width: Option<i64>,
    pub max_width: Option<i64>,
    pub iommu_group: bool,
    pub iommu_type: Option<String>,
}

/// What there is besides the interfaces themselves.
#[derive(Debug, Default)]
pub struct Devices {
    pub queues: Vec<Queue>,
    pub pci: Vec<Pci>,
    /// Who has an interrupt, by its number.
    pub interrupts: BTreeMap<u32, String>,
}

/// Adds to the interfaces, devices first.
pub fn add(files: &mut Files, interfaces: &mut [Interface]) -> Devices {
    let net = files.roots.sys.join("class/net");
    let mut found = Devices::default();
    let (devices, virtuals): (Vec<_>, Vec<_>) =
        interfaces.iter_mut().partition(|row| row.kind.is_none());
    for row in devices.into_iter().chain(virtuals) {
        let folder = net.join(row.raw_name());
        if !is_ours(files, &folder, row) {
            continue;
        }
        settings(files, &folder, row);
        let device = folder.join("device");
        if device.exists() {
            row.driver = target(device.join("driver"));
            row.bus = target(device.join("subsystem"));
            row.address_on_bus = name_of(&device);
            row.numa_node = files.number(device.join("numa_node"), "");
            for number in interrupts(&device) {
                found.interrupts.insert(number, row.interface.clone());
            }
            if row.bus.as_deref() == Some("pci") {
                found.pci.push(pci(files, &device, &row.interface));
            }
        }
        if row.loopback {
            continue;
        }
        if found.queues.len() < MOST_QUEUES {
            queues(files, &folder, &row.interface, &mut found.queues);
        } else {
            let why = format!("of more than {MOST_QUEUES} queues the others were left out");
            files.miss("queues", why, "");
        }
    }
    found
}

/// Returns whether /sys shows this namespace: it shows that of who mounted it.
fn is_ours(files: &mut Files, folder: &Path, row: &Interface) -> bool {
    if files.number(folder.join("ifindex"), "") == Some(row.ifindex.into()) {
        return true;
    }
    let why = format!(
        "{}/class/net is not there, or is that of another network namespace",
        files.roots.sys.display()
    );
    files.miss(
        "drivers, queues, interrupts, PCI",
        why,
        "a /sys mounted in this namespace: `knee snapshot --netns` as root does it",
    );
    false
}

fn settings(files: &mut Files, folder: &Path, row: &mut Interface) {
    let speed = files.number(folder.join("speed"), "");
    let known = speed.filter(|megabits| (1..1 << 31).contains(megabits));
    row.speed_bits_per_sec = known.map(|megabits| megabits * 1_000_000);
    let duplex = files.text(folder.join("duplex"), "");
    row.duplex = duplex.filter(|duplex| duplex == "full" || duplex == "half");
    let threaded = files.number(folder.join("threaded"), "");
    row.threaded = threaded.map(|threaded| threaded != 0);
    row.gro_flush_timeout_ns = files.number(folder.join("gro_flush_timeout"), "");
    row.napi_defer_hard_irqs = files.number(folder.join("napi_defer_hard_irqs"), "");
}

fn queues(files: &mut Files, folder: &Path, interface: &str, found: &mut Vec<Queue>) {
    let folder = folder.join("queues");
    for name in names(&folder) {
        let queue = folder.join(&name);
        let Some((direction, number)) = name.split_once('-') else {
            continue;
        };
        let Ok(number) = number.parse() else { continue };
        let direction = match direction {
            "rx" => "rx",
            "tx" => "tx",
            _ => continue,
        };
        let mut row = Queue {
            interface: interface.to_owned(),
            direction,
            number,
            rps_cpus: None,
            rps_flow_cnt: None,
            xps_cpus: None,
        };
        if direction == "rx" {
            row.rps_cpus = files.cpu_mask(queue.join("rps_cpus"), "rps_cpus");
            row.rps_flow_cnt = files.number(queue.join("rps_flow_cnt"), "rps_flow_cnt");
        } else {
            row.xps_cpus = files.cpu_mask(queue.join("xps_cpus"), "xps_cpus");
        }
        found.push(row);
    }
}

fn name_of(device: &Path) -> Option<String> {
    let place = fs::canonicalize(device).ok()?;
    Some(place.file_name().map(OsStr::to_string_lossy)?.into_owned())
}

/// A virtio device has its interrupts from the PCI device above it.
fn interrupts(device: &Path) -> Vec<u32> {
    let place = fs::canonicalize(device).unwrap_or_default();
    (place.ancestors().take(2))
        .map(|folder| super::files::numbered(folder.join("msi_irqs"), ""))
        .find(|numbers| !numbers.is_empty())
        .unwrap_or_default()
}

fn pci(files: &mut Files, device: &Path, interface: &str) -> Pci {
    /// 255 and 0 stand for a device that is not behind a link, as in virtual machines.
    const LANES: std::ops::Range<i64> = 1..255;
    let mut text = |file: &str| files.text(device.join(file), "");
    let (vendor, id) = (text("vendor"), text("device"));
    let speed = |text: Option<String>| text?.split_once(" GT/s")?.0.parse().ok();
    let (current, most) = (text("current_link_speed"), text("max_link_speed"));
    let iommu_type = text("iommu_group/type");
    let mut lanes = |file: &str| {
        let lanes = files.number(device.join(file), "");
        lanes.filter(|lanes| LANES.contains(lanes))
    };
    Pci {
        interface: interface.to_owned(),
        vendor,
        device: id,
        speed_gt_per_sec: speed(current),
        max_speed_gt_per_sec: speed(most),
        width: lanes("current_link_width"),
        max_width: lanes("max_link_width"),
        iommu_group: device.join("iommu_group").exists(),
        iommu_type,
    }
}

//! Counters of network devices, by rtnetlink.

use std::io;
use std::sync::Arc;

use knee_tables::{Nic, Table};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkInfo, LinkMessage, Stats64};

use super::routing::Routing;
use super::settings::Setting;

/// A device.
#[derive(Clone, Debug, Default)]
pub struct Device {
    pub index: u32,
    pub name: String,
    pub operstate: String,
    pub mtu_bytes: Option<u32>,
    pub stats: Option<Stats64>,
    /// `veth`, `bond`, `vlan`, …; a NIC has none.
    pub kind: Option<String>,
    /// Name, unit and value of what it is set to besides, in the names of `ip -d -j link`.
    pub set: Vec<(&'static str, &'static str, u32)>,
}

/// The devices of the namespace.
///
/// # Errors
/// The kernel refuses the dump.
pub fn devices(routing: &mut Routing) -> io::Result<Vec<Device>> {
    let mut found = Vec::new();
    let question = RouteNetlinkMessage::GetLink(LinkMessage::default());
    routing.dump(question, |answer| {
        if let RouteNetlinkMessage::NewLink(link) = answer {
            found.push(device(link));
        }
    })?;
    Ok(found)
}

/// What an answer tells of a device; what it does not tell stays empty.
pub fn device(link: LinkMessage) -> Device {
    let mut device = Device {
        index: link.header.index,
        ..Device::default()
    };
    for attribute in link.attributes {
        let set = match attribute {
            LinkAttribute::TxQueueLen(packets) => ("txqlen", "packets", packets),
            LinkAttribute::NumTxQueues(queues) => ("num_tx_queues", "", queues),
            LinkAttribute::NumRxQueues(queues) => ("num_rx_queues", "", queues),
            LinkAttribute::GsoMaxSize(bytes) => ("gso_max_size", "bytes", bytes),
            LinkAttribute::GsoMaxSegs(segments) => ("gso_max_segs", "segments", segments),
            LinkAttribute::TsoMaxSize(bytes) => ("tso_max_size", "bytes", bytes),
            LinkAttribute::TsoMaxSegs(segments) => ("tso_max_segs", "segments", segments),
            LinkAttribute::GroMaxSize(bytes) => ("gro_max_size", "bytes", bytes),
            other => {
                tell(&mut device, other);
                continue;
            }
        };
        device.set.push(set);
    }
    device
}

fn tell(device: &mut Device, attribute: LinkAttribute) {
    match attribute {
        LinkAttribute::LinkInfo(parts) => {
            device.kind = parts.iter().find_map(|part| match part {
                LinkInfo::Kind(kind) => Some(kind.to_string()),
                _ => None,
            });
        }
        LinkAttribute::IfName(name) => device.name = name,
        LinkAttribute::Mtu(bytes) => device.mtu_bytes = Some(bytes),
        LinkAttribute::OperState(state) => {
            device.operstate = format!("{state:?}").to_lowercase();
        }
        LinkAttribute::Stats64(stats) => device.stats = Some(stats),
        _ => {}
    }
}

/// Hands what the device is set to to `take`.
pub fn settings(device: &Device, interface: &Arc<str>, take: &mut impl FnMut(Setting)) {
    if let Some(kind) = &device.kind {
        take(Setting::of_device("link", interface, "kind", "", kind));
    }
    if let Some(bytes) = device.mtu_bytes {
        take(Setting::of_device("link", interface, "mtu", "bytes", bytes));
    }
    for &(name, unit, value) in &device.set {
        take(Setting::of_device("link", interface, name, unit, value));
    }
}

/// Fills the device's columns of a row.
pub fn fill(table: &mut Nic, row: usize, device: &Device) {
    table.interface.set(row, &device.name);
    table.operstate.set(row, &device.operstate);
    if let Some(bytes) = device.mtu_bytes {
        table.mtu_bytes.set(row, bytes.into());
    }
    let Some(stats) = &device.stats else { return };
    macro_rules! set {
        ($($name:ident)*) => {$( table.$name.set(row, stats.$name as i64); )*};
    }
    set! {
        rx_packets tx_packets rx_bytes tx_bytes rx_errors tx_errors rx_dropped tx_dropped
        multicast collisions rx_length_errors rx_over_errors rx_crc_errors rx_frame_errors
        rx_fifo_errors rx_missed_errors tx_aborted_errors tx_carrier_errors tx_fifo_errors
        tx_heartbeat_errors tx_window_errors rx_nohandler
    }
    debug_assert!(row < table.rows());
}

#[cfg(test)]
mod tests {
    use knee_tables::Batch;

    use super::*;

    #[test]
    fn loopback_is_among_the_devices_with_its_counters() {
        let devices = devices(&mut Routing::new().unwrap()).unwrap();
        let loopback = devices.iter().find(|device| device.name == "lo").unwrap();
        assert_eq!(loopback.index, 1);
        let mut table = Nic::default();
        let row = table.add_row();
        fill(&mut table, row, loopback);
        assert_eq!(table.interface.get(row), Some("lo"));
        let stats = loopback.stats.unwrap();
        assert_eq!(table.rx_bytes.get(row), Some(stats.rx_bytes as i64));
        assert_eq!(table.mtu_bytes.get(row), loopback.mtu_bytes.map(i64::from));
    }
}

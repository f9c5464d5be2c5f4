//! Network devices: what they are set to and their counters, by rtnetlink.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

use knee_tables::{Nic, Table};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoBond, InfoData, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, Stats64,
};
use nix::net::if_::if_indextoname;
use serde::Serialize;

use super::routing::Routing;
use super::setting::Setting;

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
    pub is_loopback: bool,
    pub max_mtu_bytes: Option<u32>,
    /// Indexes of the bridge, bond or team that it belongs to, and of the device below it.
    pub master: Option<u32>,
    pub lower: Option<u32>,
    /// Its other end lies in another network namespace.
    pub is_peer_elsewhere: bool,
    pub carrier_changes: Option<u32>,
    pub bond_mode: Option<u8>,
    pub bond_xmit_hash_policy: Option<u8>,
}

impl Device {
    fn set_to(&self, name: &str) -> Option<u32> {
        let found = self.set.iter().find(|(known, ..)| *known == name);
        found.map(|&(.., value)| value)
    }
}

/// An interface of a snapshot. What /sys tells of it, `sysfs` adds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Interface {
    pub interface: String,
    pub ifindex: u32,
    pub kind: Option<String>,
    pub driver: Option<String>,
    pub bus: Option<String>,
    pub address_on_bus: Option<String>,
    pub operstate: String,
    pub loopback: bool,
    pub mtu_bytes: Option<u32>,
    pub max_mtu_bytes: Option<u32>,
    pub txqueuelen_pkts: Option<u32>,
    pub speed_bits_per_sec: Option<i64>,
    pub duplex: Option<String>,
    pub master: Option<String>,
    pub lower: Option<String>,
    pub peer_elsewhere: bool,
    pub default_route: bool,
    pub numa_node: Option<i64>,
    pub rx_queues: Option<u32>,
    pub tx_queues: Option<u32>,
    pub gso_max_bytes: Option<u32>,
    pub gro_max_bytes: Option<u32>,
    pub threaded: Option<bool>,
    pub gro_flush_timeout_ns: Option<i64>,
    pub napi_defer_hard_irqs: Option<i64>,
    pub bond_mode: Option<&'static str>,
    pub bond_xmit_hash_policy: Option<&'static str>,
    pub carrier_changes: Option<u32>,
    #[serde(flatten)]
    pub traffic: Option<Traffic>,
}

macro_rules! traffic {
    ($($name:ident)*) => {
        /// What an interface has counted so far.
        #[derive(Clone, Debug, Serialize)]
        pub struct Traffic {
            $(pub $name: u64,)*
        }

        impl From<Stats64> for Traffic {
            fn from(stats: Stats64) -> Traffic {
                Traffic { $($name: stats.$name,)* }
            }
        }
    };
}
traffic! {
    rx_packets tx_packets rx_bytes tx_bytes rx_dropped tx_dropped rx_errors tx_errors rx_missed_errors rx_fifo_errors
    rx_crc_errors rx_nohandler
}

impl Interface {
    /// Makes the row of a device. `names`: devices by index; `through`: those that default routes lead through.
    pub fn of(
        device: &Device,
        names: &BTreeMap<u32, String>,
        through: &BTreeSet<u32>,
    ) -> Interface {
        const BOND_MODES: &[&str] = &[
            "balance-rr",
            "active-backup",
            "balance-xor",
            "broadcast",
            "802.3ad",
            "balance-tlb",
            "balance-alb",
        ];
        const BOND_HASHES: &[&str] = &[
            "layer2",
            "layer3+4",
            "layer2+3",
            "encap2+3",
            "encap3+4",
            "vlan+srcmac",
        ];
        let word = |words: &[&'static str], at: Option<u8>| words.get(usize::from(at?)).copied();
        let name = |index: Option<u32>| names.get(&index?).cloned();
        Interface {
            interface: device.name.clone(),
            ifindex: device.index,
            kind: device.kind.clone(),
            operstate: match &*device.operstate {
                "" => "unknown".to_owned(),
                state => state.to_owned(),
            },
            loopback: device.is_loopback,
            mtu_bytes: device.mtu_bytes,
            max_mtu_bytes: device.max_mtu_bytes.filter(|&bytes| bytes != 0),
            txqueuelen_pkts: device.set_to("txqlen"),
            master: name(device.master),
            lower: name(device.lower.filter(|_| !device.is_peer_elsewhere)),
            peer_elsewhere: device.is_peer_elsewhere,
            default_route: through.contains(&device.index),
            rx_queues: device.set_to("num_rx_queues"),
            tx_queues: device.set_to("num_tx_queues"),
            gso_max_bytes: device.set_to("gso_max_size"),
            gro_max_bytes: device.set_to("gro_max_size"),
            bond_mode: word(BOND_MODES, device.bond_mode),
            bond_xmit_hash_policy: word(BOND_HASHES, device.bond_xmit_hash_policy),
            carrier_changes: device.carrier_changes,
            traffic: device.stats.map(Traffic::from),
            ..Interface::default()
        }
    }

    /// Returns the name as the kernel has it: the row's has an escape for each byte that is no UTF-8.
    pub fn raw_name(&self) -> OsString {
        let raw = || {
            Some(OsString::from_vec(
                if_indextoname(self.ifindex).ok()?.into_bytes(),
            ))
        };
        let is_escaped = self.interface.contains('\\');
        (is_escaped.then(raw).flatten()).unwrap_or_else(|| OsString::from(&self.interface))
    }
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
        is_loopback: link.header.flags.contains(LinkFlags::Loopback),
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
            for part in parts {
                match part {
                    LinkInfo::Kind(kind) => device.kind = Some(kind.to_string()),
                    LinkInfo::Data(InfoData::Bond(parts)) => {
                        for part in parts {
                            match part {
                                InfoBond::Mode(mode) => device.bond_mode = Some(mode.into()),
                                InfoBond::XmitHashPolicy(policy) => {
                                    device.bond_xmit_hash_policy = Some(policy.into());
                                }
                                _ => {}
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        LinkAttribute::MaxMtu(bytes) => device.max_mtu_bytes = Some(bytes),
        LinkAttribute::Controller(index) => device.master = Some(index),
        LinkAttribute::Link(index) => device.lower = Some(index),
        LinkAttribute::LinkNetNsId(_) => device.is_peer_elsewhere = true,
        LinkAttribute::CarrierChanges(changes) => device.carrier_changes = Some(changes),
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
        let names = BTreeMap::from([(1, "lo".to_owned())]);
        let row = Interface::of(loopback, &names, &BTreeSet::from([1]));
        assert_eq!(
            (&*row.interface, row.ifindex, row.raw_name()),
            ("lo", 1, "lo".into())
        );
        assert!(row.loopback && row.default_route && !row.peer_elsewhere);
        assert_eq!(row.traffic.unwrap().rx_bytes, stats.rx_bytes);
    }

    #[test]
    fn bonds_and_their_members_are_told_by_name() {
        let bond = Device {
            index: 4,
            name: "bond0".to_owned(),
            bond_mode: Some(4),
            bond_xmit_hash_policy: Some(1),
            max_mtu_bytes: Some(0),
            ..Device::default()
        };
        let names = BTreeMap::from([(4, "bond0".to_owned()), (2, "eth0".to_owned())]);
        let row = Interface::of(&bond, &names, &BTreeSet::new());
        assert_eq!(
            (row.bond_mode, row.bond_xmit_hash_policy),
            (Some("802.3ad"), Some("layer3+4"))
        );
        assert_eq!((&*row.operstate, row.max_mtu_bytes), ("unknown", None));
        let member = |is_peer_elsewhere| Device {
            master: Some(4),
            lower: Some(2),
            is_peer_elsewhere,
            ..Device::default()
        };
        let row = Interface::of(&member(false), &names, &BTreeSet::new());
        assert_eq!(
            (row.master.as_deref(), row.lower.as_deref()),
            (Some("bond0"), Some("eth0"))
        );
        // An index of another namespace means nothing here.
        assert_eq!(
            Interface::of(&member(true), &names, &BTreeSet::new()).lower,
            None
        );
    }
}

//! Offloads, interrupt coalescing, rings, channels and speed of devices, by ethtool's
//! netlink (Linux 5.6), and their drivers. What a driver does not have it is not
//! asked for by name: it has no setting, where the ioctls would tell a 0. A snapshot asks by ioctl, which older
//! kernels have too; the numbers of both have the same order.

mod state;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::sync::Arc;

pub use self::state::DriverStates;

use crate::generic::Generic;
use crate::setting::{Setting, on_off};
use crate::text;
use knee_uapi::groups::{GROUPS, Group, RINGS_GET};
use knee_uapi::ioctl;
use knee_uapi::netlink::{NESTED, each, number, put};

/// Kinds of settings that come from here, but for the drivers'.
pub const KINDS: &[&str] = &["offload", "coalesce", "ring", "channels", "speed"];

// enum in include/uapi/linux/ethtool_netlink.h.
const STRSET_GET: u8 = 1;
const LINKMODES_GET: u8 = 4;
const FEATURES_GET: u8 = 11;
/// The header of a request and of an answer is its first attribute.
const HEADER: u16 = 1;
const HEADER_DEV_INDEX: u16 = 1;
const HEADER_FLAGS: u16 = 3;
/// Bits as words, without their names (ETHTOOL_FLAG_COMPACT_BITSETS).
const COMPACT: u32 = 1;
/// enum ethtool_stringset: names of offloads.
const SS_FEATURES: u32 = 4;
const LINKMODES_SPEED: u16 = 5;
const LINKMODES_DUPLEX: u16 = 6;

/// How many bytes of a packet a driver writes into the device, and the most of them.
type Push = (Option<u32>, Option<u32>);

/// Offloads that change what TCP's packets look like, or how many processors and
/// interrupts they take: the kernel's names begin like this.
const OFFLOADS: &[&str] = &[
    "tx-tcp",
    "tx-udp-segmentation",
    "tx-generic-segmentation",
    "tx-gso-",
    "tx-scatter-gather",
    "tx-checksum-i",
    "rx-checksum",
    "rx-gro",
    "rx-lro",
    "rx-udp-gro-forwarding",
    "rx-hashing",
    "tx-nocache-copy",
    "tls-hw-",
    "hw-tc-offload",
];

/// A connection to ethtool of the namespace in which it was made.
pub struct Ethtool {
    netlink: Generic,
    family: u16,
    /// Names of the kernel's offloads, by bit.
    offloads: Vec<String>,
}

impl Ethtool {
    /// # Errors
    /// Linux before 5.6, or one without CONFIG_ETHTOOL_NETLINK.
    pub fn new() -> io::Result<Ethtool> {
        let mut netlink = Generic::new()?;
        let family = netlink.family("ethtool").map_err(|error| {
            let has_none = error.raw_os_error() == Some(libc::ENOENT);
            match has_none {
                true => io::Error::other("no ethtool netlink (Linux 5.6, CONFIG_ETHTOOL_NETLINK)"),
                false => error,
            }
        })?;
        let offloads = offload_names(&mut netlink, family)?;
        Ok(Ethtool {
            netlink,
            family,
            offloads,
        })
    }

    /// Hands the settings of these devices, by index, to `take`.
    pub fn read(&mut self, devices: &[(u32, Arc<str>)], take: &mut impl FnMut(Setting)) {
        let offloads = &self.offloads;
        let name_of = |index: u32| {
            let found = devices.iter().find(|(known, _)| *known == index);
            found.map(|(_, name)| name)
        };
        let mut all = |kind: &'static str, command: u8, fill: &mut dyn FnMut(&Arc<str>, &[u8])| {
            let outcome = self.netlink.dump(self.family, command, &header(), |body| {
                if let Some(name) = device_index(body).and_then(name_of) {
                    fill(name, body);
                }
            });
            outcome
                .err()
                .map(|error| Setting::unread(kind, error.to_string()))
        };
        let mut unread = Vec::new();
        unread.extend(all("offload", FEATURES_GET, &mut |name, body| {
            read_offloads(offloads, name, body, take);
        }));
        for &group in GROUPS {
            unread.extend(all(group.kind, group.netlink, &mut |name, body| {
                read_values(group, name, body, take);
            }));
        }
        unread.extend(all("speed", LINKMODES_GET, &mut |name, body| {
            read_speed(name, body, take);
        }));
        unread.into_iter().for_each(take);
    }

    /// Reads how far drivers push packets, by the device's index.
    ///
    /// # Errors
    /// The kernel refuses the dump.
    fn push_bytes(&mut self) -> io::Result<BTreeMap<u32, Push>> {
        const TX_PUSH_BUF_LEN: u16 = 15;
        const TX_PUSH_BUF_LEN_MAX: u16 = 16;
        let mut found = BTreeMap::new();
        self.netlink
            .dump(self.family, RINGS_GET, &header(), |body| {
                let mut push = (None, None);
                each(body, |attribute, bytes| {
                    let number = number(bytes, 0, bytes.len()).map(|number| number as u32);
                    match attribute {
                        TX_PUSH_BUF_LEN => push.0 = number,
                        TX_PUSH_BUF_LEN_MAX => push.1 = number,
                        _ => {}
                    }
                });
                found.extend(device_index(body).map(|index| (index, push)));
            })?;
        Ok(found)
    }
}

/// Hands the offloads of one answer to `take`.
pub fn read_offloads(
    names: &[String],
    interface: &Arc<str>,
    body: &[u8],
    take: &mut impl FnMut(Setting),
) {
    const ACTIVE: u16 = 4;
    const BITSET_VALUE: u16 = 4;
    each(body, |kind, bitset| {
        if kind != ACTIVE {
            return;
        }
        each(bitset, |kind, words| {
            if kind != BITSET_VALUE {
                return;
            }
            for (bit, name) in names.iter().enumerate() {
                let is_wanted = OFFLOADS.iter().any(|begin| name.starts_with(begin));
                if let (true, Some(word)) = (is_wanted, number(words, bit / 32 * 4, 4)) {
                    let is_on = word >> (bit % 32) & 1 == 1;
                    let value = on_off(is_on);
                    take(Setting::of_device(
                        "offload",
                        interface,
                        name.clone(),
                        "",
                        value,
                    ));
                }
            }
        });
    });
}

fn read_values(group: &Group, interface: &Arc<str>, body: &[u8], take: &mut impl FnMut(Setting)) {
    each(body, |attribute, bytes| {
        let known = (group.values.iter()).find(|value| value.attribute == attribute);
        let (Some(known), Some(number)) = (known, number(bytes, 0, bytes.len())) else {
            return;
        };
        take(match known.unit {
            Some(unit) => Setting::of_device(group.kind, interface, known.name, unit, number),
            None => Setting::of_device(group.kind, interface, known.name, "", on_off(number != 0)),
        });
    });
}

/// Speed and duplex; a device without a link does not know them.
fn read_speed(interface: &Arc<str>, body: &[u8], take: &mut impl FnMut(Setting)) {
    const UNKNOWN: u64 = u32::MAX as u64;
    each(body, |attribute, bytes| {
        let setting = match (attribute, number(bytes, 0, bytes.len())) {
            (LINKMODES_SPEED, Some(megabits)) if megabits != UNKNOWN && megabits != 0 => {
                let bits = megabits * 1_000_000;
                Setting::of_device("speed", interface, "speed", "bit/s", bits)
            }
            (LINKMODES_DUPLEX, Some(0)) => {
                Setting::of_device("speed", interface, "duplex", "", "half")
            }
            (LINKMODES_DUPLEX, Some(1)) => {
                Setting::of_device("speed", interface, "duplex", "", "full")
            }
            _ => return,
        };
        take(setting);
    });
}

/// Of an answer.
fn device_index(body: &[u8]) -> Option<u32> {
    let mut index = None;
    each(body, |kind, header| {
        if kind == HEADER {
            each(header, |kind, bytes| {
                if kind == HEADER_DEV_INDEX {
                    index = number(bytes, 0, 4).map(|index| index as u32);
                }
            });
        }
    });
    index
}

/// Of a request about all devices.
fn header() -> Vec<u8> {
    let mut attributes = Vec::new();
    let mut flags = Vec::new();
    put(&mut flags, HEADER_FLAGS, &COMPACT.to_ne_bytes());
    put(&mut attributes, HEADER | NESTED, &flags);
    attributes
}

fn offload_names(netlink: &mut Generic, family: u16) -> io::Result<Vec<String>> {
    const STRINGSETS: u16 = 2;
    const STRINGSET: u16 = 1;
    const STRINGSET_ID: u16 = 1;
    const STRINGSET_STRINGS: u16 = 3;
    const INDEX: u16 = 1;
    const TEXT: u16 = 2;
    let mut set = Vec::new();
    put(&mut set, STRINGSET_ID, &SS_FEATURES.to_ne_bytes());
    let mut sets = Vec::new();
    put(&mut sets, STRINGSET | NESTED, &set);
    let mut attributes = Vec::new();
    put(&mut attributes, HEADER | NESTED, &[]);
    put(&mut attributes, STRINGSETS | NESTED, &sets);
    let mut names = Vec::new();
    netlink.ask(family, STRSET_GET, &attributes, |body| {
        // A tree: sets, a set, its strings, a string.
        each(body, |_, sets| {
            each(sets, |_, set| {
                each(set, |kind, strings| {
                    if kind != STRINGSET_STRINGS {
                        return;
                    }
                    each(strings, |_, string| {
                        let (mut index, mut name) = (None, String::new());
                        each(string, |kind, bytes| match kind {
                            INDEX => index = number(bytes, 0, 4),
                            TEXT => {
                                let bytes = bytes.split(|&byte| byte == 0).next();
                                name = String::from_utf8_lossy(bytes.unwrap_or_default()).into();
                            }
                            _ => {}
                        });
                        let Some(index) = index.filter(|&index| index < 1 << 10) else {
                            return;
                        };
                        let index = index as usize;
                        names.resize(names.len().max(index + 1), String::new());
                        names[index] = name;
                    });
                });
            });
        });
    })?;
    Ok(names)
}

/// Hands name, version and firmware of a device's driver to `take`, as far as it
/// has one.
pub fn driver(interface: &Arc<str>, take: &mut impl FnMut(Setting)) {
    let found = match ioctl::driver(&ioctl::Kernel, OsStr::new(&**interface)) {
        Ok(found) => found,
        Err(error) => {
            // It has none, or has gone since it was listed.
            if !matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENODEV)) {
                let mut unread = Setting::of_device("driver", interface, "driver", "", "");
                unread.value = Err(text::reason(&error));
                take(unread);
            }
            return;
        }
    };
    let names = ["driver", "version", "firmware-version"];
    for (name, said) in names.into_iter().zip(found) {
        if !said.is_empty() {
            take(Setting::of_device("driver", interface, name, "", said));
        }
    }
}

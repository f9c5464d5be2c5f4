//! Rings, queues, offloads, coalescing and counters of the devices of a snapshot.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, ErrorKind};

use knee_uapi::groups::{CHANNELS, COALESCE, RINGS};
use knee_uapi::ioctl::{self, Drivers};
use serde::Serialize;

use super::Ethtool;
use crate::files::Files;
use crate::nic::Interface;

/// Virtual interfaces that are asked: of thousands of veths one is like the other.
const MOST_VIRTUAL: usize = 64;

/// The kernel's names of offloads, and those that `ethtool -k` prints.
const OFFLOADS: &[(&str, &str)] = &[
    ("rx-checksum", "rx-checksumming"),
    ("tx-checksum-ip-generic", "tx-checksumming"),
    ("tx-checksum-ipv4", "tx-checksumming"),
    ("tx-scatter-gather", "scatter-gather"),
    ("tx-tcp-segmentation", "tcp-segmentation-offload"),
    ("tx-generic-segmentation", "generic-segmentation-offload"),
    ("rx-gro", "generic-receive-offload"),
    ("rx-gro-hw", "rx-gro-hw"),
    ("rx-lro", "large-receive-offload"),
    ("rx-hashing", "receive-hashing"),
    ("rx-ntuple-filter", "ntuple-filters"),
];

/// Counters that a rule reads. Drivers have thousands, each with names of its own; `#` stands for a number.
const KNOWN_COUNTERS: &[&str] = &[
    "bw_in_allowance_exceeded",
    "bw_out_allowance_exceeded",
    "pps_allowance_exceeded",
    "conntrack_allowance_exceeded",
    "conntrack_allowance_available",
    "linklocal_allowance_exceeded",
    "rx_out_of_buffer",
    "rx_discards_phy",
    "rx_missed_errors",
    "rx_no_buffer_count",
    "rx_no_dma_resources",
    "rx_prio#_discards",
    "rx_buff_alloc_err",
    "port.rx_dropped",
    "port.rx_discards",
    "rx_dropped",
    "rx_queue_#_drops",
    "queue_#_tx_llq_buffer_copy",
    "tx_timeout",
    "tx_queue_#_drops",
    "tx_queue_#_kicks",
    "vf_rx_dropped",
    "rx_no_memory",
    "rx_pause",
    "tx_pause",
    "rx_pause_ctrl_phy",
    "tx_pause_ctrl_phy",
    "rx_crc_errors",
    "rx_crc_errors_phy",
    "rx_drops",
    "drv_rx_drops",
    "pkts_rx_oob",
    "rx_alloc_fail_cnt",
    "module_unplug",
    "link_down_events_phy",
    "ena_srd_mode",
];

/// The tables of what drivers tell.
#[derive(Debug, Default, Serialize)]
pub struct DriverStates {
    pub rings: Vec<Rings>,
    pub channels: Vec<Channels>,
    pub offloads: Vec<Offload>,
    pub coalescing: Vec<Coalescing>,
    pub nic_stats: Vec<DriverCounter>,
}

/// Descriptors of an interface.
#[derive(Debug, Serialize)]
pub struct Rings {
    pub interface: String,
    pub rx: u32,
    pub rx_max: u32,
    pub tx: u32,
    pub tx_max: u32,
    /// First bytes of a packet that the driver writes into the device itself, and most of them (Linux 6.4).
    pub tx_push_bytes: Option<u32>,
    pub tx_push_max_bytes: Option<u32>,
}

/// Queues of an interface.
#[derive(Debug, Serialize)]
pub struct Channels {
    pub interface: String,
    pub rx: u32,
    pub rx_max: u32,
    pub tx: u32,
    pub tx_max: u32,
    pub combined: u32,
    pub combined_max: u32,
    pub rss_queues: Option<Vec<u32>>,
}

/// An offload of an interface. Of those that stand for several of the kernel's, one that is on is enough.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Offload {
    pub interface: String,
    pub name: &'static str,
    pub on: bool,
    pub fixed: bool,
}

/// How long an interface waits before it interrupts.
#[derive(Debug, Serialize)]
pub struct Coalescing {
    pub interface: String,
    pub rx_us: u32,
    pub rx_pkts: u32,
    pub tx_us: u32,
    pub tx_pkts: u32,
    pub adaptive_rx: bool,
    pub adaptive_tx: bool,
}

/// A counter of a driver.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct DriverCounter {
    pub interface: String,
    pub name: String,
    pub value: u64,
}

impl DriverStates {
    /// Asks the drivers of the interfaces; `settings`: not only for their counters.
    pub fn read(files: &mut Files, interfaces: &[Interface], settings: bool) -> DriverStates {
        let mut found = DriverStates::ask(&ioctl::Kernel, files, interfaces, settings);
        if !found.rings.is_empty() {
            found.add_push(interfaces);
        }
        found
    }

    fn ask(
        drivers: &impl Drivers,
        files: &mut Files,
        interfaces: &[Interface],
        settings: bool,
    ) -> DriverStates {
        let mut found = DriverStates::default();
        for row in chosen(files, interfaces) {
            let device = row.raw_name();
            let mut note = |table: &str, outcome: io::Result<()>| {
                // Otherwise the driver has no such thing.
                if outcome.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) {
                    files.miss(
                        format!("{table} of interfaces"),
                        "permission denied",
                        "CAP_NET_ADMIN",
                    );
                }
            };
            if settings {
                note("rings", found.add_rings(drivers, &device, &row.interface));
                note(
                    "channels",
                    found.add_channels(drivers, &device, &row.interface),
                );
                note(
                    "offloads",
                    found.add_offloads(drivers, &device, &row.interface),
                );
                note(
                    "coalescing",
                    found.add_coalescing(drivers, &device, &row.interface),
                );
            }
            note(
                "nic_stats",
                found.add_counters(drivers, &device, &row.interface),
            );
        }
        found
    }

    fn add_rings(
        &mut self,
        drivers: &impl Drivers,
        device: &OsStr,
        interface: &str,
    ) -> io::Result<()> {
        let number = numbers(ioctl::numbers(drivers, device, &RINGS)?);
        self.rings.push(Rings {
            interface: interface.to_owned(),
            rx: number("rx"),
            rx_max: number("rx-max"),
            tx: number("tx"),
            tx_max: number("tx-max"),
            tx_push_bytes: None,
            tx_push_max_bytes: None,
        });
        Ok(())
    }

    fn add_channels(
        &mut self,
        drivers: &impl Drivers,
        device: &OsStr,
        interface: &str,
    ) -> io::Result<()> {
        let number = numbers(ioctl::numbers(drivers, device, &CHANNELS)?);
        let queues = ioctl::rss_queues(drivers, device).unwrap_or_default();
        self.channels.push(Channels {
            interface: interface.to_owned(),
            rx: number("rx"),
            rx_max: number("rx-max"),
            tx: number("tx"),
            tx_max: number("tx-max"),
            combined: number("combined"),
            combined_max: number("combined-max"),
            rss_queues: (!queues.is_empty()).then(|| queues.into_iter().collect()),
        });
        Ok(())
    }

    fn add_offloads(
        &mut self,
        drivers: &impl Drivers,
        device: &OsStr,
        interface: &str,
    ) -> io::Result<()> {
        let first = self.offloads.len();
        for feature in ioctl::features(drivers, device)? {
            let Some(&(_, name)) = OFFLOADS
                .iter()
                .find(|(kernels, _)| *kernels == feature.name)
            else {
                continue;
            };
            let known = self.offloads[first..]
                .iter_mut()
                .find(|row| row.name == name);
            match known {
                Some(row) => {
                    row.on |= feature.is_active;
                    row.fixed &= !feature.is_changeable;
                }
                None => self.offloads.push(Offload {
                    interface: interface.to_owned(),
                    name,
                    on: feature.is_active,
                    fixed: !feature.is_changeable,
                }),
            }
        }
        Ok(())
    }

    fn add_coalescing(
        &mut self,
        drivers: &impl Drivers,
        device: &OsStr,
        interface: &str,
    ) -> io::Result<()> {
        let number = numbers(ioctl::numbers(drivers, device, &COALESCE)?);
        self.coalescing.push(Coalescing {
            interface: interface.to_owned(),
            rx_us: number("rx-usecs"),
            rx_pkts: number("rx-frames"),
            tx_us: number("tx-usecs"),
            tx_pkts: number("tx-frames"),
            adaptive_rx: number("adaptive-rx") != 0,
            adaptive_tx: number("adaptive-tx") != 0,
        });
        Ok(())
    }

    fn add_counters(
        &mut self,
        drivers: &impl Drivers,
        device: &OsStr,
        interface: &str,
    ) -> io::Result<()> {
        let counters = ioctl::counters(drivers, device)?;
        let known = counters.into_iter().filter(|(name, _)| is_known(name));
        self.nic_stats
            .extend(known.map(|(name, value)| DriverCounter {
                interface: interface.to_owned(),
                name,
                value,
            }));
        Ok(())
    }

    /// What only netlink tells, of devices.
    fn add_push(&mut self, interfaces: &[Interface]) {
        // A kernel from before 5.6 has no such netlink.
        let pushes = Ethtool::new()
            .and_then(|mut ethtool| ethtool.push_bytes())
            .unwrap_or_default();
        let devices: BTreeMap<&str, u32> = (interfaces.iter())
            .filter(|row| row.kind.is_none())
            .map(|row| (&*row.interface, row.ifindex))
            .collect();
        for row in &mut self.rings {
            let push = devices
                .get(&*row.interface)
                .and_then(|index| pushes.get(index));
            if let Some(&(bytes, most)) = push {
                (row.tx_push_bytes, row.tx_push_max_bytes) = (bytes, most);
            }
        }
    }
}

fn numbers(found: Vec<(&'static str, u32)>) -> impl Fn(&str) -> u32 {
    move |name| {
        let number = found.iter().find(|(known, _)| *known == name);
        number.map_or(0, |&(_, value)| value)
    }
}

/// Every device, and virtual interfaces up to a bound.
fn chosen<'a>(files: &mut Files, interfaces: &'a [Interface]) -> Vec<&'a Interface> {
    let devices = interfaces
        .iter()
        .filter(|row| row.kind.is_none() && !row.loopback);
    let virtuals = interfaces.iter().filter(|row| row.kind.is_some());
    let count = virtuals.clone().count();
    if count > MOST_VIRTUAL {
        let why = format!("of {count} virtual interfaces only {MOST_VIRTUAL} were asked");
        files.miss("rings and offloads", why, "");
    }
    devices.chain(virtuals.take(MOST_VIRTUAL)).collect()
}

fn is_known(name: &str) -> bool {
    KNOWN_COUNTERS
        .iter()
        .any(|known| match known.split_once('#') {
            None => name == *known,
            Some((before, after)) => {
                let number = name
                    .strip_prefix(before)
                    .and_then(|rest| rest.strip_suffix(after));
                number.is_some_and(|number| {
                    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
                })
            }
        })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::files::Roots;

    /// A driver whose answers were recorded: of each command the words after its first.
    struct Recorded {
        answers: Vec<(Vec<u32>, Vec<u8>)>,
        asked: RefCell<Vec<Vec<u8>>>,
    }

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn strings(names: &[&str]) -> Vec<u8> {
        let mut found = Vec::new();
        for name in names {
            let mut string = name.as_bytes().to_vec();
            string.resize(32, 0);
            found.extend(string);
        }
        found
    }

    impl Recorded {
        /// Answers by the first words of the command; the answer follows these.
        fn new(answers: Vec<(Vec<u32>, Vec<u8>)>) -> Recorded {
            Recorded {
                answers,
                asked: RefCell::default(),
            }
        }
    }

    impl Drivers for Recorded {
        fn ask(&self, _: &OsStr, command: &mut [u8]) -> io::Result<()> {
            self.asked.borrow_mut().push(command.to_vec());
            let answer = (self.answers.iter()).find(|(head, _)| command.starts_with(&bytes(head)));
            let Some((head, answer)) = answer else {
                return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
            };
            let from = 4 * head.len();
            command[from..from + answer.len()].copy_from_slice(answer);
            Ok(())
        }
    }

    fn eth0() -> Vec<Interface> {
        vec![Interface {
            interface: "eth0".to_owned(),
            ifindex: 2,
            ..Interface::default()
        }]
    }

    fn asked(answers: Vec<(Vec<u32>, Vec<u8>)>) -> DriverStates {
        let mut files = Files::new(Roots::default());
        let found = DriverStates::ask(&Recorded::new(answers), &mut files, &eth0(), true);
        assert_eq!(files.missing, []);
        found
    }

    #[test]
    fn counters_that_a_rule_reads_are_taken_and_a_table_of_rss_leads_to_its_queues() {
        let names = [
            "rx_missed_errors",
            "tx_queue_17_kicks",
            "tx_bytes_of_nobody",
        ];
        let values: Vec<u8> = [7u64, 1 << 63, 9]
            .iter()
            .flat_map(|value| value.to_ne_bytes())
            .collect();
        // Of the first question about RSS the size alone, of the second the table.
        let table = bytes(&[0, 2, 0, 2]);
        let found = asked(vec![
            (vec![0x37], bytes(&[0, 2, 0, 3])),
            (vec![0x1b, 1, 3], strings(&names)),
            (vec![0x1d, 3], values),
            (vec![0x38, 4], table),
            (vec![0x38], bytes(&[4])),
            (vec![0x3c], bytes(&[0, 0, 0, 8, 0, 0, 1, 4])),
        ]);
        let counters: Vec<_> = (found.nic_stats.iter())
            .map(|row| (&*row.name, row.value))
            .collect();
        assert_eq!(
            counters,
            [("rx_missed_errors", 7), ("tx_queue_17_kicks", 1 << 63)]
        );
        let [channels] = &found.channels[..] else {
            panic!("{found:?}")
        };
        assert_eq!((channels.combined, channels.combined_max), (4, 8));
        assert_eq!(channels.rss_queues, Some(vec![0, 2]));
        assert!(found.rings.is_empty() && found.coalescing.is_empty());
    }

    #[test]
    fn rings_and_coalescing_are_the_words_that_the_driver_fills() {
        let mut coalesce = [0; 22];
        (
            coalesce[0],
            coalesce[1],
            coalesce[4],
            coalesce[5],
            coalesce[9],
        ) = (8, 32, 64, 128, 1);
        let found = asked(vec![
            (vec![0x10], bytes(&[4096, 0, 0, 8192, 512, 0, 0, 1024])),
            (vec![0x0e], bytes(&coalesce)),
        ]);
        let rings = &found.rings[0];
        assert_eq!(
            (rings.rx, rings.rx_max, rings.tx, rings.tx_max),
            (512, 4096, 1024, 8192)
        );
        let row = &found.coalescing[0];
        assert_eq!(
            (row.rx_us, row.rx_pkts, row.tx_us, row.tx_pkts),
            (8, 32, 64, 128)
        );
        assert_eq!((row.adaptive_rx, row.adaptive_tx), (true, false));
    }

    #[test]
    fn one_feature_that_is_on_is_enough_for_an_offload_of_several() {
        let names = [
            "tx-checksum-ipv4",
            "",
            "tx-checksum-ip-generic",
            "rx-lro",
            "tx-nocache-copy",
        ];
        let driver = Recorded::new(vec![
            (vec![0x37], bytes(&[0, 16, 0, 5])),
            (vec![0x1b, 4, 5], strings(&names)),
            // Changeable, wanted, active, never changed.
            (vec![0x3a, 1], bytes(&[0b1101, 0b0101, 0b0100, 0b1000])),
            (vec![0x3b], vec![]),
        ]);
        let mut found = DriverStates::default();
        found
            .add_offloads(&driver, OsStr::new("eth0"), "eth0")
            .unwrap();
        let row = |name, on, fixed| Offload {
            interface: "eth0".to_owned(),
            name,
            on,
            fixed,
        };
        let expected = [
            row("tx-checksumming", true, false),
            row("large-receive-offload", false, true),
        ];
        assert_eq!(found.offloads, expected);
        let wanted =
            |name: &str| (name.starts_with("tx-checksum")).then_some(name.ends_with("ipv4"));
        ioctl::set_features(&driver, OsStr::new("eth0"), wanted).unwrap();
        assert_eq!(
            driver.asked.borrow().last().unwrap(),
            &bytes(&[0x3b, 1, 0b101, 0b001])
        );
    }

    #[test]
    fn numbers_are_given_to_the_driver_in_its_order() {
        let driver = Recorded::new(vec![(vec![0x11], vec![])]);
        let value = |name: &str| match name {
            "rx" => Some(512),
            "tx-max" => Some(8192),
            _ => None,
        };
        ioctl::set_numbers(&driver, OsStr::new("eth0"), &RINGS, value).unwrap();
        let command = bytes(&[0x11, 0, 0, 0, 8192, 512, 0, 0, 0]);
        assert_eq!(driver.asked.borrow()[..], [command]);
    }

    #[test]
    fn a_command_without_room_for_its_answer_is_not_passed_on() {
        let device = OsStr::new("lo");
        for mut command in [
            bytes(&[]),
            bytes(&[0x10, 0]),
            bytes(&[0x1b, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0]),
            bytes(&[0x7777, 0, 0, 0]),
        ] {
            let error = ioctl::Kernel.ask(device, &mut command).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
        }
        let features = ioctl::features(&ioctl::Kernel, device).unwrap();
        assert!(
            features
                .iter()
                .any(|feature| feature.name == "tx-generic-segmentation")
        );
    }

    #[test]
    fn of_many_virtual_interfaces_some_are_asked_and_it_is_said() {
        let interfaces = vec![
            Interface {
                kind: Some("veth".to_owned()),
                ..Interface::default()
            };
            MOST_VIRTUAL + 1
        ];
        let mut files = Files::new(Roots::default());
        assert_eq!(chosen(&mut files, &interfaces).len(), MOST_VIRTUAL);
        assert_eq!(files.missing[0].what, "rings and offloads");
    }
}

//! Interrupts of network devices: which device has them, where they may come to, where they came.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::files::Files;
use super::nic::Interface;

/// An interrupt.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Interrupt {
    pub number: u32,
    /// As /proc/interrupts names it.
    pub name: String,
    pub interface: Option<String>,
    /// Processors that it may come to, and that it comes to.
    pub affinity: Option<Vec<u32>>,
    pub effective: Option<Vec<u32>>,
    /// How often so far, by processor; those without any are left out.
    pub counts: BTreeMap<u32, u64>,
}

/// Reads every interrupt that has a number, whosever it is.
pub fn all(files: &mut Files) -> Vec<Interrupt> {
    let path = files.roots.proc.join("interrupts");
    lines(&files.text(path, "/proc/interrupts").unwrap_or_default())
}

/// Reads those of network devices. `owned`: devices by number, as /sys has them.
pub fn of_devices(
    files: &mut Files,
    owned: &BTreeMap<u32, String>,
    interfaces: &[Interface],
) -> Vec<Interrupt> {
    let mut found = all(files);
    found.retain_mut(|interrupt| {
        let owner = owned.get(&interrupt.number).map(String::as_str);
        let owner = owner.or_else(|| named(&interrupt.name, interfaces));
        interrupt.interface = owner.map(str::to_owned);
        interrupt.interface.is_some() && !interrupt.name.ends_with("-config")
    });
    for interrupt in &mut found {
        let folder = files.roots.proc.join(format!("irq/{}", interrupt.number));
        let mut cpus =
            |file| files.cpu_list(Path::new(&folder).join(file), "affinity of interrupts");
        interrupt.affinity = cpus("smp_affinity_list");
        interrupt.effective = cpus("effective_affinity_list");
    }
    found
}

/// A line of processors, then one for each interrupt: `38:  120  0  PCI-MSI 524288-edge  virtio0-input.0`.
fn lines(text: &str) -> Vec<Interrupt> {
    let mut lines = text.lines();
    let cpus: Vec<u32> = (lines.next().unwrap_or_default().split_whitespace())
        .filter_map(|word| word.strip_prefix("CPU")?.parse().ok())
        .collect();
    let interrupt = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        let number = number.trim().parse().ok()?;
        let words: Vec<_> = rest.split_whitespace().collect();
        let name = words.get(cpus.len()..)?.last()?;
        let counts = (cpus.iter().zip(&words))
            .filter_map(|(&cpu, word)| Some((cpu, word.parse().ok()?)))
            .filter(|&(_, count)| count != 0)
            .collect();
        Some(Interrupt {
            number,
            name: (*name).to_owned(),
            interface: None,
            affinity: None,
            effective: None,
            counts,
        })
    };
    lines.filter_map(interrupt).collect()
}

/// Drivers name their interrupts after the interface, `eth0-TxRx-0`; virtio after the device, `virtio0-input.0`.
fn named<'a>(name: &str, interfaces: &'a [Interface]) -> Option<&'a str> {
    let words: Vec<_> = name.split(['-', ':', '@', '.']).collect();
    let on_virtio = interfaces.iter().find(|interface| {
        interface.bus.as_deref() == Some("virtio")
            && interface.address_on_bus.as_deref() == words.first().copied()
    });
    let named = || {
        let with_driver = interfaces
            .iter()
            .filter(|interface| interface.driver.is_some());
        with_driver
            .filter(|interface| words.contains(&&*interface.interface))
            .max_by_key(|interface| interface.interface.len())
    };
    Some(&*on_virtio.or_else(named)?.interface)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_interrupts_have_their_counts_by_processor() {
        let text = "           CPU0       CPU2\n  0:  5  0  IO-APIC  2-edge  timer\n 38:  0  70  PCI-MSI  virtio0-input.0\n\
                    NMI:  1  2  Non-maskable interrupts\n 39:  1\n";
        let found = lines(text);
        assert_eq!(found.len(), 2);
        assert_eq!((found[1].number, &*found[1].name), (38, "virtio0-input.0"));
        assert_eq!(found[1].counts, BTreeMap::from([(2, 70)]));
        assert!(lines("").is_empty());
    }

    #[test]
    fn interrupts_belong_to_whom_their_name_says() {
        let interface = |name: &str, bus: &str, address: &str| Interface {
            interface: name.to_owned(),
            driver: Some("some".to_owned()),
            bus: Some(bus.to_owned()),
            address_on_bus: Some(address.to_owned()),
            ..Interface::default()
        };
        let interfaces = [
            interface("eth0", "pci", "0000:00:05.0"),
            interface("ens3", "virtio", "virtio0"),
            Interface {
                interface: "veth0".to_owned(),
                ..Interface::default()
            },
        ];
        assert_eq!(named("eth0-TxRx-3", &interfaces), Some("eth0"));
        assert_eq!(named("i40e-eth0-TxRx-3", &interfaces), Some("eth0"));
        assert_eq!(named("virtio0-input.0", &interfaces), Some("ens3"));
        assert_eq!(named("virtio1-input.0", &interfaces), None);
        assert_eq!(named("eth01-TxRx-3", &interfaces), None);
        assert_eq!(named("veth0-0", &interfaces), None);
    }
}

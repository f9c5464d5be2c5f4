//! Segmentation and merging of packets by a device.

use std::collections::BTreeMap;
use std::io;

use knee_uapi::ioctl;

/// Names of ethtool -K that may be set, and how the features that they stand for begin and end.
pub const NAMES: &[(&str, &str, &str)] = &[
    ("gro", "rx-gro", "rx-gro"),
    ("gso", "tx-generic-segmentation", "tx-generic-segmentation"),
    ("lro", "rx-lro", "rx-lro"),
    ("tso", "tx-tcp", "-segmentation"),
];

/// Whether each feature is wanted that is meant and can be changed. What is active follows from that by itself.
pub fn read(device: &str, name: &str) -> io::Result<BTreeMap<String, bool>> {
    let features = ioctl::features(&ioctl::Kernel, device.as_ref())?;
    let meant = |feature: &ioctl::Feature| feature.is_changeable && is_meant(name, &feature.name);
    Ok(features
        .into_iter()
        .filter(meant)
        .map(|feature| (feature.name, feature.is_wanted))
        .collect())
}

pub fn write(device: &str, wanted: &BTreeMap<String, bool>) -> io::Result<()> {
    ioctl::set_features(&ioctl::Kernel, device.as_ref(), |name| {
        wanted.get(name).copied()
    })
}

fn is_meant(name: &str, feature: &str) -> bool {
    NAMES.iter().any(|(one, begin, end)| match begin == end {
        true => *one == name && feature == *begin,
        false => *one == name && feature.starts_with(begin) && feature.ends_with(end),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tso_means_its_four_kinds_and_gro_not_that_of_hardware() {
        assert!(is_meant("tso", "tx-tcp6-segmentation"));
        assert!(is_meant("tso", "tx-tcp-ecn-segmentation"));
        assert!(!is_meant("tso", "tx-udp-segmentation"));
        assert!(is_meant("gro", "rx-gro"));
        assert!(!is_meant("gro", "rx-gro-hw"));
    }
}

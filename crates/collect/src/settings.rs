//! What a host is set to: sysctls, devices, offloads and qdiscs, each setting by
//! itself and in one form.
//!
//! The readers stand in files of their own (`sysctl`, `nic`, `ethtool`, `qdisc`);
//! here they are read together, of the network namespace of the calling thread.

use std::sync::Arc;

use super::ethtool::Ethtool;
use super::routing::Routing;
use super::setting::Setting;
use super::sysctl::Sysctls;
use super::{ethtool, nic, qdisc, qdisc_options};
use crate::KernelError;

/// Reads the settings of the namespace in which it was made.
pub struct Settings {
    routing: Routing,
    ethtool: Result<Ethtool, String>,
    sysctls: Sysctls,
}

impl Settings {
    /// # Errors
    /// The kernel's routing is not available.
    pub fn new() -> Result<Settings, KernelError> {
        Ok(Settings {
            routing: Routing::new().map_err(KernelError::system("reach the kernel's routing"))?,
            ethtool: Ethtool::new().map_err(|error| error.to_string()),
            sysctls: Sysctls::here(),
        })
    }

    /// Hands every setting to `take`. What cannot be read comes with the reason.
    pub fn read(&mut self, take: &mut impl FnMut(Setting)) {
        self.sysctls.read(take);
        let devices = match nic::devices(&mut self.routing) {
            Ok(devices) => devices,
            Err(error) => {
                take(Setting::unread("link", error.to_string()));
                Vec::new()
            }
        };
        let names: Vec<(u32, Arc<str>)> = (devices.iter())
            .map(|device| (device.index, Arc::from(&*device.name)))
            .collect();
        for (device, (_, name)) in devices.iter().zip(&names) {
            nic::settings(device, name, take);
            ethtool::driver(name, take);
        }
        match &mut self.ethtool {
            Ok(ethtool) => ethtool.read(&names, take),
            Err(why) => {
                for kind in ethtool::KINDS {
                    take(Setting::unread(kind, why.clone()));
                }
            }
        }
        match qdisc::qdiscs(&mut self.routing) {
            Ok(qdiscs) => {
                for qdisc in &qdiscs {
                    let device = names.iter().find(|(index, _)| *index == qdisc.interface);
                    // One that came between the two dumps is seen the next time.
                    if let Some((_, name)) = device {
                        qdisc_options::settings(qdisc, name, take);
                    }
                }
            }
            Err(error) => take(Setting::unread("qdisc", error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_setting_of_this_host_has_a_place_of_its_own_and_a_value_or_a_reason() {
        let mut settings = Settings::new().unwrap();
        let mut places = HashSet::new();
        settings.read(&mut |setting| {
            let value = setting.value.as_deref().unwrap_or_else(|why| {
                assert!(!why.is_empty());
                "unread"
            });
            assert!(!value.contains('\n'), "{:?}: {value:?}", setting.place);
            assert!(places.insert(setting.place.clone()), "{:?}", setting.place);
        });
        let kinds: HashSet<_> = places.iter().map(|place| place.kind).collect();
        for kind in ["sysctl", "link", "qdisc"] {
            assert!(kinds.contains(kind), "{kind}");
        }
    }

    #[test]
    fn what_was_read_twice_without_a_change_is_equal() {
        let mut settings = Settings::new().unwrap();
        let mut both = [Vec::new(), Vec::new()];
        for read in &mut both {
            // Other tests of this process load nothing and set nothing.
            settings.read(&mut |setting| read.push(setting));
        }
        assert_eq!(both[0], both[1]);
    }
}

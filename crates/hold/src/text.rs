//! All settings of this host that a test may touch, as text: equal texts before and after say that all is as it was.

use std::net::IpAddr;

use knee_uapi::ioctl;

use super::change::{Place, reason, shown};
use super::{netlink, qdisc, route, sysctl};

/// A line for each setting, in an order of its own: sysctls, the device towards the other host, routes.
pub fn text(towards: IpAddr) -> String {
    let mut lines = Vec::new();
    for name in sysctl::names() {
        // What cannot be read cannot be written either.
        if let Ok(state) = Place::Sysctl(name.clone()).read() {
            lines.push(format!("sysctl {name} = {}", shown(&state)));
        }
    }
    match route::way(towards) {
        Ok(way) => lines.extend(of_device(&way.device)),
        Err(error) => lines.push(format!("the way to {towards}: {}", reason(&error))),
    }
    match route::lines() {
        Ok(routes) => lines.extend(routes),
        Err(error) => lines.push(format!("routes: {}", reason(&error))),
    }
    lines.push(String::new());
    lines.join("\n")
}

fn of_device(device: &str) -> Vec<String> {
    let mut lines = Vec::new();
    match qdisc::read(device) {
        Ok(qdiscs) => {
            for one in qdiscs {
                let (handle, parent) = (one.handle, one.parent);
                let options = netlink::hex(&one.options);
                let kind = one.kind;
                lines.push(format!(
                    "{device} qdisc {kind} {handle:x} {parent:x} {options}"
                ));
            }
        }
        Err(error) => lines.push(format!("{device} qdisc: {}", reason(&error))),
    }
    match ioctl::features(&ioctl::Kernel, device.as_ref()) {
        Ok(features) => {
            for one in features.iter().filter(|one| !one.name.is_empty()) {
                let wanted = if one.is_wanted { "on" } else { "off" };
                lines.push(format!("{device} {} {wanted}", one.name));
            }
        }
        Err(error) => lines.push(format!("{device} features: {}", reason(&error))),
    }
    lines
}

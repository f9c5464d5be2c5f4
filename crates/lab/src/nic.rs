//! What the scenario says of a host's processors and of how its NIC's queues are polled and steered.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use knee_collect::KernelError;
use knee_path::Backend;
use knee_scenario::{Cell, Host};
use knee_units::cpus::Cpus;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::namespace::DEVICE;

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// Refuses what this machine or the path's devices cannot do, as far as that is known before a lab is made.
///
/// # Errors
/// With the key, what it has and what is there.
pub fn check(cell: &Cell) -> Result<(), KernelError> {
    check_on(cell, cell.path.backend == Backend::User)
}

/// The same where it is known whether the hosts' devices are the TUN devices of tcpknee's link.
pub(crate) fn check_on(cell: &Cell, on_tun: bool) -> Result<(), KernelError> {
    let online =
        fs::read_to_string(ONLINE).map_err(KernelError::system(format!("read {ONLINE}")))?;
    let online = Cpus::of_list(online.trim()).unwrap_or_default();
    for (side, host) in [("sender", &cell.sender), ("receiver", &cell.receiver)] {
        let refuse = |key: &str, value: &str, lacks: &str, hint: &str| {
            Err(KernelError::Unsupported {
                what: format!("{side}.{key} = {value} is asked for"),
                lacks: lacks.into(),
                hint: hint.into(),
            })
        };
        let quoted = |text: String| format!("\"{text}\"");
        let sets = [
            ("app_cpus", &host.app_cpus, quoted(host.app_cpus.list())),
            ("rps_cpus", &host.rps_cpus, quoted(host.rps_cpus.mask())),
        ];
        for (key, cpus, value) in &sets {
            if cpus
                .numbers()
                .iter()
                .any(|cpu| !online.numbers().contains(cpu))
            {
                let lacks = format!("has the processors {}", online.list());
                return refuse(key, value, &lacks, "Name some of those.");
            }
        }
        if on_tun && host.queues > 1 {
            let lacks = "has one queue for the TUN device of tcpknee's link";
            return refuse("queues", &host.queues.to_string(), lacks, USE_VETH);
        }
        if let Some((key, value)) = polling(host) {
            if on_tun {
                let lacks = "does not poll the TUN device of tcpknee's link";
                return refuse(key, &value, lacks, USE_VETH);
            }
            if !host.gro {
                let hint = format!("Leave {side}.gro at true.");
                return refuse(key, &value, "polls a veth device only with GRO", &hint);
            }
        }
    }
    Ok(())
}

/// Settings that the kernel has for the whole machine, and not for a lab's hosts, which share it: the table of RFS.
pub fn host_wide(cell: &Cell) -> Option<(&'static str, u64)> {
    let hosts = [&cell.sender, &cell.receiver].into_iter();
    let entries = hosts.map(|host| host.rps_sock_flow_entries).max();
    let entries = entries.filter(|&entries| entries > 0)?;
    Some(("net.core.rps_sock_flow_entries", entries))
}

const USE_VETH: &str = "Use path.backend = \"veth\", or leave it out.";

/// The first key that says how the NIC is polled, with its value.
fn polling(host: &Host) -> Option<(&'static str, String)> {
    let keys = [
        (
            "gro_flush_timeout",
            host.gro_flush_timeout.0 > 0,
            format!("\"{}\"", host.gro_flush_timeout),
        ),
        (
            "napi_defer_hard_irqs",
            host.napi_defer_hard_irqs > 0,
            host.napi_defer_hard_irqs.to_string(),
        ),
        ("threaded_napi", host.threaded_napi, "true".into()),
    ];
    let mut set = keys.into_iter().filter(|(_, set, _)| *set);
    set.next().map(|(key, _, value)| (key, value))
}

/// Sets what the scenario says of the device of the host whose namespace the caller is in, and tells it as read back, by the
/// files' names in the device's folder of sysfs.
pub(crate) fn set(host: &Host) -> Result<BTreeMap<String, String>, KernelError> {
    let wanted = files(host);
    if wanted.is_empty() {
        return Ok(BTreeMap::new());
    }
    // sysfs shows the devices of the namespace that mounts it. Nobody else is in this mount namespace yet.
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("sysfs"), "/sys", Some("sysfs"), flags, None::<&str>)
        .map_err(KernelError::system("mount the sysfs of a lab's host"))?;
    let set = wanted.iter().map(set_file).collect();
    umount2("/sys", MntFlags::MNT_DETACH)
        .map_err(KernelError::system("unmount the sysfs of a lab's host"))?;
    set
}

/// Each file with the value for it, of what is not as the kernel has it from the start.
fn files(host: &Host) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let flows = host.rps_sock_flow_entries / u64::from(host.queues);
    for queue in 0..host.queues {
        if !host.rps_cpus.numbers().is_empty() {
            files.push((format!("queues/rx-{queue}/rps_cpus"), host.rps_cpus.mask()));
        }
        if flows > 0 {
            files.push((format!("queues/rx-{queue}/rps_flow_cnt"), flows.to_string()));
        }
    }
    if host.gro_flush_timeout.0 > 0 {
        let ns = host.gro_flush_timeout.0.to_string();
        files.push(("gro_flush_timeout".into(), ns));
    }
    if host.napi_defer_hard_irqs > 0 {
        let polls = host.napi_defer_hard_irqs.to_string();
        files.push(("napi_defer_hard_irqs".into(), polls));
    }
    if host.threaded_napi {
        files.push(("threaded".into(), "1".into()));
    }
    files
}

fn set_file((name, value): &(String, String)) -> Result<(String, String), KernelError> {
    let path = Path::new("/sys/class/net").join(DEVICE).join(name);
    fs::write(&path, value).map_err(|error| KernelError::Unsupported {
        what: format!("{name} = {value} is asked for"),
        lacks: format!("does not let a lab's device have it ({error})"),
        hint: match error.kind() {
            ErrorKind::PermissionDenied => "Run as root, or leave it out.",
            _ => "Leave it out.",
        }
        .into(),
    })?;
    let read = fs::read_to_string(&path).map_err(KernelError::system(format!("read {name}")))?;
    Ok((name.clone(), read.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(receiver: &str) -> Cell {
        let text = format!(
            "duration = \"1s\"\n[path]\nrate = \"unlimited\"\nrtt = \"0s\"\n[receiver]\n{receiver}\n[[flow]]\nalgorithm = \"cubic\"\n"
        );
        let names = knee_scenario::Names {
            algorithms: vec![knee_scenario::AlgorithmInfo {
                name: "cubic".into(),
                linux_name: "cubic".into(),
                params: Vec::new(),
            }],
            ..knee_scenario::Names::default()
        };
        let scenario = knee_scenario::parse(&text, "s.toml", &names).unwrap();
        scenario.cell(0).unwrap()
    }

    fn refusal(receiver: &str, on_tun: bool) -> String {
        check_on(&cell(receiver), on_tun).unwrap_err().to_string()
    }

    #[test]
    fn processors_that_are_not_there_are_refused_with_those_that_are() {
        assert!(check_on(&cell("app_cpus = \"0\"\nrps_cpus = \"1\""), true).is_ok());
        for (key, value) in [("app_cpus", "0,8191"), ("rps_cpus", "80000000,00000001")] {
            let said = refusal(&format!("{key} = \"{value}\""), false);
            let begins = format!(
                "receiver.{key} = \"{value}\" is asked for; this kernel has the processors 0"
            );
            assert!(said.starts_with(&begins), "{said}");
            assert!(said.ends_with("Name some of those."), "{said}");
        }
    }

    #[test]
    fn what_only_a_polled_device_has_is_refused_on_tun_and_without_gro() {
        for (key, value) in [
            ("gro_flush_timeout", "\"20us\""),
            ("napi_defer_hard_irqs", "2"),
            ("threaded_napi", "true"),
        ] {
            let asked = format!("{key} = {value}");
            assert_eq!(
                refusal(&asked, true),
                format!(
                    "receiver.{key} = {value} is asked for; this kernel does not poll the TUN device of tcpknee's link. Use path.backend = \"veth\", or leave it out."
                )
            );
            assert_eq!(
                refusal(&format!("gro = false\n{asked}"), false),
                format!(
                    "receiver.{key} = {value} is asked for; this kernel polls a veth device only with GRO. Leave receiver.gro at true."
                )
            );
            assert!(check_on(&cell(&asked), false).is_ok());
        }
        assert_eq!(
            refusal("queues = 2", true),
            "receiver.queues = 2 is asked for; this kernel has one queue for the TUN device of tcpknee's link. Use path.backend = \"veth\", or leave it out."
        );
        assert!(check_on(&cell("queues = 2"), false).is_ok());
    }

    #[test]
    fn each_queue_is_steered_and_gets_its_part_of_the_flows() {
        let host = cell(
            "queues = 2\nrps_cpus = \"3\"\nrps_sock_flow_entries = 4096\nthreaded_napi = true",
        )
        .receiver;
        let files: Vec<String> = files(&host)
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(
            files,
            [
                "queues/rx-0/rps_cpus=3",
                "queues/rx-0/rps_flow_cnt=2048",
                "queues/rx-1/rps_cpus=3",
                "queues/rx-1/rps_flow_cnt=2048",
                "threaded=1"
            ]
        );
    }

    #[test]
    fn of_a_host_as_it_is_nothing_is_set() {
        assert!(files(&cell("").receiver).is_empty());
    }
}

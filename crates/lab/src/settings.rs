//! The scenario's settings of a host, put into its namespace.

use std::fs;
use std::io;
use std::path::PathBuf;

use knee_collect::KernelError;
use knee_scenario::{Host, Pacing, rules};
use netlink_packet_route::link::LinkAttribute;

use super::netlink::Netlink;
use crate::namespace::DEVICE;

/// Packets that the host's device holds until the link reads them: never the
/// bottleneck, also when the link is late by 10 ms at 10 Gbit/s.
const DEVICE_QUEUE_PKTS: u32 = 10_000;

/// How often the kernel tries again to send what a closed socket has left to send.
/// What a killed program left holds the lab's namespace until then: 14 s with
/// these, 110 s with the 8 of the kernel. Only an outage of the path is as long.
const ORPHAN_RETRIES: u32 = 5;

/// A sysctl below net.ipv4 and the value that the scenario gives it.
pub fn sysctls(host: &Host) -> Vec<(&'static str, String)> {
    let flag = |name, on: bool| (name, u8::from(on).to_string());
    let triple = |bytes: [u64; 3]| bytes.map(|bytes| bytes.to_string()).join(" ");
    vec![
        ("tcp_wmem", triple(host.tcp_wmem_bytes)),
        ("tcp_rmem", triple(host.tcp_rmem_bytes)),
        ("tcp_ecn", host.tcp_ecn.to_string()),
        flag("tcp_window_scaling", host.tcp_window_scaling),
        flag("tcp_sack", host.tcp_sack),
        flag("tcp_timestamps", host.tcp_timestamps),
        flag("tcp_moderate_rcvbuf", host.tcp_moderate_rcvbuf),
        flag("tcp_slow_start_after_idle", host.tcp_slow_start_after_idle),
        (
            "tcp_limit_output_bytes",
            host.tcp_limit_output_bytes.to_string(),
        ),
        (
            "tcp_comp_sack_delay_ns",
            host.tcp_comp_sack_delay.0.to_string(),
        ),
        ("tcp_comp_sack_nr", host.tcp_comp_sack_nr.to_string()),
        (
            "tcp_comp_sack_rtt_percent",
            host.tcp_comp_sack_rtt_percent.to_string(),
        ),
        (
            "tcp_rcvbuf_low_rtt",
            host.tcp_rcvbuf_low_rtt.as_us().to_string(),
        ),
        (
            "tcp_syn_linear_timeouts",
            host.tcp_syn_linear_timeouts.to_string(),
        ),
        ("tcp_tso_rtt_log", host.tcp_tso_rtt_log.to_string()),
        ("tcp_pacing_ss_ratio", host.tcp_pacing_ss_ratio.to_string()),
        ("tcp_pacing_ca_ratio", host.tcp_pacing_ca_ratio.to_string()),
        ("tcp_rto_min_us", host.tcp_rto_min.as_us().to_string()),
        // A connection knows nothing of the one before it.
        ("tcp_no_metrics_save", "1".into()),
        ("tcp_orphan_retries", ORPHAN_RETRIES.to_string()),
    ]
}

/// Sets the sysctls of the namespace that the caller is in.
///
/// What a kernel does not have, or has for the whole host only, is an error
/// when the scenario's value differs from the host's, and left alone otherwise.
pub fn set_sysctls(host: &Host) -> Result<(), KernelError> {
    for (name, value) in sysctls(host) {
        let path = path(name);
        let Err(error) = fs::write(&path, &value) else {
            continue;
        };
        let has = match error.kind() {
            io::ErrorKind::NotFound if rules::is_dispensable(name, &value) => continue,
            // Since Linux 6.19; before, no round trip was short enough for another rule.
            io::ErrorKind::NotFound if name == "tcp_rcvbuf_low_rtt" => "0".into(),
            // Since Linux 6.11; before, it was 200 ms, settable by route only.
            io::ErrorKind::NotFound if name == "tcp_rto_min_us" => "200000".into(),
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
                fs::read_to_string(&path).unwrap_or_default()
            }
            _ => String::new(),
        };
        if has.split_whitespace().eq(value.split_whitespace()) {
            continue;
        }
        return Err(KernelError::Unsupported {
            what: format!("net.ipv4.{name} = {value} is asked for"),
            lacks: format!("does not let a network namespace set it ({error})"),
            hint: "Leave it at its default, or use a newer kernel.".into(),
        });
    }
    Ok(())
}

/// Reads back what holds now.
pub fn read_sysctls(host: &Host) -> Vec<(String, String)> {
    let more = [
        "tcp_congestion_control",
        "tcp_timestamps",
        "tcp_sack",
        "tcp_recovery",
    ];
    sysctls(host)
        .into_iter()
        .map(|(name, _)| name)
        .chain(more)
        .filter_map(|name| {
            let value = fs::read_to_string(path(name)).ok()?;
            let words: Vec<&str> = value.split_whitespace().collect();
            Some((format!("net.ipv4.{name}"), words.join(" ")))
        })
        .collect()
}

fn path(name: &str) -> PathBuf {
    PathBuf::from("/proc/sys/net/ipv4").join(name)
}

/// Brings the host's device up as the scenario has it.
pub fn set_device(netlink: &mut Netlink, host: &Host, mtu_bytes: u32) -> Result<(), KernelError> {
    let mut attributes = vec![
        LinkAttribute::Mtu(mtu_bytes),
        LinkAttribute::TxQueueLen(DEVICE_QUEUE_PKTS),
    ];
    if host.gso_max_bytes > 0 {
        attributes.push(LinkAttribute::GsoMaxSize(host.gso_max_bytes));
    }
    netlink.set_up("lo", Vec::new())?;
    netlink.set_up(DEVICE, attributes)?;
    match qdisc(host) {
        Some(kind) => netlink.set_qdisc(DEVICE, kind),
        None => Ok(()),
    }
}

/// The qdisc that the scenario asks for.
pub fn qdisc(host: &Host) -> Option<&str> {
    match host.pacing {
        Pacing::Fq => Some("fq"),
        Pacing::Internal | Pacing::Timer => host.qdisc,
    }
}

//! What may be asked for. It comes from another machine: each value is checked here, on the host that it is for.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::sysctl;

/// Of a sysctl's value; three numbers of 20 digits are the longest that make sense.
const VALUE_BYTES: usize = 100;
/// Of packets with a netem that holds them: 10 million, as the lab's.
const NETEM_LIMIT_PKTS: u32 = 10_000_000;
const NETEM_DELAY_US: u64 = 60_000_000;
/// Packets of a window that a route gives; 10,000 are 14 MB.
const WINDOW_PKTS: u32 = 10_000;
/// Of a congestion control's name: the kernel's TCP_CA_NAME_MAX, without the byte that ends it.
const NAME_BYTES: usize = 15;

/// A setting that is wanted. `towards`: the device through which the other host is reached.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Setting {
    Sysctl {
        name: String,
        value: String,
    },
    Offload {
        towards: IpAddr,
        feature: String,
        on: bool,
    },
    Qdisc {
        towards: IpAddr,
        qdisc: String,
        #[serde(default)]
        options: BTreeMap<String, u32>,
    },
    /// Delay, loss and rate of what leaves by the device.
    Netem {
        towards: IpAddr,
        #[serde(default)]
        delay_us: u64,
        /// In parts of a thousand million.
        #[serde(default)]
        loss_ppb: u32,
        #[serde(default)]
        rate_bits_per_sec: Option<u64>,
        limit_packets: u32,
    },
    /// A route to the other host alone.
    Route {
        towards: IpAddr,
        #[serde(default)]
        initcwnd: Option<u32>,
        /// The congestion control of connections by it.
        #[serde(default)]
        congctl: Option<String>,
    },
}

/// A line from who asks.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Order {
    /// Change these until the end.
    Hold {
        settings: Vec<Setting>,
        /// Everything is put back then, whoever still asks.
        deadline_s: u64,
        /// Everything is put back when no line came for so long: the connection is lost.
        silence_s: u64,
    },
    /// The connection is there.
    Beat,
    /// Put back what there was.
    End,
}

impl Setting {
    /// # Errors
    /// What may not be set, or has a value out of bounds, in words.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Setting::Sysctl { name, value } => check_sysctl(name, value),
            Setting::Offload { feature, .. } => one_of("offload", feature, super::offload::NAMES),
            Setting::Qdisc { qdisc, options, .. } => {
                let known = super::qdisc::options(qdisc);
                let known = known.ok_or_else(|| {
                    format!("qdisc: got {qdisc:?}; expected fq, fq_codel, pfifo or pfifo_fast.")
                })?;
                for name in options.keys() {
                    if !known.iter().any(|(one, _)| one == name) {
                        return Err(format!(
                            "qdisc {qdisc}: got the option {name:?}, which is not among those that may be set."
                        ));
                    }
                }
                Ok(())
            }
            Setting::Netem {
                delay_us,
                loss_ppb,
                rate_bits_per_sec,
                limit_packets,
                ..
            } => {
                within("netem delay in us", *delay_us, 0, NETEM_DELAY_US)?;
                within("netem loss in ppb", u64::from(*loss_ppb), 0, 1_000_000_000)?;
                let limit = u64::from(*limit_packets);
                within("netem limit", limit, 1, u64::from(NETEM_LIMIT_PKTS))?;
                match rate_bits_per_sec {
                    // Bytes per second are what netem counts.
                    Some(rate) => within("netem rate in bit/s", *rate, 8, 1 << 45),
                    None => Ok(()),
                }
            }
            Setting::Route {
                initcwnd, congctl, ..
            } => {
                if let Some(window) = *initcwnd {
                    within("initcwnd", u64::from(window), 1, u64::from(WINDOW_PKTS))?;
                }
                if let Some(name) = congctl {
                    check_algorithm(name)?;
                }
                match initcwnd.is_some() || congctl.is_some() {
                    true => Ok(()),
                    false => Err("route: got no initcwnd and no congctl.".into()),
                }
            }
        }
    }
}

fn check_sysctl(name: &str, value: &str) -> Result<(), String> {
    if !sysctl::may_be_set(name) {
        return Err(format!(
            "sysctl: got {name:?}; expected one below net.core or net.ipv4.tcp_ that only holds a value."
        ));
    }
    let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"_-. ".contains(&byte);
    if value.trim().is_empty() || value.len() > VALUE_BYTES || !value.bytes().all(usual) {
        return Err(format!(
            "sysctl {name}: got {value:?}; expected numbers or a name."
        ));
    }
    Ok(())
}

fn check_algorithm(name: &str) -> Result<(), String> {
    let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    match (1..=NAME_BYTES).contains(&name.len()) && name.bytes().all(usual) {
        true => Ok(()),
        false => Err(format!(
            "congctl: got {name:?}; expected the name of a congestion control."
        )),
    }
}

fn one_of(what: &str, got: &str, names: &[(&str, &str, &str)]) -> Result<(), String> {
    match names.iter().any(|(name, ..)| *name == got) {
        true => Ok(()),
        false => {
            let names: Vec<&str> = names.iter().map(|(name, ..)| *name).collect();
            let names = names.join(", ");
            Err(format!("{what}: got {got:?}; expected one of {names}."))
        }
    }
}

fn within(what: &str, got: u64, least: u64, most: u64) -> Result<(), String> {
    match (least..=most).contains(&got) {
        true => Ok(()),
        false => Err(format!("{what}: got {got}; expected {least} to {most}.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Result<(), String> {
        let setting: Setting = serde_json::from_str(text).map_err(|error| error.to_string())?;
        setting.check()
    }

    #[test]
    fn what_only_holds_a_value_may_be_set() {
        for text in [
            r#"{"kind": "sysctl", "name": "net.ipv4.tcp_wmem", "value": "4096 16384 4194304"}"#,
            r#"{"kind": "sysctl", "name": "net.core.rmem_max", "value": "1"}"#,
            r#"{"kind": "offload", "towards": "10.0.0.2", "feature": "gro", "on": false}"#,
            r#"{"kind": "qdisc", "towards": "fd00::2", "qdisc": "fq", "options": {"limit": 10}}"#,
            r#"{"kind": "netem", "towards": "10.0.0.2", "delay_us": 20000, "limit_packets": 1000}"#,
            r#"{"kind": "route", "towards": "10.0.0.2", "initcwnd": 40}"#,
            r#"{"kind": "route", "towards": "10.0.0.2", "congctl": "bbr"}"#,
        ] {
            assert_eq!(checked(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn names_that_lead_elsewhere_and_values_that_are_no_values_are_refused() {
        for text in [
            r#"{"kind": "sysctl", "name": "kernel.core_pattern", "value": "1"}"#,
            r#"{"kind": "sysctl", "name": "net.core.", "value": "1"}"#,
            r#"{"kind": "sysctl", "name": "net.core./../../kernel/panic", "value": "1"}"#,
            r#"{"kind": "sysctl", "name": "net.core.default_qdisc", "value": "fq"}"#,
            r#"{"kind": "sysctl", "name": "net.ipv4.tcp_fastopen_key", "value": "1"}"#,
            r#"{"kind": "sysctl", "name": "net.ipv4.ip_forward", "value": "1"}"#,
            r#"{"kind": "sysctl", "name": "net.core.rmem_max", "value": " "}"#,
            r#"{"kind": "sysctl", "name": "net.core.rmem_max", "value": "1\n2"}"#,
            r#"{"kind": "sysctl", "name": "net.core.rmem_max", "value": "1", "more": 1}"#,
            r#"{"kind": "offload", "towards": "eth0; reboot", "feature": "gro", "on": true}"#,
            r#"{"kind": "offload", "towards": "10.0.0.2", "feature": "rx", "on": false}"#,
            r#"{"kind": "qdisc", "towards": "10.0.0.2", "qdisc": "htb"}"#,
            r#"{"kind": "qdisc", "towards": "10.0.0.2", "qdisc": "fq", "options": {"x": 1}}"#,
            r#"{"kind": "netem", "towards": "10.0.0.2", "limit_packets": 0}"#,
            r#"{"kind": "netem", "towards": "10.0.0.2", "loss_ppb": 1000000001, "limit_packets": 1}"#,
            r#"{"kind": "route", "towards": "10.0.0.2"}"#,
            r#"{"kind": "route", "towards": "10.0.0.2", "initcwnd": 0}"#,
            r#"{"kind": "route", "towards": "10.0.0.2", "congctl": ""}"#,
            r#"{"kind": "route", "towards": "10.0.0.2", "congctl": "bbr/../x"}"#,
            r#"{"kind": "route", "towards": "10.0.0.2", "congctl": "of_more_than_15_"}"#,
        ] {
            assert!(checked(text).is_err(), "{text}");
        }
        let long = format!(
            r#"{{"kind": "sysctl", "name": "net.core.rmem_max", "value": "{}"}}"#,
            "1".repeat(VALUE_BYTES + 1)
        );
        assert!(checked(&long).is_err());
    }
}

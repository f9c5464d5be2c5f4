//! The kernel's own emulation of a path: netem for delay and loss, a token
//! bucket and a queue for the bottleneck, in a router between two hosts.
//!
//! ```text
//! sender ── to-sender [router] to-receiver ── receiver
//!           netem: back delay, ACK loss        netem: loss, data delay
//!                                              └ tbf, in virtual time htb: rate
//!                                                └ the queue
//! ```
//!
//! netem holds a packet before it hands it to the queue below, so the data
//! direction's delay is in front of the bottleneck and not behind it as in
//! tcpknee's own link; round-trip time, queue and rate are the same.

mod qdisc;
mod router;
mod stats;
mod watch;

pub use router::{check, end_at, join, shape};
pub use watch::run as watch;

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use knee_link::LinkConfig;
use knee_path::Path;
use knee_path::impairment::{ImpairmentSpec, Stage};
use knee_path::loss::{LossSpec, Pattern};
use knee_path::queue::BufferLimit;
use knee_path::queue::policer::{Action, PolicerSpec};
use knee_units::{Nanos, Rate};

/// The router's device towards the sending hosts.
pub const TO_SENDER: &str = "to-sender";
/// The router's device towards the receiving hosts.
pub const TO_RECEIVER: &str = "to-receiver";

/// Bytes of Ethernet that the kernel counts with a packet; the scenario's
/// rate and buffer count IP.
const ETHERNET_BYTES: u64 = 14;
/// What netem may hold: more than any path's bandwidth-delay product in packets.
const HELD_PKTS: u32 = 10_000_000;
/// The token bucket's depth in time: what a late timer can make up for. More,
/// and longer bursts leave faster than the rate.
const BURST: Nanos = Nanos::from_ms(1);
/// More than any packet with its Ethernet header.
const MOST_POLICED_BYTES: u32 = 1 << 17;
/// The largest limit that tbf takes.
const UNLIMITED_BYTES: u64 = i32::MAX as u64;
/// More than any device's rate: a class without a limit of its own.
const CLASS_RATE: &str = "1000gbit";

/// What the kernel's own emulation cannot do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    #[error(
        "path.{key}: netem loses packets at random, independently or in bursts, got \"{kind}\""
    )]
    Loss {
        key: &'static str,
        kind: &'static str,
    },
    #[error("path.buffer: tbf holds at most {UNLIMITED_BYTES} bytes, got {0}")]
    Buffer(u64),
    #[error("path.buffer: the qdisc {queue} counts packets, got bytes")]
    Bytes { queue: &'static str, packets: u64 },
    #[error("path.queue: tc has no words for {0} with these parameters")]
    Queue(&'static str),
    #[error("hop: qdiscs stand in for one bottleneck")]
    Hops,
    #[error("path.{0}: netem and tbf do not do it as tcpknee's link does")]
    Key(&'static str),
}

impl Unsupported {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Unsupported::Bytes { packets, .. } => {
                format!("Use path.buffer = \"{packets}packets\", or path.backend = \"user\".")
            }
            _ => "Use path.backend = \"user\".".into(),
        }
    }
}

/// The qdiscs that a path takes, besides those that every kernel has.
pub fn qdiscs(path: &Path) -> Vec<&'static str> {
    let bucket = if is_user_mode_linux() { "htb" } else { "tbf" };
    let mut kinds = vec!["netem"];
    if path.rate.is_some() {
        kinds.extend((!qdisc::shapes(path)).then_some(bucket));
        kinds.extend((path.queue != "fifo").then_some(path.queue));
    }
    kinds
}

/// The commands for `tc -batch`, run in the router.
///
/// # Errors
/// The scenario asks for what qdiscs do not have.
pub fn commands(config: &LinkConfig) -> Result<String, Unsupported> {
    let path = &config.path;
    if !config.further.is_empty() {
        return Err(Unsupported::Hops);
    }
    if let Some(key) = beyond(path) {
        return Err(Unsupported::Key(key));
    }
    let least = config.groups.iter().map(|group| group.rtt.0).min();
    let data_delay = Nanos(least.unwrap_or(path.rtt.0) / 2);
    let mut batch = String::new();
    // A bucket lets a packet go when the one before it is through. The delay has the packet's own time on the link, that
    // of a full packet.
    let packet = u64::from(path.mtu_bytes + path.overhead_bytes);
    let own = path
        .rate
        .map_or(Nanos::ZERO, |rate| rate.transmit_time(packet));
    let before = Nanos(data_delay.0 + own.0);
    let data = netem(before, &impaired(path, false), ("loss", &path.loss))?;
    let overhead = i64::from(path.overhead_bytes) - ETHERNET_BYTES as i64;
    let _ = writeln!(
        batch,
        "qdisc add dev {TO_RECEIVER} root handle 1: stab overhead {overhead} {data}"
    );
    if let Some(rate) = path.rate {
        bottleneck(&mut batch, rate, path)?;
    }
    if let Some(policer) = &path.policer {
        police(&mut batch, policer, path);
    }
    let delays: Vec<(Ipv4Addr, Nanos)> = config
        .groups
        .iter()
        .map(|group| (group.sender, group.rtt.saturating_sub(data_delay)))
        .collect();
    back(&mut batch, &delays, path)?;
    Ok(batch)
}

/// A key of the path that qdiscs have nothing for, or something else: netem's
/// jitter and reordering act before the bottleneck.
fn beyond(path: &Path) -> Option<&'static str> {
    let asked = [
        (path.rate_trace.is_some(), "rate"),
        (
            path.policer
                .is_some_and(|policer| policer.action != Action::Drop),
            "policer_action",
        ),
        (!path.rtt_changes.is_empty(), "rtt_change"),
    ];
    let lacks = |spec: &&ImpairmentSpec| spec.kind.netem.is_none();
    let impaired = path.impairments.iter().filter(lacks);
    // What concerns the link itself is named first.
    let impairment = impaired.min_by_key(|spec| spec.kind.stage != Stage::Link);
    let first = asked.iter().find(|(asked, _)| *asked).map(|(_, key)| *key);
    first
        .or(impairment.map(|spec| spec.kind.name))
        .or(path.ack.rate.map(|_| "ack_rate"))
}

/// Impairments in netem's own words: those against the data, or all.
fn impaired(path: &Path, against: bool) -> String {
    let acts = |spec: &&ImpairmentSpec| spec.kind.both_ways || !against;
    let words = |spec: &ImpairmentSpec| spec.kind.netem.map(|words| format!(" {}", words(spec)));
    path.impairments
        .iter()
        .filter(acts)
        .filter_map(words)
        .collect()
}

fn back(batch: &mut String, delays: &[(Ipv4Addr, Nanos)], path: &Path) -> Result<(), Unsupported> {
    let impaired = impaired(path, true);
    let loss = ("ack_loss", &path.ack_loss);
    let first = delays.first().map_or(path.rtt, |&(_, delay)| delay);
    if delays.iter().all(|&(_, delay)| delay == first) {
        let netem = netem(first, &impaired, loss)?;
        let _ = writeln!(batch, "qdisc add dev {TO_SENDER} root handle 1: {netem}");
        return Ok(());
    }
    let _ = writeln!(
        batch,
        "qdisc add dev {TO_SENDER} root handle 1: htb default 1"
    );
    for (number, &(sender, delay)) in delays.iter().enumerate() {
        let class = number + 1;
        let netem = netem(delay, &impaired, loss)?;
        let _ = writeln!(
            batch,
            "class add dev {TO_SENDER} parent 1: classid 1:{class:x} htb rate {CLASS_RATE} quantum 65536\n\
             qdisc add dev {TO_SENDER} parent 1:{class:x} {netem}\n\
             filter add dev {TO_SENDER} parent 1: protocol ip u32 match ip dst {sender}/32 flowid 1:{class:x}"
        );
    }
    Ok(())
}

/// `key`: the scenario's, of the loss.
fn netem(
    delay: Nanos,
    impaired: &str,
    (key, loss): (&'static str, &LossSpec),
) -> Result<String, Unsupported> {
    let mut text = format!(
        "netem limit {HELD_PKTS} delay {}.{:03}us{impaired}",
        delay.as_us(),
        delay.0 % 1_000
    );
    if loss.share > 0.0 {
        let _ = match (&loss.pattern, loss.kind) {
            (Pattern::Share, "random") => write!(text, " loss random {}%", loss.share * 100.0),
            (Pattern::Chain(chain), _) => {
                let [p, r, h, k] = [chain.worsens, chain.mends, chain.bad_loss, chain.good_loss]
                    .map(|share| share * 100.0);
                write!(text, " loss gemodel {p}% {r}% {h}% {k}%")
            }
            (_, kind) => return Err(Unsupported::Loss { key, kind }),
        };
    }
    Ok(text)
}

/// What lets packets go at the path's rate, and the queue below it. In virtual time a packet goes when the one before it is
/// through; a real timer is late, which a bucket of some packets makes up for.
fn bottleneck(batch: &mut String, rate: Rate, path: &Path) -> Result<(), Unsupported> {
    let packet = u64::from(path.mtu_bytes + path.overhead_bytes);
    if let BufferLimit::Bytes(bytes) = path.buffer
        && bytes > UNLIMITED_BYTES
    {
        return Err(Unsupported::Buffer(bytes));
    }
    let queue = qdisc::queue(path).ok_or_else(|| match qdisc::packets_for_bytes(path) {
        Some(packets) => Unsupported::Bytes {
            queue: path.queue,
            packets,
        },
        None => Unsupported::Queue(path.queue),
    })?;
    let rate_bits = rate.bits_per_sec();
    let _ = if qdisc::shapes(path) {
        writeln!(
            batch,
            "qdisc add dev {TO_RECEIVER} parent 1:1 handle 2: {queue}"
        )
    } else if is_user_mode_linux() {
        writeln!(
            batch,
            "qdisc add dev {TO_RECEIVER} parent 1:1 handle 2: htb default 1\n\
             class add dev {TO_RECEIVER} parent 2: classid 2:1 htb rate {rate_bits}bit ceil {rate_bits}bit burst 1 cburst 1 quantum {packet}\n\
             qdisc add dev {TO_RECEIVER} parent 2:1 handle 3: {queue}"
        )
    } else {
        let burst = rate.bytes_in(BURST).max(2 * packet);
        let limit = match path.buffer {
            BufferLimit::Bytes(bytes) if path.queue == "fifo" => bytes,
            _ => UNLIMITED_BYTES,
        };
        let _ = writeln!(
            batch,
            "qdisc add dev {TO_RECEIVER} parent 1:1 handle 2: tbf rate {rate_bits}bit burst {burst} limit {limit}"
        );
        match path.queue == "fifo" && !matches!(path.buffer, BufferLimit::Packets(_)) {
            // It brings one of bytes.
            true => Ok(()),
            false => writeln!(
                batch,
                "qdisc add dev {TO_RECEIVER} parent 2:1 handle 3: {queue}"
            ),
        }
    };
    Ok(())
}

/// A policer in front of the path. What comes in counts without its Ethernet header. Packets above `mtu`, which includes
/// it, exceed any rate, and without the word that is 2040 bytes.
fn police(batch: &mut String, policer: &PolicerSpec, path: &Path) {
    let (rate, burst) = (policer.rate.bits_per_sec(), policer.burst_bytes);
    let overhead = path.overhead_bytes;
    let _ = writeln!(
        batch,
        "qdisc add dev {TO_SENDER} clsact\n\
         filter add dev {TO_SENDER} ingress matchall action police rate {rate}bit burst {burst} mtu {MOST_POLICED_BYTES} overhead {overhead} conform-exceed drop/ok"
    );
}

/// Does the kernel's emulation carry more than tcpknee's own link, which is
/// exact at what it reaches? The own link holds 2 Gbit/s of wire packets beside
/// the hosts on two processors. In a guest kernel of virtual time both are exact,
/// and the link's system calls cost fifty times what netem does.
pub fn is_faster(path: &Path) -> bool {
    const USER_RATE_BITS_PER_SEC: u64 = 2_000_000_000;
    is_user_mode_linux()
        || path.policer.is_none()
            && path
                .rate
                .is_none_or(|rate| rate.bits_per_sec() > USER_RATE_BITS_PER_SEC)
}

/// Is the running kernel a program of another one's?
pub fn is_user_mode_linux() -> bool {
    std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains("User Mode Linux"))
}

#[cfg(test)]
mod tests {
    use knee_link::{Group, Nic};
    use knee_path::impairment::{IMPAIRMENTS, ImpairmentKind, Impairments, find};
    use knee_path::trace::RateTrace;
    use knee_path::{AckLink, RttChange};
    use knee_units::files::Files;
    use knee_units::params::Params;

    use super::*;

    fn config(rtts_ms: &[u64]) -> LinkConfig {
        let nic = Nic {
            tso: true,
            coalesce: Nanos::ZERO,
            gro: true,
        };
        LinkConfig {
            path: Path {
                rate: Rate::from_bits_per_sec(100_000_000),
                rtt: Nanos::from_ms(40),
                rate_trace: None,
                rtt_changes: Vec::new(),
                impairments: Impairments::NONE,
                ack: AckLink::open(),
                loss: LossSpec::NONE,
                ack_loss: LossSpec::NONE,
                buffer: BufferLimit::Bytes(500_000),
                queue: "fifo",
                queue_params: Params::defaults(&[]),
                policer: None,
                mtu_bytes: 1500,
                overhead_bytes: 0,
                backend: knee_path::Backend::Netem,
                keep_super_packets: false,
            },
            further: Vec::new(),
            groups: (1..)
                .zip(rtts_ms)
                .map(|(host, &rtt)| Group {
                    sender: Ipv4Addr::new(10, 77, 0, host),
                    receiver: Ipv4Addr::new(10, 78, 0, host),
                    rtt: Nanos::from_ms(rtt),
                    warmup: Nanos::ZERO,
                    hops: 0..1,
                })
                .collect(),
            first_port: 10_000,
            flows: 1,
            hosts: [None; 2],
            seed: 1,
            sample_interval: Nanos::from_ms(10),
            receiver: nic,
            sender: nic,
        }
    }

    #[test]
    fn second_hop_is_refused_with_the_back_end_that_has_it() {
        let mut config = config(&[40]);
        config.further.push(config.path.clone());
        let refusal = commands(&config).unwrap_err().to_string();
        assert_eq!(refusal, "hop: qdiscs stand in for one bottleneck");
    }

    #[test]
    fn rate_and_buffer_count_ip_and_the_delay_is_shared_by_both_directions() {
        assert_eq!(
            commands(&config(&[40])).unwrap(),
            "qdisc add dev to-receiver root handle 1: stab overhead -14 netem limit 10000000 delay 20120.000us\n\
             qdisc add dev to-receiver parent 1:1 handle 2: tbf rate 100000000bit burst 12500 limit 500000\n\
             qdisc add dev to-sender root handle 1: netem limit 10000000 delay 20000.000us\n"
        );
    }

    #[test]
    fn groups_of_different_rtt_differ_on_the_way_back() {
        let text = commands(&config(&[20, 80])).unwrap();
        assert!(text.contains(
            "to-receiver root handle 1: stab overhead -14 netem limit 10000000 delay 10120.000us"
        ));
        assert!(text.contains("parent 1:1 netem limit 10000000 delay 10000.000us"));
        assert!(text.contains("parent 1:2 netem limit 10000000 delay 70000.000us"));
        assert!(text.contains("match ip dst 10.77.0.2/32 flowid 1:2"));
    }

    #[test]
    fn loss_that_netem_does_not_have_is_refused() {
        let periodic = || LossSpec {
            kind: "periodic",
            share: 0.001,
            pattern: Pattern::Share,
        };
        let [mut data, mut acks, mut apart] = [config(&[40]), config(&[40]), config(&[20, 80])];
        data.path.loss = periodic();
        acks.path.ack_loss = periodic();
        apart.path.ack_loss = periodic();
        for (config, key) in [(data, "loss"), (acks, "ack_loss"), (apart, "ack_loss")] {
            let refusal = commands(&config).unwrap_err().to_string();
            let told = format!("path.{key}: netem loses packets at random, ");
            assert!(refusal.starts_with(&told), "{refusal}");
        }
    }

    #[test]
    fn loss_in_bursts_is_netems_own_with_its_four_parameters() {
        let mut config = config(&[40]);
        config.path.loss =
            LossSpec::read("gilbert p 1% r 25% 1-h 75% 1-k 0.5%", Files::NONE).unwrap();
        let text = commands(&config).unwrap();
        assert!(text.contains(" loss gemodel 1% 25% 75% 0.5%\n"), "{text}");
    }

    #[test]
    fn what_qdiscs_do_otherwise_is_refused_with_its_key() {
        let refused = |change: &dyn Fn(&mut Path)| {
            let mut config = config(&[40]);
            change(&mut config.path);
            commands(&config).unwrap_err().to_string()
        };
        let time = Nanos::from_ms(5);
        let ten = Rate::from_bits_per_sec(10_000_000);
        let change = RttChange {
            at: time,
            rtt: time,
        };
        let trace = RateTrace::find("wifi", Files::NONE).unwrap();
        for (key, text) in [
            ("rtt_change", refused(&|path| path.rtt_changes.push(change))),
            ("ack_rate", refused(&|path| path.ack.rate = ten)),
            (
                "rate",
                refused(&|path| path.rate_trace = Some(trace.clone())),
            ),
        ] {
            assert_eq!(
                text,
                format!("path.{key}: netem and tbf do not do it as tcpknee's link does")
            );
        }
    }

    fn with(mut config: LinkConfig, spec: ImpairmentSpec) -> LinkConfig {
        config.path.impairments = config.path.impairments.with(spec);
        config
    }

    #[test]
    fn every_impairment_is_refused_by_its_name_or_told_in_netems_words() {
        for kind in IMPAIRMENTS {
            let spec = ImpairmentSpec::example(kind);
            let told = commands(&with(config(&[40]), spec.clone()));
            match kind.netem {
                None => assert_eq!(
                    told.unwrap_err().to_string(),
                    format!(
                        "path.{}: netem and tbf do not do it as tcpknee's link does",
                        kind.name
                    )
                ),
                Some(words) => assert!(told.unwrap().contains(&words(&spec)), "{}", kind.name),
            }
        }
    }

    #[test]
    fn netems_words_stand_behind_the_delay_in_the_directions_of_the_impairment() {
        for (both_ways, directions) in [(false, 1), (true, 2)] {
            let kind = Box::leak(Box::new(ImpairmentKind {
                netem: Some(|spec| format!("slot {}", spec.time("aggregate"))),
                both_ways,
                ..*find("aggregate").unwrap()
            }));
            let text = commands(&with(config(&[40]), ImpairmentSpec::example(kind))).unwrap();
            let told = text.matches("us slot 4ms\n");
            assert_eq!(told.count(), directions, "{text}");
        }
    }

    #[test]
    fn of_several_impairments_the_links_own_is_named() {
        let spec = |name| ImpairmentSpec::example(find(name).unwrap());
        let config = with(with(config(&[40]), spec("jitter")), spec("outage"));
        assert_eq!(commands(&config), Err(Unsupported::Key("outage")));
    }

    #[test]
    fn a_buffer_of_packets_is_a_queue_of_its_own() {
        let mut config = config(&[40]);
        config.path.buffer = BufferLimit::Packets(170);
        let text = commands(&config).unwrap();
        assert!(
            text.contains("parent 2:1 handle 3: pfifo limit 170"),
            "{text}"
        );
    }

    fn queued(name: &'static str, buffer: BufferLimit, set: &[(&str, f64)]) -> LinkConfig {
        let mut config = config(&[40]);
        let kind = knee_path::queue::find(name);
        config.path.queue = name;
        config.path.queue_params = Params::defaults(kind.expect("it is a queue").params);
        for (name, value) in set {
            config.path.queue_params.set(name, *value);
        }
        config.path.buffer = buffer;
        config
    }

    #[test]
    fn a_queue_that_counts_packets_takes_no_limit_in_bytes() {
        let bytes = queued("fq_codel", BufferLimit::Bytes(500_000), &[]);
        let packets = Unsupported::Bytes {
            queue: "fq_codel",
            packets: 334,
        };
        assert_eq!(
            packets.hint(),
            "Use path.buffer = \"334packets\", or path.backend = \"user\"."
        );
        assert_eq!(commands(&bytes), Err(packets));
        let step = queued("step", BufferLimit::Packets(170), &[]);
        assert_eq!(commands(&step), Err(Unsupported::Queue("step")));
    }

    /// Against iproute2 6.1 for PIE, 6.18 for DualPI2: what `tc` calls illegal, and what it leaves out.
    #[test]
    fn every_queues_parameters_are_told_at_both_bounds_or_refused() {
        let refused = [
            ("pie", "alpha", 0.0),
            ("pie", "beta", 0.0),
            ("fq_pie", "alpha", 0.0),
            ("fq_pie", "beta", 0.0),
            ("fq_pie", "ecn_prob", 0.0),
            ("fq_pie", "ecn_prob", 0.025),
            ("fq_pie", "ecn_prob", 1.0),
            ("dualpi2", "coupling", 2.5),
            ("dualpi2", "step", 0.0),
            ("dualpi2", "classic_protection", 0.105),
        ];
        let told = |name, param, value| {
            commands(&queued(name, BufferLimit::Packets(170), &[(param, value)]))
        };
        for (name, param, value) in refused {
            let queue = Unsupported::Queue(name);
            assert_eq!(told(name, param, value), Err(queue), "{param} = {value}");
        }
        for (name, param, value, said) in [
            ("fq_pie", "ecn_prob", 0.2, " ecn_prob 20 "),
            ("fq_pie", "alpha", 1.0, " alpha 1 "),
            ("dualpi2", "coupling", 3.0, " coupling_factor 3 "),
            (
                "dualpi2",
                "classic_protection",
                0.2,
                " classic_protection 20% ",
            ),
            ("dualpi2", "drop_overload", 0.0, " overflow\n"),
        ] {
            let text = told(name, param, value).unwrap();
            assert!(text.contains(said), "{text}");
        }
        let by_packets = ["codel", "fq_codel", "pie", "fq_pie", "fq", "dualpi2"];
        for name in by_packets {
            for param in knee_path::queue::find(name).unwrap().params {
                for value in [param.min, param.max] {
                    let is_told = told(name, param.name, value).is_ok();
                    let is_refused = refused.contains(&(name, param.name, value));
                    assert_ne!(is_told, is_refused, "{name}.{} = {value}", param.name);
                }
            }
        }
    }

    #[test]
    fn queues_are_qdiscs_with_the_parameters_that_tc_has_words_for() {
        let packets = BufferLimit::Packets(170);
        let red = [("min", 3e4), ("max", 9e4), ("burst", 50.0)];
        let twice = 20_000_000.0;
        for (name, buffer, set, said) in [
            ("fq_codel", packets, &[][..], "fq_codel limit 170 ecn\n"),
            (
                "codel",
                packets,
                &[("ce_threshold", 1e6), ("ecn", 1.0), ("target", 2e6)],
                "codel limit 170 target 2000us ecn ce_threshold 1000us\n",
            ),
            (
                "pie",
                packets,
                &[("tupdate", 2e7)],
                "pie limit 170 tupdate 20000us noecn nobytemode no_dq_rate_estimator\n",
            ),
            (
                "dualpi2",
                BufferLimit::Packets(10_000),
                &[],
                "handle 3: dualpi2\n",
            ),
            (
                "red",
                packets,
                &red,
                "red limit 255000 min 30000 max 90000 avpkt 1000 burst 50 probability 0.02 bandwidth 100000000bit\n",
            ),
            (
                "cake",
                BufferLimit::Unlimited,
                &[("bandwidth", twice)],
                "parent 1:1 handle 2: cake bandwidth 20000000bit diffserv3 triple-isolate no-ack-filter\n",
            ),
            (
                "cake",
                BufferLimit::Unlimited,
                &[("overhead", 24.0), ("mpu", 84.0)],
                " no-ack-filter overhead 38 mpu 84\n",
            ),
        ] {
            let text = commands(&queued(name, buffer, set)).unwrap();
            assert!(text.contains(said), "{text}");
        }
    }

    /// `tc` takes up to 256 bytes. We add the 14 of the Ethernet header.
    #[test]
    fn an_overhead_of_cake_that_tc_does_not_take_is_refused() {
        let with = |bytes| queued("cake", BufferLimit::Unlimited, &[("overhead", bytes)]);
        assert!(commands(&with(242.0)).is_ok());
        assert_eq!(commands(&with(243.0)), Err(Unsupported::Queue("cake")));
    }

    #[test]
    fn a_policer_stands_in_front_and_on_a_host_is_left_to_the_own_link() {
        let mut config = config(&[40]);
        config.path.rate = None;
        assert!(is_faster(&config.path));
        let policer = |action| PolicerSpec {
            rate: Rate::from_bits_per_sec(10_000_000).unwrap(),
            burst_bytes: 64_000,
            action,
        };
        config.path.policer = Some(policer(Action::Drop));
        assert!(!is_faster(&config.path));
        config.path.overhead_bytes = 38;
        let text = commands(&config).unwrap();
        let told = "ingress matchall action police rate 10000000bit burst 64000 mtu 131072 overhead 38 conform-exceed drop/ok\n";
        assert!(text.contains(told), "{text}");
        config.path.policer = Some(policer(Action::Mark));
        assert_eq!(commands(&config), Err(Unsupported::Key("policer_action")));
    }
}

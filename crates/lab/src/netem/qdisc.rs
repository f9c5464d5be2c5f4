//! The path's queue as a qdisc of the kernel, in the words of `tc`.

use knee_path::Path;
use knee_path::queue::BufferLimit;
use knee_units::params::{Param, Unit};

/// How `tc` calls a parameter of a queue.
enum Word {
    /// The value behind a word, unless it is the default.
    Value(&'static str),
    /// The same; `tc` reads a 0, and leaves it out.
    Not0(&'static str),
    /// The same of whole numbers from one to another, of a share those of its percents, with what stands behind them.
    Whole(&'static str, [u8; 2], &'static str),
    /// The value behind a word; 0 is left out.
    Above0(&'static str),
    /// One word or another.
    Flag(&'static str, &'static str),
    /// A word where it is set.
    Set(&'static str),
}

/// Queues whose limit is in packets. Each of their parameters, by our name, has a word of `tc`.
const BY_PACKETS: &[(&str, &[(&str, Word)])] = &[
    ("codel", CODEL),
    ("fq_codel", CODEL),
    ("pie", PIE),
    ("fq_pie", PIE),
    (
        "fq",
        &[
            ("flow_limit", Word::Value("flow_limit")),
            ("quantum", Word::Above0("quantum")),
            ("initial_quantum", Word::Above0("initial_quantum")),
            ("refill_delay", Word::Value("refill_delay")),
            ("ce_threshold", Word::Above0("ce_threshold")),
        ],
    ),
    (
        // Words of iproute2 6.18 and newer; an older one takes the defaults.
        "dualpi2",
        &[
            ("target", Word::Value("target")),
            ("tupdate", Word::Value("tupdate")),
            ("alpha", Word::Value("alpha")),
            ("beta", Word::Value("beta")),
            ("coupling", Word::Whole("coupling_factor", [1, 255], "")),
            ("step", Word::Not0("step_thresh")),
            ("min_qlen_step", Word::Above0("min_qlen_step")),
            (
                "classic_protection",
                Word::Whole("classic_protection", [0, 100], "%"),
            ),
            ("drop_overload", Word::Flag("drop_on_overload", "overflow")),
        ],
    ),
];
/// Of one queue and of many: what the first lacks it is not asked for.
const CODEL: &[(&str, Word)] = &[
    ("target", Word::Value("target")),
    ("interval", Word::Value("interval")),
    ("ecn", Word::Flag("ecn", "noecn")),
    ("ce_threshold", Word::Above0("ce_threshold")),
    ("flows", Word::Value("flows")),
    ("quantum", Word::Above0("quantum")),
    ("drop_batch", Word::Value("drop_batch")),
    ("memory_limit", Word::Value("memory_limit")),
];
/// Likewise.
const PIE: &[(&str, Word)] = &[
    ("target", Word::Value("target")),
    ("tupdate", Word::Value("tupdate")),
    ("alpha", Word::Not0("alpha")),
    ("beta", Word::Not0("beta")),
    ("ecn", Word::Flag("ecn", "noecn")),
    ("ecn_prob", Word::Whole("ecn_prob", [1, 99], "")),
    ("bytemode", Word::Flag("bytemode", "nobytemode")),
    (
        "dq_rate_estimator",
        Word::Flag("dq_rate_estimator", "no_dq_rate_estimator"),
    ),
    ("flows", Word::Value("flows")),
    ("quantum", Word::Above0("quantum")),
];
const RED: &[(&str, Word)] = &[
    ("ecn", Word::Set("ecn")),
    ("harddrop", Word::Set("harddrop")),
    ("adaptive", Word::Set("adaptive")),
];
const CAKE: &[(&str, Word)] = &[
    ("rtt", Word::Value("rtt")),
    ("mpu", Word::Above0("mpu")),
    ("memory_limit", Word::Above0("memlimit")),
];

/// The most that `tc` takes for CAKE's overhead.
const CAKE_OVERHEAD_BYTES: u64 = 256;

/// What a DualPI2 holds of which nobody says how much.
const DUALPI2_PKTS: u32 = 10_000;

/// How many packets a queue may hold whose qdisc counts packets, where the scenario counts bytes.
pub fn packets_for_bytes(path: &Path) -> Option<u64> {
    let counts = path.queue == "dualpi2" || BY_PACKETS.iter().any(|(name, _)| *name == path.queue);
    match path.buffer {
        BufferLimit::Bytes(bytes) if counts => {
            Some(bytes.div_ceil(u64::from(path.mtu_bytes)).max(1))
        }
        _ => None,
    }
}

/// The queue of a path with a rate; `None`: qdiscs have no such queue, or not with these parameters.
pub fn queue(path: &Path) -> Option<String> {
    match (path.queue, path.buffer) {
        ("fifo", BufferLimit::Bytes(bytes)) => Some(format!("bfifo limit {bytes}")),
        ("fifo", BufferLimit::Packets(packets)) => Some(format!("pfifo limit {packets}")),
        ("fifo", BufferLimit::Unlimited) => Some(format!("pfifo limit {}", super::HELD_PKTS)),
        ("red", limit) => red(path, limit),
        ("cake", _) => cake(path),
        ("dualpi2", BufferLimit::Packets(DUALPI2_PKTS)) if path.queue_params.are_defaults() => {
            Some("dualpi2".into())
        }
        (name, BufferLimit::Packets(packets)) => {
            let (_, words) = BY_PACKETS.iter().find(|(known, _)| *known == name)?;
            Some(format!("{name} limit {packets}{}", told(path, words)?))
        }
        _ => None,
    }
}

/// RED's limit is in bytes; what its thresholds are where nobody says, `tc` computes as the simulator does.
fn red(path: &Path, limit: BufferLimit) -> Option<String> {
    let limit = match limit {
        BufferLimit::Bytes(bytes) => bytes,
        BufferLimit::Packets(packets) => packets as u64 * u64::from(path.mtu_bytes),
        BufferLimit::Unlimited => return None,
    };
    let params = &path.queue_params;
    let [min, max, avpkt, burst] = ["min", "max", "avpkt", "burst"].map(|name| params.int(name));
    let is_told = min > 0 && max > 0 && burst > 0 && params.int("wlog") == 0;
    let rate = path.rate?.bits_per_sec();
    let probability = params.get("probability");
    is_told.then_some(())?;
    Some(format!(
        "red limit {limit} min {min} max {max} avpkt {avpkt} burst {burst} probability {probability} bandwidth {rate}bit{}",
        of(path, RED)?
    ))
}

/// CAKE has its own limit, and shapes where it is given a bandwidth. Given an overhead, it takes what lies before the IP
/// header off a packet's length, which the size table of the root has done already.
fn cake(path: &Path) -> Option<String> {
    let params = &path.queue_params;
    let tins = match params.int("tins") {
        8.. => "diffserv8",
        4.. => "diffserv4",
        3 => "diffserv3",
        _ => "besteffort",
    };
    let filter = match params.int("ack_filter") {
        0 => "no-ack-filter",
        1 => "ack-filter",
        _ => "ack-filter-aggressive",
    };
    let isolation = params
        .entries()
        .find(|(param, _)| param.name == "isolation");
    let isolation = isolation.and_then(|(param, value)| match param.unit {
        Unit::Choice(words) => words.get(value as usize).copied(),
        _ => None,
    })?;
    let shaped = match params.get("bandwidth") {
        rate if rate.is_finite() => format!("bandwidth {rate}bit"),
        _ => "unlimited".into(),
    };
    let overhead = match params.int("overhead") {
        0 => String::new(),
        bytes => {
            let bytes = bytes + super::ETHERNET_BYTES;
            (bytes <= CAKE_OVERHEAD_BYTES).then(|| format!(" overhead {bytes}"))?
        }
    };
    Some(format!(
        "cake {shaped} {tins} {isolation} {filter}{overhead}{}",
        of(path, CAKE)?
    ))
}

/// Does CAKE shape to no more than the path's rate? Then nothing need stand above it.
pub fn shapes(path: &Path) -> bool {
    let rate = path.rate.map(|rate| rate.bits_per_sec() as f64);
    path.queue == "cake" && rate.is_some_and(|rate| path.queue_params.get("bandwidth") <= rate)
}

/// The words for every parameter; `None`: `tc` has none for one that is not at its default, or not for its value.
fn told(path: &Path, words: &[(&str, Word)]) -> Option<String> {
    let known = |name: &str| words.iter().any(|(known, _)| *known == name);
    let all = (path.queue_params.entries())
        .all(|(param, value)| known(param.name) || value == param.default);
    all.then(|| of(path, words))?
}

/// Those for parameters that have one.
fn of(path: &Path, words: &[(&str, Word)]) -> Option<String> {
    let mut text = String::new();
    for (param, value) in path.queue_params.entries() {
        if let Some((_, word)) = words.iter().find(|(name, _)| *name == param.name) {
            text += &word.said(param, value)?;
        }
    }
    Some(text)
}

impl Word {
    /// The words for `tc`, with a blank before them; `None`: `tc` has none for this value.
    fn said(&self, param: &Param, value: f64) -> Option<String> {
        let is_default = value == param.default;
        let said = match *self {
            Word::Flag(yes, no) => format!(" {}", if value != 0.0 { yes } else { no }),
            Word::Set(yes) if value != 0.0 => format!(" {yes}"),
            Word::Above0(name) if value != 0.0 => format!(" {name} {}", written(param.unit, value)),
            Word::Set(_) | Word::Above0(_) => String::new(),
            _ if is_default => String::new(),
            Word::Not0(_) if value == 0.0 => return None,
            Word::Value(name) | Word::Not0(name) => {
                format!(" {name} {}", written(param.unit, value))
            }
            Word::Whole(name, [least, most], unit) => {
                let scale = if param.unit == Unit::Share {
                    100.0
                } else {
                    1.0
                };
                let number = (value * scale).round();
                let is_whole = (number - value * scale).abs() < 1e-9;
                let within = f64::from(least) <= number && number <= f64::from(most);
                (is_whole && within).then(|| format!(" {name} {number}{unit}"))?
            }
        };
        Some(said)
    }
}

/// A value as `tc` reads it: times in us, shares in percent.
fn written(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Time => format!("{}us", value / 1e3),
        Unit::Share => format!("{}%", value * 100.0),
        Unit::Rate => format!("{value}bit"),
        _ => value.to_string(),
    }
}

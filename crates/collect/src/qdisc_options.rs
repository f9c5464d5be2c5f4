//! What qdiscs are set to, in the names that tc prints. Times, sizes and rates are
//! plain numbers with their unit, as tc shows them only to programs.
//! Source: Linux 6.18, include/uapi/linux/pkt_sched.h.

use std::sync::Arc;

use super::qdisc::{Qdisc, handle};
use super::setting::{Place, Setting, on_off};
use knee_uapi::netlink::{each, number};

/// How an attribute becomes a text.
#[derive(Clone, Copy)]
pub enum Form {
    /// In this unit.
    Number(&'static str),
    /// In this unit; the greatest 32-bit number means that there is none.
    Unless32(&'static str),
    /// From bytes to bits per second; none where it is the greatest number or 0.
    Rate,
    /// Its logarithm to base 2 is told.
    Log2,
    Switch,
    Hexadecimal,
    Word(&'static [&'static str]),
}

impl Form {
    /// Value and unit as tc shows them to programs.
    fn shown(self, value: u64) -> (&'static str, String) {
        match self {
            Number(unit) | Unless32(unit) => (unit, value.to_string()),
            Rate => ("bit/s", value.saturating_mul(8).to_string()),
            Log2 => ("", 1u64.checked_shl(value as u32).unwrap_or(0).to_string()),
            Switch => ("", on_off(value != 0).to_owned()),
            Hexadecimal => ("", format!("{value:#x}")),
            Word(words) => match words.get(value as usize) {
                Some(word) => ("", (*word).to_owned()),
                None => ("", value.to_string()),
            },
        }
    }

    /// What a name ends with that says the unit of the kernel's number.
    pub fn suffix(self) -> &'static str {
        match self {
            Number("packets") | Unless32("packets") => "_pkts",
            Number("bytes") | Unless32("bytes") => "_bytes",
            Number("us") | Unless32("us") => "_us",
            Number("ns") | Unless32("ns") => "_ns",
            Number("%") => "_pct",
            Rate => "_bytes_per_sec",
            Log2 => "_log",
            _ => "",
        }
    }
}
use Form::{Hexadecimal, Log2, Number, Rate, Switch, Unless32, Word};

/// Attribute, name, form.
type Attributes = &'static [(u16, &'static str, Form)];

/// Kinds whose options are attributes of one number each.
const KINDS: &[(&str, Attributes)] = &[
    ("fq", FQ),
    ("fq_codel", FQ_CODEL),
    ("codel", CODEL),
    ("pie", PIE),
    ("fq_pie", FQ_PIE),
    ("cake", CAKE),
];

/// TCA_FQ_*.
const FQ: Attributes = &[
    (1, "limit", Number("packets")),
    (2, "flow_limit", Number("packets")),
    (3, "quantum", Number("bytes")),
    (4, "initial_quantum", Number("bytes")),
    (5, "pacing", Switch),
    (7, "maxrate", Rate),
    (8, "buckets", Log2),
    (9, "refill_delay", Number("us")),
    (10, "orphan_mask", Number("")),
    (11, "low_rate_threshold", Rate),
    (12, "ce_threshold", Unless32("us")),
    (13, "timer_slack", Number("ns")),
    (14, "horizon", Number("us")),
    (15, "horizon_drop", Switch),
];

/// TCA_FQ_CODEL_*.
const FQ_CODEL: Attributes = &[
    (1, "target", Number("us")),
    (2, "limit", Number("packets")),
    (3, "interval", Number("us")),
    (4, "ecn", Switch),
    (5, "flows", Number("")),
    (6, "quantum", Number("bytes")),
    (7, "ce_threshold", Unless32("us")),
    (8, "drop_batch", Number("packets")),
    (9, "memory_limit", Number("bytes")),
    (10, "ce_threshold_selector", Hexadecimal),
    (11, "ce_threshold_mask", Hexadecimal),
];

/// TCA_CODEL_*.
const CODEL: Attributes = &[
    (1, "target", Number("us")),
    (2, "limit", Number("packets")),
    (3, "interval", Number("us")),
    (4, "ecn", Switch),
    (5, "ce_threshold", Unless32("us")),
];

/// TCA_PIE_*.
const PIE: Attributes = &[
    (1, "target", Number("us")),
    (2, "limit", Number("packets")),
    (3, "tupdate", Number("us")),
    (4, "alpha", Number("")),
    (5, "beta", Number("")),
    (6, "ecn", Switch),
    (7, "bytemode", Switch),
    (8, "dq_rate_estimator", Switch),
];

/// TCA_FQ_PIE_*.
const FQ_PIE: Attributes = &[
    (1, "limit", Number("packets")),
    (2, "flows", Number("")),
    (3, "target", Number("us")),
    (4, "tupdate", Number("us")),
    (5, "alpha", Number("")),
    (6, "beta", Number("")),
    (7, "quantum", Number("bytes")),
    (8, "memory_limit", Number("bytes")),
    (9, "ecn_prob", Number("%")),
    (10, "ecn", Switch),
    (11, "bytemode", Switch),
    (12, "dq_rate_estimator", Switch),
];

/// TCA_CAKE_*.
const CAKE: Attributes = &[
    (2, "bandwidth", Rate),
    (
        3,
        "diffserv",
        Word(&[
            "diffserv3",
            "diffserv4",
            "diffserv8",
            "besteffort",
            "precedence",
        ]),
    ),
    (4, "atm", Word(&["noatm", "atm", "ptm"])),
    (
        5,
        "flowmode",
        Word(&[
            "flowblind",
            "srchost",
            "dsthost",
            "hosts",
            "flows",
            "dual-srchost",
            "dual-dsthost",
            "triple-isolate",
        ]),
    ),
    (6, "overhead", Number("bytes")),
    (7, "rtt", Number("us")),
    (9, "autorate", Switch),
    (10, "memlimit", Number("bytes")),
    (11, "nat", Switch),
    (12, "raw", Switch),
    (13, "wash", Switch),
    (14, "mpu", Number("bytes")),
    (15, "ingress", Switch),
    (
        16,
        "ack-filter",
        Word(&["disabled", "enabled", "aggressive"]),
    ),
    (17, "split_gso", Switch),
    (18, "fwmark", Hexadecimal),
];

/// Kinds without options.
const BARE: &[&str] = &["noqueue", "mq", "ingress", "clsact"];

/// Hands kind and options of the qdisc of a device to `take`. The options of a kind
/// that is not known here come as one that is not.
pub fn settings(qdisc: &Qdisc, interface: &Arc<str>, take: &mut impl FnMut(Setting)) {
    let (own, parent) = (
        Arc::from(handle(qdisc.handle)),
        Arc::from(handle(qdisc.parent)),
    );
    let mut tell = |name: &'static str, unit: &'static str, value: Result<String, String>| {
        take(Setting {
            place: Place {
                kind: "qdisc",
                interface: Arc::clone(interface),
                handle: Arc::clone(&own),
                parent: Arc::clone(&parent),
                name: name.into(),
            },
            unit,
            value,
        });
    };
    tell("kind", "", Ok(qdisc.kind.clone()));
    let is_understood = each_option(qdisc, &mut |name, form, value| {
        let (unit, text) = form.shown(value);
        tell(name, unit, Ok(text));
    });
    if !is_understood {
        let why = format!("the options of {} are not understood", qdisc.kind);
        tell("options", "", Err(why));
    }
    if let ("pfifo_fast" | "prio", Some(map)) = (&*qdisc.kind, qdisc.options.get(4..20)) {
        let map: Vec<_> = map.iter().map(u8::to_string).collect();
        tell("priomap", "", Ok(map.join(" ")));
    }
}

/// Takes name, form and value of an option.
type Take<'a> = dyn FnMut(&'static str, Form, u64) + 'a;

/// Hands the options that are a number each to `take`; false: the kind is not known here.
pub fn each_option(qdisc: &Qdisc, take: &mut Take<'_>) -> bool {
    let options = &qdisc.options[..];
    match &*qdisc.kind {
        "pfifo" | "bfifo" | "pfifo_head_drop" => {
            let is_bytes = qdisc.kind == "bfifo";
            if let Some(limit) = number(options, 0, 4) {
                take(
                    "limit",
                    Number(if is_bytes { "bytes" } else { "packets" }),
                    limit,
                );
            }
        }
        // `struct tc_prio_qopt`; the map of priorities follows the number.
        "pfifo_fast" | "prio" => {
            if let (Some(bands), true) = (number(options, 0, 4), options.len() >= 20) {
                take("bands", Number(""), bands);
            }
        }
        "tbf" => tbf(options, take),
        "htb" => htb(options, take),
        kind if BARE.contains(&kind) => {}
        kind => match KINDS.iter().find(|(name, _)| *name == kind) {
            Some((_, attributes)) => numbers(attributes, options, take),
            None => return false,
        },
    }
    true
}

fn numbers(known: Attributes, options: &[u8], take: &mut Take<'_>) {
    each(options, |kind, bytes| {
        let known = known.iter().find(|(attribute, ..)| *attribute == kind);
        let (Some(&(_, name, form)), Some(value)) = (known, number(bytes, 0, bytes.len())) else {
            return;
        };
        let is_greatest = value == u64::from(u32::MAX) || value == u64::MAX;
        match form {
            Unless32(_) | Rate if is_greatest => {}
            Rate if value == 0 => {}
            _ => take(name, form, value),
        }
    });
}

/// `struct tc_tbf_qopt` has two of `struct tc_ratespec`, whose last word is a rate,
/// then limit and bucket, the latter as the time that it takes.
fn tbf(options: &[u8], take: &mut Take<'_>) {
    const PARAMETERS: u16 = 1;
    const RATE_64: u16 = 4;
    /// A tick of the kernel's packet scheduler (PSCHED_SHIFT).
    const TICK_NS: u64 = 64;
    let (mut rate, mut limit, mut ticks) = (None, None, None);
    each(options, |kind, bytes| match kind {
        PARAMETERS => {
            rate = rate.or(number(bytes, 8, 4));
            limit = number(bytes, 24, 4);
            ticks = number(bytes, 28, 4);
        }
        RATE_64 => rate = number(bytes, 0, 8),
        _ => {}
    });
    let (Some(rate), Some(limit), Some(ticks)) = (rate, limit, ticks) else {
        return;
    };
    let burst = u128::from(rate) * u128::from(ticks * TICK_NS) / 1_000_000_000;
    take("rate", Rate, rate);
    take(
        "burst",
        Number("bytes"),
        u64::try_from(burst).unwrap_or(u64::MAX),
    );
    take("limit", Number("bytes"), limit);
}

/// `struct tc_htb_glob`. Its last word is a counter.
fn htb(options: &[u8], take: &mut Take<'_>) {
    const INIT: u16 = 2;
    const DIRECT_QLEN: u16 = 5;
    each(options, |kind, bytes| match kind {
        INIT => {
            if let (Some(divisor), Some(class)) = (number(bytes, 4, 4), number(bytes, 8, 4)) {
                take("r2q", Number(""), divisor);
                take("default", Hexadecimal, class);
            }
        }
        DIRECT_QLEN => {
            if let Some(packets) = number(bytes, 0, 4) {
                take("direct_qlen", Number("packets"), packets);
            }
        }
        _ => {}
    });
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::tc::TcHandle;

    use super::*;
    use knee_uapi::netlink::put;

    fn told(kind: &str, options: Vec<u8>) -> Vec<String> {
        let qdisc = Qdisc {
            interface: 1,
            kind: kind.to_owned(),
            handle: TcHandle::from(0x8001_0000),
            parent: TcHandle::from(0xffff_ffff),
            options,
            ..Qdisc::default()
        };
        let mut told = Vec::new();
        settings(&qdisc, &Arc::from("eth0"), &mut |setting| {
            assert_eq!(&*setting.place.handle, "8001:");
            assert_eq!(&*setting.place.parent, "root");
            let value = setting.value.unwrap_or_else(|why| format!("? {why}"));
            told.push(format!("{} {value} {}", setting.place.name, setting.unit));
        });
        told
    }

    fn words(words: &[(u16, u32)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (kind, word) in words {
            put(&mut bytes, *kind, &word.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn fq_tells_its_limits_in_packets_and_its_rates_in_bits() {
        let options = words(&[
            (1, 10_000),
            (5, 1),
            (7, u32::MAX),
            (8, 10),
            (11, 68_750),
            (12, u32::MAX),
            (14, 10_000_000),
        ]);
        assert_eq!(
            told("fq", options),
            [
                "kind fq ",
                "limit 10000 packets",
                "pacing on ",
                "buckets 1024 ",
                "low_rate_threshold 550000 bit/s",
                "horizon 10000000 us",
            ]
        );
    }

    #[test]
    fn fq_codel_has_the_names_of_tc() {
        let options = words(&[(1, 4_999), (2, 10_240), (4, 1), (8, 64), (9, 32 << 20)]);
        assert_eq!(
            told("fq_codel", options),
            [
                "kind fq_codel ",
                "target 4999 us",
                "limit 10240 packets",
                "ecn on ",
                "drop_batch 64 packets",
                "memory_limit 33554432 bytes",
            ]
        );
    }

    #[test]
    fn modes_of_cake_are_words() {
        let mut options = Vec::new();
        put(&mut options, 2, &1_250_000u64.to_ne_bytes());
        options.extend(words(&[(3, 3), (5, 7), (16, 9)]));
        assert_eq!(
            told("cake", options),
            [
                "kind cake ",
                "bandwidth 10000000 bit/s",
                "diffserv besteffort ",
                "flowmode triple-isolate ",
                "ack-filter 9 ",
            ]
        );
    }

    #[test]
    fn options_that_are_not_known_are_said_to_be_so() {
        assert_eq!(told("mq", vec![1, 2, 3]), ["kind mq "]);
        assert_eq!(
            told("hfsc", vec![1, 0]),
            [
                "kind hfsc ",
                "options ? the options of hfsc are not understood "
            ]
        );
    }

    #[test]
    fn options_that_are_cut_off_are_not_guessed() {
        for kind in ["fq", "pfifo", "pfifo_fast", "tbf", "htb", "cake"] {
            for length in 0..8 {
                assert_eq!(
                    told(kind, vec![1; length]).len().min(2),
                    1 + usize::from(kind == "pfifo" && length >= 4),
                    "{kind} {length}"
                );
            }
        }
    }
}

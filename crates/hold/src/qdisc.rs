//! The queueing discipline of a device: one at the root, or one below each queue of `mq`.
//! Source: Linux 6.18, include/uapi/linux/pkt_sched.h.

use std::collections::BTreeMap;
use std::io;

use nix::net::if_::if_nametoindex;
use serde::{Deserialize, Serialize};

use super::netlink::{self, CREATE, DELQDISC, DUMP, GETFILTER, GETQDISC, NEWQDISC, REPLACE};
use super::sysctl;

const ROOT: u32 = 0xffff_ffff;
const INGRESS: u32 = 0xffff_fff1;
const KIND: u16 = 1;
const OPTIONS: u16 = 2;
const HEAD_BYTES: usize = 20;

/// Ours is recognised by it; those below it count on from there.
const OUR_HANDLE: u32 = 0x4b4f_0000;

/// Kinds that are the same again when the kernel gets back the options that it told.
const RESTORABLE: [&str; 9] = [
    "noqueue",
    "noop",
    "pfifo_fast",
    "pfifo",
    "bfifo",
    "fq",
    "fq_codel",
    "codel",
    "mq",
];

const FQ_CE_THRESHOLD: u16 = 12;
/// What fq tells when it has no threshold; given back, it would be one.
const FQ_NO_CE_THRESHOLD: u32 = (u64::MAX / 1000) as u32;
const NETEM_RATE: u16 = 6;
const NETEM_RATE64: u16 = 8;
const NETEM_LATENCY64: u16 = 10;

/// A qdisc as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Qdisc {
    pub kind: String,
    pub handle: u32,
    pub parent: u32,
    pub options: Vec<u8>,
}

/// Options of a kind that may be asked for, with their attributes; 0: the options are that number.
pub fn options(kind: &str) -> Option<&'static [(&'static str, u16)]> {
    Some(match kind {
        "fq" => &[("limit", 1), ("flow_limit", 2), ("horizon_us", 14)],
        "fq_codel" => &[("limit", 2), ("flows", 5)],
        "pfifo" => &[("limit", 0)],
        "pfifo_fast" => &[],
        _ => return None,
    })
}

/// What is wanted, in the kernel's form.
pub fn wanted_options(kind: &str, wanted: &BTreeMap<String, u32>) -> Vec<u8> {
    let known = options(kind).unwrap_or_default();
    let mut attributes = Vec::new();
    for (name, value) in wanted {
        let bytes = value.to_ne_bytes().to_vec();
        match known.iter().find(|(one, _)| one == name) {
            Some((_, 0)) => return bytes,
            Some((_, attribute)) => attributes.push((*attribute, bytes)),
            None => {}
        }
    }
    netlink::packed(&attributes)
}

/// netem's: a head of six numbers, then attributes.
pub fn netem_options(
    delay_us: u64,
    loss_ppb: u32,
    rate_bits_per_sec: Option<u64>,
    limit_packets: u32,
) -> Vec<u8> {
    let loss = (u64::from(loss_ppb) * u64::from(u32::MAX) / 1_000_000_000) as u32;
    let mut bytes = Vec::new();
    for word in [0, limit_packets, loss, 0, 0, 0] {
        bytes.extend(word.to_ne_bytes());
    }
    let mut attributes = vec![(
        NETEM_LATENCY64,
        (delay_us as i64 * 1_000).to_ne_bytes().to_vec(),
    )];
    if let Some(rate) = rate_bits_per_sec {
        let rate_bytes = rate / 8;
        // A rate that needs 64 bits has an attribute of its own, and all ones here.
        let small = u32::try_from(rate_bytes).unwrap_or(u32::MAX);
        let mut rate = small.to_ne_bytes().to_vec();
        rate.resize(16, 0);
        attributes.push((NETEM_RATE, rate));
        if small == u32::MAX {
            attributes.push((NETEM_RATE64, rate_bytes.to_ne_bytes().to_vec()));
        }
    }
    bytes.extend(netlink::packed(&attributes));
    bytes
}

fn head(index: u32, handle: u32, parent: u32) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    for word in [index, handle, parent, 0] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes
}

/// Those that packets leave through, the root first.
pub fn read(device: &str) -> io::Result<Vec<Qdisc>> {
    let index = if_nametoindex(device)?;
    let mut found = Vec::new();
    for body in netlink::ask(GETQDISC, DUMP, &head(index, 0, 0))? {
        let parent = netlink::word(&body, 12);
        if netlink::word(&body, 4) != index || parent == INGRESS {
            continue;
        }
        let told = netlink::attributes(body.get(HEAD_BYTES..).unwrap_or_default());
        let kind = netlink::first(&told, KIND).unwrap_or_default();
        found.push(Qdisc {
            kind: String::from_utf8_lossy(kind).trim_end_matches('\0').into(),
            handle: netlink::word(&body, 8),
            parent,
            options: netlink::first(&told, OPTIONS).unwrap_or_default().to_vec(),
        });
    }
    found.sort_by_key(|one| (one.parent != ROOT, one.parent, one.handle));
    Ok(found)
}

/// What is to stand there instead; below an `mq` one for each queue of a kind that keeps no rate or delay of its own.
///
/// # Errors
/// What is there could not be put back exactly, in words.
pub fn goal(
    device: &str,
    before: &[Qdisc],
    kind: &str,
    options: &[u8],
) -> Result<Vec<Qdisc>, String> {
    let refused = |why: String| {
        format!(
            "{device}: its qdisc {why}, so that it could not be put back exactly. Nothing was changed. Leave out what \
             needs another qdisc (pacing = \"fq\", --netem), or set it up by hand."
        )
    };
    let Some(root) = before.first() else {
        return Err(refused("is not told by the kernel".into()));
    };
    if root.handle == OUR_HANDLE {
        return Err(format!(
            "{device}: its qdisc is one of ours that nobody holds; take it away by hand (tc qdisc del dev {device} root)."
        ));
    }
    if let Some(odd) = before
        .iter()
        .find(|one| !RESTORABLE.contains(&one.kind.as_str()))
    {
        return Err(refused(format!(
            "{} has options that are not read back",
            odd.kind
        )));
    }
    if before.len() > 1 && root.kind != "mq" {
        return Err(refused(format!("{} has others below it", root.kind)));
    }
    if root.handle == 0 && root.kind != "noqueue" {
        let default = sysctl::read("net.core.default_qdisc").unwrap_or_default();
        let plain = before
            .iter()
            .find(|one| one.kind != "mq" && one.kind != default);
        if let (Some(one), false) = (plain, default.is_empty()) {
            let one = &one.kind;
            return Err(refused(format!(
                "{one} came when net.core.default_qdisc was another one than {default}"
            )));
        }
    }
    if has_filters(device, root.handle).map_err(|error| format!("{device}: {error}."))? {
        return Err(refused(format!("{} has filters", root.kind)));
    }
    let one = |handle, parent| Qdisc {
        kind: kind.into(),
        handle,
        parent,
        options: options.to_vec(),
    };
    let leaves = before.len() - 1;
    if leaves == 0 || kind == "netem" {
        return Ok(vec![one(OUR_HANDLE, ROOT)]);
    }
    let mut goal = vec![Qdisc {
        kind: "mq".into(),
        handle: OUR_HANDLE,
        parent: ROOT,
        options: Vec::new(),
    }];
    for leaf in 1..=leaves as u32 {
        goal.push(one(OUR_HANDLE + (leaf << 16), OUR_HANDLE + leaf));
    }
    Ok(goal)
}

fn has_filters(device: &str, handle: u32) -> io::Result<bool> {
    let index = if_nametoindex(device)?;
    match handle {
        0 => Ok(false),
        handle => Ok(!netlink::ask(GETFILTER, DUMP, &head(index, 0, handle))?.is_empty()),
    }
}

/// The kernel tells more options than it was given: the shape decides.
pub fn reached(goal: &[Qdisc], now: &[Qdisc]) -> bool {
    let shape = |all: &[Qdisc]| -> Vec<(String, u32, u32)> {
        (all.iter()
            .map(|one| (one.kind.clone(), one.handle, one.parent)))
        .collect()
    };
    shape(goal) == shape(now)
}

/// Makes `state` the present one.
pub fn write(device: &str, state: &[Qdisc]) -> io::Result<()> {
    let index = if_nametoindex(device)?;
    let now = read(device)?;
    if let (Some(root), wanted) = (now.first(), state.first().map_or(0, |one| one.handle))
        && root.handle != 0
        && (wanted == 0 || wanted == root.handle)
    {
        // The kernel then attaches its default, whose handle is 0. Any other qdisc takes the place of this one.
        netlink::ask(DELQDISC, 0, &head(index, root.handle, ROOT))?;
    }
    for one in state.iter().filter(|one| one.handle != 0) {
        let mut kind = one.kind.clone().into_bytes();
        kind.push(0);
        let mut attributes = vec![(KIND, kind)];
        let options = given_back(&one.kind, &one.options);
        if !options.is_empty() {
            attributes.push((OPTIONS, options));
        }
        let mut body = head(index, one.handle, one.parent);
        body.extend(netlink::packed(&attributes));
        netlink::ask(NEWQDISC, CREATE | REPLACE, &body)?;
    }
    Ok(())
}

/// The options to give to the kernel, so that it tells `options` afterwards.
fn given_back(kind: &str, options: &[u8]) -> Vec<u8> {
    let times: &[u16] = match kind {
        "fq_codel" => &[1, 3, 7],
        "codel" => &[1, 3, 5],
        "fq" => {
            let mut found = netlink::attributes(options);
            let none = FQ_NO_CE_THRESHOLD.to_ne_bytes();
            found.retain(|(kind, content)| (*kind, content.as_slice()) != (FQ_CE_THRESHOLD, &none));
            return netlink::packed(&found);
        }
        _ => return options.to_vec(),
    };
    let mut found = netlink::attributes(options);
    for (kind, content) in &mut found {
        if times.contains(kind) {
            *content = codel_time(netlink::word(content, 0)).to_ne_bytes().to_vec();
        }
    }
    netlink::packed(&found)
}

/// CoDel stores durations in units of 1,024 ns, and tells them rounded down to microseconds
/// (codel_time_to_us() in include/net/codel.h).
fn codel_time(told_us: u32) -> u32 {
    let tells = |us: u32| (((u64::from(us) * 1_000) >> 10) << 10) / 1_000 == u64::from(told_us);
    (told_us..told_us.saturating_add(3))
        .find(|&us| tells(us))
        .unwrap_or(told_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(kind: &str, handle: u32, parent: u32) -> Qdisc {
        Qdisc {
            kind: kind.into(),
            handle,
            parent,
            options: Vec::new(),
        }
    }

    #[test]
    fn what_could_not_be_put_back_is_refused_by_name() {
        let refused = |before: &[Qdisc]| goal("eth0", before, "fq", &[]).unwrap_err();
        assert!(refused(&[one("htb", 0x10000, ROOT)]).contains("htb has options"));
        let below = [one("fq", 0x10000, ROOT), one("pfifo", 0x20000, 0x10001)];
        assert!(refused(&below).contains("fq has others below it"));
        assert!(refused(&[]).contains("is not told"));
        assert!(refused(&[one("fq", OUR_HANDLE, ROOT)]).contains("that nobody holds"));
    }

    #[test]
    fn codel_gets_back_the_time_that_it_tells() {
        for told in [4_999, 99_999, 5_000] {
            let given = codel_time(told);
            assert!(given >= told && given - told < 3);
        }
        assert_eq!(codel_time(4_999), 5_000);
    }

    #[test]
    fn netem_has_its_delay_in_ns_and_a_large_rate_in_64_bits() {
        let bytes = netem_options(20_000, 500_000_000, Some(100_000_000_000), 1_000);
        assert_eq!(netlink::word(&bytes, 4), 1_000);
        assert_eq!(netlink::word(&bytes, 8), u32::MAX / 2);
        let told = netlink::attributes(&bytes[24..]);
        let number =
            |kind| i64::from_ne_bytes(netlink::first(&told, kind).unwrap().try_into().unwrap());
        assert_eq!(number(NETEM_LATENCY64), 20_000_000);
        assert_eq!(number(NETEM_RATE64), 12_500_000_000);
        let small = netem_options(0, 0, Some(8_000_000), 1);
        let told = netlink::attributes(&small[24..]);
        assert_eq!(
            netlink::word(netlink::first(&told, NETEM_RATE).unwrap(), 0),
            1_000_000
        );
        assert_eq!(netlink::first(&told, NETEM_RATE64), None);
    }
}

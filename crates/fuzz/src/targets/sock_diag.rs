//! Answers of sock_diag: sockets of a dump, and sockets destroyed.
//!
//! Besides that nothing panics: what is cut off or cut out of an answer leaves
//! nulls and no other value, and what a newer kernel appends changes none.

use knee_collect::sock_diag::tcp_info::KNOWN_BYTES;
use knee_collect::sock_diag::{Diag, Dump, SocketRows, answers};
use knee_store::Anonymiser;
use knee_tables::Batch;

use super::{BATCH_BYTES, assert_kept_or_null, choice, sample};
use crate::Target;

pub const TARGET: Target = Target {
    name: "sock_diag",
    about: "netlink: sockets, their tcp_info and what their algorithms tell",
    seeds: &seeds,
    words: &[],
    check: &check,
};

/// `struct nlmsghdr` and `struct inet_diag_msg`.
const HEADER_BYTES: usize = 16;
const MESSAGE_BYTES: usize = 72;
/// INET_DIAG_INFO, _VEGASINFO, _SKMEMINFO, _DCTCPINFO and _BBRINFO with the bytes
/// that we know of each.
const STRUCTS: [(u16, usize); 5] = [(2, KNOWN_BYTES), (3, 16), (7, 36), (9, 16), (16, 52)];

fn seeds() -> Vec<Vec<u8>> {
    let dump = sample("crates/fuzz/seeds/sock_diag-dump.bin");
    // Algorithms that the kernel of the samples did not have.
    let mut rest = bodies(&dump);
    let (head, body) = rest.next().expect("a dump has sockets");
    let composed = STRUCTS.into_iter().map(|(kind, length)| {
        let value: Vec<u8> = (0..length).map(|at| at as u8 | 1).collect();
        let length = (length + 4) as u16;
        let attribute = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &value].concat();
        message(head, &[&body[..MESSAGE_BYTES], &attribute].concat())
    });
    let mut seeds: Vec<_> = composed.collect();
    seeds.extend(bodies(&dump).map(|(head, body)| message(head, body)));
    drop(rest);
    seeds.push(dump);
    seeds.push(sample("crates/fuzz/seeds/sock_diag-destroyed.bin"));
    seeds
}

fn check(input: &[u8]) -> usize {
    let sequence = input.get(8..12).map_or(0, |word| {
        u32::from_ne_bytes(word.try_into().expect("four bytes"))
    });
    let mut dump = Dump::default();
    let mut sockets = 0;
    // Whether it is an answer is not the claim.
    let _ = answers(input, sequence, &mut dump, &mut |_| sockets += 1);
    assert_eq!(dump.sockets, sockets);
    assert!((sockets + dump.not_understood) as usize * HEADER_BYTES <= input.len());

    let choice = choice(input);
    for (n, (_, body)) in bodies(input).enumerate().take(8) {
        let Some(whole) = Diag::decode(body) else {
            assert!(body.len() < MESSAGE_BYTES, "only shorter ones are refused");
            continue;
        };
        let longer = with_structs(body, |value, known| {
            (value.len() >= known).then(|| [value, &[0xa5; 12]].concat())
        });
        assert_same(&whole, &Diag::decode(&longer).expect("long enough"));
        if !tells_each_once(body) {
            // The kernel never does; the last one counts, and a cut may leave another.
            continue;
        }
        let cut = &body[..body.len().min(MESSAGE_BYTES + choice % (body.len() + 1))];
        let shorter = Diag::decode(cut).expect("long enough");
        assert_same_or_absent(&whole, &shorter);
        // The table has a hundred columns: it is compared for some.
        if n == 0 && choice.is_multiple_of(16) {
            assert_rows_agree(&whole, &shorter);
            let older = with_structs(body, |value, _| {
                Some(value[..value.len().min(choice / 16 % 300)].to_vec())
            });
            assert_rows_agree(&whole, &Diag::decode(&older).expect("long enough"));
        }
    }
    BATCH_BYTES + 8 * input.len()
}

/// Messages of a datagram as netlink(7) lays them out: header and body of each.
fn bodies(datagram: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let (head, _) = rest.split_at_checked(HEADER_BYTES)?;
        let length = u32::from_ne_bytes(*head.first_chunk()?) as usize;
        let body = rest.get(HEADER_BYTES..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((head, body))
    })
}

fn message(head: &[u8], body: &[u8]) -> Vec<u8> {
    let length = (HEADER_BYTES + body.len()) as u32;
    [&length.to_ne_bytes()[..], &head[4..], body].concat()
}

/// Attributes: kind and value of each, and what is left behind them.
fn attributes(body: &[u8]) -> (Vec<(u16, &[u8])>, &[u8]) {
    let mut found = Vec::new();
    let mut rest = &body[MESSAGE_BYTES..];
    while let Some((head, _)) = rest.split_at_checked(4) {
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let Some(value) = rest.get(4..length) else {
            break;
        };
        found.push((u16::from_ne_bytes([head[2], head[3]]), value));
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    (found, rest)
}

fn tells_each_once(body: &[u8]) -> bool {
    let mut kinds: Vec<u16> = (attributes(body).0.iter()).map(|(kind, _)| *kind).collect();
    kinds.sort_unstable();
    kinds.windows(2).all(|pair| pair[0] != pair[1])
}

/// The body as another kernel would send it: `change` gets the value of each
/// struct and how much of it we know; `None`: it stays.
fn with_structs(body: &[u8], change: impl Fn(&[u8], usize) -> Option<Vec<u8>>) -> Vec<u8> {
    let mut changed = body[..MESSAGE_BYTES].to_vec();
    let (attributes, rest) = attributes(body);
    for (kind, value) in attributes {
        let known = STRUCTS.iter().find(|(of, _)| *of == kind);
        let value = known
            .and_then(|&(_, bytes)| change(value, bytes))
            .filter(|value| value.len() + 4 <= usize::from(u16::MAX))
            .unwrap_or_else(|| value.to_vec());
        changed.extend_from_slice(&(value.len() as u16 + 4).to_ne_bytes());
        changed.extend_from_slice(&kind.to_ne_bytes());
        changed.extend_from_slice(&value);
        changed.resize(changed.len().next_multiple_of(4), 0);
    }
    changed.extend_from_slice(rest);
    changed
}

macro_rules! for_each_part {
    ($same:ident, $whole:expr, $other:expr) => {
        $same!($whole, $other, congestion bbr vegas dctcp memory tos tclass v6only class_id mark cgroup_id protocol)
    };
}

fn assert_same(whole: &Diag<'_>, longer: &Diag<'_>) {
    macro_rules! same {
        ($whole:expr, $other:expr, $($part:ident)*) => {$(
            assert_eq!($whole.$part, $other.$part, stringify!($part));
        )*};
    }
    assert_same_head(whole, longer);
    for_each_part!(same, whole, longer);
    match (whole.info, longer.info) {
        (Some(whole), Some(longer)) => {
            assert_eq!(whole.inflight(), longer.inflight());
            assert!(longer.0.starts_with(whole.0));
        }
        (whole, longer) => assert!(whole.is_none() && longer.is_none()),
    }
}

fn assert_same_or_absent(whole: &Diag<'_>, shorter: &Diag<'_>) {
    macro_rules! same {
        ($whole:expr, $other:expr, $($part:ident)*) => {$(
            assert!($other.$part.is_none() || $other.$part == $whole.$part, stringify!($part));
        )*};
    }
    assert_same_head(whole, shorter);
    for_each_part!(same, whole, shorter);
    if let Some(shorter) = shorter.info {
        assert!(whole.info.is_some_and(|whole| whole.0 == shorter.0));
    }
}

fn assert_same_head(a: &Diag<'_>, b: &Diag<'_>) {
    assert_eq!((a.state, a.source, a.cookie), (b.state, b.source, b.cookie));
    assert_eq!((a.destination, a.inode), (b.destination, b.inode));
}

fn assert_rows_agree(whole: &Diag<'_>, shorter: &Diag<'_>) {
    let mut table = SocketRows::default();
    for diag in [whole, shorter] {
        let row = table.add_row();
        table.fill(row, diag, &Anonymiser::Keep);
        table.fill_dumped(row, diag);
    }
    assert_kept_or_null(&knee_store::take(&mut table), "an answer cut short");
}

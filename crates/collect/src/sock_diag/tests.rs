//! Messages from fixtures; filters and events against the running kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::attribute::{BBRINFO, CGROUP_ID, CONG, INFO, MARK, SKMEMINFO};
use super::message::{BY_FAMILY, answers, request};
use super::*;
use knee_uapi::netlink::HEADER_BYTES;

/// A message with the attributes, as the kernel lays it out.
fn message(sequence: u32, attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = vec![0; MESSAGE_BYTES];
    body[0] = libc::AF_INET as u8;
    body[1] = 1;
    body[2] = 2;
    body[3] = 3;
    body[4..6].copy_from_slice(&10_003u16.to_be_bytes());
    body[6..8].copy_from_slice(&5_201u16.to_be_bytes());
    body[8..12].copy_from_slice(&[10, 77, 0, 1]);
    body[24..28].copy_from_slice(&[10, 78, 0, 1]);
    for (at, value) in [
        (40, 4u32),
        (44, 9),
        (52, 1_500),
        (56, 11),
        (60, 12),
        (64, 1_000),
        (68, 77),
    ] {
        body[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    for (kind, value) in attributes {
        body.extend_from_slice(&((value.len() + 4) as u16).to_ne_bytes());
        body.extend_from_slice(&kind.to_ne_bytes());
        body.extend_from_slice(value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    let mut bytes = ((HEADER_BYTES + body.len()) as u32).to_ne_bytes().to_vec();
    bytes.extend_from_slice(&BY_FAMILY.to_ne_bytes());
    bytes.extend_from_slice(&[0; 2]);
    bytes.extend_from_slice(&sequence.to_ne_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&body);
    bytes
}

fn read(bytes: &[u8], sequence: u32, mut take: impl FnMut(Diag<'_>)) -> io::Result<(bool, Dump)> {
    let mut dump = Dump::default();
    let done = answers(bytes, sequence, &mut dump, &mut take)?;
    Ok((done, dump))
}

#[test]
fn socket_is_read_with_every_field_of_its_message() {
    let info = vec![3; 248];
    let bytes = message(
        5,
        &[
            (CONG, b"cubic\0"),
            (INFO, &info),
            (MARK, &7u32.to_ne_bytes()),
            (CGROUP_ID, &99u64.to_ne_bytes()),
        ],
    );
    let (done, dump) = read(&bytes, 5, |diag| {
        assert_eq!(diag.source, (Ipv4Addr::new(10, 77, 0, 1).into(), 10_003));
        assert_eq!(diag.destination.1, 5_201);
        assert_eq!((diag.cookie, diag.congestion), (9, Some("cubic")));
        assert_eq!((diag.state, diag.timer, diag.timer_retransmits), (1, 2, 3));
        assert_eq!((diag.interface, diag.timer_ms), (4, 1_500));
        assert_eq!((diag.rqueue_bytes, diag.wqueue_bytes), (11, 12));
        assert_eq!((diag.uid, diag.inode), (1_000, 77));
        assert_eq!((diag.mark, diag.cgroup_id), (Some(7), Some(99)));
        assert_eq!(diag.info.unwrap().snd_cwnd(), Some(0x0303_0303));
    })
    .unwrap();
    assert_eq!((done, dump.sockets, dump.interrupted), (false, 1, false));
}

#[test]
fn every_cut_of_a_message_is_refused_or_read_without_a_panic() {
    let attributes: [(u16, &[u8]); 3] =
        [(CONG, b"bbr\0"), (BBRINFO, &[1; 52]), (SKMEMINFO, &[2; 36])];
    let bytes = message(1, &attributes);
    for cut in 0..bytes.len() {
        let mut short = bytes[..cut].to_vec();
        let _ = read(&short, 1, |_| {});
        if cut >= HEADER_BYTES {
            short[0..4].copy_from_slice(&(cut as u32).to_ne_bytes());
            let (_, dump) = read(&short, 1, |_| {}).unwrap();
            let whole = cut >= HEADER_BYTES + MESSAGE_BYTES;
            assert_eq!(
                (dump.sockets, dump.not_understood),
                (u64::from(whole), u64::from(!whole))
            );
        }
    }
}

#[test]
fn message_that_claims_to_be_longer_than_its_datagram_is_refused() {
    let mut bytes = message(1, &[]);
    bytes[0..4].copy_from_slice(&4_000u32.to_ne_bytes());
    assert!(read(&bytes, 1, |_| panic!("nothing to read")).is_err());
}

#[test]
fn answers_to_another_request_are_passed_over() {
    let bytes = message(1, &[]);
    let (done, dump) = read(&bytes, 2, |_| panic!("not ours")).unwrap();
    assert_eq!((done, dump), (false, Dump::default()));
}

#[test]
fn every_error_number_is_told_even_one_that_no_kernel_has() {
    for (code, told) in [(-13, 13), (i32::MIN, i32::MAX), (0, 0)] {
        let mut bytes = message(1, &[]);
        bytes[4..6].copy_from_slice(&2u16.to_ne_bytes());
        bytes[16..20].copy_from_slice(&i32::to_ne_bytes(code));
        let error = read(&bytes, 1, |_| panic!("an error")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(told));
        let routing = crate::routing::answers(&bytes, 1, &mut |_| {});
        assert_eq!(routing.unwrap_err().raw_os_error(), Some(told));
    }
}

#[test]
fn dump_that_the_kernel_calls_interrupted_says_so() {
    let mut bytes = message(1, &[]);
    bytes[6..8].copy_from_slice(&0x10u16.to_ne_bytes());
    assert!(read(&bytes, 1, |_| {}).unwrap().1.interrupted);
}

#[test]
fn memory_of_a_kernel_that_does_not_count_drops_is_read_without_them() {
    let bytes = message(1, &[(SKMEMINFO, &[2; 32])]);
    read(&bytes, 1, |diag| {
        let memory = diag.memory.unwrap();
        assert_eq!((memory.backlog, memory.drops), (0x0202_0202, None));
    })
    .unwrap();
}

/// Listeners and connections over IPv4, IPv6 and IPv4 in IPv6.
struct Sockets {
    streams: Vec<TcpStream>,
    listeners: Vec<TcpListener>,
}

impl Sockets {
    fn new() -> Sockets {
        let mut streams = Vec::new();
        let mut listeners = Vec::new();
        // std makes the listener on :: take IPv4 connections too.
        for (on, to) in [
            (
                IpAddr::from(Ipv4Addr::LOCALHOST),
                IpAddr::from(Ipv4Addr::LOCALHOST),
            ),
            (Ipv6Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()),
            (
                Ipv6Addr::UNSPECIFIED.into(),
                Ipv4Addr::new(127, 9, 0, 1).into(),
            ),
        ] {
            let Ok(listener) = TcpListener::bind(SocketAddr::from((on, 0))) else {
                continue; // a host without IPv6
            };
            let port = listener.local_addr().unwrap().port();
            for _ in 0..3 {
                streams.push(TcpStream::connect((to, port)).unwrap());
                streams.push(listener.accept().unwrap().0);
            }
            listeners.push(listener);
        }
        Sockets { streams, listeners }
    }

    /// The port at each end of each, 0 at the far end of a listener. The near port alone is
    /// not enough: another test that runs now may get it for a connection to another port.
    fn ends(&self) -> BTreeSet<(u16, u16)> {
        let listening = (self.listeners.iter()).map(|on| (on.local_addr().unwrap().port(), 0));
        let connected = (self.streams.iter()).map(|stream| {
            let (near, far) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
            (near.port(), far.port())
        });
        listening.chain(connected).collect()
    }

    fn ports(&self) -> Vec<u16> {
        let mut ports: Vec<u16> = (self.streams.iter())
            .map(|stream| stream.local_addr().unwrap().port())
            .collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }
}

/// Cookies of the sockets with one of the pairs of ports, and whether the filter holds here.
fn dumped(
    diag: &mut SockDiag,
    bytecode: Vec<u8>,
    ends: &BTreeSet<(u16, u16)>,
    filter: &Filter,
) -> BTreeMap<u64, bool> {
    let question = Question {
        bytecode,
        ..Question::of(Family::Both, 0xfff, Extensions::MEMORY)
    };
    let mut found = BTreeMap::new();
    diag.dump(&question, |diag| {
        if ends.contains(&(diag.source.1, diag.destination.1)) {
            found.insert(diag.cookie, filter.matches(&diag));
        }
    })
    .unwrap();
    found
}

fn filters(ports: Vec<u16>) -> impl Strategy<Value = Filter> {
    let end = || prop::sample::select(vec![End::Local, End::Remote, End::Either]);
    let port = prop::sample::select(ports);
    let leaf = prop_oneof![
        (end(), port.clone(), 0u16..200).prop_map(|(end, low, more)| Filter::Port {
            end,
            low,
            high: low.saturating_add(more),
        }),
        (
            end(),
            prop::sample::select(vec![
                "127.0.0.1",
                "127.9.0.1",
                "127.9.0.0",
                "::1",
                "::ffff:127.9.0.1"
            ]),
            0u8..=32
        )
            .prop_map(|(end, address, bits)| Filter::Prefix {
                end,
                address: address.parse().unwrap(),
                bits,
            }),
        (0u32..2, 0u32..2).prop_map(|(value, mask)| Filter::Mark { value, mask }),
        Just(Filter::All(vec![])),
        Just(Filter::Any(vec![])),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Filter::All),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Filter::Any),
            inner.prop_map(|part| Filter::Not(Box::new(part))),
        ]
    })
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

#[test]
fn kernel_running_a_filter_leaves_what_filtering_the_full_dump_leaves() {
    let sockets = Sockets::new();
    let ends = sockets.ends();
    let diag = std::cell::RefCell::new(SockDiag::new().unwrap());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(300)
    });
    let outcome = runner.run(&filters(sockets.ports()), |filter| {
        // Marks are only for who may administer the network.
        prop_assume!(is_root() || !filter.asks_for_mark_or_cgroup());
        let mut diag = diag.borrow_mut();
        let full = dumped(&mut diag, Vec::new(), &ends, &filter);
        let wanted: Vec<u64> = (full.iter().filter(|&(_, &holds)| holds))
            .map(|(&cookie, _)| cookie)
            .collect();
        let told = dumped(&mut diag, filter.compile().unwrap(), &ends, &filter);
        prop_assert_eq!(told.into_keys().collect::<Vec<_>>(), wanted);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn filter_too_long_for_the_kernel_is_refused_and_still_judged_here() {
    let ports = (0..3_000).map(|port| Filter::Port {
        end: End::Either,
        low: port,
        high: port,
    });
    let filter = Filter::Any(ports.collect());
    assert!(filter.compile().unwrap_err().bytes > 65_000);
    let bytes = message(1, &[]);
    read(&bytes, 1, |diag| assert!(!filter.matches(&diag))).unwrap();
}

#[test]
fn request_for_both_families_finds_what_one_for_each_finds() {
    let sockets = Sockets::new();
    let ends = sockets.ends();
    let mut diag = SockDiag::new().unwrap();
    let mut of = |family| {
        let mut cookies = Vec::new();
        let question = Question::of(family, 0xfff, Extensions::ALL_WITH_CLASSES);
        diag.dump(&question, |diag| {
            if ends.contains(&(diag.source.1, diag.destination.1)) {
                assert!(diag.memory.is_some());
                cookies.push(diag.cookie);
            }
        })
        .unwrap();
        cookies.sort_unstable();
        cookies
    };
    let each = {
        let mut cookies = [of(Family::V4), of(Family::V6)].concat();
        cookies.sort_unstable();
        cookies
    };
    assert_eq!(each.len(), ends.len());
    assert_eq!(of(Family::Both), each);
}

#[test]
fn bytecode_stands_behind_the_request_that_it_filters() {
    for (family, length) in [(Family::V4, 72), (Family::Both, 76)] {
        let question = Question {
            bytecode: vec![0, 4, 8, 0],
            ..Question::of(family, 2, Extensions::MEMORY)
        };
        let bytes = request(9, &question);
        assert_eq!(bytes[length..], [8, 0, 1, 0, 0, 4, 8, 0]);
        assert_eq!(bytes[..4], (length as u32 + 8).to_ne_bytes());
    }
}

/// Opens and closes connections that carry one byte each way; their ports at this end.
fn short_connections(count: usize) -> Vec<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    (0..count)
        .map(|_| {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
            let mut far = listener.accept().unwrap().0;
            stream.write_all(b"x").unwrap();
            far.read_exact(&mut [0]).unwrap();
            far.write_all(b"y").unwrap();
            stream.read_exact(&mut [0]).unwrap();
            stream.local_addr().unwrap().port()
        })
        .collect()
}

#[test]
fn every_short_connection_leaves_its_last_tcp_info() {
    let mut destroyed = Destroyed::new().unwrap();
    let mut waiting = short_connections(500);
    let mut check = |body: &[u8]| {
        let diag = Diag::decode(body).unwrap();
        if let Some(at) = waiting.iter().position(|&port| port == diag.source.1) {
            let info = diag.info.unwrap();
            // Linux counts the far end's FIN as a byte received.
            let received = info.bytes_received().unwrap();
            if (1..=2).contains(&received) && info.bytes_sent() == Some(1) {
                assert_ne!(diag.cookie, 0);
                waiting.swap_remove(at);
            }
        }
    };
    let until = Instant::now() + Duration::from_secs(5);
    while Instant::now() < until {
        let received = destroyed.receive(&mut check).unwrap();
        assert_eq!(received.overruns, 0);
        std::thread::sleep(Duration::from_millis(20));
        if received.events == 0 {
            break;
        }
    }
    assert_eq!(waiting, Vec::<u16>::new());
    assert_eq!(destroyed.lost().unwrap(), 0);
}

#[test]
fn events_that_find_no_room_are_counted_each() {
    let mut destroyed = Destroyed::with_queue(16 << 10).unwrap();
    short_connections(300);
    std::thread::sleep(Duration::from_millis(200));
    let received = destroyed.receive(|_| {}).unwrap();
    assert!(received.overruns > 0);
    // Both ends of 300 connections, and the listener.
    assert!(received.events + destroyed.lost().unwrap() >= 601);
}

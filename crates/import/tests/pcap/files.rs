//! Which files and packets an import of captures reads, and within what bounds.

use std::io::Write;
use std::path::Path;

use knee_import::Import as _;
use knee_import::pcap::{Analyser, Options};
use proptest::prelude::*;

use crate::captures::*;

/// With the times of packets in microseconds.
type Packets = Vec<(u64, Vec<u8>)>;

fn script() -> Vec<Seg> {
    let rest = [
        data(100_000, 0, MSS),
        data(100_100, MSS, MSS),
        sack(120_100, 0, &[(MSS, 2 * MSS)]),
        data(121_000, 0, MSS),
        ack(141_000, 2 * MSS),
    ];
    [handshake([0, 20_000, 20_010]), rest.to_vec()].concat()
}

/// The script's packets with something before each.
fn framed(before: impl Fn(&Seg) -> Vec<u8>) -> Packets {
    (script().iter())
        .map(|seg| (seg.t_us, [before(seg), packet(seg)].concat()))
        .collect()
}

fn assert_is_the_script(found: &Imported, what: &str) {
    assert_eq!(found.report.units, script().len() as u64, "{what}");
    assert_eq!(
        found.report.more.tcp_packets,
        script().len() as u64,
        "{what}"
    );
    assert_eq!(found.report.not_understood, 0, "{what}");
    assert_eq!(found.connection("total_retrans"), [Some(1)], "{what}");
    assert_eq!(found.ack("rtt_us"), [Some(20_000), None], "{what}");
    assert_eq!(
        found.connection("handshake_rtt_us"),
        [Some(20_010)],
        "{what}"
    );
}

#[test]
fn every_link_type_leads_to_the_same_rows() {
    let ethernet = |kinds: &[u16]| {
        let kinds: Vec<u8> = kinds.iter().flat_map(|kind| kind.to_be_bytes()).collect();
        [vec![2; 12], kinds].concat()
    };
    let sll2 = |seg: &Seg| {
        let mut header = vec![0; 20];
        header[..2].copy_from_slice(&0x0800u16.to_be_bytes());
        header[7] = 3;
        header[10] = if seg.from_client { 4 } else { 0 };
        header
    };
    let links: [(&str, u32, Packets); 8] = [
        ("raw", 101, framed(|_| Vec::new())),
        ("IPv4", 228, framed(|_| Vec::new())),
        ("Ethernet", 1, framed(|_| ethernet(&[0x0800]))),
        ("VLAN", 1, framed(|_| ethernet(&[0x8100, 5, 0x0800]))),
        (
            "QinQ",
            1,
            framed(|_| ethernet(&[0x88a8, 7, 0x8100, 5, 0x0800])),
        ),
        (
            "cooked",
            113,
            framed(|seg| {
                [
                    &[0, if seg.from_client { 4 } else { 0 }][..],
                    &[0; 12],
                    &[8, 0],
                ]
                .concat()
            }),
        ),
        ("cooked v2", 276, framed(sll2)),
        ("loopback", 0, framed(|_| vec![2, 0, 0, 0])),
    ];
    for (name, link_type, packets) in links {
        let found = import_bytes(Options::default(), &pcap(link_type, false, false, &packets));
        assert_is_the_script(&found, name);
    }
    let six: Vec<_> = (script().iter())
        .map(|seg| (seg.t_us, packet_v6(seg)))
        .collect();
    let found = import_bytes(Options::default(), &pcap(229, false, false, &six));
    assert_is_the_script(&found, "IPv6 with extension headers");
    assert_eq!(
        found.texts("local_addr"),
        [Some("101:101:101:101:101:101:101:101".into())]
    );
}

#[test]
fn frames_padded_to_60_bytes_carry_what_their_ip_header_says() {
    let padded: Vec<_> = (framed(|_| [vec![2; 12], vec![8, 0]].concat()).into_iter())
        .map(|(t_us, mut bytes)| {
            bytes.resize(bytes.len().max(60), 0);
            (t_us, bytes)
        })
        .collect();
    let found = import_bytes(Options::default(), &pcap(1, false, false, &padded));
    assert_is_the_script(&found, "padded");
}

#[test]
fn either_byte_order_and_either_unit_of_time_is_read() {
    for (big, ns) in [(false, true), (true, false), (true, true)] {
        let file = pcap(101, big, ns, &framed(|_| Vec::new()));
        let found = import_bytes(Options::default(), &file);
        assert_is_the_script(&found, &format!("big {big} ns {ns}"));
    }
}

#[test]
fn compressed_captures_are_read() {
    let file = capture(&script());
    let dir = tempfile::tempdir().unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&file).unwrap();
    let gzip = write(dir.path(), "a.pcap.gz", &gzip.finish().unwrap());
    let found = import_files(Options::default(), &[gzip]);
    assert_is_the_script(&found, "gzip");
    assert_eq!(found.report.bytes, file.len() as u64);
    let zstd = zstd::encode_all(&file[..], 1).unwrap();
    let zstd = write(dir.path(), "a.pcap.zst", &zstd);
    assert_is_the_script(&import_files(Options::default(), &[zstd]), "zstd");
}

/// The script as pcapng, with times in `per_us` units per microsecond.
fn pcapng(resolution: u8, offset_s: i64, units: impl Fn(u64) -> u64) -> Vec<u8> {
    let mut file = [section(), interface(101, resolution, offset_s)].concat();
    // A block that nobody knows.
    file.extend(block(0x0bad, &[1; 40]));
    for (t_us, bytes) in framed(|_| Vec::new()) {
        file.extend(enhanced(0, units(t_us), bytes.len() as u32, &bytes));
    }
    file
}

#[test]
fn pcapng_times_are_in_the_units_of_their_interface() {
    let ns = pcapng(9, 0, |t_us| t_us * 1000);
    assert_is_the_script(&import_bytes(Options::default(), &ns), "ns");
    let binary = pcapng(0x80 | 30, 0, |t_us| (t_us << 30).div_ceil(1_000_000));
    assert_is_the_script(&import_bytes(Options::default(), &binary), "2^-30 s");
    let later = import_bytes(Options::default(), &pcapng(6, 1_700_000_000, |t_us| t_us));
    assert_is_the_script(&later, "offset");
    assert_eq!(
        later.connection("t_unix_ns"),
        [Some(1_700_000_000_000_000_000)]
    );
}

#[test]
fn packets_that_the_capture_says_it_dropped_are_told() {
    let mut statistics = [0u32, 0, 0].map(u32::to_le_bytes).concat();
    statistics.extend([5u16, 8].map(u16::to_le_bytes).concat());
    statistics.extend(42u64.to_le_bytes());
    let file = [pcapng(6, 0, |t_us| t_us), block(5, &statistics)].concat();
    let found = import_bytes(Options::default(), &file);
    assert_eq!(found.report.more.dropped_by_capture, 42);
}

#[test]
fn copies_of_packets_at_a_second_interface_are_left_out() {
    let mut file = [section(), interface(101, 6, 0), interface(101, 6, 0)].concat();
    for (t_us, bytes) in framed(|_| Vec::new()) {
        for number in [0, 1] {
            let t_us = t_us + u64::from(number);
            file.extend(enhanced(number, t_us, bytes.len() as u32, &bytes));
        }
    }
    let found = import_bytes(Options::default(), &file);
    assert_eq!(found.report.more.captured_again, script().len() as u64);
    assert_eq!(found.connection("total_retrans"), [Some(1)]);
    assert_eq!(found.ack("rtt_us"), [Some(20_000), None]);
}

#[test]
fn cut_packets_tell_all_but_the_options_that_are_gone() {
    let mut file = [section(), interface(101, 6, 0)].concat();
    for (t_us, bytes) in framed(|_| Vec::new()) {
        file.extend(enhanced(
            0,
            t_us,
            bytes.len() as u32,
            &bytes[..bytes.len().min(46)],
        ));
    }
    let found = import_bytes(Options::default(), &file);
    assert_eq!(found.report.not_understood, 0);
    // SYN, SYN-ACK and the ACK with SACK blocks.
    assert_eq!(found.report.more.options_cut, 3);
    assert_eq!(found.connection("bytes_acked"), [Some(2 * i64::from(MSS))]);
    assert_eq!(found.connection("total_retrans"), [Some(1)]);
}

#[test]
fn capture_that_ends_within_a_packet_is_read_up_to_there() {
    let file = capture(&script());
    let found = import_bytes(Options::default(), &file[..file.len() - 5]);
    assert_eq!(found.report.units, script().len() as u64 - 1);
    assert_eq!(found.report.not_understood, 1);
    let (_, packet, what) = &found.report.first[0];
    assert_eq!(
        (*packet, what.as_str()),
        (Some(8), "the file ends within a packet")
    );
    assert_eq!(found.connection("total_retrans"), [Some(1)]);
}

#[test]
fn what_is_not_tcp_is_counted_and_what_is_no_capture_refused() {
    let arp = [vec![2; 12], vec![8, 6], vec![0; 28]].concat();
    let mut udp = packet(&data(0, 0, 10));
    udp[9] = 17;
    let mut fragment = packet(&data(0, 0, 10));
    fragment[6] = 0x20;
    let ethernet = |bytes: &[u8]| [&[2; 12][..], &[8, 0], bytes].concat();
    let packets = [arp, ethernet(&udp), ethernet(&fragment), vec![1, 2, 3]];
    let packets: Vec<_> = packets.into_iter().map(|bytes| (0, bytes)).collect();
    let report = import_bytes(Options::default(), &pcap(1, false, false, &packets)).report;
    assert_eq!((report.more.other_packets, report.more.fragments), (2, 1));
    assert_eq!(report.not_understood, 1);
    let report = import_bytes(Options::default(), &pcap(105, false, false, &packets)).report;
    assert_eq!(report.more.unknown_links.get(&105), Some(&4));

    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "notes.txt", b"a diary");
    let mut analyser = Analyser::new(Options::default());
    let error = analyser
        .read(&path, |_, _| Ok::<_, std::io::Error>(()))
        .unwrap_err();
    assert!(
        error.to_string().contains("begins with 61206469"),
        "{error}"
    );
}

#[test]
fn files_in_the_order_of_their_times_are_one_capture_and_others_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let script: Vec<Seg> = (script().into_iter())
        .map(|seg| Seg {
            t_us: seg.t_us + 10_000_000 * u64::from(seg.t_us > 100_000),
            ..seg
        })
        .collect();
    let first = write(dir.path(), "a", &capture(&script[..4]));
    let second = write(dir.path(), "b", &capture(&script[4..]));
    let found = import_files(Options::default(), &[first.clone(), second.clone()]);
    assert_eq!(found.connection("total_retrans"), [Some(1)]);
    let found = import_files(Options::default(), &[second, first]);
    assert_eq!(found.report.more.connections, 2);
}

#[test]
fn connections_and_memory_are_bounded() {
    let mut script = Vec::new();
    for port in 1000..1200u16 {
        let t_us = u64::from(port) * 1000;
        for part in 0..20 {
            script.push(Seg {
                ports: (port, 443),
                ..data(t_us, part * MSS, MSS)
            });
        }
    }
    let options = Options {
        connections_max: 64,
        entries_max: 100,
        ..Options::default()
    };
    let found = import_bytes(options, &capture(&script));
    assert_eq!(found.report.more.connections, 200);
    assert_eq!(found.texts("ended").len(), 200, "each has its row");
    let left = found.texts("ended");
    let left = left
        .iter()
        .filter(|ended| ended.as_deref() == Some("left"))
        .count();
    assert!(left >= 136, "{left} made room");
    assert_eq!(found.report.more.left, left as u64);
    assert!(found.report.more.forgotten > 0);
    assert_eq!(found.report.more.one_way, 200);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damaged_captures_never_panic(
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        end in any::<prop::sample::Index>(),
        ng in any::<bool>(),
    ) {
        let mut file = if ng { pcapng(6, 0, |t_us| t_us) } else { capture(&script()) };
        for (at, byte) in hits {
            let at = at.index(file.len());
            file[at] = byte;
        }
        file.truncate(end.index(file.len()) + 1);
        let mut analyser = Analyser::new(Options::default());
        let _ = analyser.read_stream(Path::new("capture"), &file[..], |_, _| Ok::<_, std::io::Error>(()));
        analyser.rest();
    }

    #[test]
    fn any_order_of_segments_keeps_the_sums_right(
        steps in prop::collection::vec(
            (any::<bool>(), 0u32..40, 1u32..6, 0u32..40, prop::collection::vec((0u32..40, 1u32..8), 0..3)),
            1..120,
        ),
    ) {
        let mut script = handshake([0, 20_000, 20_010]);
        for (step, (from_client, seq, len, number, blocks)) in steps.into_iter().enumerate() {
            let t_us = 100_000 + step as u64 * 500;
            let blocks: Vec<_> = blocks.iter().map(|&(from, len)| (from * 100, (from + len) * 100)).collect();
            script.push(match from_client {
                true => data(t_us, seq * 100, len * 100),
                false if blocks.is_empty() => ack(t_us, number * 100),
                false => sack(t_us, number * 100, &blocks),
            });
        }
        let found = import(&script);
        let columns = ["unacked_bytes", "sacked_bytes", "inflight_bytes", "bytes_sent", "bytes_retrans"];
        let [unacked, sacked, inflight, sent, again] = columns.map(|name| found.ack(name));
        for row in 0..unacked.len() {
            prop_assert!(inflight[row] >= Some(0));
            prop_assert_eq!(inflight[row].unwrap() + sacked[row].unwrap(), unacked[row].unwrap());
            prop_assert!(again[row] <= sent[row]);
        }
        for rtt_us in found.ack("rtt_us").into_iter().flatten() {
            prop_assert!(rtt_us >= 500, "an ACK is later than its data");
        }
    }
}

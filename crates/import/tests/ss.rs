//! `ss` dumps become the rows that they describe.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use knee_import::ss::{Options, Parser};
use knee_import::{Import as _, Lines as _};
use knee_store::Anonymiser;
use proptest::prelude::*;

fn options() -> Options {
    Options {
        anonymiser: Anonymiser::Keep,
        zone_s: None,
        host: None,
    }
}

fn parse(text: &str) -> (Vec<RecordBatch>, knee_import::ss::Report) {
    let mut parser = Parser::new(options());
    parser.file(Path::new("dump"));
    let mut batches: Vec<_> = text
        .lines()
        .filter_map(|line| parser.line(line.as_bytes()))
        .collect();
    batches.extend(parser.take());
    let report = parser.report().clone();
    (batches, report)
}

/// A column's values as text, "" where null.
fn column(text: &str, name: &str) -> Vec<String> {
    let (batches, report) = parse(text);
    assert_eq!(report.not_understood, 0, "{:?}", report.first);
    assert!(
        report.more.unknown_words.is_empty(),
        "{:?}",
        report.more.unknown_words
    );
    let mut found = Vec::new();
    for batch in &batches {
        let array = batch
            .column_by_name(name)
            .unwrap_or_else(|| panic!("no column {name}"));
        found.extend((0..batch.num_rows()).map(|row| {
            if array.is_null(row) {
                String::new()
            } else {
                shown(array, row)
            }
        }));
    }
    found
}

fn shown(array: &dyn Array, row: usize) -> String {
    match array.data_type() {
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Float64 => format!("{:?}", array.as_primitive::<Float64Type>().value(row)),
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        _ => {
            let names = array.as_dictionary::<Int32Type>();
            let key = usize::try_from(names.keys().value(row)).unwrap();
            names.values().as_string::<i32>().value(key).to_owned()
        }
    }
}

#[track_caller]
fn row(text: &str, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        assert_eq!(column(text, name), [*value], "{name}");
    }
}

#[test]
fn an_old_iproute2s_line_of_details_is_a_row() {
    row(
        "\t ts sack bbr rto:220 rtt:16.139/10.041 ato:40 mss:1448 cwnd:106 ssthresh:52 bytes_acked:9067087 bytes_received:5775 segs_out:6327 segs_in:551 send 76.1Mbps lastsnd:14536 lastrcv:15584 lastack:14504 pacing_rate 98.5Mbps retrans:0/5 rcv_rtt:16.125 rcv_space:14400",
        &[
            ("algorithm", "bbr"),
            ("options", "3"),
            ("rto_us", "220000"),
            ("srtt_us", "16139"),
            ("rttvar_us", "10041"),
            ("ato_us", "40000"),
            ("snd_mss_bytes", "1448"),
            ("snd_cwnd", "106"),
            ("snd_ssthresh", "52"),
            ("bytes_acked", "9067087"),
            ("segs_out", "6327"),
            ("send_rate_bits_per_sec", "76100000"),
            ("last_data_sent_ms", "14536"),
            ("pacing_rate_bits_per_sec", "98500000"),
            ("retrans", "0"),
            ("total_retrans", "5"),
            ("rcv_rtt_us", "16125"),
            ("rcv_space_bytes", "14400"),
            ("lost", "0"),
            ("bytes_sent", ""),
            ("dsack_dups", ""),
            ("rwnd_limited_us", ""),
            ("delivery_rate_app_limited", ""),
        ],
    );
}

#[test]
fn a_newer_iproute2s_line_of_details_is_a_row() {
    row(
        "\t ts sack bbr rto:220 rtt:16.139/10.041 ato:40 mss:1448 pmtu:1500 rcvmss:1269 advmss:1428 cwnd:106 ssthresh:52 bytes_sent:9070462 bytes_retrans:3375 bytes_acked:9067087 bytes_received:5775 segs_out:6327 segs_in:551 data_segs_out:6315 data_segs_in:12 bbr:(bw:99.5Mbps,mrtt:1.912,pacing_gain:1,cwnd_gain:2) send 76.1Mbps lastsnd:9896 lastrcv:10944 lastack:9864 pacing_rate 98.5Mbps delivery_rate 27.9Mbps delivered:6316 busy:3020ms rwnd_limited:2072ms(68.6%) retrans:0/5 dsack_dups:5 rcv_rtt:16.125 rcv_space:14400 rcv_ssthresh:65535 minrtt:1.907",
        &[
            ("bbr_bw_bits_per_sec", "99500000"),
            ("bbr_min_rtt_us", "1912"),
            ("bbr_pacing_gain", "1.0"),
            ("bbr_cwnd_gain", "2.0"),
            ("delivery_rate_bits_per_sec", "27900000"),
            ("delivered", "6316"),
            ("busy_us", "3020000"),
            ("rwnd_limited_us", "2072000"),
            ("dsack_dups", "5"),
            ("min_rtt_us", "1907"),
            ("rcv_ssthresh_bytes", "65535"),
            // Not printed, as they are 0.
            ("sndbuf_limited_us", "0"),
            ("reord_seen", "0"),
            ("delivered_ce", "0"),
            ("unacked", "0"),
            ("lost", "0"),
            ("delivery_rate_app_limited", "false"),
        ],
    );
}

#[test]
fn a_socket_and_its_lines_are_one_row_whether_on_one_line_or_three() {
    let head = "ESTAB 0      36     10.0.0.1:443   10.0.0.2:50123 users:((\"nginx: worker\",pid=812,fd=9)) timer:(on,236ms,1) uid:33 ino:4711 sk:1f cgroup:/system.slice/nginx.service fwmark:0x10 <->";
    let memory = "skmem:(r0,rb131072,t0,tb87040,f4096,w1280,o0,bl0,d2)";
    let info = "ts sack cubic wscale:7,9 rto:204 rtt:3.5/1.75 cwnd:10 app_limited busy:4ms pacing_rate 123456bps/1.5Gbps";
    let expected = [
        ("state", "ESTAB"),
        ("send_q_bytes", "36"),
        ("local_addr", "10.0.0.1"),
        ("local_port", "443"),
        ("remote_addr", "10.0.0.2"),
        ("remote_port", "50123"),
        ("process", "nginx: worker"),
        ("pid", "812"),
        ("timer", "on"),
        ("timer_ms", "236"),
        ("timer_retransmits", "1"),
        ("uid", "33"),
        ("inode", "4711"),
        ("cookie", "31"),
        ("mark", "16"),
        ("cgroup", "/system.slice/nginx.service"),
        ("rcvbuf_bytes", "131072"),
        ("sndbuf_bytes", "87040"),
        ("mem_wmem_queued_bytes", "1280"),
        ("mem_drops", "2"),
        ("algorithm", "cubic"),
        ("options", "7"),
        ("snd_wscale", "7"),
        ("rcv_wscale", "9"),
        ("srtt_us", "3500"),
        ("delivery_rate_app_limited", "true"),
        ("pacing_rate_bits_per_sec", "123456"),
        ("max_pacing_rate_bits_per_sec", "1500000000"),
    ];
    row(
        &format!(
            "State Recv-Q Send-Q Local Address:Port Peer Address:Port\n{head}\n\t {memory}\n\t {info}"
        ),
        &expected,
    );
    row(&format!("tcp {head} {memory} {info}"), &expected);
    row(&format!("{head}\n\t {memory} {info}"), &expected);
}

#[test]
fn bbr_3_and_dctcp_tell_what_they_add() {
    row(
        "\t bbr rto:204 bbr:(bw:1.2Gbps,mrtt:0.5,pacing_gain:1.25,cwnd_gain:2.25,version:3,bw_hi:2Gbps,bw_lo:900Mbps,mode:2,phase:3,inflight_lo:70,inflight_hi:90,extra_acked:4)",
        &[
            ("bbr_version", "3"),
            ("bbr_bw_hi_bits_per_sec", "2000000000"),
            ("bbr_mode", "2"),
            ("bbr_phase", "3"),
            ("bbr_inflight_hi", "90"),
        ],
    );
    row(
        "\t dctcp dctcp:(ce_state:1,alpha:512,ab_ecn:3,ab_tot:9)",
        &[("dctcp_alpha", "0.5"), ("dctcp_enabled", "1")],
    );
    row(
        "\t dctcp dctcp:fallback_mode",
        &[("dctcp_enabled", "0"), ("dctcp_alpha", "")],
    );
}

#[test]
fn addresses_are_read_in_every_spelling() {
    for (written, address, port, interface) in [
        ("[2001:db8::1]:443", "2001:db8::1", "443", ""),
        ("2001:db8::1:443", "2001:db8::1", "443", ""),
        ("[::ffff:10.0.0.1]:443", "::ffff:10.0.0.1", "443", ""),
        ("::ffff:10.0.0.1:443", "::ffff:10.0.0.1", "443", ""),
        ("[fe80::1]%eth0:22", "fe80::1", "22", "eth0"),
        ("[fe80::1%eth0]:22", "fe80::1", "22", "eth0"),
        ("10.0.0.1%eth0:22", "10.0.0.1", "22", "eth0"),
        ("*:22", "*", "22", ""),
        (":::22", "::", "22", ""),
        ("0.0.0.0:*", "0.0.0.0", "0", ""),
        ("10.0.0.1:https", "10.0.0.1", "443", ""),
    ] {
        let text = format!("ESTAB 0 0 {written} 10.9.9.9:5");
        row(
            &text,
            &[
                ("local_addr", address),
                ("local_port", port),
                ("interface", interface),
            ],
        );
    }
}

#[test]
fn a_line_that_is_no_sockets_is_counted_and_shown() {
    let (batches, report) = parse(
        "ESTAB 0 0 1.2.3.4:5 1.2.3.4:6\nCannot open netlink socket\nESTAB 0 0 1.2.3.4:5 gone\n\tcubic cwnd:9 newfield:7",
    );
    assert_eq!(
        batches[0].num_rows(),
        2,
        "details of an unread socket are a row of their own"
    );
    assert_eq!(report.not_understood, 2);
    assert_eq!(
        (report.first[0].1, &*report.first[0].2),
        (Some(2), "Cannot open netlink socket")
    );
    assert_eq!(report.more.unknown_words["newfield"], 1);
}

#[test]
fn a_protocol_without_a_socket_is_counted_and_ends_the_socket_before_it() {
    let (batches, report) = parse("ESTAB 0 0 1.2.3.4:5 1.2.3.4:6\ntcp \n\t cubic cwnd:9");
    assert_eq!((report.units, report.not_understood), (3, 1));
    assert_eq!((batches[0].num_rows(), report.rows), (2, 2));
}

#[test]
fn a_line_behind_a_carriage_return_is_not_lost() {
    let (_, report) = parse("\rESTAB 0 0 1.2.3.4:5 1.2.3.4:6\n\r\n\rsomething else");
    assert_eq!((report.rows, report.not_understood), (1, 1));
}

#[test]
fn a_timer_of_more_than_64_bits_is_not_understood() {
    for left in [
        "9223372036854775807min1sec",
        "153722867280912min9223372036854775sec",
        "9223372036854775.9223372036854775807ms",
    ] {
        let (_, report) = parse(&format!("\t cubic timer:(on,{left},1)"));
        assert_eq!(report.more.unknown_words["timer"], 1, "{left}");
    }
}

#[test]
fn titles_that_come_again_without_a_date_are_another_dump() {
    const TITLES: &str = "State Recv-Q Send-Q Local Address:Port Peer Address:Port\n";
    const TCP: &str = "ESTAB 0 0 10.0.0.1:22 10.0.0.2:5000\n";
    const UDP: &str = "udp UNCONN 0 0 0.0.0.0:68 0.0.0.0:*\n";
    let dumps = |parts: &[&str]| {
        let (_, report) = parse(&parts.concat());
        (report.more.dumps, report.more.dumps_without_date)
    };
    assert_eq!(dumps(&[TITLES, TCP, TCP]), (1, 0));
    assert_eq!(dumps(&[TITLES, TCP, TITLES, TCP, TITLES, TCP, TCP]), (3, 2));
    assert_eq!(dumps(&[TITLES, TCP, TITLES, UDP, TITLES]), (1, 0));
    assert_eq!(
        dumps(&["1700000000\n", TITLES, TCP, "1700000001\n", TITLES, TCP]),
        (2, 0)
    );
    assert_eq!(dumps(&["1700000000\n", TITLES, TCP, TITLES, TCP]), (2, 1));
}

#[test]
fn dates_between_dumps_tell_when_each_was_taken() {
    let text = "Fri Aug 21 12:00:00 UTC 2026\nESTAB 0 0 1.2.3.4:5 1.2.3.4:6\n1787313601\nESTAB 0 0 1.2.3.4:5 1.2.3.4:6";
    assert_eq!(
        column(text, "t_unix_ns"),
        ["1787313600000000000", "1787313601000000000"]
    );
}

#[test]
fn other_protocols_are_left_out_with_their_details() {
    let (batches, report) = parse(
        "udp UNCONN 0 0 1.2.3.4:5 *:*\n\tskmem:(r0,rb1,t0,tb1,f0,w0,o0,bl0,d0)\ntcp LISTEN 0 5 *:22 *:*",
    );
    assert_eq!((batches[0].num_rows(), report.more.other_protocols), (1, 1));
}

#[test]
fn more_rows_than_a_batch_lose_none() {
    let lines: String = (0..20_000)
        .map(|n| format!("ESTAB {n} 0 1.2.3.4:5 1.2.3.4:6\n\t cubic cwnd:{n}\n"))
        .collect();
    let expected: Vec<_> = (0..20_000).map(|n| n.to_string()).collect();
    assert_eq!(column(&lines, "recv_q_bytes"), expected);
    assert_eq!(column(&lines, "snd_cwnd"), expected);
}

#[test]
fn files_are_read_plain_or_compressed_in_pieces_of_any_size() {
    use std::io::Write;
    let text: String = (0..9_000)
        .map(|n| {
            format!(
                "ESTAB {n} 0 1.2.3.4:5 1.2.3.4:6\n\t cubic cwnd:{n} rto:204 {}\n",
                "rcv_space:1 ".repeat(n % 40)
            )
        })
        .collect();
    let dir = tempfile::tempdir().unwrap();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(text.as_bytes()).unwrap();
    let kinds = [
        text.clone().into_bytes(),
        gz.finish().unwrap(),
        zstd::encode_all(text.as_bytes(), 1).unwrap(),
    ];
    for bytes in kinds {
        let path = dir.path().join("ss-20260821T120000");
        std::fs::write(&path, bytes).unwrap();
        let mut parser = Parser::new(options());
        let mut rows = 0;
        let mut count = |(table, batch): (&str, RecordBatch)| {
            assert_eq!(table, "sockets");
            rows += batch.num_rows();
        };
        parser
            .read(&path, |_, filled| -> std::io::Result<()> {
                filled.into_iter().for_each(&mut count);
                Ok(())
            })
            .unwrap();
        parser.rest().into_iter().for_each(count);
        let report = parser.report();
        assert_eq!(
            (
                rows,
                report.rows,
                report.not_understood,
                report.more.rows_without_time
            ),
            (9_000, 9_000, 0, 0)
        );
        assert_eq!(report.bytes, text.len() as u64);
    }
}

#[test]
fn an_address_that_may_not_be_stored_is_in_no_column() {
    let anonymiser = Anonymiser::Truncate {
        v4_bits: 24,
        v6_bits: 48,
    };
    let mut parser = Parser::new(Options {
        anonymiser,
        ..options()
    });
    assert!(
        parser
            .line(b"ESTAB 0 0 198.51.100.77:443 [2001:db8:1:2::9]:7")
            .is_none()
    );
    let batch = parser.take().remove(0);
    let text = format!("{batch:?}");
    assert!(
        text.contains("198.51.100.0") && text.contains("2001:db8:1::"),
        "{text}"
    );
    assert!(!text.contains("198.51.100.77") && !text.contains("2001:db8:1:2"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_line_makes_the_parser_panic(lines in prop::collection::vec(
        prop_oneof![
            "[ \t]?(ESTAB|LISTEN|tcp|udp)?( [0-9*]{0,20}){0,3}( [\\[\\]:.%*0-9a-f]{0,24}){0,3}( [a-z_]{1,12}[:( ][-0-9a-zA-Z.,/():\"%]{0,24}){0,6}",
            "\t (rto|rtt|cwnd|bbr|skmem|timer|users|dctcp|wscale|busy|send|retrans):?[(\"]{0,3}[0-9a-z.,:e+/-]{0,40}[)\"]{0,3}",
            "[0-9:T.Z+ A-Za-z,-]{0,40}",
        ], 0..6)
    ) {
        let mut parser = Parser::new(options());
        for line in &lines {
            parser.line(line.as_bytes());
        }
        parser.take();
    }

    #[test]
    fn no_bytes_make_the_parser_panic(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..4)) {
        let mut parser = Parser::new(options());
        for line in &lines {
            parser.line(line);
        }
        parser.take();
    }
}

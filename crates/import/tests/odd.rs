//! Files as people have them: passed on by other programs, cut, joined, from other
//! systems. Each says the right thing, or is refused and counted.

use std::path::PathBuf;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use knee_import::{Report, Value, find, recognise};
use knee_store::Anonymiser;
use serde_json::{Map, Value as Json, json};

/// What came of an import.
struct Imported {
    batches: Vec<(&'static str, RecordBatch)>,
    report: Report<Vec<Value>>,
    counts: Vec<&'static str>,
}

fn import(kind: &str, file: &str) -> Imported {
    import_with(kind, file, Anonymiser::Keep, json!({}))
}

fn import_with(kind: &str, file: &str, anonymiser: Anonymiser, options: Json) -> Imported {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/odd")
        .join(file);
    import_file(kind, path, anonymiser, options)
}

fn import_file(kind: &str, path: PathBuf, anonymiser: Anonymiser, options: Json) -> Imported {
    let kind = find(kind).unwrap();
    let Json::Object(options) = options else {
        panic!("options are an object")
    };
    let options: Map<String, Json> = options;
    let mut importer = (kind.build)(&kind.given(anonymiser, &options).unwrap()).unwrap();
    let mut batches = Vec::new();
    importer
        .read_file(&path, &mut |_, filled| {
            batches.extend(filled);
            Ok(())
        })
        .unwrap();
    batches.extend(importer.rest());
    Imported {
        batches,
        report: importer.found(),
        counts: kind.counts.iter().map(|count| count.name).collect(),
    }
}

/// Text as a file of its own, gone when the test is.
fn of_text(kind: &str, text: &str) -> Imported {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("input");
    std::fs::write(&path, text).unwrap();
    import_file(kind, path, Anonymiser::Keep, json!({}))
}

impl Imported {
    /// A column's values as text, "" where null.
    fn column(&self, table: &str, name: &str) -> Vec<String> {
        let of_table = self.batches.iter().filter(|(of, _)| *of == table);
        of_table
            .flat_map(|(_, batch)| {
                let array = batch.column_by_name(name);
                let array = array.unwrap_or_else(|| panic!("no column {name}"));
                let shown = |row| match array.is_null(row) {
                    true => String::new(),
                    false => shown(array, row),
                };
                (0..batch.num_rows()).map(shown).collect::<Vec<_>>()
            })
            .collect()
    }

    #[track_caller]
    fn has(&self, table: &str, expected: &[(&str, &[&str])]) {
        for (name, values) in expected {
            assert_eq!(self.column(table, name), *values, "{name}");
        }
    }

    fn count(&self, name: &str) -> u64 {
        let at = self.counts.iter().position(|count| *count == name);
        match &self.report.more[at.unwrap_or_else(|| panic!("no count {name}"))] {
            Value::Number(number) => *number,
            Value::Words(words) => words.iter().map(|(_, count)| count).sum(),
        }
    }

    fn words(&self, name: &str) -> Vec<String> {
        let at = self.counts.iter().position(|count| *count == name);
        match &self.report.more[at.unwrap()] {
            Value::Words(words) => words.iter().map(|(word, _)| word.clone()).collect(),
            Value::Number(_) => panic!("{name} is a number"),
        }
    }

    fn first(&self) -> Vec<&str> {
        self.report
            .first
            .iter()
            .map(|(_, _, text)| &**text)
            .collect()
    }
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

mod ss {
    use super::*;

    const HALF: &str = "1760000000500000000";
    const SEVEN: &str = "1760000000700000000";

    /// All lines mean something.
    #[track_caller]
    fn whole(file: &str) -> Imported {
        let found = import("ss", file);
        assert_eq!(found.report.not_understood, 0, "{:?}", found.report.first);
        assert_eq!(
            found.count("unknown_words"),
            0,
            "{:?}",
            found.words("unknown_words")
        );
        found
    }

    #[test]
    fn a_socket_behind_a_blank_is_a_socket() {
        let found = whole("06-blank-before-state.txt");
        let expected: [(&str, &[&str]); 6] = [
            ("local_addr", &["192.0.2.1"]),
            ("local_port", &["40000"]),
            ("remote_addr", &["198.51.100.9"]),
            ("state", &["ESTAB"]),
            ("send_q_bytes", &["4000"]),
            ("srtt_us", &["10000"]),
        ];
        found.has("sockets", &expected);
        let found = whole("31-blank-no-details.txt");
        found.has(
            "sockets",
            &[
                ("send_q_bytes", &["4", "5"]),
                ("local_port", &["40000", "40002"]),
            ],
        );
    }

    #[test]
    fn words_that_mean_nothing_hide_addresses_where_those_are_hidden() {
        let hidden = Anonymiser::Truncate {
            v4_bits: 24,
            v6_bits: 48,
        };
        let text = "ESTAB 0 0 192.0.2.1:1 198.51.100.9:2\n\t cubic cwnd:9 192.0.2.77 fe80::7 db1.example:7\n\
            ESTAB 0 0 192.0.2.1:db1 198.51.100.9:2\n";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dump");
        std::fs::write(&path, text).unwrap();
        let found = import_file("ss", path, hidden, json!({}));
        assert_eq!(
            (found.words("unknown_words"), found.count("unknown_words")),
            (vec!["?".into()], 3)
        );
        assert_eq!(found.words("unknown_ports"), ["?"]);
        let shown = of_text("ss", text);
        assert_eq!(
            shown.words("unknown_words"),
            ["192.0.2.77", "db1.example", "fe80"]
        );
    }

    #[test]
    fn a_time_before_every_line_is_the_time_of_its_row() {
        let found = whole("01-ts-prefix.txt");
        found.has(
            "sockets",
            &[
                ("t_unix_ns", &["1760000000100000000"]),
                ("srtt_us", &["1500"]),
            ],
        );
        assert_eq!(found.words("prefixes"), ["a time"]);
        // It has no year.
        let found = whole("33-ts-default.txt");
        found.has("sockets", &[("t_unix_ns", &[""]), ("srtt_us", &["10000"])]);
        assert_eq!(found.count("rows_without_time"), 1);
        let found = of_text("ss", "1760000000ESTAB 0 0 192.0.2.1:1 198.51.100.9:2\n");
        found.has("sockets", &[("t_unix_ns", &["1760000000000000000"])]);
    }

    #[test]
    fn marks_of_mail_and_of_comments_are_taken_off() {
        whole("38-quoted-mail.txt").has(
            "sockets",
            &[("srtt_us", &["10000"]), ("local_port", &["40000"])],
        );
        let found = whole("03b-tap.txt");
        found.has(
            "sockets",
            &[("local_port", &["8443"]), ("srtt_us", &["10000"])],
        );
        assert_eq!(
            (found.count("other_protocols"), found.count("prefixes")),
            (1, 5)
        );
        // A comment that speaks of such things stays one.
        let found = of_text(
            "ss",
            "ESTAB 0 0 192.0.2.1:1 198.51.100.9:2\n# rtt:9 was odd\n\t cubic rtt:1/1\n",
        );
        found.has("sockets", &[("srtt_us", &["", "1000"])]);
    }

    #[test]
    fn what_else_stands_before_lines_is_refused() {
        let line = "ESTAB 0 0 192.0.2.1:1 198.51.100.9:2";
        let text = format!(
            "edge1: {line}\nweb_1 | {line}\nNov 26 12:00:00 web1 ss: {line}\nedge1: \t cubic rto:204\n"
        );
        let found = of_text("ss", &text);
        assert_eq!((found.report.rows, found.report.not_understood), (0, 4));
    }

    #[test]
    fn dates_behind_their_dumps_are_theirs() {
        let found = whole("02-time-after-dump.txt");
        found.has(
            "sockets",
            &[("t_unix_ns", &[HALF, SEVEN]), ("snd_cwnd", &["9", "12"])],
        );
        assert_eq!(
            (
                found.count("dates_behind"),
                found.count("rows_without_time")
            ),
            (2, 0)
        );
        let found = whole("02c-epoch-after-dump.txt");
        found.has("sockets", &[("t_unix_ns", &[HALF, SEVEN])]);
        let found = whole("02b-time-glued.txt");
        found.has(
            "sockets",
            &[("t_unix_ns", &[HALF]), ("min_rtt_us", &["9500"])],
        );
    }

    #[test]
    fn a_file_that_ends_with_sockets_has_its_dates_before_them() {
        let found = whole("36-date-Ins-comma.txt");
        found.has("sockets", &[("t_unix_ns", &["", "1795690800123456789"])]);
        assert_eq!(found.count("dates_behind"), 0);
    }

    #[test]
    fn a_whole_mptcp_connection_is_no_socket_of_tcp() {
        let found = whole("03-mptcp-socket.txt");
        found.has(
            "sockets",
            &[("algorithm", &["cubic"]), ("local_port", &["8443"])],
        );
        assert_eq!(found.count("other_protocols"), 1);
    }

    #[test]
    fn lines_that_mail_broke_are_joined() {
        let found = whole("04-wrapped-by-mail.txt");
        let expected: [(&str, &[&str]); 6] = [
            ("srtt_us", &["10000"]),
            ("snd_cwnd", &["9"]),
            ("notsent_bytes", &["4000"]),
            ("min_rtt_us", &["9500"]),
            ("timer_ms", &["63000"]),
            ("snd_wscale", &["7"]),
        ];
        found.has("sockets", &expected);
        assert_eq!(found.count("lines_joined"), 2);
        let found = whole("06b-quoted-printable.txt");
        let expected: [(&str, &[&str]); 4] = [
            ("remote_port", &["443"]),
            ("snd_ssthresh", &["46"]),
            ("last_data_sent_ms", &["1600"]),
            ("timer_ms", &["63000"]),
        ];
        found.has("sockets", &expected);
        // Within a socket's line, within a value, and within quoted mail.
        let found = of_text(
            "ss",
            "> ESTAB 0 4 192.0.2.1:1\n> 198.51.100.9:2\n> \t cubic rto:204 send\n> 76.1Mbps lastsnd:3\n",
        );
        assert_eq!(found.report.not_understood, 0, "{:?}", found.first());
        found.has(
            "sockets",
            &[
                ("remote_port", &["2"]),
                ("send_rate_bits_per_sec", &["76100000"]),
            ],
        );
        // Nothing comes.
        let found = of_text(
            "ss",
            "ESTAB 0 4 192.0.2.1:1\nESTAB 0 5 192.0.2.1:1 198.51.100.9:2\nESTAB 0",
        );
        assert_eq!((found.report.rows, found.report.not_understood), (1, 2));
        assert_eq!(found.report.first[0].1, Some(1));
    }

    #[test]
    fn dates_between_dashes_and_in_comments_are_as_they_were() {
        let line = "ESTAB 0 4 192.0.2.1:1 198.51.100.9:2";
        for date in [
            "=== 2025-10-09 08:53:20 ===",
            "# Thu Oct  9 08:53:20 UTC 2025",
            "=\n1760000000\n=====",
        ] {
            let found = of_text("ss", &format!("{date}\n{line}\n"));
            assert_eq!(
                (found.report.not_understood, found.count("prefixes")),
                (0, 0),
                "{date}"
            );
            assert_eq!(found.count("lines_joined"), 0, "{date}");
            found.has("sockets", &[("t_unix_ns", &["1760000000000000000"])]);
        }
    }

    #[test]
    fn a_zone_of_several_meanings_is_named() {
        let found = import("ss", "04b-date-am-pst.txt");
        assert!(found.first()[0].contains("PST is the name of several zones; say with --zone"));
        let zone = json!({"zone": "-08:00"});
        let found = import_with("ss", "04b-date-am-pst.txt", Anonymiser::Keep, zone);
        found.has("sockets", &[("t_unix_ns", &["1760465689000000000"])]);
    }

    #[test]
    fn names_of_ports_are_told_and_mean_their_numbers() {
        let found = whole("07-port-names.txt");
        found.has(
            "sockets",
            &[("local_port", &["22"]), ("remote_port", &["873"])],
        );
        assert_eq!(found.words("ports_by_name"), ["rsync = 873", "ssh = 22"]);
        whole("37-named-listener.txt").has("sockets", &[("local_port", &["22", "8080"])]);
        let found = of_text(
            "ss",
            "ESTAB 0 0 192.0.2.1:914c-g 198.51.100.9:99999\nESTAB 0 0 192.0.2.1:914c-g 198.51.100.9:2\n",
        );
        found.has("sockets", &[("local_port", &[""])]);
        assert_eq!(
            (found.words("unknown_ports"), found.report.not_understood),
            (vec!["914c-g".into()], 1)
        );
    }

    #[test]
    fn what_a_shell_asks_is_no_row() {
        let found = import("ss", "07b-prompt-blank.txt");
        found.has(
            "sockets",
            &[("local_port", &["40000"]), ("algorithm", &["cubic"])],
        );
        assert_eq!(found.report.not_understood, 1);
        let found = of_text(
            "ss",
            "ESTAB 0 0 192.0.2.1:1 198.51.100.9:2\n 17:41 CEST > ss -ti\n me@here:~$ ss -ti\n",
        );
        found.has("sockets", &[("algorithm", &[""])]);
        assert_eq!(found.report.not_understood, 2);
    }

    #[test]
    fn an_overdue_timer_and_what_was_not_measured_are_null() {
        let found = whole("34-ss-overdue-timer.txt");
        found.has(
            "sockets",
            &[
                ("timer", &["keepalive"]),
                ("timer_ms", &[""]),
                ("timer_retransmits", &["0"]),
            ],
        );
        let found = whole("35-bbr-mrtt-unmeasured.txt");
        found.has(
            "sockets",
            &[
                ("bbr_min_rtt_us", &[""]),
                ("bbr_pacing_gain", &["2.88672"]),
                ("bbr_bw_bits_per_sec", &["0"]),
            ],
        );
    }

    #[test]
    fn byte_order_marks_are_not_part_of_the_text() {
        let text = "\u{feff}ESTAB 0 7 192.0.2.1:1 198.51.100.9:2\r\n";
        let folder = tempfile::tempdir().unwrap();
        let utf16 = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for bytes in [text.as_bytes().to_vec(), utf16] {
            let path = folder.path().join("dump");
            std::fs::write(&path, bytes).unwrap();
            let found = import_file("ss", path, Anonymiser::Keep, json!({}));
            found.has("sockets", &[("send_q_bytes", &["7"])]);
            assert_eq!(found.report.not_understood, 0);
        }
    }
}

mod nginx {
    use super::*;

    const LINE: &str =
        r#"192.0.2.7 - - [26/Nov/2026:12:00:00 +0000] "GET /a HTTP/1.1" 200 612 "-" "curl/8""#;

    #[test]
    fn what_a_log_daemon_put_before_a_line_is_taken_off() {
        let found = import("nginx", "45-syslog-prefix.log");
        found.has(
            "requests",
            &[("remote_addr", &["192.0.2.7"]), ("status", &["200"])],
        );
        assert_eq!(found.words("prefixes"), ["the header of syslog"]);
        for (before, kind) in [
            ("Nov 26 12:00:00 web1 nginx[7]: ", "the header of syslog"),
            (
                "<190>1 2026-11-26T12:00:00Z web1 nginx 7 - - ",
                "the header of syslog",
            ),
            (
                "2026-11-26T12:00:00.123456789Z stdout F ",
                "the name of a container",
            ),
            ("web_1  | ", "the name of a container"),
            ("[pod/web-7/nginx] ", "the name of a container"),
            ("1795694400.25 ", "a time"),
            ("> ", "the mark of quoted mail"),
        ] {
            let found = of_text("nginx", &format!("{before}{LINE}\n{LINE}\n"));
            assert_eq!(
                found.report.not_understood,
                0,
                "{before}: {:?}",
                found.first()
            );
            found.has("requests", &[("remote_addr", &["192.0.2.7", "192.0.2.7"])]);
            assert_eq!(
                (found.words("prefixes"), found.count("prefixes")),
                (vec![kind.into()], 1)
            );
        }
    }

    #[test]
    fn what_is_not_known_before_a_line_makes_it_no_line() {
        for before in [
            "edge1: ",
            "access.log:",
            "12:",
            "web nginx ",
            "{\"log\":\"",
            "<190>x: ",
        ] {
            let found = of_text("nginx", &format!("{before}{LINE}\n"));
            assert_eq!(
                (found.report.rows, found.report.not_understood),
                (0, 1),
                "{before}"
            );
            assert!(
                found.first()[0].starts_with("$remote_addr is "),
                "{:?}",
                found.first()
            );
        }
    }

    #[test]
    fn a_variable_of_any_text_does_not_take_the_header_for_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let format = json!({"format": "$http_x_forwarded_for - $status"});
        std::fs::write(&path, "<190>Nov 26 12:00:00 web1 nginx: 192.0.2.7 - 200\n").unwrap();
        let found = import_file("nginx", path, Anonymiser::Keep, format);
        found.has("requests", &[("http_x_forwarded_for", &["192.0.2.7"])]);
    }

    #[test]
    fn a_list_of_proxies_is_one_value() {
        let format = "$http_x_forwarded_for $msec $request_method $status $request_time";
        let found = import_with(
            "nginx",
            "47-forwarded-list.log",
            Anonymiser::Keep,
            json!({"format": format}),
        );
        let expected: [(&str, &[&str]); 3] = [
            ("http_x_forwarded_for", &["203.0.113.1, 192.0.2.7"]),
            ("t_unix_ns", &["1764158400001000000"]),
            ("request_time_us", &["12000"]),
        ];
        found.has("requests", &expected);
    }
}

mod iperf3 {
    use super::*;

    #[test]
    fn a_test_that_stands_there_twice_is_one_test() {
        let found = import("iperf3", "08-object-twice.json");
        found.has("iperf3_intervals", &[("bytes", &["1000000"])]);
        assert_eq!(
            (found.count("tests_again"), found.report.not_understood),
            (1, 0)
        );
        // Of an event stream, too.
        let one = concat!(
            r#"{"event":"start","data":{"cookie":"c","connecting_to":{"host":"192.0.2.1","port":5201}}}"#,
            "\n",
            r#"{"event":"interval","data":{"streams":[{"socket":5,"start":0,"end":1,"bytes":7}]}}"#,
            "\n",
            r#"{"event":"end","data":{}}"#,
            "\n"
        );
        let found = of_text("iperf3", &format!("{one}{one}"));
        found.has("iperf3_intervals", &[("bytes", &["7"])]);
        assert_eq!(found.count("tests_again"), 1);
        // The far end's word on it is another.
        let server = one.replace("connecting_to", "accepted_connection");
        let found = of_text("iperf3", &format!("{one}{server}"));
        found.has("iperf3_intervals", &[("bytes", &["7", "7"])]);
    }

    #[test]
    fn what_is_said_beside_the_output_is_shown_and_hides_nothing() {
        for (file, line, said) in [
            (
                "08b-warning-before.json",
                1,
                "not JSON: warning: JSON data length overflow",
            ),
            (
                "08c-error-after.json",
                2,
                "iperf3 says: unable to send control message: Broken pipe",
            ),
        ] {
            let found = import("iperf3", file);
            found.has("iperf3_intervals", &[("bytes", &["1000000"])]);
            assert_eq!(
                (found.report.first[0].1, found.first()),
                (Some(line), vec![said])
            );
        }
        let stream = "warning: x\n{\"event\":\"start\",\"data\":{}}\nwarning: y\n{\"event\":\"interval\",\"data\":{\"streams\":[{\"socket\":5,\"start\":0,\"end\":1,\"bytes\":7}]}}\n{\"event\":\"end\",\"data\":{}}\n";
        let found = of_text("iperf3", stream);
        found.has("iperf3_intervals", &[("bytes", &["7"])]);
        assert_eq!(
            found.first(),
            ["not JSON: warning: x", "not JSON: warning: y"]
        );
        assert_eq!(found.count("documents_without_end"), 0);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_it() {
        let found = import("iperf3", "42-bom.json");
        found.has("iperf3_intervals", &[("bytes", &["1000000"])]);
        assert_eq!(found.report.not_understood, 0);
    }

    #[test]
    fn what_is_not_a_number_is_null_and_told() {
        let found = import("iperf3", "08d-nan.json");
        found.has(
            "iperf3_intervals",
            &[("bytes", &["8250"]), ("lost_packets", &["0"])],
        );
        assert_eq!(found.count("not_numbers"), 1);
    }

    #[test]
    fn minus_1_is_not_known() {
        let found = import("iperf3", "43-retransmits-minus-1.json");
        found.has(
            "iperf3_intervals",
            &[("interval_retrans", &[""]), ("snd_cwnd_bytes", &["14480"])],
        );
        found.has("iperf3_streams", &[("total_retrans", &[""])]);
        assert_eq!(found.report.not_understood, 0);
    }

    #[test]
    fn jitter_longer_than_the_test_is_null_and_told() {
        let found = import("iperf3", "44-jitter-seven-days.json");
        found.has(
            "iperf3_intervals",
            &[("jitter_us", &[""]), ("bytes", &["8250"])],
        );
        found.has("iperf3_streams", &[("jitter_us", &["20.0"])]);
        assert!(found.first()[0].starts_with("intervals[0].streams[0].jitter_ms: got 611273000.0"));
    }
}

mod pcap {
    use super::*;

    #[test]
    fn a_capture_behind_another_in_one_file_is_read() {
        let found = import("pcap", "48-concatenated.pcap");
        assert_eq!(found.count("captures_joined"), 1);
        assert_eq!(
            (found.count("connections"), found.report.not_understood),
            (2, 0)
        );
    }

    #[test]
    fn a_magic_that_is_not_read_is_named() {
        let kind = find("pcap").unwrap();
        let given = kind.given(Anonymiser::Keep, &Map::new()).unwrap();
        let path =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/odd/49-modified-magic.pcap");
        let read = (kind.build)(&given)
            .unwrap()
            .read_file(&path, &mut |_, _| Ok(()));
        assert!(format!("{read:?}").contains("34cdb2a1"), "{read:?}");
    }
}

mod flent {
    use super::*;

    #[test]
    fn a_zone_of_half_an_hour_is_one() {
        let found = import("flent", "50-half-hour-zone.flent");
        found.has("flent_tests", &[("t_unix_ns", &["1760000000000000000"])]);
        assert_eq!(found.column("flent_samples", "t_ns")[0], "0");
    }

    #[test]
    fn values_that_are_no_numbers_are_left_out_and_told() {
        let found = import("flent", "51-infinity.flent");
        found.has("flent_points", &[("value", &["1.0"])]);
        assert_eq!(
            (found.count("not_numbers"), found.report.not_understood),
            (2, 0)
        );
    }
}

mod tcp_info {
    use super::*;

    #[test]
    fn an_overdue_timer_is_below_0() {
        let found = import("tcp-info", "17-overdue-timer.jsonl");
        found.has("sockets", &[("timer_ms", &["-144"])]);
    }
}

#[test]
fn each_file_here_looks_like_its_importers_own() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/odd");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let expected: &[&str] = match path.extension().unwrap().to_str().unwrap() {
            // Of another format, and of another magic.
            _ if name.starts_with("47") || name.starts_with("49") => &[],
            "log" => &["nginx"],
            "json" => &["iperf3"],
            "jsonl" => &["tcp-info"],
            "flent" => &["flent"],
            "pcap" => &["pcap"],
            _ => &["ss"],
        };
        let found: Vec<_> = recognise(&path)
            .unwrap()
            .iter()
            .map(|kind| kind.name)
            .collect();
        assert_eq!(found, expected, "{name}");
    }
}

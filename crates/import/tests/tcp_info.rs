//! Imports of M-Lab's tcp-info files.

use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use knee_collect::sock_diag::MESSAGE_BYTES;
use knee_import::tcp_info::{Options, Parser, Report};
use knee_import::{Import as _, Lines as _};
use knee_store::Anonymiser;
use proptest::prelude::*;

const META: &str = r#"{"Timestamp":"0001-01-01T00:00:00Z","Metadata":{"UUID":"ndt-abcde_1559749627_0000000000062D84","Sequence":0,"StartTime":"2026-07-01T00:00:12.092Z"}}"#;

/// An `inet_diag_msg` of an established IPv4 socket.
fn head() -> [u8; MESSAGE_BYTES] {
    let mut head = [0; MESSAGE_BYTES];
    (head[0], head[1]) = (2, 1);
    head[4..6].copy_from_slice(&443u16.to_be_bytes());
    head[6..8].copy_from_slice(&50_123u16.to_be_bytes());
    head[8..12].copy_from_slice(&[192, 0, 2, 1]);
    head[24..28].copy_from_slice(&[198, 51, 100, 7]);
    head[40..44].copy_from_slice(&3u32.to_ne_bytes());
    head[44..48].copy_from_slice(&0x62d84u32.to_ne_bytes());
    head[60..64].copy_from_slice(&77u32.to_ne_bytes());
    head[64..68].copy_from_slice(&1000u32.to_ne_bytes());
    head
}

/// A `tcp_info` of Linux 4.19, whose word at `at` is `at`.
fn info() -> Vec<u8> {
    (0..56u32)
        .flat_map(|word| (word * 4).to_ne_bytes())
        .collect()
}

/// A line of the file; the attributes stand at their positions.
fn line(head: &[u8], attributes: &[(usize, &[u8])]) -> String {
    let last = attributes.iter().map(|(at, _)| *at).max().unwrap_or(0);
    let mut values = vec!["null".to_owned(); last + 1];
    for (at, value) in attributes {
        values[*at] = format!("\"{}\"", STANDARD.encode(value));
    }
    format!(
        r#"{{"Timestamp":"2026-07-01T02:00:12.5+02:00","RawIDM":"{}","Attributes":[{}]}}"#,
        STANDARD.encode(head),
        values.join(",")
    )
}

fn import(options: Options, lines: &[String]) -> (Option<RecordBatch>, Report) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.jsonl.zst");
    let mut file = zstd::Encoder::new(std::fs::File::create(&path).unwrap(), 1).unwrap();
    file.write_all(lines.join("\n").as_bytes()).unwrap();
    file.finish().unwrap();
    let mut parser = Parser::new(options);
    parser
        .read(&path, |_, _| Ok::<_, std::io::Error>(()))
        .unwrap();
    (parser.take().pop(), parser.report().clone())
}

fn keep() -> Options {
    Options {
        anonymiser: Anonymiser::Keep,
        host: None,
    }
}

fn number(batch: &RecordBatch, name: &str) -> Option<i64> {
    let column = batch.column_by_name(name).unwrap();
    column.is_valid(0).then(|| match column.data_type() {
        arrow_schema::DataType::Int32 => column.as_primitive::<Int32Type>().value(0).into(),
        _ => column.as_primitive::<Int64Type>().value(0),
    })
}

fn name(batch: &RecordBatch, column: &str) -> Option<String> {
    let column = batch
        .column_by_name(column)
        .unwrap()
        .as_dictionary::<Int32Type>();
    let names = column.values().as_string::<i32>();
    column.key(0).map(|key| names.value(key).to_owned())
}

#[test]
fn record_is_decoded_as_the_kernels_answer_is() {
    let bbr: Vec<u8> = [125_000u32, 0, 40_000, 739, 739]
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    let attributes: [(usize, &[u8]); 3] = [(2, &info()), (4, b"bbr\0"), (16, &bbr)];
    let (batch, report) = import(keep(), &[META.into(), line(&head(), &attributes)]);
    let batch = batch.unwrap();
    assert_eq!(
        (report.units, report.rows, report.not_understood),
        (2, 1, 0)
    );
    assert_eq!(number(&batch, "t_unix_ns"), Some(1_782_864_012_500_000_000));
    assert_eq!(number(&batch, "local_port"), Some(443));
    assert_eq!(number(&batch, "remote_port"), Some(50_123));
    assert_eq!(number(&batch, "srtt_us"), Some(68));
    assert_eq!(number(&batch, "snd_cwnd"), Some(80));
    assert_eq!(number(&batch, "reord_seen"), Some(220));
    assert_eq!(number(&batch, "rcv_ooopack"), None, "Linux 4.19 has none");
    assert_eq!(number(&batch, "bbr_bw_bits_per_sec"), Some(1_000_000));
    assert_eq!(number(&batch, "send_q_bytes"), Some(77));
    assert_eq!(number(&batch, "uid"), Some(1000));
    assert_eq!(name(&batch, "algorithm").as_deref(), Some("bbr"));
    assert_eq!(name(&batch, "state").as_deref(), Some("ESTAB"));
    assert_eq!(name(&batch, "interface").as_deref(), Some("3"));
    assert_eq!(name(&batch, "host").as_deref(), Some("ndt-abcde"));
    let cookies = batch.column_by_name("cookie").unwrap();
    let cookies = cookies.as_primitive::<arrow_array::types::UInt64Type>();
    assert_eq!(cookies.value(0), 0x62d84, "as the UUID ends");
}

#[test]
fn host_is_the_one_said_or_else_that_of_the_metadata() {
    let rest = line(&head(), &[(2, &info())]);
    let host = |options, uuid: &str| {
        let meta = format!(r#"{{"Metadata":{{"UUID":"{uuid}"}}}}"#);
        let batch = import(options, &[meta, rest.clone()]).0.unwrap();
        let boot = name(&batch, "boot_id");
        let host = name(&batch, "host");
        let begin = host.as_ref().map(|host| format!("{host}_155"));
        assert_eq!(boot, begin, "cookies begin anew with each boot");
        host
    };
    assert_eq!(host(keep(), "a_b_155_unsafe_00F").as_deref(), Some("a_b"));
    assert_eq!(host(keep(), "00F"), None);
    let said = Options {
        host: Some("edge1".into()),
        ..keep()
    };
    assert_eq!(host(said, "a_155_00F").as_deref(), Some("edge1"));
}

#[test]
fn time_of_year_one_is_none() {
    let line = line(&head(), &[(2, &info())])
        .replace("2026-07-01T02:00:12.5+02:00", "0001-01-01T00:00:00Z");
    let (batch, report) = import(keep(), &[line]);
    assert_eq!(number(&batch.unwrap(), "t_unix_ns"), None);
    assert_eq!(report.more.rows_without_time, 1);
}

#[test]
fn lines_that_are_no_records_are_counted_with_the_reason() {
    let good = line(&head(), &[(2, &info())]);
    let lines = [
        "{\"Timestamp\":".to_owned(),
        "{}".to_owned(),
        good.replace("RawIDM\":\"", "RawIDM\":\"!"),
        line(&head()[..70], &[]),
        good.replace("[null,null,\"", "[null,null,\"?"),
        String::new(),
        good,
    ];
    let (batch, report) = import(keep(), &lines);
    assert_eq!(batch.unwrap().num_rows(), 1);
    let found: Vec<_> = report
        .first
        .iter()
        .map(|(_, line, why)| (line.unwrap_or(0), why.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            (1, "no JSON object of tcp-info"),
            (2, "it has neither RawIDM nor Metadata"),
            (3, "RawIDM is not base64"),
            (4, "RawIDM does not have the 72 bytes of an inet_diag_msg"),
            (5, "an attribute is not base64"),
        ]
    );
}

#[test]
fn addresses_are_anonymised() {
    let options = Options {
        anonymiser: Anonymiser::Truncate {
            v4_bits: 24,
            v6_bits: 48,
        },
        ..keep()
    };
    let (batch, _) = import(options, &[line(&head(), &[])]);
    let batch = batch.unwrap();
    let address = batch
        .column_by_name("remote_addr")
        .unwrap()
        .as_string::<i32>();
    assert_eq!(address.value(0), "198.51.100.0");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damaged_lines_never_panic(
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in 0usize..230,
        attribute in 0usize..30,
    ) {
        let mut line = line(&head(), &[(attribute, &info()[..cut.min(224)])]).into_bytes();
        for (at, byte) in hits {
            let at = at.index(line.len());
            line[at] = byte;
        }
        let mut parser = Parser::new(keep());
        parser.line(&line);
        let counts = parser.counts();
        prop_assert_eq!(counts.rows + counts.not_understood, 1);
    }
}

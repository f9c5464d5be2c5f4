//! Access logs of nginx become rows of `requests`. The logs in `data/nginx` were
//! written by nginx 1.22 with the `nginx.conf` beside them.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use knee_import::nginx::{Escape, Format, Options, Parser, Report, log_format};
use knee_import::{Import as _, Lines as _};
use knee_store::Anonymiser;
use proptest::prelude::*;

const CONF: &str = include_str!("data/nginx/nginx.conf");
const TRUNCATE: Anonymiser = Anonymiser::Truncate {
    v4_bits: 24,
    v6_bits: 48,
};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/nginx")
        .join(name)
}

/// The parser of a format of `nginx.conf`.
fn parser(name: &str, anonymiser: Anonymiser) -> Parser {
    let (text, escape) = match name {
        "combined" => (name.to_owned(), Escape::Default),
        _ => log_format(CONF, name).unwrap(),
    };
    let format = Format::compile(&text, escape).unwrap();
    Parser::new(Options { format, anonymiser })
}

fn file(path: &Path, mut parser: Parser) -> (RecordBatch, Report) {
    parser
        .read(path, |_, filled| -> io::Result<()> {
            assert!(filled.is_none(), "a short log is one batch");
            Ok(())
        })
        .unwrap();
    let batch = parser.take().remove(0);
    (batch, parser.report().clone())
}

fn log(name: &str, anonymiser: Anonymiser) -> RecordBatch {
    let (batch, report) = file(&data(&format!("{name}.log")), parser(name, anonymiser));
    assert_eq!(report.not_understood, 0, "{:?}", report.first);
    assert_eq!((report.units, report.rows), (10, 10));
    batch
}

/// A column's value as text, "null" where there is none.
fn shown(batch: &RecordBatch, column: &str, row: usize) -> String {
    let array = batch
        .column_by_name(column)
        .unwrap_or_else(|| panic!("no column {column}"));
    if array.is_null(row) {
        return "null".into();
    }
    match array.data_type() {
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        _ => {
            let names = array.as_dictionary::<Int32Type>();
            let key = usize::try_from(names.keys().value(row)).unwrap();
            names.values().as_string::<i32>().value(key).to_owned()
        }
    }
}

#[track_caller]
fn row(batch: &RecordBatch, row: usize, expected: &[(&str, &str)]) {
    for (column, value) in expected {
        assert_eq!(shown(batch, column, row), *value, "{column} of row {row}");
    }
}

#[test]
fn combined_log_of_a_real_nginx_is_read_whole() {
    let batch = log("combined", Anonymiser::Keep);
    row(
        &batch,
        1,
        &[
            ("t_unix_ns", "1795266748000000000"),
            ("remote_addr", "127.0.0.1"),
            ("remote_user", "null"),
            ("request_method", "GET"),
            ("request_path", "/big?a=1"),
            ("request_protocol", "HTTP/1.1"),
            ("status", "200"),
            ("body_bytes_sent", "300000"),
            ("http_referer", r#"http://example.org/?q="x""#),
            ("http_user_agent", r#"a "quoted" \ agent €"#),
        ],
    );
    row(
        &batch,
        8,
        &[
            ("request_method", "null"),
            ("request_path", "\u{16}\u{3}\u{1} not http"),
            ("request_protocol", "null"),
        ],
    );
    row(&batch, 9, &[("request_path", "/a b c"), ("status", "400")]);
}

#[test]
fn structured_log_of_a_real_nginx_has_its_escapes_undone() {
    let batch = log("structured", Anonymiser::Keep);
    let agent = ("http_user_agent", r#"a "quoted" \ agent €"#);
    row(&batch, 1, &[agent, ("srtt_us", "16"), ("status", "200")]);
    row(
        &batch,
        8,
        &[("http_user_agent", "null"), ("srtt_us", "327")],
    );
}

#[test]
fn transport_log_of_a_real_nginx_has_typed_columns_with_units() {
    let batch = log("transport", Anonymiser::Keep);
    row(
        &batch,
        2,
        &[
            ("t_unix_ns", "1795266748772000000"),
            ("request_time_us", "0"),
            ("srtt_us", "16"),
            ("rttvar_us", "9"),
            ("snd_cwnd", "11"),
            ("rcv_space_bytes", "65483"),
            ("upstream_addr", "127.0.0.1:18082, 127.0.0.1:18083"),
            ("upstream_response_time_us", "0"),
            ("upstream_status", "502, 200"),
            ("http_x_forwarded_for", "192.0.2.77, 2001:db8:1:2::3"),
        ],
    );
    row(
        &batch,
        9,
        &[
            ("request_time_us", "3000"),
            ("upstream_response_time_us", "null"),
        ],
    );
    let field = batch.schema().field_with_name("srtt_us").unwrap().clone();
    assert_eq!(field.metadata()["unit"], "us");
    assert_eq!(field.metadata()["source"], "nginx $tcpinfo_rtt");
}

#[test]
fn anonymised_log_holds_no_address_of_a_client() {
    let batch = log("transport", TRUNCATE);
    row(
        &batch,
        2,
        &[
            ("remote_addr", "127.0.0.0"),
            ("http_x_forwarded_for", "192.0.2.0, 2001:db8:1::"),
            ("upstream_addr", "127.0.0.0:18082, 127.0.0.0:18083"),
        ],
    );
}

#[test]
fn anonymised_import_shows_nothing_of_a_line_that_is_odd() {
    let mut parser = parser("combined", TRUNCATE);
    parser.line(b"192.0.2.77 is odd");
    parser.line(br#"192.0.2.77 - - [21/Nov/2026:13:12:28 +0000] "-" 192.0.2.77 6 "-" "-""#);
    let report = parser.report();
    assert_eq!(report.not_understood, 2);
    assert!(!format!("{:?}", report.first).contains("192.0.2"));
}

#[test]
fn odd_line_is_told_by_file_line_and_reason() {
    let mut parser = parser("combined", Anonymiser::Keep);
    parser.file(Path::new("a.log"));
    parser.line(b"");
    parser.line(br#"::1 - - [21/Nov/2026:13:12:28 +0000] "GET / HTTP/1.1" OK 6 "-" "-""#);
    let (file, line, text) = &parser.report().first[0];
    assert_eq!((file.as_path(), *line), (Path::new("a.log"), Some(2)));
    assert!(text.starts_with(r#"$status is "OK": ::1 - - ["#), "{text}");
    assert!(parser.take().is_empty(), "no row of half a line");
}

#[test]
fn compressed_log_gives_the_same_rows() {
    let plain = std::fs::read(data("combined.log")).unwrap();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&plain).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let expected = log("combined", Anonymiser::Keep);
    for (name, bytes) in [
        ("a.log.gz", gz.finish().unwrap()),
        ("a.log.zst", zstd::encode_all(&plain[..], 1).unwrap()),
    ] {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let (batch, report) = file(&path, parser("combined", Anonymiser::Keep));
        assert_eq!(batch, expected, "{name}");
        assert_eq!(report.bytes, plain.len() as u64);
    }
}

#[test]
fn variable_that_stands_twice_fills_one_column() {
    let format = "$status $request_method $status \"$request\"";
    let mut parser = Parser::new(Options {
        format: Format::compile(format, Escape::Default).unwrap(),
        anonymiser: Anonymiser::Keep,
    });
    parser.line(b"200 PUT 200 \"GET /x HTTP/1.1\"");
    let batch = parser.take().remove(0);
    assert_eq!(batch.num_columns(), 4);
    let expected = [("request_method", "PUT"), ("request_path", "/x")];
    row(&batch, 0, &expected);
}

/// Cases of a property, `KNEE_NGINX_CASES` for a long search.
fn cases(quick: u32) -> ProptestConfig {
    let asked = std::env::var("KNEE_NGINX_CASES").ok();
    ProptestConfig {
        cases: asked.map_or(quick, |text| text.parse().expect("a number of cases")),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// What nginx writes for a text under an escape, by its documentation.
fn escaped(text: &str, escape: Escape) -> String {
    let mut out = String::new();
    match escape {
        Escape::Default => text.bytes().for_each(|byte| match byte {
            b'"' | b'\\' | 0..32 | 127.. => out.push_str(&format!("\\x{byte:02X}")),
            _ => out.push(char::from(byte)),
        }),
        Escape::Json => text.chars().for_each(|c| match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }),
        Escape::None => out.push_str(text),
    }
    out
}

/// A variable of a format with a value as nginx writes it, and the column and
/// value that come of it.
#[derive(Clone, Debug)]
struct Piece {
    variable: String,
    written: String,
    column: String,
    expected: String,
}

fn text_piece(escape: Escape) -> impl Strategy<Value = Piece> {
    ("[a-z]{3,9}", any::<String>()).prop_map(move |(name, text)| Piece {
        variable: format!("arg_{name}"),
        written: escaped(&text, escape),
        column: format!("arg_{name}"),
        expected: if text.is_empty() || text == "-" {
            "null".into()
        } else {
            text
        },
    })
}

fn number_piece() -> impl Strategy<Value = Piece> {
    let integers = prop::sample::select(vec!["bytes_sent", "connection", "status"]);
    let integer = (integers, 0..i64::MAX / 100).prop_map(|(name, value)| Piece {
        variable: name.into(),
        written: value.to_string(),
        column: name.into(),
        expected: value.to_string(),
    });
    let seconds = (0..1_000_000_000_i64).prop_map(|ms| Piece {
        variable: "request_time".into(),
        written: format!("{}.{:03}", ms / 1000, ms % 1000),
        column: "request_time_us".into(),
        expected: (ms * 1000).to_string(),
    });
    prop_oneof![integer, seconds]
}

fn pieces() -> impl Strategy<Value = (Escape, Vec<Piece>)> {
    prop::sample::select(vec![Escape::Default, Escape::Json]).prop_flat_map(|escape| {
        let piece = prop_oneof![text_piece(escape), number_piece()];
        (Just(escape), prop::collection::vec(piece, 1..8))
    })
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn line_written_by_any_format_is_read_back((escape, mut pieces) in pieces()) {
        let mut seen = std::collections::HashSet::new();
        pieces.retain(|piece| seen.insert(piece.variable.clone()));
        let (mut format, mut line) = (String::new(), String::new());
        for piece in &pieces {
            format += &format!("\"${{{}}}\" ", piece.variable);
            line += &format!("\"{}\" ", piece.written);
        }
        let mut parser = Parser::new(Options {
            format: Format::compile(&format, escape).unwrap(),
            anonymiser: Anonymiser::Keep,
        });
        parser.line(line.as_bytes());
        prop_assert_eq!(&parser.report().first, &[]);
        let batch = parser.take().remove(0);
        for piece in &pieces {
            prop_assert_eq!(shown(&batch, &piece.column, 0), piece.expected.clone());
        }
    }

    #[test]
    fn no_line_panics_and_each_is_a_row_or_counted(
        name in prop::sample::select(vec!["combined", "structured", "transport"]),
        cuts in prop::collection::vec((0..400_usize, 0..400_usize, any::<Vec<u8>>()), 0..4),
        row in 0..10_usize,
    ) {
        let log = std::fs::read(data(&format!("{name}.log"))).unwrap();
        let mut line = log.split(|&byte| byte == b'\n').nth(row).unwrap().to_vec();
        for (from, length, bytes) in cuts {
            let from = from.min(line.len());
            let to = (from + length).min(line.len());
            line.splice(from..to, bytes);
        }
        for anonymiser in [Anonymiser::Keep, TRUNCATE] {
            let mut parser = parser(name, anonymiser);
            parser.line(&line);
            let rows = parser.take().iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
            let report = parser.report();
            let empty = u64::from(line.is_empty() || line == b"\r");
            prop_assert_eq!(rows, report.rows);
            prop_assert_eq!(rows + report.not_understood + empty, 1);
        }
    }

    #[test]
    fn no_format_panics(text in r#"([$"{}\[ a-z_]|\$status|\$\{status\}|\PC){0,40}"#, line in any::<Vec<u8>>()) {
        if let Ok(format) = Format::compile(&text, Escape::Json) {
            let anonymiser = Anonymiser::Keep;
            Parser::new(Options { format, anonymiser }).line(&line);
        }
        let _ = log_format(&text, "main");
    }
}

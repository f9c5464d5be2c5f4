//! Access logs, of any format.
//!
//! An input is a byte that chooses the escape and what becomes of addresses, a
//! format, and behind its newline the lines of a log. Besides that nothing
//! panics: each line is a row, empty, or counted as not understood.

use std::path::Path;

use knee_import::nginx::{Escape, Format, Options, Parser, log_format};
use knee_import::{Import as _, Lines as _};
use knee_store::Anonymiser;
use knee_tables::ROWS;

use super::{BATCH_BYTES, HIDING, sample};
use crate::Target;

pub const TARGET: Target = Target {
    name: "nginx",
    about: "access logs of nginx, of any format",
    seeds: &seeds,
    words: &[
        "$remote_addr",
        "$time_local",
        "$time_iso8601",
        "$msec",
        "$request",
        "$status",
        "$body_bytes_sent",
        "$request_time",
        "$request_method",
        "$http_user_agent",
        "$http_x_forwarded_for",
        "$http_forwarded",
        "$upstream_addr",
        "$upstream_response_time",
        "$upstream_bytes_sent",
        "$upstream_status",
        "$tcpinfo_rtt",
        "${arg_x}",
        "$host",
        "combined",
        "[$time_local] ",
        "\"$request\" ",
        "{\"a\":\"$status\"}",
        "21/Nov/2026:10:00:00 +0100",
        "2026-11-21T10:00:00+01:00",
        "1766311200.037",
        "GET /a HTTP/1.1",
        "\\x22",
        "\\\"",
        "\\u00e9",
        "\\ud83d\\ude00",
        "\\n",
        "10.0.0.1:80, [::1]:80 : unix:/a",
        "0.001, - : 0.002",
        "::ffff:192.0.2.7",
        "2001:db8:1:2::3",
        "for=192.0.2.60;by=\"[2001:db8::1]\"",
        "-",
        ", ",
        " : ",
        "\n",
        "\r\n",
    ],
    check: &check,
};

const ESCAPES: [Escape; 3] = [Escape::Default, Escape::Json, Escape::None];
/// Of a text column, the largest that a variable can fill (`$request` fills
/// three), with the room that it takes before it grows.
const VARIABLE_BYTES: usize = 3 * (512 << 10);

fn seeds() -> Vec<Vec<u8>> {
    let conf =
        String::from_utf8(sample("crates/import/tests/data/nginx/nginx.conf")).expect("text");
    let mut seeds = Vec::new();
    for name in ["combined", "structured", "transport"] {
        let log = sample(&format!("crates/import/tests/data/nginx/{name}.log"));
        let (format, escape) = log_format(&conf, name).unwrap_or((name.into(), Escape::Default));
        let escape = ESCAPES
            .iter()
            .position(|one| *one == escape)
            .expect("all are listed");
        for hides in [0, 3] {
            let chosen = [(escape + hides) as u8];
            seeds.push([&chosen, format.as_bytes(), b"\n", &log].concat());
        }
    }
    seeds
}

fn check(input: &[u8]) -> usize {
    let Some((&chosen, rest)) = input.split_first() else {
        return BATCH_BYTES;
    };
    let mut lines = rest.split(|&byte| byte == b'\n');
    let text = String::from_utf8_lossy(lines.next().unwrap_or(&[]));
    let escape = ESCAPES[usize::from(chosen) % 3];
    let Ok(format) = Format::compile(&text, escape) else {
        return BATCH_BYTES;
    };
    let variables = format.names().len();
    assert!(variables > 0);
    let hides = usize::from(chosen) / 3 % 2 == 1;
    let anonymiser = match hides {
        true => HIDING,
        false => Anonymiser::Keep,
    };
    let mut parser = Parser::new(Options { format, anonymiser });
    parser.file(Path::new("access.log"));
    let (mut rows, mut empty, mut n_lines) = (0, 0, 0);
    for line in lines {
        if let Some(batch) = parser.line(line) {
            assert_eq!(batch.num_rows(), ROWS, "a batch leaves when it is full");
            rows += batch.num_rows() as u64;
        }
        n_lines += 1;
        empty += u64::from(line.is_empty() || line == b"\r");
    }
    for batch in parser.take() {
        assert_eq!(batch.schema(), parser.schema());
        rows += batch.num_rows() as u64;
    }
    let report = parser.report();
    assert_eq!((report.units, report.rows), (n_lines, rows));
    assert_eq!(rows + report.not_understood + empty, n_lines);
    assert!(report.first.len() as u64 <= report.not_understood.min(5));
    // Behind the reason nothing of the line.
    assert!(!hides || report.first.iter().all(|(_, _, text)| text.ends_with(": ")));
    BATCH_BYTES + VARIABLE_BYTES * variables + 64 * input.len()
}

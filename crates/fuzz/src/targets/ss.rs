//! Dumps that `ss` printed.
//!
//! Besides that nothing panics: each line is a socket, a line of details, one of
//! the lines that say nothing of sockets, or is counted as not understood; and
//! what may not be stored changes nothing but addresses.

use std::path::Path;

use knee_import::ss::{Options, Parser, Report};
use knee_import::{Import as _, Lines as _};
use knee_store::Anonymiser;
use knee_tables::ROWS;

use super::{BATCH_BYTES, hidden, sample};
use crate::Target;

pub const TARGET: Target = Target {
    name: "ss",
    about: "dumps that ss printed",
    seeds: &seeds,
    words: &[
        "ESTAB",
        "LISTEN",
        "UNCONN",
        "tcp ",
        "udp ",
        "State",
        "Netid",
        "Recv-Q",
        " 0 0 ",
        "users:((\"",
        "\",pid=",
        ",fd=",
        "))",
        "timer:(on,",
        "timer:(keepalive,",
        "min",
        "sec",
        "ms,",
        "uid:",
        "ino:",
        "sk:",
        "cgroup:/",
        "fwmark:0x",
        "tos:0x",
        "class_id:",
        "v6only:1",
        "<->",
        "skmem:(r0,rb1,t0,tb1,f0,w0,o0,bl0,d0)",
        "mem:(r0,w0,f0,t0)",
        "ts sack ecn ecnseen fastopen",
        "cubic",
        "bbr",
        "dctcp",
        "wscale:7,7",
        "rto:204",
        "rtt:1.5/0.75",
        "ato:40",
        "cwnd:10",
        "ssthresh:",
        "send 1.5Mbps",
        "pacing_rate 3Gbps/5Gbps",
        "delivery_rate ",
        "app_limited",
        "busy:4ms",
        "rwnd_limited:4ms(50.0%)",
        "retrans:0/5",
        "minrtt:",
        "bbr:(bw:1bps,mrtt:1,pacing_gain:1,cwnd_gain:2,version:3,bw_hi:1bps,mode:2)",
        "dctcp:(ce_state:1,alpha:512,ab_ecn:3,ab_tot:9)",
        "dctcp:fallback_mode",
        "127.0.0.1:80",
        "[::1]:80",
        "::ffff:10.0.0.1:443",
        "[fe80::1%eth0]:22",
        "*:*",
        "%lo",
        "\n",
        "\n\t ",
        "\r\n",
        "Fri Aug 21 12:00:00 PM CEST 2026",
        "2026-08-21T12:00:00.5+02:00",
        "1787313600.25",
        "# ",
        "=== ",
        "+9999",
        "-0230",
        "UTC",
        "=\n",
        "=3D",
        "=20",
        "> ",
        "Nov 26 12:00:00 ",
        "mptcp ",
        "token:1",
        "Time: ",
        "---\n",
        "ESTAB 0 0 10.0.0.1:http\n",
    ],
    check: &check,
};

/// Of every version's way to print, and the words between dumps.
const LINES: &str = include_str!("../../../import/tests/data/ss/dumps.txt");

fn seeds() -> Vec<Vec<u8>> {
    let whole = sample("crates/import/tests/data/ss/dumps.txt");
    // Each dump by itself is quick to damage.
    let mut seeds: Vec<_> = (LINES.split("\n\n"))
        .map(|dump| dump.as_bytes().to_vec())
        .collect();
    seeds.push(whole);
    seeds
}

fn check(input: &[u8]) -> usize {
    let kept = read(input, Anonymiser::Keep);
    if let Some(hidden) = hidden(input, read) {
        let counts = |report: &Report| {
            (
                report.rows,
                report.not_understood,
                report.more.other_protocols,
                report.more.rows_without_time,
            )
        };
        assert_eq!(counts(&kept), counts(&hidden));
        assert!(hidden.first.iter().all(|(_, _, text)| text.is_empty()));
    }
    BATCH_BYTES + 16 * input.len()
}

fn read(input: &[u8], anonymiser: Anonymiser) -> Report {
    let mut parser = Parser::new(Options {
        anonymiser,
        zone_s: None,
        host: None,
    });
    parser.file(Path::new("ss-20260821T120000.txt"));
    let mut rows = 0;
    let lines = input.split(|&byte| byte == b'\n');
    let n_lines = lines.clone().count() as u64;
    for line in lines {
        let before = counted(parser.report());
        let excused = excused(parser.report());
        let waited = parser.waits();
        if let Some(batch) = parser.line(line) {
            assert_eq!(batch.num_rows(), ROWS, "a batch leaves when it is full");
            rows += batch.num_rows() as u64;
        }
        let counted = counted(parser.report()) - before;
        let is_excused = waited || parser.waits() || self::excused(parser.report()) > excused;
        assert!(
            counted == 1
                || counted == 0 && (is_excused || may_say_nothing(line))
                || counted == 2 && waited,
            "counted {counted} times: {:?}",
            String::from_utf8_lossy(line)
        );
    }
    rows += parser
        .take()
        .iter()
        .map(|batch| batch.num_rows() as u64)
        .sum::<u64>();
    let report = parser.report().clone();
    assert_eq!((report.units, report.rows), (n_lines, rows));
    assert!(report.more.rows_without_time <= rows);
    assert!(report.first.len() as u64 <= report.not_understood.min(5));
    assert!(report.more.unknown_words.len() <= 64);
    report
}

const TITLES: [&[u8]; 9] = [
    b"State",
    b"Netid",
    b"Recv-Q",
    b"Send-Q",
    b"Local",
    b"Peer",
    b"Address:Port",
    b"AddressPort",
    b"Process",
];

fn counted(report: &Report) -> u64 {
    report.rows + report.more.other_protocols + report.not_understood
}

/// Lines that are told of in another way: joined to the one before, or said to have
/// something before them.
fn excused(report: &Report) -> u64 {
    report.more.lines_joined + report.more.prefixes.values().sum::<u64>()
}

/// A line that adds to the socket before it, or nothing: empty, indented, a
/// comment, a header, dashes, or a date.
fn may_say_nothing(line: &[u8]) -> bool {
    let is_date =
        || line.len() >= 10 && line.iter().filter(|byte| byte.is_ascii_digit()).count() >= 7;
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
    line.trim_ascii().is_empty()
        || matches!(line[0], b' ' | b'\t' | b'#')
        || words
            .find(|word| !word.is_empty())
            .is_some_and(|word| TITLES.contains(&word))
        || line.iter().all(|byte| b"-=*_+ \t\r".contains(byte))
        || is_date()
}

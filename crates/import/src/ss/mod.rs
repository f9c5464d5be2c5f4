//! `ss` dumps of any iproute2 since 3.10, as rows of `sockets`.
//!
//! A dump is lines of sockets, each followed by lines that begin with a space
//! (`-i`, `-m` …) or holding everything (`-O`). Header lines, empty lines and
//! comments (`#`) are skipped; a line with a date, see [`time`],
//! begins a dump of that time. A line of details without a socket before it is
//! a row without addresses.

mod line;
mod time;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use arrow_array::RecordBatch;
use knee_observe::Anonymiser;
use knee_observe::table::Table;
use knee_observe::tables::Sockets;

use self::line::{Tokens, details};
use super::counts::counts;
use super::kind::HOST;
use super::lines::{self, Lines, fills};
use super::{Columns, Given, Kind, More as _, Opt, Sample, TableKind, Takes};

/// Different unknown words that are counted apart.
const WORDS: usize = 64;

const STATES: [&[u8]; 12] = [
    b"ESTAB",
    b"SYN-SENT",
    b"SYN-RECV",
    b"FIN-WAIT-1",
    b"FIN-WAIT-2",
    b"TIME-WAIT",
    b"UNCONN",
    b"CLOSE-WAIT",
    b"LAST-ACK",
    b"LISTEN",
    b"CLOSING",
    b"NEW-SYN-RECV",
];

pub static KIND: Kind = Kind {
    name: "ss",
    summary: "Dumps of ss, of any iproute2 since 3.10.",
    about: "Import dumps of ss: a row of the table `sockets` for each TCP socket.\n\n\
        Any mix of -t -i -e -m -o -n -p -O, plain, gzip or zstd. The time of a dump is that of a line that `date` \
        printed before it, or of the file's name.",
    page: include_str!("page.md"),
    examples: &[
        "knee import ss ss-20260821T120000.txt.zst --out rec --host edge1",
        "knee import ss cron/*.gz --out rec --zone +02:00 --anonymize truncate --strict",
    ],
    tables: &[TableKind {
        name: Sockets::NAME,
        short: "sockets",
        rows: "one per TCP socket of a dump",
        columns: Columns::Recorded(Sockets::fields),
    }],
    options: &[
        HOST,
        Opt {
            name: "zone",
            takes: Takes::Text("+HH:MM"),
            default: "",
            help: "Of times that do not say theirs; by default UTC.",
        },
    ],
    unit: "lines",
    row: "TCP socket",
    expected: "what `ss -tinem` prints",
    told: "{rows:row} of {dumps:dump} from {lines:line}",
    counts: More::COUNTS,
    sample: Sample::File("tests/data/ss/dump.txt"),
    build: |given| Ok(Box::new(Parser::new(Options::from_given(given)?))),
};

pub type Report = super::Report<More>;

counts! {
    /// What only dumps tell.
    More {
        dumps: u64, "files, and dates within them, that sockets follow";
        unknown_words: BTreeMap<String, u64>, "words within lines understood that mean nothing to the importer, as of a newer ss, and how often",
            doubt: "words that mean nothing to it: {list}.";
        rows_without_time: u64, "sockets whose dump says no time",
            doubt: "{count} rows have no time: neither a line before their dump nor the file's name says one.";
        other_protocols: u64, "lines of sockets other than TCP, which are left out",
            doubt: "{count} sockets of other protocols than TCP were left out.",
            alone: "{count} sockets are of other protocols";
    }
}

/// How to read dumps.
#[derive(Clone)]
pub struct Options {
    pub anonymiser: Anonymiser,
    /// The zone, in seconds east of UTC, of times that do not say theirs.
    pub zone_s: Option<i32>,
    /// What column `host` says.
    pub host: Option<String>,
}

impl Options {
    fn from_given(given: &Given) -> Result<Options, String> {
        let zone_s = |text| {
            time::zone_s(text).ok_or_else(|| {
                format!("zone: got \"{text}\"; expected an offset from UTC such as +02:00, or UTC.")
            })
        };
        Ok(Options {
            anonymiser: given.anonymiser.clone(),
            zone_s: given.text("zone").map(zone_s).transpose()?,
            host: given.text("host").map(str::to_owned),
        })
    }
}

/// Rows of the lines of dumps.
pub struct Parser {
    options: Options,
    sockets: Sockets,
    report: Report,
    t_unix_ns: Option<i64>,
    /// Has the dump under way no socket yet?
    dump_begins: bool,
    /// What lines of details belong to.
    current: Current,
    /// For addresses being anonymised.
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Current {
    Nothing,
    Row(usize),
    /// A socket that is left out: its details are, too.
    Skipped,
}

impl Parser {
    pub fn new(options: Options) -> Parser {
        Parser {
            options,
            sockets: Sockets::default(),
            report: Report::default(),
            t_unix_ns: None,
            dump_begins: true,
            current: Current::Nothing,
            text: String::new(),
        }
    }

    fn details_line(&mut self, line: &[u8]) -> Option<RecordBatch> {
        let mut full = None;
        let row = match self.current {
            Current::Row(row) => row,
            Current::Skipped => return None,
            Current::Nothing => {
                // Some shells indent dates and headers.
                let trimmed = line.trim_ascii();
                if trimmed.is_empty() || self.date(trimmed) {
                    return None;
                }
                if memchr::memchr(b':', line).is_none() {
                    self.not_understood(line);
                    return None;
                }
                let (batch, row) = self.add_row();
                full = batch;
                row
            }
        };
        self.details(line, row);
        full
    }

    fn add_row(&mut self) -> (Option<RecordBatch>, usize) {
        let full = self.sockets.is_full().then(|| self.sockets.take());
        let row = self.sockets.add_row();
        self.report.rows += 1;
        self.report.more.dumps += u64::from(std::mem::take(&mut self.dump_begins));
        self.sockets.r#final.set(row, false);
        match self.t_unix_ns {
            Some(t_unix_ns) => self.sockets.t_unix_ns.set(row, t_unix_ns),
            None => self.report.more.rows_without_time += 1,
        }
        if let Some(host) = &self.options.host {
            self.sockets.host.set(row, host);
        }
        (full, row)
    }

    fn details(&mut self, line: &[u8], row: usize) {
        let words = &mut self.report.more.unknown_words;
        details(line, &mut self.sockets, row, |word| {
            // The key alone: values would make each one different.
            let key = word.split(|byte| *byte == b':').next().unwrap_or(word);
            let key = String::from_utf8_lossy(&key[..key.len().min(32)]).into_owned();
            if words.len() < WORDS || words.contains_key(&key) {
                *words.entry(key).or_default() += 1;
            }
        });
    }

    fn socket_line(&mut self, line: &[u8]) -> Option<RecordBatch> {
        let mut tokens = Tokens(line);
        let mut token = tokens.next()?;
        match token {
            b"State" | b"Netid" | b"Recv-Q" => {
                self.current = Current::Nothing;
                return None;
            }
            // By itself it is no socket's: no number follows.
            b"tcp" | b"mptcp" => token = tokens.next().unwrap_or(b""),
            b"udp" | b"raw" | b"u_str" | b"u_dgr" | b"u_seq" | b"nl" | b"p_raw" | b"p_dgr"
            | b"icmp6" | b"sctp" | b"dccp" | b"v_str" | b"v_dgr" | b"ti_rd" | b"ti_dg"
            | b"ti_sq" | b"ti_st" | b"xdp" | b"???" => {
                self.report.more.other_protocols += 1;
                self.current = Current::Skipped;
                return None;
            }
            _ => {}
        }
        let state = STATES.iter().find(|state| **state == token);
        // A filter on one state hides its column.
        let recv = if state.is_some() {
            tokens.next()
        } else {
            Some(token)
        };
        let found = recv.and_then(number).and_then(|recv| {
            let send = number(tokens.next()?)?;
            let local = endpoint(tokens.next()?)?;
            let remote = endpoint(tokens.next()?)?;
            Some((recv, send, local, remote))
        });
        let Some((recv, send, local, remote)) = found else {
            self.current = Current::Nothing;
            if !self.date(line) {
                self.not_understood(line);
            }
            return None;
        };
        let (full, row) = self.add_row();
        self.current = Current::Row(row);
        if let Some(state) = state {
            self.sockets
                .state
                .set(row, std::str::from_utf8(state).expect("states are ASCII"));
        }
        self.sockets.recv_q_bytes.set(row, recv);
        self.sockets.send_q_bytes.set(row, send);
        self.address(local.address);
        if !self.text.is_empty() {
            self.sockets.local_addr.set(row, &self.text);
        }
        self.address(remote.address);
        if !self.text.is_empty() {
            self.sockets.remote_addr.set(row, &self.text);
        }
        if let Some(port) = local.port {
            self.sockets.local_port.set(row, port);
        }
        if let Some(port) = remote.port {
            self.sockets.remote_port.set(row, port);
        }
        if let Some(interface) = local.interface.or(remote.interface) {
            self.sockets.interface.set(row, interface);
        }
        if !tokens.0.is_empty() {
            self.details(tokens.0, row);
        }
        full
    }

    /// Leaves in `text` what may be stored of an address; nothing where it is a
    /// name, of which a prefix has no meaning.
    fn address(&mut self, address: &str) {
        self.text.clear();
        if matches!(self.options.anonymiser, Anonymiser::Keep) || address == "*" {
            self.text.push_str(address);
        } else if let Ok(address) = address.parse::<IpAddr>() {
            self.options.anonymiser.write(address, &mut self.text);
        }
    }

    /// Is it a line with the time of what follows?
    fn date(&mut self, line: &[u8]) -> bool {
        let time = std::str::from_utf8(line)
            .ok()
            .and_then(|text| time::line(text, self.options.zone_s));
        self.t_unix_ns = time.or(self.t_unix_ns);
        self.dump_begins |= time.is_some();
        time.is_some()
    }

    fn not_understood(&mut self, line: &[u8]) {
        // What may not be stored must not be shown either.
        let shows = matches!(self.options.anonymiser, Anonymiser::Keep);
        let shown = if shows { lines::beginning(line) } else { b"" };
        self.report
            .not_understood(|| String::from_utf8_lossy(shown).trim().to_owned());
    }
}

impl Lines for Parser {
    fills!(Sockets);

    /// Its name may say when it was dumped.
    fn file(&mut self, path: &Path) {
        self.report.begin(path);
        self.dump_begins = true;
        self.current = Current::Nothing;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.t_unix_ns = time::name(&name, self.options.zone_s);
    }

    #[inline]
    fn line(&mut self, line: &[u8]) -> Option<RecordBatch> {
        self.report.count();
        match line.first() {
            None => None,
            Some(b'\r') if line.len() == 1 => None,
            Some(b' ' | b'\t') => self.details_line(line),
            Some(b'#') => {
                self.current = Current::Nothing;
                self.date(line);
                None
            }
            Some(_) => self.socket_line(line),
        }
    }

    fn too_long(&mut self, beginning: &[u8]) {
        self.report.count();
        self.not_understood(beginning);
    }

    fn take(&mut self) -> Option<RecordBatch> {
        self.current = Current::Nothing;
        (self.sockets.rows() > 0).then(|| self.sockets.take())
    }
}

struct Endpoint<'a> {
    address: &'a str,
    interface: Option<&'a str>,
    /// 0: any. `None`: a service's name, as ss prints without `-n`.
    port: Option<i32>,
}

/// `10.0.0.1:443`, `[2001:db8::1]:443`, `::1:443` of older versions,
/// `[fe80::1]%eth0:22`, `10.0.0.1%eth0:22`, `*:22`, `0.0.0.0:*`.
fn endpoint(text: &[u8]) -> Option<Endpoint<'_>> {
    let text = std::str::from_utf8(text).ok()?;
    let (address, port) = text.rsplit_once(':')?;
    let port = match port {
        "*" => Some(0),
        "" => return None,
        _ if port.as_bytes()[0].is_ascii_digit() => Some(i32::from(port.parse::<u16>().ok()?)),
        _ => None,
    };
    let (address, interface) = match address.split_once('%') {
        // Within brackets the scope stands before the closing one.
        Some((address, interface)) => (address, Some(interface.trim_end_matches(']'))),
        None => (address, None),
    };
    let address = address.trim_start_matches('[').trim_end_matches(']');
    (!address.is_empty()).then_some(Endpoint {
        address,
        interface,
        port,
    })
}

fn number(text: &[u8]) -> Option<i64> {
    if text.len() > 18 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(
        text.iter()
            .fold(0, |number, digit| number * 10 + i64::from(digit - b'0')),
    )
}

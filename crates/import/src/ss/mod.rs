//! `ss` dumps of any iproute2 since 3.10, as rows of `sockets`.
//!
//! A dump is lines of sockets, each followed by lines that begin with a space
//! (`-i`, `-m` …) or holding everything (`-O`). Header lines, empty lines, lines
//! of dashes and comments (`#`) are skipped; a line with a date, see [`time`],
//! begins a dump of that time, or ends it where the file says so. A line of
//! details without a socket before it is a row without addresses. What programs
//! that passed the dump on did to its lines is undone: see [`prefix`] and
//! [`Parser::joined`].

mod line;
mod ports;
mod socket;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use knee_store::Anonymiser;
use knee_tables::{Batch, Sockets, Table};

use self::line::{Tokens, details, goes_on, has_key, may_be_details, zeros};
use self::socket::{Head, Port, Socket};
use super::counts::counts;
use super::kind::{HOST, ZONE, first_lines};
use super::lines::{self, Lines, fills};
use super::prefix::{self, Kind as Before, Prefix};
use super::time::{self, Moment};
use super::{Columns, Given, Import as _, Kind, More as _, Sample, TableKind, reading};

/// Different unknown words that are counted apart.
const WORDS: usize = 64;
/// Longest line that is joined of several.
const JOINED_BYTES: usize = 64 << 10;
/// What may stand before each line. Lines of several hosts or containers may
/// take turns: which line goes on with which is then not known.
const BEFORE: [Before; 3] = [Before::Mail, Before::Tap, Before::Time];

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
        columns: Columns::Recorded(|| Sockets::COLUMNS.to_vec()),
    }],
    options: &[HOST, ZONE],
    unit: "lines",
    row: "TCP socket",
    expected: "what `ss -tinem` prints",
    told: "{rows:row} of {dumps:dump} from {lines:line}",
    counts: More::COUNTS,
    sample: Sample::File("tests/data/ss/dump.txt"),
    looks: |begin| {
        let is_socket = |line: &[u8]| {
            matches!(
                socket::head(line.trim_ascii()),
                Head::Socket(_) | Head::Titles
            ) || has_key(line) && may_be_details(Tokens(line).next().unwrap_or_default())
        };
        first_lines(begin)
            .any(|line| is_socket(line) || prefix::of(line, &BEFORE, None, &is_socket).is_some())
    },
    build: |given| Ok(Box::new(Parser::new(Options::from_given(given)?))),
};

pub type Report = super::Report<More>;

counts! {
    /// What only dumps tell.
    More {
        dumps: u64, "files, and dates and titles within them, that sockets follow";
        unknown_words: BTreeMap<String, u64>, "words within lines understood that mean nothing to the importer, as of a newer ss, and how often",
            doubt: "words that mean nothing to it: {list}.";
        rows_without_time: u64, "sockets whose dump says no time",
            doubt: "{count} rows have no time: neither a line before their dump nor the file's name says one.";
        dumps_without_date: u64, "dumps that follow another one without a date between; a new line of titles shows them",
            doubt: "{count} dumps follow another one without a date between, and have its time or none: let `date` print before each.";
        other_protocols: u64, "lines of sockets other than TCP, which are left out",
            doubt: "{count} sockets of other protocols than TCP were left out.",
            alone: "{count} sockets are of other protocols";
        prefixes: BTreeMap<String, u64>, "what stood before lines and was taken off, and before how many",
            doubt: "{count} lines have {what} before them, which was taken off.";
        lines_joined: u64, "lines that are the rest of the line before them, as a mail program breaks it, and were joined to it",
            doubt: "{count} lines are the rest of the line before them, and were joined to it.";
        dates_behind: u64, "dates taken for those of the sockets before them, since their file begins with sockets and ends with a date",
            doubt: "{count} dates were taken for those of the sockets before them: the file begins with sockets and ends with a date.";
        dates_at_end: u64, "files that begin with sockets and end with a date, read from a pipe: each date was taken for that of the sockets after it",
            doubt: "{count} files begin with sockets and end with a date: the dates may be those of the sockets before them. Import from a file, not a pipe, to have them so.";
        ports_by_name: BTreeMap<String, u64>, "ports printed as names, with the number taken for them, and how often",
            doubt: "ports are names, taken for the numbers assigned to them (ss -n prints numbers): {list}.";
        unknown_ports: BTreeMap<String, u64>, "names of ports that mean nothing to the importer; their columns are null",
            doubt: "ports whose names mean nothing to it are null: {list}.";
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
        Ok(Options {
            anonymiser: given.anonymiser.clone(),
            zone_s: time::zone_option(given)?,
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
    /// Have titles come again since its last socket?
    titles_again: bool,
    /// What lines of details belong to.
    current: Current,
    /// The word that ended the line of details before, whose value is to come.
    unfinished: &'static [u8],
    /// A line whose rest is to come, and its number.
    held: Vec<u8>,
    held_at: u64,
    /// Is it the beginning of a socket's, broken at a blank?
    held_is_begun: bool,
    /// Is the file quoted-printable?
    is_quoted: bool,
    dates: Dates,
    /// All dates; `None`: nobody asks.
    seen: Option<Vec<i64>>,
    /// Where the file, or the next, can be read a second time.
    again: Option<PathBuf>,
    /// Words of a line that mean nothing.
    unknown: Vec<String>,
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

/// Where the dates of a file stand: before their sockets, or behind.
#[derive(Default)]
struct Dates {
    /// The first row of the file in the batch, and in the report.
    first_row: usize,
    rows_before: u64,
    /// Rows of the report at the last date; `None`: no date yet.
    rows_at_date: Option<u64>,
    /// Did sockets stand before the first?
    come_late: bool,
    /// Those to come, where they stand behind their sockets.
    behind: Option<VecDeque<i64>>,
}

impl Parser {
    pub fn new(options: Options) -> Parser {
        Parser {
            options,
            sockets: Sockets::default(),
            report: Report::default(),
            t_unix_ns: None,
            dump_begins: true,
            titles_again: false,
            current: Current::Nothing,
            unfinished: b"",
            held: Vec::new(),
            held_at: 0,
            held_is_begun: false,
            is_quoted: false,
            dates: Dates::default(),
            seen: None,
            again: None,
            unknown: Vec::new(),
            text: String::new(),
        }
    }

    /// Does the last line wait for its rest?
    pub fn waits(&self) -> bool {
        !self.held.is_empty()
    }

    /// May what the lines say be shown? What may not be stored may not.
    fn shows(&self) -> bool {
        matches!(self.options.anonymiser, Anonymiser::Keep)
    }

    /// Joins a line that a mail program broke: at a blank, or with `=` at its end
    /// as quoted-printable text.
    fn joined(&mut self, line: &[u8]) -> Option<RecordBatch> {
        let goes_on = is_soft(line);
        let part = &line[..line.len() - usize::from(goes_on)];
        let mut whole = std::mem::take(&mut self.held);
        let is_socket =
            |part: &[u8]| matches!(socket::head(&[&whole, part].concat()), Head::Socket(_));
        let unquoted = prefix::mail(part).filter(|part| self.held_is_begun && is_socket(part));
        let part = unquoted.unwrap_or(part);
        let is_rest = match self.held_is_begun {
            true => !goes_on && is_socket(part),
            false => whole.len() + part.len() <= JOINED_BYTES,
        };
        self.held_is_begun = false;
        if !whole.is_empty() && is_rest {
            self.report.more.lines_joined += 1;
        } else {
            self.give_up(&std::mem::take(&mut whole));
            self.held_at = self.report.unit;
        }
        whole.extend_from_slice(part);
        self.is_quoted |= goes_on;
        if goes_on {
            self.held = whole;
            return None;
        }
        if self.is_quoted {
            let kept = whole.strip_suffix(b"=20").map(<[u8]>::len);
            whole.truncate(kept.unwrap_or(whole.len()));
            let mut at = 0;
            while let Some(found) = memchr::memmem::find(&whole[at..], b"=3D") {
                at += found + 1;
                whole.drain(at..at + 2);
            }
        }
        self.whole(&whole)
    }

    /// What was held and has no rest is not understood.
    fn give_up(&mut self, held: &[u8]) {
        if !held.is_empty() {
            self.current = Current::Nothing;
            let shown = if self.shows() { held } else { b"" };
            let shown = String::from_utf8_lossy(lines::beginning(shown));
            let shown = shown.trim().to_owned();
            self.report.not_understood_at(self.held_at, || shown);
        }
    }

    #[inline]
    fn whole(&mut self, line: &[u8]) -> Option<RecordBatch> {
        match line.first() {
            None => None,
            Some(b'\r') if line.len() == 1 => None,
            Some(b' ' | b'\t') => self.indented(line),
            Some(b'#') => self.comment(line),
            Some(_) => self.unindented(line),
        }
    }

    fn comment(&mut self, line: &[u8]) -> Option<RecordBatch> {
        let zone_s = self.options.zone_s;
        if !self.date(line) {
            let accepts = |rest: &[u8]| !rest.is_empty() && is_of_dump(rest, zone_s);
            if let Some(before) = prefix::of(line, &BEFORE, zone_s, &accepts) {
                return self.behind(&before);
            }
        }
        self.ends_details();
        self.current = Current::Nothing;
        None
    }

    /// A line without what stood before it.
    fn behind(&mut self, before: &Prefix<'_>) -> Option<RecordBatch> {
        count(
            &mut self.report.more.prefixes,
            [before.kind.name().to_owned()],
        );
        if before.kind == Before::Time || before.t_unix_ns.is_some() {
            self.t_unix_ns = before.t_unix_ns;
            // A time of each line is none behind its dump.
            self.dates.rows_at_date.get_or_insert(0);
            self.dump_begins |= matches!(socket::head(before.rest), Head::Titles);
        }
        self.whole(before.rest)
    }

    /// A word whose value did not come says nothing.
    fn ends_details(&mut self) {
        let word = std::mem::take(&mut self.unfinished);
        if !word.is_empty() {
            let word = String::from_utf8_lossy(word).into_owned();
            count(&mut self.report.more.unknown_words, [word]);
        }
    }

    fn indented(&mut self, line: &[u8]) -> Option<RecordBatch> {
        let text = line.trim_ascii();
        let token = Tokens(text).next()?;
        // Some versions of ss, and some shells, indent all.
        if !token[0].is_ascii_lowercase() && !may_be_details(token) || socket::is_protocol(token) {
            return self.unindented(text);
        }
        if self.current == Current::Nothing && self.date(text) {
            return None;
        }
        let mut full = None;
        let row = match self.current {
            Current::Row(row) if may_be_details(token) => row,
            Current::Skipped => return None,
            Current::Nothing if may_be_details(token) && has_key(text) => {
                let (batch, row) = self.add_row();
                full = batch;
                row
            }
            _ => {
                self.not_understood(line);
                return None;
            }
        };
        self.ends_details();
        self.details(line, row);
        full
    }

    fn add_row(&mut self) -> (Option<RecordBatch>, usize) {
        let full = self.sockets.is_full().then(|| {
            self.dates.first_row = 0;
            knee_store::take(&mut self.sockets)
        });
        let row = self.sockets.add_row();
        self.report.rows += 1;
        let begins = std::mem::take(&mut self.dump_begins);
        let goes_on = std::mem::take(&mut self.titles_again) && !begins;
        self.report.more.dumps += u64::from(begins || goes_on);
        self.report.more.dumps_without_date += u64::from(goes_on);
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
        self.read_details(line, row);
        zeros(&mut self.sockets, row);
        if self.unknown.is_empty() {
            return;
        }
        let date = socket::date_at_end(line, self.options.zone_s);
        if let Some((end, _)) = date {
            self.read_details(&line[..end], row);
        }
        count(&mut self.report.more.unknown_words, self.unknown.drain(..));
        if let Some((_, t_unix_ns)) = date {
            self.dated(t_unix_ns);
        }
    }

    fn read_details(&mut self, line: &[u8], row: usize) {
        let shows = self.shows();
        self.unknown.clear();
        self.unfinished = details(line, &mut self.sockets, row, |word| {
            // The key alone: values would make each one different.
            let key = word.split(|byte| *byte == b':').next().unwrap_or(word);
            let key = String::from_utf8_lossy(&key[..key.len().min(32)]);
            // A word that means nothing may be an address, or a host's name.
            let shown = if shows { key.into_owned() } else { "?".into() };
            self.unknown.push(shown);
        });
    }

    fn unindented(&mut self, line: &[u8]) -> Option<RecordBatch> {
        match socket::head(line) {
            Head::Titles => {
                self.ends_details();
                self.titles_again = true;
                self.current = Current::Nothing;
                return None;
            }
            Head::Other => {
                self.ends_details();
                self.report.more.other_protocols += 1;
                self.current = Current::Skipped;
                return None;
            }
            Head::Socket(socket) => return self.socket(&socket),
            Head::Begun | Head::Nothing => {}
        }
        if self.date(line) || line.iter().all(|byte| b"-=*_+ \t\r".contains(byte)) {
            self.ends_details();
            self.current = Current::Nothing;
            return None;
        }
        let zone_s = self.options.zone_s;
        let waits = !self.unfinished.is_empty();
        let is_value = |line: &[u8]| waits && line.first().is_some_and(u8::is_ascii_digit);
        let accepts = |rest: &[u8]| is_of_dump(rest, zone_s) || goes_on(rest) || is_value(rest);
        let before = prefix::of(line, &BEFORE, zone_s, &accepts);
        if let Some(before) = before.or_else(|| socket::behind_date(line, zone_s)) {
            return self.behind(&before);
        }
        let is_value = is_value(line);
        if self.current != Current::Nothing && (is_value || goes_on(line)) {
            self.report.more.lines_joined += 1;
            if let Current::Row(row) = self.current {
                let whole = match is_value {
                    true => &[self.unfinished, b" ", line].concat(),
                    false => line,
                };
                self.details(whole, row);
            }
            return None;
        }
        self.ends_details();
        self.current = Current::Nothing;
        if matches!(socket::head(line), Head::Begun) {
            self.held = [line.trim_ascii_end(), b" "].concat();
            self.held_is_begun = true;
            self.held_at = self.report.unit;
        } else {
            self.not_understood(line);
        }
        None
    }

    fn socket(&mut self, socket: &Socket<'_>) -> Option<RecordBatch> {
        let (full, row) = self.add_row();
        self.ends_details();
        self.current = Current::Row(row);
        if let Some(state) = socket.state {
            self.sockets.state.set(row, state);
        }
        self.sockets.recv_q_bytes.set(row, socket.recv_q_bytes);
        self.sockets.send_q_bytes.set(row, socket.send_q_bytes);
        self.address(socket.local.address);
        if !self.text.is_empty() {
            self.sockets.local_addr.set(row, &self.text);
        }
        self.address(socket.remote.address);
        if !self.text.is_empty() {
            self.sockets.remote_addr.set(row, &self.text);
        }
        if let Some(port) = self.port(socket.local.port) {
            self.sockets.local_port.set(row, port);
        }
        if let Some(port) = self.port(socket.remote.port) {
            self.sockets.remote_port.set(row, port);
        }
        if let Some(interface) = socket.local.interface.or(socket.remote.interface) {
            self.sockets.interface.set(row, interface);
        }
        if !socket.rest.is_empty() {
            self.details(socket.rest, row);
        }
        full
    }

    fn port(&mut self, port: Port<'_>) -> Option<i32> {
        let name = match port {
            Port::Number(number) => return Some(number),
            Port::Name(name) => name,
        };
        let number = ports::number(name);
        let more = &mut self.report.more;
        match number {
            Some(number) => count(&mut more.ports_by_name, [format!("{name} = {number}")]),
            None => {
                let shows = matches!(self.options.anonymiser, Anonymiser::Keep);
                let name = if shows { name } else { "?" };
                count(&mut more.unknown_ports, [name.to_owned()]);
            }
        }
        number
    }

    /// Leaves in `text` what may be stored of an address; nothing for a name, as
    /// the prefix of a name has no meaning.
    fn address(&mut self, address: &str) {
        self.text.clear();
        if self.shows() || address == "*" {
            self.text.push_str(address);
        } else if let Ok(address) = address.parse::<IpAddr>() {
            self.options.anonymiser.write(address, &mut self.text);
        }
    }

    /// Is it a line with the time of a dump?
    fn date(&mut self, line: &[u8]) -> bool {
        let text = std::str::from_utf8(line).ok();
        let time = text.and_then(|text| time::line(text, self.options.zone_s));
        if let Some(time) = time {
            self.dated(time);
        }
        time.is_some()
    }

    /// A date stands here: of what follows, or of what stood before it.
    fn dated(&mut self, t_unix_ns: i64) {
        self.dump_begins = true;
        if let Some(seen) = &mut self.seen {
            seen.push(t_unix_ns);
        }
        if self.dates.rows_at_date.is_none() && self.report.rows > self.dates.rows_before {
            self.dates.come_late = true;
            self.dates.behind = self.dates_behind();
            if self.dates.behind.is_some() {
                self.date_rows(t_unix_ns);
            }
        }
        self.dates.rows_at_date = Some(self.report.rows);
        self.t_unix_ns = match &mut self.dates.behind {
            Some(behind) => {
                self.report.more.dates_behind += 1;
                behind.pop_front()
            }
            None => Some(t_unix_ns),
        };
    }

    /// The dates behind the first, if the file ends with one: each is that of
    /// the sockets before it.
    fn dates_behind(&self) -> Option<VecDeque<i64>> {
        let path = self.again.as_deref()?;
        let mut again = Parser::new(self.options.clone());
        again.seen = Some(Vec::new());
        let input = reading::open(path).ok()?;
        let read = again.read_stream(path, input, |_, _| Ok::<_, io::Error>(()));
        let ends = read.is_ok() && again.dates.rows_at_date == Some(again.report.rows);
        let seen = again.seen.take().unwrap_or_default();
        ends.then(|| seen.into_iter().skip(1).collect())
    }

    /// Gives the file's rows so far a time, as far as they have not left.
    fn date_rows(&mut self, t_unix_ns: i64) {
        for row in self.dates.first_row..self.sockets.rows() {
            let had_time = self.sockets.t_unix_ns.get(row).is_some();
            self.report.more.rows_without_time -= u64::from(!had_time);
            self.sockets.t_unix_ns.set(row, t_unix_ns);
        }
    }

    /// What can be said of a file only at its end.
    fn end_file(&mut self) {
        self.ends_details();
        let held = std::mem::take(&mut self.held);
        self.give_up(&held);
        let dates = std::mem::take(&mut self.dates);
        let at_end = dates.rows_at_date == Some(self.report.rows);
        if dates.come_late && dates.behind.is_none() && at_end {
            self.report.more.dates_at_end += 1;
        }
    }

    fn not_understood(&mut self, line: &[u8]) {
        let shows = self.shows();
        let zone_s = self.options.zone_s;
        self.report.not_understood(|| {
            if !shows {
                return String::new();
            }
            let text = String::from_utf8_lossy(lines::beginning(line));
            let text = text.trim();
            match time::moment(text, zone_s) {
                Some(Moment::In(zone)) => {
                    format!(
                        "{text}: {zone} is the name of several zones; say with --zone which it is"
                    )
                }
                _ => text.to_owned(),
            }
        });
    }
}

/// Does quoted-printable text go on behind the line's end? A line of dashes, or a
/// date between them, ends otherwise.
fn is_soft(line: &[u8]) -> bool {
    matches!(line, [first, .., last, b'='] if *first != b'=' && *last != b'=')
}

/// Is it a whole line of a dump, or between dumps, behind what stood before it?
fn is_of_dump(line: &[u8], zone_s: Option<i32>) -> bool {
    let is_date = || std::str::from_utf8(line).is_ok_and(|text| time::line(text, zone_s).is_some());
    match line.first() {
        Some(b' ' | b'\t') => {
            has_key(line) || matches!(socket::head(line.trim_ascii()), Head::Socket(_))
        }
        Some(_) => !matches!(socket::head(line), Head::Nothing) || is_date(),
        None => true,
    }
}

/// Counts each word; new ones until there are `WORDS`.
fn count(words: &mut BTreeMap<String, u64>, more: impl IntoIterator<Item = String>) {
    for word in more {
        if words.len() < WORDS || words.contains_key(&word) {
            *words.entry(word).or_default() += 1;
        }
    }
}

impl Lines for Parser {
    fills!(Sockets);

    /// Its name may say when it was dumped.
    fn file(&mut self, path: &Path) {
        self.end_file();
        self.report.begin(path);
        self.dump_begins = true;
        self.current = Current::Nothing;
        self.held_is_begun = false;
        self.is_quoted = false;
        self.dates = Dates {
            first_row: self.sockets.rows(),
            rows_before: self.report.rows,
            ..Dates::default()
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.t_unix_ns = time::name(&name, self.options.zone_s);
    }

    fn again(&mut self, path: Option<&Path>) {
        self.again = path.map(Path::to_owned);
    }

    #[inline]
    fn line(&mut self, line: &[u8]) -> Option<RecordBatch> {
        self.report.count();
        let text = line.strip_suffix(b"\r").unwrap_or(line);
        match !self.held.is_empty() || self.is_quoted || is_soft(text) {
            true => self.joined(text),
            false => self.whole(line),
        }
    }

    fn too_long(&mut self, beginning: &[u8]) {
        self.report.count();
        let held = std::mem::take(&mut self.held);
        self.give_up(&held);
        self.not_understood(beginning);
    }

    fn take(&mut self) -> Vec<RecordBatch> {
        self.end_file();
        self.current = Current::Nothing;
        let rest = (self.sockets.rows() > 0).then(|| knee_store::take(&mut self.sockets));
        rest.into_iter().collect()
    }
}

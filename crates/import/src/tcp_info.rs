//! Files of M-Lab's tcp-info, as rows of `sockets`.
//!
//! Each line is a JSON object (`ArchivalRecord`): `Timestamp`, `RawIDM` (the
//! kernel's `inet_diag_msg`, base64) and `Attributes`, at whose position `n` the
//! value of attribute `n` stands in base64, or null. A file begins with one that
//! has `Metadata` in their place.
//!
//! Source: github.com/m-lab/tcp-info, netlink/archival-record.go.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use arrow_array::RecordBatch;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use knee_collect::sock_diag::{Diag, MESSAGE_BYTES, SocketRows};
use knee_store::Anonymiser;
use knee_tables::{Batch, Sockets, Table};
use serde::Deserialize;

use super::counts::counts;
use super::kind::{HOST, holds};
use super::lines::{Lines, fills};
use super::{Columns, Kind, More as _, Opt, Sample, TableKind};

pub static KIND: Kind = Kind {
    name: "tcp-info",
    summary: "M-Lab's tcp-info files.",
    about: "Import files of M-Lab's tcp-info: a row of the table `sockets` for each snapshot, as `knee record` writes \
        them.\n\n\
        JSONL of ArchivalRecord, plain, gzip or zstd.",
    page: "\
Reads what the [tcp-info](https://github.com/m-lab/tcp-info) sidecar writes: a snapshot of a socket per line, as the
kernel's own bytes. They go through the decoder of `knee record` into the table `sockets`; fields that the kernel of the
time lacked are null. `host` is that of the file's metadata, unless `--host` says it; `cookie` is the last part of the
UUID, and `boot_id` what stands before it, as cookies begin anew with each boot; a device is its index. Lines not understood are shown by why, never by their text.
",
    examples: &["knee import tcp-info 2026/07/01/*.jsonl.zst --out rec"],
    tables: &[TableKind {
        name: Sockets::NAME,
        short: "sockets",
        rows: "one per snapshot of a socket",
        columns: Columns::Recorded(|| Sockets::COLUMNS.to_vec()),
    }],
    options: &[Opt {
        help: "Fills the column host; by default as the file's metadata says.",
        ..HOST
    }],
    unit: "lines",
    row: "TCP socket",
    expected: "JSONL of M-Lab's tcp-info",
    told: "{rows:row} from {lines:line}",
    counts: More::COUNTS,
    sample: Sample::File("tests/data/tcp_info.jsonl"),
    looks: |begin| {
        holds(begin, b"\"RawIDM\"") || holds(begin, b"\"Metadata\"") && holds(begin, b"\"UUID\"")
    },
    build: |given| {
        Ok(Box::new(Parser::new(Options {
            anonymiser: given.anonymiser.clone(),
            host: given.text("host").map(str::to_owned),
        })))
    },
};

/// Of lines not understood it has why. The lines themselves hold addresses in a
/// form that is easily read back.
pub type Report = super::Report<More>;

counts! {
    /// What only these files tell.
    More {
        rows_without_time: u64, "sockets of which no time is told", doubt: "{count} rows have no time.";
    }
}

/// How to read files.
#[derive(Clone)]
pub struct Options {
    pub anonymiser: Anonymiser,
    /// What column `host` says; `None`: the host in the file's metadata.
    pub host: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Record<'a> {
    #[serde(borrow)]
    timestamp: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "RawIDM")]
    raw_idm: Option<Cow<'a, str>>,
    #[serde(borrow)]
    attributes: Option<Vec<Option<Cow<'a, str>>>>,
    #[serde(borrow)]
    metadata: Option<Metadata<'a>>,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, rename = "UUID")]
    uuid: Option<Cow<'a, str>>,
}

/// A parser of lines.
pub struct Parser {
    options: Options,
    sockets: SocketRows,
    report: Report,
    /// Of the current file's metadata.
    host: Option<String>,
    /// When that host was booted.
    boot_time: Option<String>,
    /// The values of a line's attributes, one after the other.
    values: Vec<u8>,
    places: Vec<(u16, Range<usize>)>,
}

impl Parser {
    pub fn new(options: Options) -> Parser {
        Parser {
            options,
            sockets: SocketRows::default(),
            report: Report::default(),
            host: None,
            boot_time: None,
            values: Vec::new(),
            places: Vec::new(),
        }
    }

    fn record(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let record: Record<'_> =
            serde_json::from_slice(line).map_err(|_| "no JSON object of tcp-info")?;
        if let Some(metadata) = &record.metadata {
            let (host, boot_time) = metadata.uuid.as_deref().and_then(boot_of).unzip();
            self.host = host.map(str::to_owned);
            self.boot_time = boot_time.map(str::to_owned);
        }
        let Some(raw) = &record.raw_idm else {
            return if record.metadata.is_some() {
                Ok(())
            } else {
                Err("it has neither RawIDM nor Metadata")
            };
        };
        self.values.clear();
        self.places.clear();
        STANDARD
            .decode_vec(raw.as_bytes(), &mut self.values)
            .map_err(|_| "RawIDM is not base64")?;
        let head = *<&[u8; MESSAGE_BYTES]>::try_from(&self.values[..])
            .map_err(|_| "RawIDM does not have the 72 bytes of an inet_diag_msg")?;
        let attributes = record.attributes.unwrap_or_default();
        for (kind, value) in (0u16..).zip(&attributes) {
            let Some(value) = value else { continue };
            let from = self.values.len();
            STANDARD
                .decode_vec(value.as_bytes(), &mut self.values)
                .map_err(|_| "an attribute is not base64")?;
            self.places.push((kind, from..self.values.len()));
        }
        let t_unix_ns = (record.timestamp.as_deref())
            .and_then(|text| chrono::DateTime::parse_from_rfc3339(text).ok())
            .and_then(|time| time.timestamp_nanos_opt());
        self.row(&head, t_unix_ns);
        Ok(())
    }

    fn row(&mut self, head: &[u8; MESSAGE_BYTES], t_unix_ns: Option<i64>) {
        let mut diag = Diag::head(head);
        for (kind, place) in &self.places {
            diag.attribute(*kind, &self.values[place.clone()]);
        }
        let table = &mut self.sockets;
        let row = table.add_row();
        self.report.rows += 1;
        match t_unix_ns {
            Some(t_unix_ns) => table.t_unix_ns.set(row, t_unix_ns),
            None => self.report.more.rows_without_time += 1,
        }
        if let Some(host) = self.options.host.as_ref().or(self.host.as_ref()) {
            table.host.set(row, host);
            if let Some(boot_time) = &self.boot_time {
                let boot = format!("{host}_{boot_time}");
                table.boot_id.set(row, &self.options.anonymiser.id(&boot));
            }
        }
        table.r#final.set(row, false);
        table.fill(row, &diag, &self.options.anonymiser);
        table.fill_dumped(row, &diag);
        if diag.interface != 0 {
            // Its name is of a host that is not at hand.
            table.interface.set(row, &diag.interface.to_string());
        }
        table.uid.set(row, diag.uid.into());
        table.inode.set(row, diag.inode.into());
        if let Some(mark) = diag.mark {
            table.mark.set(row, mark.into());
        }
        if let Some(id) = diag.cgroup_id {
            table.cgroup_id.set(row, id);
        }
    }
}

impl Lines for Parser {
    fills!(Sockets);

    fn file(&mut self, path: &Path) {
        self.report.begin(path);
        (self.host, self.boot_time) = (None, None);
    }

    fn line(&mut self, line: &[u8]) -> Option<RecordBatch> {
        self.report.count();
        if line.trim_ascii().is_empty() {
            return None;
        }
        let full = self
            .sockets
            .is_full()
            .then(|| knee_store::take(&mut self.sockets));
        if let Err(why) = self.record(line) {
            self.report.not_understood(|| why.to_owned());
        }
        full
    }

    fn take(&mut self) -> Vec<RecordBatch> {
        let rest = (self.sockets.rows() > 0).then(|| knee_store::take(&mut self.sockets));
        rest.into_iter().collect()
    }

    fn too_long(&mut self, _beginning: &[u8]) {
        self.report.count();
        self.report
            .not_understood(|| "is longer than 1 MiB".to_owned());
    }
}

/// Host and time of boot of `HOST_BOOTTIME_COOKIE` or `HOST_BOOTTIME_unsafe_COOKIE`.
fn boot_of(uuid: &str) -> Option<(&str, &str)> {
    let (rest, _cookie) = uuid.rsplit_once('_')?;
    let boot = rest.strip_suffix("_unsafe").unwrap_or(rest);
    boot.rsplit_once('_').filter(|(host, _)| !host.is_empty())
}

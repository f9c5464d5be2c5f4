//! Packet captures (pcap, pcapng), as rows of `capture_acks` and
//! `capture_connections`.
//!
//! Each packet goes through [`file`] (a record), [`packet`] (a TCP segment),
//! [`connection`] (handshake, place of the capture) and [`sender`]; a
//! connection has two of these, each for what one side sent and what came back. Memory is bounded
//! by the connections that are open and by what is outstanding on them.

mod connection;
mod file;
mod interval;
mod packet;
mod quantiles;
mod ranges;
mod rows;
mod sender;
mod tables;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

use ahash::AHashMap;
use knee_store::Anonymiser;
use knee_tables::Table as _;

use self::connection::{Connection, Ended, Taken};
use self::file::{Next, Reader, Record};
use self::packet::{Decoded, Endpoint, Segment};
use self::rows::Rows;
pub use self::tables::{CaptureAcks, CaptureConnections};
use super::counts::counts;
use super::kind::HOST;
use super::reading::described;
use super::{
    Columns, Counts, Described, Filled, Import, Kind, More as _, Opt, Sample, TableKind, Takes,
};

/// A closed connection whose last packets may still come: twice the longest life
/// of a segment (RFC 9293, section 3.4.2, as Linux has it).
const LINGER_NS: i64 = 60_000_000_000;
/// Packets between two reports.
const STEP: u64 = 4096;
/// How much earlier than the end of one file the next may begin and go on with
/// its connections.
const OVERLAP_NS: i64 = 1_000_000_000;

/// How to read captures.
#[derive(Clone)]
pub struct Options {
    pub anonymiser: Anonymiser,
    /// What column `host` says.
    pub host: Option<String>,
    /// A row per interval of this length; `None`: per ACK.
    pub every_ns: Option<i64>,
    /// Open at a time. When there are more, those silent longest are closed out.
    pub connections_max: usize,
    /// Outstanding ranges and other memories of all connections, of about 64
    /// bytes each. When there are more, those of the connection that comes next
    /// are halved.
    pub entries_max: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            anonymiser: Anonymiser::Keep,
            host: None,
            every_ns: None,
            connections_max: 1 << 16,
            entries_max: 1 << 21,
        }
    }
}

pub type Report = super::Report<More>;

counts! {
    /// What only captures tell.
    More {
        tcp_packets: u64, "packets of TCP over IP";
        connections: u64, "rows of `capture_connections`";
        ack_rows: u64, "rows of `capture_acks`";
        other_packets: u64, "packets that are not TCP over IP";
        at_receiver: u64, "connections captured at the receiver of most of the data",
            doubt: "{count} connections were captured at the receiver of their data: rtt_us is that host's own there.";
        in_the_middle: u64, "connections captured between their ends",
            doubt: "{count} connections were captured between their ends: rtt_us is a part of the round trip there.";
        one_way: u64, "connections of which one direction was captured",
            doubt: "{count} connections have packets of one direction only: no RTT, no inflight.";
        dropped_by_capture: u64, "packets that the capturing program says it could not take",
            doubt: "{count} packets were dropped by the capture, as it says.";
        bytes_not_captured: u64, "bytes acknowledged and not in the capture",
            doubt: "{count} bytes were acknowledged and not captured: the capture dropped packets.";
        options_cut: u64, "packets whose TCP options were cut off: their SACK blocks are missing",
            doubt: "{count} packets have their TCP options cut off; capture 128 bytes or more of each.";
        captured_again: u64, "packets captured a second time, at another interface, which are left out",
            doubt: "{count} packets were captured again at another interface, and left out.";
        fragments: u64, "packets of TCP in fragments of IP, which are left out",
            doubt: "{count} fragments of IP packets were left out: they do not tell their segment's length.";
        unknown_links: BTreeMap<u32, u64>, "packets by each link type that is not read",
            doubt: "{count} packets have a link type that is not read: {what}.",
            alone: "{found} by link types that are not read: {words}";
        captures_joined: u64, "captures that begin within a file, behind another",
            doubt: "{count} captures begin within a file, behind another, and were read as if in a file of their own.";
        left: u64, "connections that were ended to make room for others",
            doubt: "{count} connections were ended to make room for others: more than 65,536 were open.";
        forgotten: u64, "times that outstanding ranges were given up",
            doubt: "memory for what was outstanding ran out: some ACKs have no RTT.";
    }
}

pub static KIND: Kind = Kind {
    name: "pcap",
    summary: "Packet captures: RTTs, retransmissions, inflight.",
    about: "Import packet captures: a row of the table `capture_connections` for each TCP connection, and one of \
        `capture_acks` for each ACK.\n\n\
        pcap or pcapng of Ethernet, raw IP, Linux cooked and loopback, plain, gzip or zstd; headers are enough (dumpcap -s \
        128). Files of one capture go in the order of their times. Round-trip times are the sender's where it was captured \
        there.",
    page: include_str!("page.md"),
    examples: &[
        "dumpcap -i eth0 -s 128 -w day.pcapng -f 'tcp port 443'",
        "knee import pcap day.pcapng --out rec --host edge1",
        "knee import pcap ring_*.pcap.gz --out rec --every 100ms --anonymize hash",
    ],
    tables: &[
        TableKind {
            name: CaptureAcks::NAME,
            short: "acks",
            rows: "one per ACK that says something new to a sender of data, or per interval (`--every`): RTT, bytes in \
                flight, acknowledged, retransmitted, the far end's window, duplicate ACKs, CE and ECE",
            columns: Columns::own::<CaptureAcks>(),
        },
        TableKind {
            name: CaptureConnections::NAME,
            short: "connections",
            rows: "one per connection: handshake, RTT (least, median, 95th percentile), `retransmit_pct`, goodput, bytes \
                each way, how it ended",
            columns: Columns::own::<CaptureConnections>(),
        },
    ],
    options: &[
        Opt {
            name: "every",
            takes: Takes::Time,
            default: "",
            help: "A row per interval, such as 100ms, instead of per ACK.",
        },
        Opt {
            help: "Fills the columns host.",
            ..HOST
        },
    ],
    unit: "packets",
    row: "TCP connection",
    expected: "packet captures, pcap or pcapng",
    told: "{connections:connection} and {ack_rows:row} of ACKs from {packets:packet}",
    counts: More::COUNTS,
    sample: Sample::File("tests/data/pcap/capture.pcapng"),
    looks: |begin| matches!(Reader::new(begin), Ok(Some(_))),
    build: |given| {
        Ok(Box::new(Analyser::new(Options {
            anonymiser: given.anonymiser.clone(),
            host: given.text("host").map(str::to_owned),
            every_ns: given.time_ns("every"),
            ..Options::default()
        })))
    },
};

type Key = (Endpoint, Endpoint);

/// Makes rows of packets.
pub struct Analyser {
    options: Options,
    rows: Rows,
    connections: AHashMap<Key, Box<Connection>>,
    entries: usize,
    report: Report,
    /// Of all packets so far, the latest.
    latest_ns: i64,
    swept_ns: i64,
    begins: bool,
}

impl Analyser {
    /// # Panics
    /// An interval or a bound of `options` is 0.
    pub fn new(options: Options) -> Analyser {
        assert!(options.connections_max > 0, "one connection is tracked");
        let rows = Rows::new(
            options.anonymiser.clone(),
            options.host.clone(),
            options.every_ns,
        );
        Analyser {
            options,
            rows,
            connections: AHashMap::new(),
            entries: 0,
            report: Report::default(),
            latest_ns: 0,
            swept_ns: 0,
            begins: false,
        }
    }

    fn record(&mut self, record: &Record<'_>) {
        self.report.count();
        let decoded = packet::decode(
            record.link_type,
            record.interface,
            record.wire_bytes,
            record.data,
        );
        match decoded {
            Decoded::Tcp(segment) => self.segment(record.t_ns, &segment),
            Decoded::Other => self.report.more.other_packets += 1,
            Decoded::Fragment => self.report.more.fragments += 1,
            Decoded::UnknownLink => {
                let count = self.report.more.unknown_links.entry(record.link_type);
                *count.or_default() += 1;
            }
            Decoded::Malformed(what) => self.not_understood(what),
        }
    }

    fn segment(&mut self, t_ns: i64, segment: &Segment) {
        // Two captures of the same time are not one: their connections would be
        // seen twice.
        if std::mem::take(&mut self.begins) && t_ns < self.latest_ns - OVERLAP_NS {
            self.close_all();
            (self.latest_ns, self.swept_ns) = (t_ns, t_ns);
        }
        self.latest_ns = self.latest_ns.max(t_ns);
        self.report.more.tcp_packets += 1;
        self.report.more.options_cut += u64::from(segment.cut);
        let mut key = (segment.source, segment.destination);
        if key.0 > key.1 {
            key = (key.1, key.0);
        }
        if (self.connections.get(&key)).is_some_and(|connection| connection.is_ended_by(segment)) {
            self.close(&key, Some(Ended::Reused));
        }
        if !self.connections.contains_key(&key) {
            self.make_room();
        }
        let number = self.report.more.connections as i64;
        let connection = self.connections.entry(key).or_insert_with(|| {
            self.report.more.connections += 1;
            Box::new(Connection::new(number, t_ns, segment))
        });
        let before = connection.entries();
        if connection.packet(t_ns, segment, &mut self.rows) == Taken::Again {
            self.report.more.captured_again += 1;
        }
        self.entries = self.entries + connection.entries() - before;
        if self.entries > self.options.entries_max {
            let before = connection.entries();
            connection.forget();
            self.entries = self.entries + connection.entries() - before;
            self.report.more.forgotten += 1;
        }
        self.count_rows();
    }

    /// Makes room for one more connection.
    fn make_room(&mut self) {
        let due = self.latest_ns - self.swept_ns > LINGER_NS;
        let full = self.connections.len() >= self.options.connections_max;
        if !due && !full {
            return;
        }
        self.swept_ns = self.latest_ns;
        let mut over = Vec::new();
        let mut open = Vec::new();
        for (key, connection) in &self.connections {
            let is_old = self.latest_ns - connection.last_ns > LINGER_NS;
            if connection.is_over() && (full || is_old) {
                over.push((connection.number, *key));
            } else {
                open.push((connection.last_ns, connection.number, *key));
            }
        }
        over.sort_unstable();
        for (_, key) in &over {
            self.close(key, None);
        }
        if full && over.is_empty() {
            // A sixteenth at a time: looking at all of them has its price.
            open.sort_unstable();
            open.truncate(self.options.connections_max.div_ceil(16));
            for (_, _, key) in open {
                self.report.more.left += 1;
                self.close(&key, Some(Ended::Left));
            }
        }
    }

    fn close_all(&mut self) {
        let mut keys: Vec<_> = (self.connections.iter())
            .map(|(key, connection)| (connection.number, *key))
            .collect();
        keys.sort_unstable();
        for (_, key) in keys {
            self.close(&key, None);
        }
    }

    /// Writes what is left of a connection; `because`: if it was open.
    fn close(&mut self, key: &Key, because: Option<Ended>) {
        let mut connection = self.connections.remove(key).expect("it is tracked");
        self.entries -= connection.entries();
        connection.finish(&mut self.rows);
        let ended = match connection.ended() {
            Ended::Open => because.unwrap_or(Ended::Open),
            ended => ended,
        };
        self.rows.connection(&connection, ended);
        let local = connection.local();
        match connection.vantage(local) {
            Some("receiver") => self.report.more.at_receiver += 1,
            Some("middle") => self.report.more.in_the_middle += 1,
            _ => {}
        }
        self.report.more.one_way += u64::from(connection.is_one_way());
        self.report.more.bytes_not_captured += (connection.sides.iter())
            .map(|side| side.sender.counts.bytes_not_captured)
            .sum::<u64>();
        self.count_rows();
    }

    fn not_understood(&mut self, what: &str) {
        self.report.not_understood(|| what.to_owned());
    }

    fn count_rows(&mut self) {
        self.report.more.ack_rows = self.rows.ack_rows;
        self.report.rows = self.rows.ack_rows + self.report.more.connections;
    }
}

impl Import for Analyser {
    type More = More;

    fn tables(&self) -> Vec<Described> {
        vec![
            described::<CaptureAcks>(),
            described::<CaptureConnections>(),
        ]
    }

    /// Files in the order of their times go on with each other's connections; one
    /// that begins earlier does not. A file that is no capture is an error.
    fn read_stream<E: From<io::Error>>(
        &mut self,
        path: &Path,
        input: impl Read,
        mut sink: impl FnMut(Counts, Option<Filled>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.report.begin(path);
        self.begins = true;
        let Some(mut reader) = Reader::new(input)? else {
            return Ok(());
        };
        let bytes_before = self.report.bytes;
        let dropped_before = self.report.more.dropped_by_capture;
        loop {
            match reader.read_next()? {
                Next::Record(record) => self.record(&record),
                // Its times may lie before those of the one before.
                Next::Another => {
                    self.begins = true;
                    self.report.more.captures_joined += 1;
                }
                Next::Unusable(what) => {
                    self.report.count();
                    self.not_understood(what);
                }
                Next::Damaged(what) => {
                    self.report.unit += 1;
                    self.not_understood(what);
                    break;
                }
                Next::End => break,
            }
            for filled in self.rows.take_full() {
                sink(self.counts(), Some(filled))?;
            }
            if self.report.unit.is_multiple_of(STEP) {
                self.report.bytes = bytes_before + reader.bytes();
                sink(self.counts(), None)?;
            }
        }
        self.report.bytes = bytes_before + reader.bytes();
        self.report.more.dropped_by_capture = dropped_before + reader.dropped();
        sink(self.counts(), None)
    }

    /// Closes out all connections.
    fn rest(&mut self) -> Vec<Filled> {
        self.close_all();
        self.rows.rest()
    }

    fn report(&self) -> &Report {
        &self.report
    }
}

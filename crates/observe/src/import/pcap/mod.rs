//! Packet captures (pcap, pcapng), as rows of `capture_acks` and
//! `capture_connections`.
//!
//! Each packet goes through [`file`] (a record), [`packet`] (a TCP segment),
//! [`connection`] (handshake, place of the capture) and [`sender`], of which a
//! connection has two: what one side sent and what came back. Memory is bounded
//! by the connections that are open at a time and by what is outstanding on them.

mod connection;
mod file;
mod packet;
mod quantiles;
mod ranges;
mod rows;
mod sender;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ahash::AHashMap;

use self::connection::{Connection, Ended, Taken};
use self::file::{Next, Reader, Record};
use self::packet::{Decoded, Endpoint, Segment};
use self::rows::Rows;
use super::{Counts, Filled, Import, lines};
use crate::anonymise::Anonymiser;

/// Packets not understood that are kept to be shown.
const SHOWN: usize = 5;
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

/// What an import found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Of all files, once decompressed.
    pub bytes: u64,
    pub packets: u64,
    pub tcp_packets: u64,
    pub connections: u64,
    pub ack_rows: u64,
    /// Packets that are not TCP over IP.
    pub other_packets: u64,
    /// Packets by a link type that is not known.
    pub unknown_links: BTreeMap<u32, u64>,
    /// Packets of TCP in fragments of IP: their lengths are not known.
    pub fragments: u64,
    /// Packets captured a second time, at another interface.
    pub captured_again: u64,
    /// Packets whose TCP options were cut off: their SACK blocks are missing.
    pub options_cut: u64,
    pub packets_not_understood: u64,
    /// The first of them: file, packet from 1, and why.
    pub first: Vec<(PathBuf, u64, String)>,
    /// Packets that the capturing program says it could not take.
    pub dropped_by_capture: u64,
    /// Acknowledged and not in the capture.
    pub bytes_not_captured: u64,
    /// Connections of which one side's packets are in the capture.
    pub one_way: u64,
    /// Connections captured at the receiver of most of the data, or between.
    pub at_receiver: u64,
    pub in_the_middle: u64,
    /// Connections closed out to make room.
    pub left: u64,
    /// Times that outstanding ranges were given up.
    pub forgotten: u64,
}

type Key = (Endpoint, Endpoint);

/// Makes rows of packets.
pub struct Analyser {
    options: Options,
    rows: Rows,
    connections: AHashMap<Key, Box<Connection>>,
    entries: usize,
    report: Report,
    path: PathBuf,
    /// Packets of the current file.
    packet: u64,
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
            path: PathBuf::new(),
            packet: 0,
            latest_ns: 0,
            swept_ns: 0,
            begins: false,
        }
    }

    /// Reads a capture that is not a file, as [`Import::read`] reads files.
    ///
    /// # Errors
    /// It cannot be read or is no capture, or the sink's.
    pub fn read_stream<E: From<io::Error>>(
        &mut self,
        input: impl Read,
        mut sink: impl FnMut(Counts, Option<Filled>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(mut reader) = Reader::new(input)? else {
            return Ok(());
        };
        let bytes_before = self.report.bytes;
        let dropped_before = self.report.dropped_by_capture;
        loop {
            match reader.next()? {
                Next::Record(record) => self.record(&record),
                Next::Unusable(what) => {
                    self.packet += 1;
                    self.report.packets += 1;
                    self.not_understood(what);
                }
                Next::Damaged(what) => {
                    self.packet += 1;
                    self.not_understood(what);
                    break;
                }
                Next::End => break,
            }
            for filled in self.rows.take_full() {
                sink(self.counts(), Some(filled))?;
            }
            if self.packet.is_multiple_of(STEP) {
                self.report.bytes = bytes_before + reader.bytes();
                sink(self.counts(), None)?;
            }
        }
        self.report.bytes = bytes_before + reader.bytes();
        self.report.dropped_by_capture = dropped_before + reader.dropped();
        sink(self.counts(), None)
    }

    fn record(&mut self, record: &Record<'_>) {
        self.packet += 1;
        self.report.packets += 1;
        let decoded = packet::decode(
            record.link_type,
            record.interface,
            record.wire_bytes,
            record.data,
        );
        match decoded {
            Decoded::Tcp(segment) => self.segment(record.t_ns, &segment),
            Decoded::Other => self.report.other_packets += 1,
            Decoded::Fragment => self.report.fragments += 1,
            Decoded::UnknownLink => {
                let count = self.report.unknown_links.entry(record.link_type);
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
        self.report.tcp_packets += 1;
        self.report.options_cut += u64::from(segment.cut);
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
        let number = self.report.connections as i64;
        let connection = self.connections.entry(key).or_insert_with(|| {
            self.report.connections += 1;
            Box::new(Connection::new(number, t_ns, segment))
        });
        let before = connection.entries();
        if connection.packet(t_ns, segment, &mut self.rows) == Taken::Again {
            self.report.captured_again += 1;
        }
        self.entries = self.entries + connection.entries() - before;
        if self.entries > self.options.entries_max {
            let before = connection.entries();
            connection.forget();
            self.entries = self.entries + connection.entries() - before;
            self.report.forgotten += 1;
        }
        self.report.ack_rows = self.rows.ack_rows;
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
                self.report.left += 1;
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
            Some("receiver") => self.report.at_receiver += 1,
            Some("middle") => self.report.in_the_middle += 1,
            _ => {}
        }
        self.report.one_way += u64::from(connection.is_one_way());
        self.report.bytes_not_captured += (connection.sides.iter())
            .map(|side| side.sender.counts.bytes_not_captured)
            .sum::<u64>();
        self.report.ack_rows = self.rows.ack_rows;
    }

    fn not_understood(&mut self, what: &str) {
        self.report.packets_not_understood += 1;
        if self.report.first.len() < SHOWN {
            let shown = (self.path.clone(), self.packet, what.to_owned());
            self.report.first.push(shown);
        }
    }
}

impl Import for Analyser {
    type Report = Report;

    /// Files in the order of their times go on with each other's connections; one
    /// that begins earlier does not. A file that is no capture is an error.
    fn read<E: From<io::Error>>(
        &mut self,
        path: &Path,
        sink: impl FnMut(Counts, Option<Filled>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.path = path.into();
        self.packet = 0;
        self.begins = true;
        self.read_stream(lines::open(path)?, sink)
    }

    fn counts(&self) -> Counts {
        Counts {
            bytes: self.report.bytes,
            rows: self.report.connections + self.report.ack_rows,
            not_understood: self.report.packets_not_understood,
        }
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

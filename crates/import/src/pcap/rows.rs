//! Rows of `capture_acks` and `capture_connections`.

use knee_store::Anonymiser;
use knee_tables::Numbers;
use knee_tables::column::set;

use super::super::Filled;
use super::super::fill::{add_row, put_away};
use super::connection::{Connection, Ended, Told};
use super::interval::Interval;
use super::sender::Heard;
use super::tables::{CaptureAcks, CaptureConnections};

/// Begins a row of either table: when, of which connection, between which ends.
macro_rules! begin_row {
    ($rows:ident.$table:ident, $connection:ident, $local:ident, $t_ns:expr) => {{
        let row = add_row(&mut $rows.$table, &mut $rows.full);
        let table = &mut $rows.$table;
        table.t_unix_ns.set(row, $t_ns);
        table.connection.set(row, $connection.number);
        if let Some(host) = &$rows.host {
            table.host.set(row, host);
        }
        let [local, remote] = [$local, 1 - $local].map(|side| $connection.sides[side].endpoint);
        $rows.anonymiser.write(local.0, &mut $rows.text);
        table.local_addr.set(row, &$rows.text);
        table.local_port.set(row, local.1.into());
        $rows.anonymiser.write(remote.0, &mut $rows.text);
        table.remote_addr.set(row, &$rows.text);
        table.remote_port.set(row, remote.1.into());
        row
    }};
}

/// The two tables under construction.
pub struct Rows {
    anonymiser: Anonymiser,
    host: Option<String>,
    every_ns: Option<i64>,
    acks: CaptureAcks,
    connections: CaptureConnections,
    full: Vec<Filled>,
    text: String,
    /// Rows of `capture_acks` so far.
    pub ack_rows: u64,
}

impl Rows {
    /// # Panics
    /// `every_ns` is not above 0.
    pub fn new(anonymiser: Anonymiser, host: Option<String>, every_ns: Option<i64>) -> Rows {
        assert!(
            every_ns.is_none_or(|ns| ns > 0),
            "an interval takes some time"
        );
        Rows {
            anonymiser,
            host,
            every_ns,
            acks: CaptureAcks::default(),
            connections: CaptureConnections::default(),
            full: Vec::new(),
            text: String::new(),
            ack_rows: 0,
        }
    }

    /// Batches that are full.
    pub fn take_full(&mut self) -> Vec<Filled> {
        std::mem::take(&mut self.full)
    }

    /// All others.
    pub fn rest(&mut self) -> Vec<Filled> {
        put_away(&mut self.acks, &mut self.full);
        put_away(&mut self.connections, &mut self.full);
        self.take_full()
    }

    fn ack_row(&mut self, connection: &Connection, local: usize, t_ns: i64) -> usize {
        self.ack_rows += 1;
        let row = begin_row!(self.acks, connection, local, t_ns);
        let table = &mut self.acks;
        let sender = &connection.sides[local].sender;
        let counts = &sender.counts;
        let delivered_bytes = counts.bytes_acked + sender.sacked_bytes();
        set_count(&mut table.bytes_sent, row, counts.bytes_sent);
        set_count(&mut table.bytes_retrans, row, counts.bytes_retrans);
        set_count(&mut table.bytes_acked, row, counts.bytes_acked);
        set_count(&mut table.delivered_bytes, row, delivered_bytes);
        set_count(&mut table.unacked_bytes, row, sender.unacked_bytes());
        set_count(&mut table.sacked_bytes, row, sender.sacked_bytes());
        set_count(&mut table.inflight_bytes, row, sender.inflight_bytes());
        if let Some(bytes) = sender.window_bytes {
            set_count(&mut table.snd_wnd_bytes, row, bytes);
        }
        set_count(&mut table.data_segs_out, row, counts.data_segs_out);
        set_count(&mut table.total_retrans, row, counts.total_retrans);
        set_count(&mut table.spurious_retrans, row, counts.spurious_retrans);
        set_count(&mut table.dsack_dups, row, counts.dsack_dups);
        set_count(&mut table.dup_acks, row, counts.dup_acks);
        set_count(&mut table.out_of_order, row, counts.out_of_order);
        set_count(&mut table.ce_packets, row, counts.ce_packets);
        set_count(&mut table.ece_acks, row, counts.ece_acks);
        row
    }

    /// The row of a connection that is over.
    pub fn connection(&mut self, connection: &Connection, ended: Ended) {
        let local = connection.local();
        let row = begin_row!(self.connections, connection, local, connection.first_ns);
        let table = &mut self.connections;
        if let Some(side) = connection.opened_by {
            let name = if side == local { "local" } else { "remote" };
            table.opened_by.set(row, name);
        }
        table.ended.set(row, ended.name());
        if let Some(vantage) = connection.vantage(local) {
            table.vantage.set(row, vantage);
        }
        let duration_ns = connection.last_ns - connection.first_ns;
        table.duration_us.set(row, us(duration_ns));
        set(
            &mut table.handshake_rtt_us,
            row,
            connection.handshake_ns().map(us),
        );
        if let Some(legs) = connection.legs(local) {
            table.local_leg_us.set(row, us(legs.local_ns));
            table.remote_leg_us.set(row, us(legs.remote_ns));
        }
        let mss_bytes = connection.mss_bytes().map(|bytes| bytes as i64);
        set(&mut table.mss_bytes, row, mss_bytes);
        let scale = |side| connection.scale(side).map(i32::from);
        set(&mut table.snd_wscale, row, scale(1 - local));
        set(&mut table.rcv_wscale, row, scale(local));
        let [one, other] = &connection.sides;
        if connection.has_both_syns() {
            let sack = one.sender.sack_permitted && other.sender.sack_permitted;
            table.sack.set(row, sack);
            let timestamps = one.sender.timestamps && other.sender.timestamps;
            table.timestamps.set(row, timestamps);
        }
        let sender = &connection.sides[local].sender;
        let (counts, far) = (&sender.counts, &connection.sides[1 - local].sender.counts);
        set_count(&mut table.packets_out, row, counts.packets);
        set_count(&mut table.packets_in, row, far.packets);
        set_count(&mut table.bytes_sent, row, counts.bytes_sent);
        set_count(&mut table.bytes_retrans, row, counts.bytes_retrans);
        set_count(&mut table.bytes_acked, row, counts.bytes_acked);
        set_count(&mut table.bytes_received, row, far.bytes_acked);
        set_count(&mut table.bytes_received_retrans, row, far.bytes_retrans);
        let not_captured = counts.bytes_not_captured + far.bytes_not_captured;
        set_count(&mut table.bytes_not_captured, row, not_captured);
        set_count(&mut table.data_segs_out, row, counts.data_segs_out);
        set_count(&mut table.total_retrans, row, counts.total_retrans);
        if counts.data_segs_out > 0 {
            let share = counts.total_retrans as f64 / counts.data_segs_out as f64;
            table.retransmit_pct.set(row, share * 100.0);
        }
        set_count(&mut table.spurious_retrans, row, counts.spurious_retrans);
        set_count(&mut table.dsack_dups, row, counts.dsack_dups);
        set_count(&mut table.dup_acks, row, counts.dup_acks);
        set_count(&mut table.out_of_order, row, counts.out_of_order);
        set_count(&mut table.ce_packets, row, counts.ce_packets);
        set_count(&mut table.ece_acks, row, counts.ece_acks);
        set_count(&mut table.zero_windows, row, counts.zero_windows);
        let rtt = |value: Option<u64>| value.map(|us| us as i64);
        set(&mut table.rtt_us_min, row, rtt(sender.rtt.least()));
        set(&mut table.rtt_us_p50, row, rtt(sender.rtt.at(0.5)));
        set(&mut table.rtt_us_p95, row, rtt(sender.rtt.at(0.95)));
        set(&mut table.rtt_us_max, row, rtt(sender.rtt.greatest()));
        set_count(&mut table.rtt_samples, row, sender.rtt.count());
        set(&mut table.rtt_ts_us_min, row, sender.rtt_ts_ns_min.map(us));
        set_count(
            &mut table.inflight_bytes_max,
            row,
            sender.inflight_bytes_max,
        );
        let took_ns = (sender.first_data_ns.zip(sender.last_progress_ns))
            .map(|(first, last)| last - first)
            .filter(|&ns| ns > 0 && counts.bytes_acked > 0);
        if let Some(took_ns) = took_ns {
            let goodput = u128::from(counts.bytes_acked) * 8_000_000_000 / took_ns as u128;
            let goodput = i64::try_from(goodput).unwrap_or(i64::MAX);
            table.goodput_bits_per_sec.set(row, goodput);
        }
    }
}

impl Told for Rows {
    fn every_ns(&self) -> Option<i64> {
        self.every_ns
    }

    fn ack(&mut self, connection: &Connection, local: usize, t_ns: i64, heard: &Heard) {
        let row = self.ack_row(connection, local, t_ns);
        set(&mut self.acks.rtt_us, row, heard.rtt_ns.map(us));
        set(&mut self.acks.rtt_ts_us, row, heard.rtt_ts_ns.map(us));
    }

    fn interval(&mut self, connection: &Connection, local: usize, interval: &Interval) {
        let begins_ns = (self.every_ns).and_then(|every_ns| interval.begins_ns(every_ns));
        let Some(begins_ns) = begins_ns else {
            return;
        };
        let row = self.ack_row(connection, local, begins_ns);
        let table = &mut self.acks;
        set(&mut table.rtt_us, row, interval.rtt_us_mean());
        set(&mut table.rtt_us_min, row, interval.rtt_us_min);
        set(&mut table.rtt_us_max, row, interval.rtt_us_max);
        table.rtt_samples.set(row, interval.rtt_samples);
        set(&mut table.rtt_ts_us, row, interval.rtt_ts_us_min);
    }
}

fn us(ns: i64) -> i64 {
    ns / 1000
}

/// Counts of packets and bytes of a file: none comes to 2^63.
fn set_count(column: &mut Numbers<i64>, row: usize, value: u64) {
    column.set(row, value as i64);
}

//! One direction of a connection: what its sender sent, and what came back.
//!
//! Sequence numbers are 64 bits wide here, with those of the wire in the low 32:
//! they begin at [`FIRST`] and never wrap. A SYN and a FIN, which take a number
//! each, are left out of all counts of bytes.

mod again;
mod outstanding;
mod stamps;

use std::collections::BTreeMap;

use self::again::Again;
use self::outstanding::Outstanding;
use self::stamps::Stamps;
use crate::pcap::packet::{ACK, CE, ECE, FIN, RST, SYN, Segment};
use crate::pcap::quantiles::Quantiles;
use crate::pcap::ranges::Ranges;

/// Room below for what was sent before the capture began.
const FIRST: u64 = 1 << 33;
/// The largest window that TCP can have (RFC 7323, section 2.3): numbers further
/// off are not of this connection.
const FAR: u64 = 1 << 30;
/// Payload of a full segment of Ethernet, with timestamps: where no handshake
/// was captured.
const USUAL_MSS: u64 = 1448;
/// What the timestamps option takes of each segment.
const TIMESTAMPS_BYTES: u64 = 12;
/// Ranges sent again, and ranges not captured, that are kept.
const KEPT: usize = 4096;
/// What fills a hole within half a round trip, or this where none is known, was
/// overtaken on its way to the capture; later, it was sent again.
const OVERTAKEN_NS: i64 = 3_000_000;

/// A range that the capture does not have.
struct Hole {
    end: u64,
    t_ns: i64,
    acked: bool,
}

/// Counts so far, in the words of `tcp_info`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub packets: u64,
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    pub bytes_acked: u64,
    pub data_segs_out: u64,
    pub total_retrans: u64,
    pub spurious_retrans: u64,
    pub dsack_dups: u64,
    pub dup_acks: u64,
    pub out_of_order: u64,
    pub ce_packets: u64,
    pub ece_acks: u64,
    pub zero_windows: u64,
    /// Acknowledged and not in the capture.
    pub bytes_not_captured: u64,
}

/// What an ACK said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// From the newest segment that it acknowledges, unless it acknowledges one
    /// that was sent again (Karn and Partridge, SIGCOMM 1987).
    pub rtt_ns: Option<i64>,
    /// From the echo of a timestamp.
    pub rtt_ts_ns: Option<i64>,
    /// Did it say anything new?
    pub is_news: bool,
}

#[derive(Default)]
pub struct Sender {
    /// Of its SYN or SYN-ACK.
    pub mss: Option<u16>,
    pub window_scale: Option<u8>,
    pub sack_permitted: bool,
    pub timestamps: bool,
    pub syns: u32,
    pub isn: u32,

    pub counts: Counts,
    /// In microseconds.
    pub rtt: Quantiles,
    pub rtt_ts_ns_min: Option<i64>,
    /// Of pure ACKs, too: how long the far end takes to say anything.
    pub echo_ns_min: Option<i64>,
    pub first_data_ns: Option<i64>,
    pub last_progress_ns: Option<i64>,
    pub inflight_bytes_max: u64,
    pub fin_acked: bool,
    /// What the far end allows, last.
    pub window_bytes: Option<u64>,

    began: bool,
    una: u64,
    nxt: u64,
    fin_at: Option<u64>,
    sent: Outstanding,
    sacked: Ranges,
    holes: BTreeMap<u64, Hole>,
    again: Again,
    stamps: Stamps,
    window: u16,
    new: Vec<(u64, u64)>,
}

impl Sender {
    /// Sent and not cumulatively acknowledged.
    pub fn unacked_bytes(&self) -> u64 {
        self.nxt - self.una
    }

    pub fn sacked_bytes(&self) -> u64 {
        self.sacked.bytes()
    }

    pub fn inflight_bytes(&self) -> u64 {
        self.unacked_bytes() - self.sacked_bytes()
    }

    /// Pieces of memory that grow with what is outstanding.
    pub fn entries(&self) -> usize {
        self.sent.len()
            + self.sacked.len()
            + self.holes.len()
            + self.again.len()
            + self.stamps.len()
            + self.rtt.buckets()
    }

    /// Gives back half of that memory. What was sent longest ago has no RTT then.
    pub fn forget(&mut self) {
        self.sent.forget();
        self.stamps.forget();
        self.holes.clear();
        self.again.clear();
    }

    /// Payload bytes of a full segment.
    pub fn mss_bytes(&self, far: &Sender) -> Option<u64> {
        let mss = self.mss.into_iter().chain(far.mss).min()?;
        let options = if self.timestamps && far.timestamps {
            TIMESTAMPS_BYTES
        } else {
            0
        };
        Some(u64::from(mss).saturating_sub(options).max(1))
    }

    /// A segment that it sends. `rtt_ns` of the connection, if it is known.
    pub fn send(&mut self, t_ns: i64, segment: &Segment, mss: Option<u64>, rtt_ns: Option<i64>) {
        self.counts.packets += 1;
        if segment.ecn == CE {
            self.counts.ce_packets += 1;
        }
        if segment.has(RST) {
            return;
        }
        if segment.has(SYN) {
            self.syns = self.syns.saturating_add(1);
            self.isn = segment.seq;
            self.mss = segment.options.mss;
            self.window_scale = segment.options.window_scale;
            self.sack_permitted = segment.options.sack_permitted;
            self.timestamps = segment.options.timestamps.is_some();
        }
        let begins = segment.seq.wrapping_add(u32::from(segment.has(SYN)));
        let Some(from) = self.position(begins) else {
            return;
        };
        let to = from + u64::from(segment.payload_bytes);
        if let Some((value, _)) = segment.options.timestamps {
            self.stamps.add(t_ns, value, to > from);
        }
        if segment.has(FIN) {
            self.fin_at = Some(to);
        }
        let is_keepalive = to == from + 1 && to == self.nxt && self.una == self.nxt;
        if to == from || is_keepalive {
            return;
        }
        let mss = mss.unwrap_or(USUAL_MSS);
        self.first_data_ns.get_or_insert(t_ns);
        self.counts.bytes_sent += to - from;
        self.counts.data_segs_out += (to - from).div_ceil(mss);
        if from < self.nxt {
            self.send_again(t_ns, from, to.min(self.nxt), mss, rtt_ns);
        }
        if to > self.nxt {
            let from = from.max(self.nxt);
            if from > self.nxt {
                self.hole(self.nxt, from, t_ns, false);
            }
            self.insert(t_ns, from, to, false);
            self.nxt = to;
        }
        self.inflight_bytes_max = self.inflight_bytes_max.max(self.inflight_bytes());
    }

    /// What is below `nxt`: sent again, or late.
    fn send_again(&mut self, t_ns: i64, from: u64, to: u64, mss: u64, rtt_ns: Option<i64>) {
        let overtaken_ns = rtt_ns.map_or(OVERTAKEN_NS, |rtt_ns| rtt_ns / 2);
        let mut at = from;
        while at < to {
            // The hole at or after `at`.
            let hole = (self.holes.range(..=at).next_back())
                .filter(|(_, hole)| hole.end > at)
                .or_else(|| self.holes.range(at..to).next())
                .map(|(&start, hole)| (start, hole.end, hole.t_ns, hole.acked));
            let Some((start, end, opened_ns, acked)) = hole else {
                self.repeat(t_ns, at, to, mss);
                return;
            };
            if start > at {
                self.repeat(t_ns, at, start, mss);
                at = start;
            }
            let part_end = end.min(to);
            self.holes.remove(&start);
            if start < at {
                self.hole(start, at, opened_ns, acked);
            }
            if part_end < end {
                self.hole(part_end, end, opened_ns, acked);
            }
            let is_overtaken = t_ns - opened_ns < overtaken_ns;
            if acked {
                // The capture has it after its ACK.
                self.counts.bytes_not_captured -= part_end - at;
            }
            if acked || is_overtaken {
                self.counts.out_of_order += (part_end - at).div_ceil(mss);
                self.insert(t_ns, at, part_end, false);
            } else {
                // The first was lost before it came to the capture.
                self.counts.bytes_retrans += part_end - at;
                self.counts.total_retrans += (part_end - at).div_ceil(mss);
                self.insert(t_ns, at, part_end, true);
            }
            at = part_end;
        }
    }

    fn repeat(&mut self, t_ns: i64, from: u64, to: u64, mss: u64) {
        self.counts.bytes_retrans += to - from;
        self.counts.total_retrans += (to - from).div_ceil(mss);
        self.again.add(from, to);
        self.insert(t_ns, from, to, true);
    }

    /// Notes that `from..to` was sent; what is acknowledged already needs no note.
    fn insert(&mut self, t_ns: i64, from: u64, to: u64, again: bool) {
        self.sent.insert(t_ns, from.max(self.una), to, again);
    }

    fn hole(&mut self, from: u64, to: u64, t_ns: i64, acked: bool) {
        let hole = Hole {
            end: to,
            t_ns,
            acked,
        };
        self.holes.insert(from, hole);
        if self.holes.len() > KEPT {
            self.holes.pop_first();
        }
    }

    /// A segment of the far end, whose windows are shifted by `scale`.
    pub fn hear(
        &mut self,
        t_ns: i64,
        segment: &Segment,
        scale: Option<u8>,
        mss: Option<u64>,
    ) -> Heard {
        let mut heard = Heard::default();
        if !segment.has(ACK) || segment.has(RST) {
            return heard;
        }
        let is_syn = segment.has(SYN);
        let same_window = segment.window == self.window;
        self.window = segment.window;
        // The window of a SYN is never scaled.
        let scale = if is_syn { Some(0) } else { scale };
        self.window_bytes = scale.map(|scale| u64::from(segment.window) << scale);
        if segment.window == 0 {
            self.counts.zero_windows += 1;
        }
        if segment.has(ECE) && !is_syn {
            self.counts.ece_acks += 1;
        }
        let Some(mut ack) = self.position(segment.ack) else {
            return heard;
        };
        if let Some(fin_at) = self.fin_at
            && ack == fin_at + 1
        {
            (ack, self.fin_acked) = (fin_at, true);
        }
        heard.rtt_ts_ns = self.echo(t_ns, segment);
        let blocks = self.blocks(segment, ack, mss.unwrap_or(USUAL_MSS));
        let advances = ack > self.una;
        if advances {
            heard.rtt_ns = self.acknowledge(t_ns, ack);
        }
        let sack_ns = self.select(t_ns, blocks);
        let sacks = sack_ns.is_some();
        heard.rtt_ns = heard.rtt_ns.or(sack_ns.flatten());
        // RFC 5681, section 2; with SACK, RFC 6675, section 2.
        let is_bare = segment.payload_bytes == 0 && segment.flags & (SYN | FIN) == 0;
        let is_dup = ack == self.una
            && !advances
            && self.nxt > self.una
            && (sacks || (is_bare && same_window));
        if is_dup {
            self.counts.dup_acks += 1;
        }
        if let Some(rtt_ns) = heard.rtt_ns {
            self.rtt.add(rtt_ns as u64 / 1000);
        }
        heard.is_news = advances
            || is_dup
            || segment.has(ECE)
            || heard.rtt_ts_ns.is_some()
            || (!same_window && is_bare);
        heard
    }

    /// The RTT by the timestamps option: the first echo of a value that a segment
    /// with data carried first.
    fn echo(&mut self, t_ns: i64, segment: &Segment) -> Option<i64> {
        let (_, echo) = segment.options.timestamps?;
        let (rtt_ns, with_data) = self.stamps.echo(t_ns, echo)?;
        keep_least(&mut self.echo_ns_min, rtt_ns);
        if !with_data {
            return None;
        }
        keep_least(&mut self.rtt_ts_ns_min, rtt_ns);
        Some(rtt_ns)
    }

    /// The SACK blocks above `ack`. One that reports what came twice (RFC 2883)
    /// is counted, and what was sent again for nothing with it.
    fn blocks(&mut self, segment: &Segment, ack: u64, mss: u64) -> [(u64, u64); 4] {
        let mut found = [(0, 0); 4];
        let count = segment.options.sack_blocks.min(4);
        for (block, &(from, to)) in found.iter_mut().zip(&segment.options.sack[..count]) {
            if let (Some(from), Some(to)) = (self.position(from), self.position(to))
                && from < to
            {
                *block = (from, to);
            }
        }
        let [(from, to), second, ..] = found;
        let within_second = second.0 <= from && to <= second.1;
        if from < to && (from < ack || within_second) {
            found[0] = (0, 0);
            self.counts.dsack_dups += (to - from).div_ceil(mss);
            self.counts.spurious_retrans += self.again.spurious(from, to, mss);
        }
        found
    }

    /// Everything below `ack` has arrived.
    fn acknowledge(&mut self, t_ns: i64, ack: u64) -> Option<i64> {
        if ack > self.nxt {
            self.hole(self.nxt, ack, t_ns, false);
            self.nxt = ack;
        }
        let newest = self.sent.acknowledge(ack, &self.sacked);
        let mut at = self.una;
        while let Some((&start, hole)) = self.holes.range_mut(at..ack).next() {
            at = start + 1;
            if hole.acked {
                continue;
            }
            let end = hole.end;
            hole.end = end.min(ack);
            hole.acked = true;
            self.counts.bytes_not_captured += hole.end - start;
            if end > ack {
                let t_ns = hole.t_ns;
                self.hole(ack, end, t_ns, false);
            }
        }
        self.counts.bytes_acked += ack - self.una;
        self.una = ack;
        self.sacked.remove_below(ack);
        self.last_progress_ns = Some(t_ns);
        newest
            .map(|sent_ns| t_ns - sent_ns)
            .filter(|&rtt_ns| rtt_ns >= 0)
    }

    /// SACK blocks. `None`: nothing new in them, else the RTT of the newest
    /// segment that they acknowledge.
    fn select(&mut self, t_ns: i64, blocks: [(u64, u64); 4]) -> Option<Option<i64>> {
        let mut newest = None;
        let mut is_news = false;
        let mut new = std::mem::take(&mut self.new);
        for (from, to) in blocks {
            let from = from.max(self.una);
            if from >= to {
                continue;
            }
            if to > self.nxt {
                self.hole(self.nxt, to, t_ns, false);
                self.nxt = to;
            }
            self.sacked.insert(from, to, &mut new);
            for &(from, to) in &new {
                is_news = true;
                newest = newest.max(self.sent.newest(from, to));
            }
        }
        self.new = new;
        is_news.then(|| {
            newest
                .map(|sent_ns| t_ns - sent_ns)
                .filter(|&rtt_ns| rtt_ns >= 0)
        })
    }

    /// A number of the wire in 64 bits; the first one that is seen begins the
    /// direction. `None`: too far off to be of this connection.
    fn position(&mut self, number: u32) -> Option<u64> {
        if !self.began {
            self.began = true;
            self.una = FIRST + u64::from(number);
            self.nxt = self.una;
            return Some(self.una);
        }
        let away = i64::from(number.wrapping_sub(self.nxt as u32) as i32);
        (away.unsigned_abs() <= FAR)
            .then(|| self.nxt.checked_add_signed(away))
            .flatten()
    }
}

fn keep_least(least: &mut Option<i64>, value: i64) {
    *least = Some(least.map_or(value, |least| least.min(value)));
}

//! The receiving half: reassembly, ACK policy (delayed, quick and compressed
//! ACKs), SACK and DSACK blocks, and, in `window`, the window offered with its
//! autotuning.

mod window;

use super::{Cx, Endpoint, HostConf, NEVER};
use crate::ranges::RangeSet;
use crate::segment::{FIN, PSH, SackBlocks, Segment};

/// What a wire packet takes in the receive buffer: half a page and an sk_buff,
/// as drivers that build skbs on page fragments account it.
const WIRE_TRUESIZE_BYTES: u64 = 2048 + 256;
/// TCP_RMEM_TO_WIN_SCALE: ratios are of 256; half until measured.
const RATIO_SHIFT: u32 = 8;
const INITIAL_RATIO: u64 = 128;
/// TCP_MAX_QUICKACKS
const MAX_QUICKACKS: u32 = 16;
/// Duplicate ACKs per hole before they are compressed (TCP_FASTRETRANS_THRESH).
const DUP_ACKS: u8 = 3;
/// TCP_ATO_MIN = TCP_DELACK_MIN and TCP_DELACK_MAX
const ATO_MIN_US: u64 = 40_000;
const DELACK_MAX_US: u64 = 200_000;
/// Blocks that the last ACK surely told (TCP_SACK_BLOCKS_EXPECTED).
const SACK_BLOCKS_TOLD: usize = 2;
/// Blocks remembered (TCP_NUM_SACKS); three fit into an ACK.
const NUM_SACKS: usize = 4;

/// State of the receiving half.
pub struct Receiver {
    rcv_nxt: u64,
    /// rcv_nxt when the window was last offered, and that window.
    rcv_wup: u64,
    rcv_wnd: u64,
    rcv_ssthresh: u64,
    window_clamp: u64,
    rcvbuf_bytes: u64,
    rcvbuf_max_bytes: u64,
    scaling_ratio: u64,
    wscale: u8,
    mss_bytes: u64,
    rcv_mss: u64,

    out_of_order: RangeSet,
    /// Most recently changed first.
    sacks: [(u64, u64); NUM_SACKS],
    num_sacks: usize,
    dsack: Option<(u64, u64)>,
    fin_seq: Option<u64>,
    fin_received: bool,

    ts_recent_ms: u32,
    echoed_ms: Option<u32>,
    last_tsecr_ms: u32,

    // ACK policy.
    quick: u32,
    pingpong: bool,
    /// The route says to acknowledge everything at once (RTAX_QUICKACK).
    quickack_route: bool,
    /// Delayed-ACK estimate, jiffies; 0: no data yet.
    ato: u64,
    ato_min_jiffies: u64,
    /// Jiffies of the last data received.
    lrcvtime: u32,
    ack_scheduled: bool,
    pub(super) ack_now: bool,
    /// A write's end was seen, once or more than once, since the last ACK
    /// (ICSK_ACK_PUSHED, ICSK_ACK_PUSHED2).
    ack_pushed: bool,
    ack_pushed_twice: bool,
    pub(super) delack_at_ns: u64,
    compressed_acks: u32,
    compressed_rcv_nxt: u64,
    dup_acks: u8,
    compress_at_ns: u64,

    // Receive buffer autotuning.
    rcv_rtt_x8_us: u64,
    space_bytes: u64,
    space_seq: u64,
    space_since_ns: u64,

    /// Payload read in order, and payload that arrived at all.
    pub bytes_read: u64,
    pub bytes_arrived: u64,
}

impl Receiver {
    pub fn new(conf: &HostConf) -> Receiver {
        let rcvbuf_bytes = conf.host.tcp_rmem_bytes[1];
        let mss_bytes = u64::from(conf.mss_bytes);
        let space = (rcvbuf_bytes * INITIAL_RATIO) >> RATIO_SHIFT;
        // tcp_select_initial_window(): whole segments.
        let rcv_wnd = (space / mss_bytes * mss_bytes).max(mss_bytes);
        Receiver {
            rcv_nxt: 0,
            rcv_wup: 0,
            rcv_wnd,
            rcv_ssthresh: rcv_wnd,
            window_clamp: space,
            rcvbuf_bytes,
            rcvbuf_max_bytes: conf.host.tcp_rmem_bytes[2],
            scaling_ratio: INITIAL_RATIO,
            wscale: conf.wscale,
            mss_bytes,
            // tcp_initialize_rcv_mss(): modest until data shows better.
            rcv_mss: mss_bytes.min(536),
            out_of_order: RangeSet::default(),
            sacks: [(0, 0); NUM_SACKS],
            num_sacks: 0,
            dsack: None,
            fin_seq: None,
            fin_received: false,
            ts_recent_ms: 0,
            echoed_ms: None,
            last_tsecr_ms: 0,
            quick: 0,
            pingpong: false,
            quickack_route: conf.host.quickack,
            ato: 0,
            ato_min_jiffies: conf.us_to_jiffies(ATO_MIN_US),
            lrcvtime: 0,
            ack_scheduled: false,
            ack_now: false,
            ack_pushed: false,
            ack_pushed_twice: false,
            delack_at_ns: NEVER,
            compressed_acks: 0,
            compressed_rcv_nxt: 0,
            dup_acks: 0,
            compress_at_ns: NEVER,
            rcv_rtt_x8_us: 0,
            space_bytes: 10 * mss_bytes,
            space_seq: 1,
            space_since_ns: 0,
            bytes_read: 0,
            bytes_arrived: 0,
        }
    }

    pub fn rcv_nxt(&self) -> u64 {
        self.rcv_nxt
    }
    pub fn is_in_order(&self) -> bool {
        self.out_of_order.is_empty()
    }
    pub fn rcvbuf_bytes(&self) -> u64 {
        self.rcvbuf_bytes
    }
    pub fn fin_received(&self) -> bool {
        self.fin_received
    }
    pub fn ts_recent_ms(&self) -> u32 {
        self.ts_recent_ms
    }
    /// Echo of our clock in the segment being processed.
    pub fn echoed_ms(&self) -> Option<u32> {
        self.echoed_ms
    }
    #[inline]
    pub fn next_timer_ns(&self) -> u64 {
        self.delack_at_ns.min(self.compress_at_ns)
    }

    pub fn on_syn(&mut self, segment: &Segment) {
        self.rcv_nxt = 1;
        self.rcv_wup = 1;
        self.ts_recent_ms = segment.tsval_ms;
    }

    pub fn start(&mut self, cx: &Cx) {
        self.reserve_segment();
        self.space_since_ns = cx.now_ns;
        self.compressed_rcv_nxt = self.rcv_nxt;
    }

    /// Timestamps: what to echo (RFC 7323, 4.3) and what was echoed.
    #[inline]
    pub fn note_timestamp(&mut self, segment: &Segment) {
        if segment.seq <= self.rcv_wup {
            self.ts_recent_ms = segment.tsval_ms;
        }
        self.echoed_ms = (segment.tsecr_ms != 0).then_some(segment.tsecr_ms);
    }

    /// We sent data: a reply soon after receiving makes the connection
    /// interactive, and ACKs wait for replies.
    pub fn on_data_sent(&mut self, cx: &Cx) {
        if self.ato > 0 && u64::from(cx.jiffies().wrapping_sub(self.lrcvtime)) < self.ato {
            self.pingpong = true;
        }
    }

    /// tcp_event_ack_sent(); one for less than has arrived leaves the rest due.
    pub fn on_ack_sent(&mut self, ack: u64) {
        self.compressed_acks = 0;
        self.compress_at_ns = NEVER;
        self.dsack = None;
        if ack != self.rcv_nxt {
            return;
        }
        if self.quick > 0 {
            let used = u32::from(self.ack_scheduled);
            if used >= self.quick {
                self.quick = 0;
                // Leaving quick mode deflates the estimate.
                self.ato = self.ato_min_jiffies;
            } else {
                self.quick -= used;
            }
        }
        self.ack_scheduled = false;
        self.ack_now = false;
        self.ack_pushed = false;
        self.ack_pushed_twice = false;
        self.delack_at_ns = NEVER;
    }

    /// Blocks to report: a duplicate first, then the most recent holes' edges.
    pub fn sack_blocks(&self, ack: u64) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if let Some(dsack) = self.dsack {
            blocks.push_dsack(ack, dsack);
        }
        for &sack in &self.sacks[..self.num_sacks] {
            blocks.push(ack, sack);
        }
        blocks
    }

    /// tcp_measure_rcv_mss()
    fn measure_mss(&mut self, segment: &Segment) {
        let len = u64::from(segment.payload_bytes).min(self.mss_bytes);
        if len >= self.rcv_mss {
            if len != self.rcv_mss {
                self.scaling_ratio = ((len << RATIO_SHIFT) / WIRE_TRUESIZE_BYTES).max(1);
                self.window_clamp = self.win_from_space(self.rcvbuf_bytes);
            }
            self.rcv_mss = len;
            self.ack_pushed |= segment.has(PSH);
        } else {
            self.ack_pushed_twice |= self.ack_pushed;
            self.ack_pushed = true;
        }
    }

    /// tcp_event_data_recv(): feeds the delayed-ACK estimate.
    fn on_data_received(&mut self, cx: &Cx, segment: &Segment, rto_jiffies: u64) {
        self.ack_scheduled = true;
        self.measure_mss(segment);
        self.measure_rtt(cx, segment);
        let now = cx.jiffies();
        if self.ato == 0 {
            self.add_quickacks(MAX_QUICKACKS);
            self.ato = self.ato_min_jiffies;
        } else {
            let gap = u64::from(now.wrapping_sub(self.lrcvtime));
            if gap <= self.ato_min_jiffies / 2 {
                self.ato = (self.ato >> 1) + self.ato_min_jiffies / 2;
            } else if gap < self.ato {
                self.ato = ((self.ato >> 1) + gap).min(rto_jiffies);
            } else if gap > rto_jiffies {
                // The sender restarted: let it grow its window quickly.
                self.add_quickacks(MAX_QUICKACKS);
            }
        }
        self.lrcvtime = now;
        if segment.payload_bytes >= 128 {
            let memory_bytes = u64::from(segment.packets) * WIRE_TRUESIZE_BYTES;
            self.grow_window(u64::from(segment.payload_bytes), memory_bytes);
        }
    }

    /// tcp_incr_quickack()
    fn add_quickacks(&mut self, most: u32) {
        let wanted = ((self.rcv_wnd / (2 * self.rcv_mss)) as u32)
            .max(2)
            .min(most);
        self.quick = self.quick.max(wanted);
    }

    /// tcp_enter_quickack_mode()
    pub(super) fn enter_quickack(&mut self, most: u32) {
        self.add_quickacks(most);
        self.pingpong = false;
        self.ato = self.ato_min_jiffies;
    }

    fn in_quickack_mode(&self) -> bool {
        self.quickack_route || self.quick > 0 && !self.pingpong
    }

    /// Would reporting this range push out blocks that no ACK has told yet,
    /// because ACKs are being compressed?
    fn must_tell_first(&self, (start, end): (u64, u64)) -> bool {
        let touched = self.sacks[..self.num_sacks]
            .iter()
            .position(|sack| start <= sack.1 && sack.0 <= end)
            .unwrap_or(self.num_sacks);
        self.compressed_acks > 0 && touched >= SACK_BLOCKS_TOLD
    }

    /// A range changed: its block goes first, those it swallowed go.
    fn report(&mut self, range: (u64, u64)) {
        let mut kept = [(0, 0); NUM_SACKS];
        kept[0] = range;
        let mut count = 1;
        for &(start, end) in &self.sacks[..self.num_sacks] {
            if (end < range.0 || start > range.1) && count < NUM_SACKS {
                kept[count] = (start, end);
                count += 1;
            }
        }
        self.sacks = kept;
        self.num_sacks = count;
    }

    /// tcp_sack_remove(): forgets blocks that the cumulative ACK covers.
    fn forget_covered(&mut self) {
        let mut count = 0;
        for i in 0..self.num_sacks {
            if self.sacks[i].0 > self.rcv_nxt {
                self.sacks[count] = self.sacks[i];
                count += 1;
            }
        }
        self.num_sacks = count;
    }
}

impl Endpoint {
    /// tcp_data_queue(): takes a segment with payload or FIN; returns the
    /// payload that became readable. Applications read at once.
    pub(super) fn on_data(&mut self, cx: &mut Cx, segment: &Segment) -> u64 {
        let rto_jiffies = self.rto_jiffies(cx);
        let rx = &mut self.rx;
        rx.bytes_arrived += u64::from(segment.payload_bytes);
        if segment.flags & FIN != 0 {
            rx.fin_seq = Some(segment.seq + u64::from(segment.payload_bytes));
        }
        let (start, end) = (segment.seq, segment.end_seq());
        if end <= rx.rcv_nxt {
            // Nothing new: a retransmission that was not needed.
            rx.dsack = Some((start, end));
            rx.enter_quickack(MAX_QUICKACKS);
            rx.ack_scheduled = true;
            return 0;
        }
        if start > rx.rcv_nxt {
            self.check_ce(cx, segment);
            if self.rx.must_tell_first((start, end)) {
                // tcp_sack_compress_send_ack()
                self.send_ack(cx);
            }
            let rx = &mut self.rx;
            rx.ack_scheduled = true;
            let mut fresh = 0;
            let range = rx.out_of_order.insert(start, end, |a, b| fresh += b - a);
            if fresh < end - start {
                rx.dsack = Some((start, end));
            }
            rx.report(range);
            if fresh > 0 {
                rx.grow_window(u64::from(segment.payload_bytes), 0);
            }
            return 0;
        }
        if start < rx.rcv_nxt {
            rx.dsack = Some((start, rx.rcv_nxt));
            rx.enter_quickack(MAX_QUICKACKS);
        }
        let prior = rx.rcv_nxt;
        rx.rcv_nxt = end;
        self.check_ce(cx, segment);
        let rx = &mut self.rx;
        if !rx.out_of_order.is_empty() {
            if let Some((_, filled)) = rx.out_of_order.containing(end) {
                rx.rcv_nxt = filled;
            }
            rx.out_of_order.remove_below(rx.rcv_nxt);
            rx.forget_covered();
            if rx.out_of_order.is_empty() {
                // RFC 5681, 4.2: an ACK at once when the last hole is filled.
                rx.ack_now = true;
            }
        }
        rx.on_data_received(cx, segment, rto_jiffies);
        let mut readable = rx.rcv_nxt - prior;
        if rx.fin_seq.is_some_and(|fin| rx.rcv_nxt > fin) && !rx.fin_received {
            rx.fin_received = true;
            rx.ack_now = true;
            readable -= 1;
        }
        rx.bytes_read += readable;
        rx.adjust_space(cx);
        readable
    }

    /// __tcp_ack_snd_check()
    pub(super) fn ack_if_due(&mut self, cx: &mut Cx) {
        if !self.rx.ack_scheduled {
            return;
        }
        let rx = &mut self.rx;
        let full_frame = rx.rcv_nxt - rx.rcv_wup > rx.rcv_mss;
        if full_frame || rx.in_quickack_mode() || rx.ack_now {
            self.send_ack(cx);
            return;
        }
        if rx.out_of_order.is_empty() {
            self.delay_ack(cx);
            return;
        }
        if rx.compressed_acks >= cx.host.host.tcp_comp_sack_nr {
            self.send_ack(cx);
            return;
        }
        if rx.compressed_rcv_nxt != rx.rcv_nxt {
            rx.compressed_rcv_nxt = rx.rcv_nxt;
            rx.dup_acks = 0;
        }
        if rx.dup_acks < DUP_ACKS {
            rx.dup_acks += 1;
            self.send_ack(cx);
            return;
        }
        rx.compressed_acks += 1;
        if rx.compress_at_ns != NEVER {
            return;
        }
        // 5 % of the RTT, but no more than the sysctl.
        let mut rtt_x8_us = rx.rcv_rtt_x8_us;
        if self.rtt.srtt_x8() > 0 {
            rtt_x8_us = rtt_x8_us.min(u64::from(self.rtt.srtt_x8()));
        }
        let delay_ns = (rtt_x8_us * 1_000 / 8 / 20).min(cx.host.host.tcp_comp_sack_delay.0);
        rx.compress_at_ns = cx.now_ns + delay_ns;
    }

    /// __tcp_cleanup_rbuf(): the application has read all there is; what the
    /// sender may be waiting for is acked at once.
    #[inline]
    pub fn acks_when_read(&self) -> bool {
        let rx = &self.rx;
        let due = rx.rcv_nxt - rx.rcv_wup > rx.rcv_mss
            || rx.ack_pushed_twice
            || rx.ack_pushed && !rx.pingpong;
        rx.ack_scheduled && due
    }

    /// tcp_send_delayed_ack()
    fn delay_ack(&mut self, cx: &mut Cx) {
        let conf = cx.host;
        let delack_min = conf.us_to_jiffies(ATO_MIN_US);
        let delack_max = conf.us_to_jiffies(DELACK_MAX_US);
        let rx = &mut self.rx;
        let mut ato = rx.ato;
        if ato > delack_min {
            let mut most = u64::from(conf.host.hz) / 2;
            if rx.pingpong || rx.ack_pushed {
                most = delack_max;
            }
            if self.rtt.srtt_us() > 0 {
                most = most.min(
                    conf.us_to_jiffies(u64::from(self.rtt.srtt_us()))
                        .max(delack_min),
                );
            }
            ato = ato.min(most);
        }
        // icsk_delack_max: below the other side's least timeout.
        let below_rto = conf
            .us_to_jiffies(conf.host.tcp_rto_min.as_us())
            .saturating_sub(1);
        ato = ato.min(delack_max).min(below_rto).max(1);
        let at_ns = conf.timer_at(cx.now_ns, ato);
        if rx.delack_at_ns == NEVER {
            rx.delack_at_ns = at_ns;
        } else if rx.delack_at_ns <= cx.now_ns + (ato >> 2) * conf.tick_ns {
            // About to expire anyway.
            self.send_ack(cx);
        } else {
            rx.delack_at_ns = rx.delack_at_ns.min(at_ns);
        }
    }

    pub(super) fn on_receive_timer(&mut self, cx: &mut Cx) {
        if self.rx.delack_at_ns <= cx.now_ns {
            self.rx.delack_at_ns = NEVER;
            if self.rx.ack_scheduled {
                // tcp_delack_timer_handler(): the delay was too short to meet
                // more data, or no reply came.
                if self.rx.pingpong {
                    self.rx.pingpong = false;
                    self.rx.ato = self.rx.ato_min_jiffies;
                } else {
                    self.rx.ato = (self.rx.ato << 1).min(self.rto_jiffies(cx));
                }
                self.send_ack(cx);
            }
        }
        if self.rx.compress_at_ns <= cx.now_ns {
            self.rx.compress_at_ns = NEVER;
            if self.rx.compressed_acks > 0 {
                self.send_ack(cx);
            }
        }
    }
}

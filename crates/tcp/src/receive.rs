//! The receiving half: reassembly, ACK policy (delayed, quick and compressed ACKs), the window offered, and what an
//! arriving segment does to them.

mod ack_policy;
mod window;

use super::{Cx, Endpoint, HostConf};
use crate::reassembly::Reassembly;
use crate::segment::{FIN, PSH, SackBlocks, Segment};
use ack_policy::{AckPolicy, Due, MAX_QUICKACKS};
use knee_kit::odds::{likely, unlikely};
use window::ReceiveWindow;

/// State of the receiving half.
pub struct Receiver {
    data: Reassembly,
    window: ReceiveWindow,
    acks: AckPolicy,
    /// Timestamps: what to echo, and what the segment being processed echoed; 0: nothing.
    ts_recent_ms: u32,
    echoed_ms: u32,
    /// Payload read in order, and payload that arrived at all.
    bytes_read: u64,
    bytes_arrived: u64,
    /// Does the application read when its thread runs, instead of at once?
    reads_later: bool,
    /// What waits for it then.
    unread_bytes: u64,
}

impl Receiver {
    pub fn new(conf: &HostConf) -> Receiver {
        Receiver {
            data: Reassembly::default(),
            window: ReceiveWindow::new(conf),
            acks: AckPolicy::new(conf),
            ts_recent_ms: 0,
            echoed_ms: 0,
            bytes_read: 0,
            bytes_arrived: 0,
            reads_later: false,
            unread_bytes: 0,
        }
    }

    #[inline]
    pub fn rcv_nxt(&self) -> u64 {
        self.data.rcv_nxt()
    }
    #[inline]
    pub fn is_in_order(&self) -> bool {
        self.data.is_in_order()
    }
    pub fn set_rcvbuf(&mut self, bytes: u64) {
        self.window.set_rcvbuf(bytes);
    }
    pub fn set_window_clamp(&mut self, bytes: u64) {
        self.window.set_clamp(bytes);
    }
    pub fn rcvbuf_bytes(&self) -> u64 {
        self.window.rcvbuf_bytes()
    }
    #[inline]
    pub fn fin_received(&self) -> bool {
        self.data.fin_received()
    }
    /// Payload that was handed to the application.
    #[inline]
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }
    /// The application reads when its thread runs: see [`Endpoint::read`].
    pub fn read_later(&mut self) {
        self.reads_later = true;
    }
    /// Payload that arrived, duplicates included.
    pub fn bytes_arrived(&self) -> u64 {
        self.bytes_arrived
    }
    #[inline]
    pub fn ts_recent_ms(&self) -> u32 {
        self.ts_recent_ms
    }
    /// Echo of our clock in the segment being processed.
    #[inline]
    pub fn echoed_ms(&self) -> Option<u32> {
        (self.echoed_ms != 0).then_some(self.echoed_ms)
    }
    #[inline]
    pub fn next_timer_ns(&self) -> u64 {
        self.acks.next_timer_ns()
    }
    /// Is an ACK being delayed?
    pub fn delays_ack(&self) -> bool {
        self.acks.is_delayed()
    }

    pub fn on_syn(&mut self, segment: &Segment) {
        self.data.start();
        self.window.on_syn();
        self.ts_recent_ms = segment.tsval_ms;
    }

    /// The connection is established.
    pub fn start(&mut self, now_ns: u64) {
        self.window.start(now_ns);
        self.acks.start(self.data.rcv_nxt());
    }
    /// Timestamps: what to echo (RFC 7323, 4.3) and what was echoed.
    #[inline]
    pub fn note_timestamp(&mut self, segment: &Segment) {
        if segment.seq <= self.window.rcv_wup() {
            self.ts_recent_ms = segment.tsval_ms;
        }
        self.echoed_ms = segment.tsecr_ms;
    }
    #[inline]
    pub fn on_data_sent(&mut self, jiffies: u32) {
        self.acks.on_data_sent(jiffies);
    }
    /// The next chance to acknowledge is to be taken, if `now`.
    #[inline]
    pub fn hurry_ack(&mut self, now: bool) {
        self.acks.hurry(now);
    }
    /// Fetches ahead what data looks at elsewhere in memory.
    #[inline]
    pub fn fetch_parts(&self) {
        self.data.fetch_parts();
    }
    /// Up to `most` ACKs go at once.
    pub fn enter_quickack(&mut self, most: u32) {
        self.acks.enter_quickack(self.window.quickacks().min(most));
    }

    // ---- what a segment says of it ---------------------------------------

    /// The window that a segment offers.
    #[inline]
    pub fn offer_window(&mut self, syn: bool) -> u64 {
        if syn {
            return self.window.offer_in_syn();
        }
        let (rcv_nxt, waiting_bytes) = (self.data.rcv_nxt(), self.waiting_bytes());
        let (window, is_scarce) = self.window.offer(rcv_nxt, waiting_bytes);
        if unlikely(is_scarce) {
            self.acks.end_quickack();
        }
        window
    }

    /// What takes room in the buffer: beyond a hole, or unread.
    #[inline]
    fn waiting_bytes(&self) -> u64 {
        self.data.waiting_bytes() + self.unread_bytes
    }

    /// May the window stay as it is? While it may not, because data waits to be read, reading it is what acks it.
    #[inline]
    fn holds_its_window(&self) -> bool {
        likely(self.unread_bytes == 0) || self.window.keeps(self.waiting_bytes())
    }

    #[inline]
    pub fn sack_blocks(&self, ack: u64) -> SackBlocks {
        self.data.sack_blocks(ack)
    }

    /// A segment that acknowledges up to `ack` was sent.
    #[inline]
    pub fn on_ack_sent(&mut self, ack: u64) {
        self.data.forget_dsack();
        self.acks.on_ack_sent(ack == self.data.rcv_nxt());
    }

    // ---- what arrives ----------------------------------------------------

    /// Nothing new: a retransmission that was not needed.
    fn on_duplicate(&mut self, start: u64, end: u64) {
        self.data.set_dsack((start, end));
        self.enter_quickack(MAX_QUICKACKS);
        self.acks.schedule();
    }

    /// Must the blocks of the last ACKs be told before this range is, because ACKs are being compressed?
    fn must_tell_first(&self, start: u64, end: u64) -> bool {
        self.acks.is_compressing() && self.data.pushes_out((start, end))
    }

    /// Data beyond a hole.
    fn on_gap(&mut self, conf: &HostConf, start: u64, end: u64, payload_bytes: u32) {
        self.acks.schedule();
        let fresh = self.data.insert(start, end);
        if fresh > 0 {
            self.grow_window(payload_bytes, 0);
        }
        self.window.make_room(conf, self.data.reach());
    }

    fn grow_window(&mut self, payload_bytes: u32, unread_packets: u16) {
        let waiting_bytes = self.waiting_bytes();
        if self
            .window
            .grow(payload_bytes, waiting_bytes, unread_packets)
        {
            self.acks.on_window_opened();
        }
    }

    #[cold]
    fn on_overlap(&mut self, start: u64) {
        self.data.set_dsack((start, self.data.rcv_nxt()));
        self.enter_quickack(MAX_QUICKACKS);
    }

    /// Data in order, the first of it perhaps not new.
    #[inline]
    fn advance(&mut self, start: u64, end: u64) {
        if start < self.data.rcv_nxt() {
            self.on_overlap(start);
        }
        self.data.advance(end);
    }

    /// The rest of what data in order does; returns the bytes readable since `prior`. Most applications read at once.
    #[inline(always)]
    fn deliver(
        &mut self,
        cx: &Cx,
        segment: &Segment,
        rto_jiffies: impl Fn() -> u64,
        prior: u64,
    ) -> u64 {
        // RFC 5681, 4.2: an ACK at once when the last hole is filled.
        let filled = self.data.fill();
        self.acks.hurry(filled);
        self.acks.schedule();
        let is_full = self.window.measure_mss(segment.payload_bytes);
        self.acks.on_size(is_full, segment.has(PSH));
        self.window.measure_rtt(cx, segment);
        self.window
            .measure_rtt_of_window(cx.now_ns(), self.data.rcv_nxt());
        let window = &self.window;
        self.acks
            .on_data(cx.jiffies(), rto_jiffies, || window.quickacks());
        if segment.payload_bytes >= 128 {
            self.grow_window(segment.payload_bytes, segment.packets);
        }
        let mut readable = self.data.rcv_nxt() - prior;
        if unlikely(self.data.take_fin()) {
            self.acks.hurry(true);
            readable -= 1;
        }
        if unlikely(self.reads_later) {
            self.unread_bytes += readable;
        } else {
            self.bytes_read += readable;
            self.window.adjust_space(cx.now_ns(), cx.host, &self.data);
        }
        readable
    }

    /// tcp_recvmsg(): reads all there is; returns how much. Is the window now twice what the sender knows (tcp_cleanup_rbuf())?
    #[inline]
    fn read(&mut self, cx: &Cx) -> (u64, bool) {
        let bytes = std::mem::take(&mut self.unread_bytes);
        self.bytes_read += bytes;
        let rcv_nxt = self.data.rcv_nxt();
        self.window.adjust_space(cx.now_ns(), cx.host, &self.data);
        let opens = self.window.has_doubled(rcv_nxt, self.data.waiting_bytes());
        (bytes, bytes > 0 && opens)
    }
}

impl Endpoint {
    /// tcp_data_queue(): takes a segment with payload or FIN; returns the
    /// payload that became readable.
    #[inline(always)]
    pub(super) fn on_data(&mut self, cx: &mut Cx, segment: &Segment) -> u64 {
        let rx = &mut self.rx;
        rx.bytes_arrived += u64::from(segment.payload_bytes);
        let (start, end) = (segment.seq, segment.end_seq());
        if unlikely(segment.has(FIN)) {
            rx.data.note_fin(end - 1);
        }
        let prior = rx.rcv_nxt();
        if unlikely(end <= prior || start > prior) {
            self.on_data_elsewhere(cx, segment);
            return 0;
        }
        rx.advance(start, end);
        self.check_ce(cx, segment);
        let (rtt, timer) = (&self.rtt, &self.xmit_timer);
        let rto_jiffies = || rtt.backed_off_jiffies(cx.host, timer.backoff());
        self.rx.deliver(cx, segment, rto_jiffies, prior)
    }

    /// Data that is not the next: it came before, or something is missing before it.
    #[inline(never)]
    fn on_data_elsewhere(&mut self, cx: &mut Cx, segment: &Segment) {
        let (start, end) = (segment.seq, segment.end_seq());
        if end <= self.rx.rcv_nxt() {
            return self.rx.on_duplicate(start, end);
        }
        self.check_ce(cx, segment);
        if self.rx.must_tell_first(start, end) {
            // tcp_sack_compress_send_ack()
            self.send_ack(cx);
        }
        self.rx.on_gap(cx.host, start, end, segment.payload_bytes);
    }

    /// __tcp_ack_snd_check()
    #[inline(always)]
    pub(super) fn ack_if_due(&mut self, cx: &mut Cx) {
        if self.rx.acks.is_scheduled() {
            self.ack_now_or_later(cx);
        }
    }

    /// The same, out of line: an end that sends receives little.
    #[inline]
    pub(super) fn ack_both_if_due(&mut self, cx: &mut Cx) {
        if unlikely(self.rx.acks.is_scheduled()) {
            self.ack_both(cx);
        }
    }

    #[inline(never)]
    fn ack_both(&mut self, cx: &mut Cx) {
        self.ack_now_or_later(cx);
    }

    #[inline(always)]
    fn ack_now_or_later(&mut self, cx: &mut Cx) {
        let rx = &mut self.rx;
        let rcv_nxt = rx.data.rcv_nxt();
        let full_frame = rx.window.has_full_frame(rcv_nxt) && rx.holds_its_window();
        let in_order = rx.data.is_in_order();
        let due = rx.acks.decide(
            full_frame,
            in_order,
            rcv_nxt,
            cx.host.settings.tcp_comp_sack_nr,
        );
        match due {
            Due::Nothing => {}
            Due::Now => self.send_ack(cx),
            Due::Later => {
                if rx.acks.delay(cx.host, cx.now, self.rtt.srtt_us()) {
                    self.send_ack(cx);
                }
            }
            Due::Compressed => {
                // A share of the RTT, but no more than the sysctl.
                let mut rtt_x8_us = rx.window.rtt_x8_us();
                if self.rtt.srtt_x8() > 0 {
                    rtt_x8_us = rtt_x8_us.min(u64::from(self.rtt.srtt_x8()));
                }
                let settings = &cx.host.settings;
                let percent = u64::from(settings.tcp_comp_sack_rtt_percent);
                let delay_ns =
                    (rtt_x8_us * 1_000 / 8 * percent / 100).min(settings.tcp_comp_sack_delay.0);
                rx.acks.compress(cx.now_ns() + delay_ns);
            }
        }
    }

    /// __tcp_cleanup_rbuf(): the application has read all there is; what the
    /// sender may be waiting for is acked at once.
    #[inline]
    pub fn acks_when_read(&self) -> bool {
        let full_frame = self.rx.window.has_full_frame(self.rx.rcv_nxt());
        self.rx.acks.is_due_when_read(full_frame)
    }

    /// An application that reads later reads all there is, and what the sender waits for is acked; returns how much it was.
    #[inline]
    pub fn read(&mut self, cx: &mut Cx) -> u64 {
        let (bytes, opens) = self.rx.read(cx);
        if bytes > 0 && (opens || self.acks_when_read()) {
            self.send_ack(cx);
        }
        bytes
    }

    pub(super) fn on_receive_timer(&mut self, cx: &mut Cx) {
        let rto_jiffies = self.rto_jiffies(cx);
        if self.rx.acks.take_delayed(cx.now_ns(), rto_jiffies) {
            self.send_ack(cx);
        }
        if self.rx.acks.take_compressed(cx.now_ns()) {
            self.send_ack(cx);
        }
    }
}

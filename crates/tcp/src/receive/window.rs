//! The window that a receiver offers, and the buffer behind it with its autotuning.

use crate::host::window_scale;
use crate::reassembly::Reassembly;
use crate::segment::{Segment, WINDOW_FIELD_MAX};
use crate::{BufferGrowth, Cx, HostConf, Settings};
use knee_kit::odds::{likely, unlikely};

/// What a wire packet of up to 1500 bytes takes in the receive buffer: half a page and an sk_buff, as drivers that build skbs
/// on page fragments account it.
const WIRE_TRUESIZE_BYTES: u64 = 2048 + SK_BUFF_BYTES;
const SK_BUFF_BYTES: u64 = 256;
const PAGE_BYTES: u64 = 4096;
/// Of half a page, for the frame with its headers: the rest is headroom (NET_SKB_PAD) and skb_shared_info.
const HALF_PAGE_FRAME_BYTES: u64 = 2048 - 64 - 320;
/// Headers of Ethernet, IP and TCP with timestamps.
const FRAME_HEADER_BYTES: u64 = 14 + 52;

/// What a full wire packet takes there. One that half a page does not hold lies in whole pages, as ena, virtio_net and
/// others receive jumbo frames: three for 9001 bytes.
fn wire_truesize(mss_bytes: u64) -> u64 {
    let frame = mss_bytes + FRAME_HEADER_BYTES;
    match frame <= HALF_PAGE_FRAME_BYTES {
        true => WIRE_TRUESIZE_BYTES,
        false => frame.div_ceil(PAGE_BYTES) * PAGE_BYTES + SK_BUFF_BYTES,
    }
}
/// TCP_RMEM_TO_WIN_SCALE: ratios are of 256.
const RATIO_SHIFT: u32 = 8;

#[derive(Clone, Debug)]
pub struct ReceiveWindow {
    /// rcv_nxt when the window was last offered, and that window.
    rcv_wup: u64,
    rcv_wnd: u64,
    rcv_ssthresh: u64,
    window_clamp: u64,
    rcvbuf_bytes: u64,
    scaling_ratio: u32,
    /// Do full packets show another?
    measures_payload: bool,
    wscale: u8,
    mss_bytes: u64,
    rcv_mss: u64,
    /// Did the application ask for that size (SOCK_RCVBUF_LOCK)?
    rcvbuf_locked: bool,

    // Autotuning.
    rcv_rtt_x8_us: u32,
    last_tsecr_ms: u32,
    /// Where the window ended when it was last measured by its data, and when that was (0: never), as wide as in Linux.
    rtt_seq: u32,
    rtt_since_us: u32,
    space_bytes: u64,
    space_seq: u64,
    space_since_ns: u64,
}

impl ReceiveWindow {
    pub fn new(conf: &HostConf) -> ReceiveWindow {
        let mss_bytes = u64::from(conf.mss_bytes);
        let mut window = ReceiveWindow {
            rcv_wup: 0,
            rcv_wnd: 0,
            rcv_ssthresh: 0,
            window_clamp: 0,
            rcvbuf_bytes: conf.settings.tcp_rmem_bytes[1],
            rcvbuf_locked: false,
            scaling_ratio: conf.settings.payload_share_q8,
            measures_payload: conf.settings.measures_payload,
            wscale: conf.wscale,
            mss_bytes,
            // tcp_initialize_rcv_mss(): modest until data shows better.
            rcv_mss: mss_bytes.min(536),
            rcv_rtt_x8_us: 0,
            last_tsecr_ms: 0,
            rtt_seq: 0,
            rtt_since_us: 0,
            space_bytes: 0,
            space_seq: 1,
            space_since_ns: 0,
        };
        window.select_initial(u64::MAX);
        window
    }

    /// tcp_select_initial_window(): whole segments.
    fn select_initial(&mut self, clamp: u64) {
        let space = self.win_from_space(self.rcvbuf_bytes).min(clamp);
        self.rcv_wnd = (space / self.mss_bytes * self.mss_bytes).max(self.mss_bytes);
        self.rcv_ssthresh = self.rcv_wnd;
        self.window_clamp = space;
        // tcp_init_buffer_space(): a window that is read whole in a round trip lets the buffer grow.
        self.space_bytes = (10 * self.mss_bytes).min(self.rcv_wnd);
    }

    /// SO_RCVBUF: twice what is asked for, at least SOCK_MIN_RCVBUF, and it does not grow.
    pub fn set_rcvbuf(&mut self, bytes: u64) {
        self.rcvbuf_bytes = (2 * bytes).max(WIRE_TRUESIZE_BYTES);
        self.rcvbuf_locked = true;
        // tcp_connect_init(), tcp_openreq_init_rwin()
        self.set_clamp(self.win_from_space(self.rcvbuf_bytes));
    }

    /// TCP_WINDOW_CLAMP: once data has shown how much of the buffer is payload only the scale is left of it.
    pub fn set_clamp(&mut self, bytes: u64) {
        let clamp = bytes.max(WIRE_TRUESIZE_BYTES / 2);
        self.wscale = self.wscale.min(window_scale(clamp));
        self.select_initial(clamp);
    }

    /// Of the buffer as it is, as far as the window field can say it.
    fn full_window(&self) -> u64 {
        let most = WINDOW_FIELD_MAX << self.wscale;
        self.win_from_space(self.rcvbuf_bytes).min(most)
    }

    /// A SYN arrived.
    pub fn on_syn(&mut self) {
        self.rcv_wup = 1;
    }

    /// The connection is established.
    pub fn start(&mut self, now_ns: u64) {
        self.reserve_segment();
        self.space_since_ns = now_ns;
    }

    #[inline]
    pub fn rcv_wup(&self) -> u64 {
        self.rcv_wup
    }
    pub fn rcvbuf_bytes(&self) -> u64 {
        self.rcvbuf_bytes
    }
    /// The receiver's own estimate of the RTT, times 8.
    pub fn rtt_x8_us(&self) -> u64 {
        u64::from(self.rcv_rtt_x8_us)
    }
    /// Has more than a segment arrived since the window was last offered?
    #[inline]
    pub fn has_full_frame(&self, rcv_nxt: u64) -> bool {
        rcv_nxt - self.rcv_wup > self.rcv_mss
    }
    /// How many ACKs may go at once in a row, for the window's sake: one for every second segment of it.
    #[inline]
    pub fn quickacks(&self) -> u32 {
        ((self.rcv_wnd / (2 * self.rcv_mss)) as u32).max(2)
    }

    fn win_from_space(&self, bytes: u64) -> u64 {
        (bytes * u64::from(self.scaling_ratio)) >> RATIO_SHIFT
    }

    /// Free space, as window: the buffer less what waits out of order and
    /// `unread_bytes` of memory.
    #[inline]
    fn space(&self, waiting_bytes: u64, unread_bytes: u64) -> u64 {
        let waiting = match likely(waiting_bytes == 0) {
            // Most of the time, and a division is slow.
            true => 0,
            false => (waiting_bytes << RATIO_SHIFT) / u64::from(self.scaling_ratio),
        };
        self.win_from_space(self.rcvbuf_bytes.saturating_sub(waiting + unread_bytes))
    }

    /// Rounded up to what the scaled window field can say.
    fn in_whole_units(&self, window: u64) -> u64 {
        let unit = 1u64 << self.wscale;
        (window + unit - 1) & !(unit - 1)
    }

    /// __tcp_select_window(); also: is less than half of the buffer free?
    #[inline]
    fn select(&self, waiting_bytes: u64) -> (u64, bool) {
        if likely(waiting_bytes == 0) {
            // All of the buffer is free.
            let free = self.win_from_space(self.rcvbuf_bytes);
            return (self.in_whole_units(free.min(self.rcv_ssthresh)), false);
        }
        self.select_of_rest(waiting_bytes)
    }

    /// The same where something takes a part of the buffer.
    #[inline(never)]
    fn select_of_rest(&self, waiting_bytes: u64) -> (u64, bool) {
        let full = self
            .window_clamp
            .min(self.win_from_space(self.rcvbuf_bytes));
        let mss = self.rcv_mss.min(full);
        let mut free = self.space(waiting_bytes, 0);
        let unit = 1u64 << self.wscale;
        let is_scarce = free < full >> 1;
        if is_scarce {
            free &= !(unit - 1);
            if free < full >> 4 || free < mss {
                return (0, true);
            }
        }
        (self.in_whole_units(free.min(self.rcv_ssthresh)), is_scarce)
    }

    /// Would the window offered now be no smaller than the last one?
    pub fn keeps(&self, waiting_bytes: u64) -> bool {
        self.select(waiting_bytes).0 >= self.rcv_wnd
    }

    /// Is there room for a window twice as large as what is left of the one that was offered last?
    #[inline]
    pub fn has_doubled(&self, rcv_nxt: u64, waiting_bytes: u64) -> bool {
        let current = (self.rcv_wup + self.rcv_wnd).saturating_sub(rcv_nxt);
        let is_twice = |window| window > 0 && window >= 2 * current;
        2 * current <= self.window_clamp && is_twice(self.select(waiting_bytes).0)
    }

    /// What a SYN offers, whose window is not scaled.
    pub fn offer_in_syn(&self) -> u64 {
        self.rcv_wnd.min(WINDOW_FIELD_MAX)
    }

    /// tcp_select_window(): offers a window; its right edge never moves back. Also: is less than half of the buffer free?
    #[inline]
    pub fn offer(&mut self, rcv_nxt: u64, waiting_bytes: u64) -> (u64, bool) {
        let current = (self.rcv_wup + self.rcv_wnd).saturating_sub(rcv_nxt);
        let (mut window, is_scarce) = self.select(waiting_bytes);
        if unlikely(window < current) {
            window = self.in_whole_units(current);
        }
        self.rcv_wnd = window;
        self.rcv_wup = rcv_nxt;
        (window, is_scarce)
    }

    /// tcp_init_buffer_space(): the window begins a segment below the buffer, so
    /// that it grows once more than it would, and is acked at once that often.
    fn reserve_segment(&mut self) {
        let least = 2 * self.mss_bytes;
        if self.window_clamp > least {
            let full = self.win_from_space(self.rcvbuf_bytes);
            let below = full.saturating_sub(self.mss_bytes).max(least);
            self.window_clamp = self.window_clamp.min(below);
        }
        self.rcv_ssthresh = self.rcv_ssthresh.min(self.window_clamp);
    }

    /// tcp_measure_rcv_mss(); is the segment as large as any so far?
    #[inline]
    pub fn measure_mss(&mut self, payload_bytes: u32) -> bool {
        let len = u64::from(payload_bytes).min(self.mss_bytes);
        if unlikely(len < self.rcv_mss) {
            return false;
        }
        if len != self.rcv_mss {
            self.set_mss(len);
        }
        true
    }

    #[cold]
    fn set_mss(&mut self, len: u64) {
        if self.measures_payload {
            let share = (len << RATIO_SHIFT) / wire_truesize(self.mss_bytes);
            self.scaling_ratio = share.max(1) as u32;
        }
        self.window_clamp = self.full_window();
        self.rcv_mss = len;
    }

    /// tcp_grow_window(): data that fits its memory well opens the window, up to what the buffer has left. A segment in
    /// order lies there still: `unread_packets` is how many packets it came in. Returns whether the window opened.
    #[inline]
    pub fn grow(&mut self, payload_bytes: u32, waiting_bytes: u64, unread_packets: u16) -> bool {
        if self.rcv_ssthresh >= self.window_clamp {
            return false;
        }
        let unread_bytes = u64::from(unread_packets) * wire_truesize(self.mss_bytes);
        let room = self
            .window_clamp
            .min(self.space(waiting_bytes, unread_bytes))
            .saturating_sub(self.rcv_ssthresh);
        if room > 0 {
            let step = (2 * self.mss_bytes).max(2 * u64::from(payload_bytes));
            self.rcv_ssthresh += room.min(step);
        }
        room > 0
    }

    /// tcp_rcv_space_adjust(): once per round trip the buffer is sized for what was read in it.
    #[inline]
    pub fn adjust_space(&mut self, now_ns: u64, conf: &HostConf, data: &Reassembly) {
        let elapsed_ns = now_ns - self.space_since_ns;
        if likely(
            self.rcv_rtt_x8_us == 0 || elapsed_ns < u64::from(self.rcv_rtt_x8_us >> 3) * 1_000,
        ) {
            return;
        }
        self.end_round(now_ns, &conf.settings, data);
    }

    /// A round trip is over.
    #[inline(never)]
    fn end_round(&mut self, now_ns: u64, settings: &Settings, data: &Reassembly) {
        let copied = data.rcv_nxt() - self.space_seq;
        if copied > self.space_bytes {
            let more = copied - self.space_bytes;
            let (window, reach) = match settings.rcvbuf_growth {
                BufferGrowth::Margin => (2 * copied + 16 * self.mss_bytes, 0),
                _ => (2 * copied, data.reach()),
            };
            let allowed = self.allowance(settings, window, more);
            self.space_bytes = copied;
            self.fit(settings, window + allowed + reach);
        }
        self.space_seq = data.rcv_nxt();
        self.space_since_ns = now_ns;
    }

    /// What the sender may send beyond twice the last round trip's, which was `more` than the one before.
    fn allowance(&self, settings: &Settings, window: u64, more: u64) -> u64 {
        let rtt_us = u64::from(self.rcv_rtt_x8_us >> 3);
        let low_rtt_us = settings.tcp_rcvbuf_low_rtt.as_us();
        match settings.rcvbuf_growth {
            BufferGrowth::Twice => 0,
            _ if rtt_us < low_rtt_us => window * rtt_us / low_rtt_us,
            _ => 2 * (window * more / self.space_bytes),
        }
    }

    /// Data arrived beyond a hole, which it and what waits there reaches so far beyond.
    pub fn make_room(&mut self, conf: &HostConf, reach: u64) {
        if conf.settings.rcvbuf_growth != BufferGrowth::Margin {
            let window = 2 * self.space_bytes;
            let allowed = self.allowance(&conf.settings, window, 0);
            self.fit(&conf.settings, window + allowed + reach);
        }
    }

    /// tcp_rcvbuf_grow(): the buffer holds such a window at least.
    fn fit(&mut self, settings: &Settings, window: u64) {
        if self.rcvbuf_locked || !settings.tcp_moderate_rcvbuf {
            return;
        }
        let wanted = ((window << RATIO_SHIFT) / u64::from(self.scaling_ratio))
            .min(settings.tcp_rmem_bytes[2]);
        if wanted > self.rcvbuf_bytes {
            self.rcvbuf_bytes = wanted;
            self.window_clamp = self.full_window();
        }
    }

    /// tcp_rcv_rtt_measure_ts(): timestamps of a millisecond say nothing of less.
    #[inline]
    pub fn measure_rtt(&mut self, cx: &Cx, segment: &Segment) {
        if segment.tsecr_ms == self.last_tsecr_ms || u64::from(segment.payload_bytes) < self.rcv_mss
        {
            return;
        }
        self.last_tsecr_ms = segment.tsecr_ms;
        let sample_ms = cx.now_ms().wrapping_sub(segment.tsecr_ms);
        if likely(sample_ms > 0) {
            self.update_rtt(u64::from(sample_ms) * 1_000, false);
        }
    }

    /// tcp_rcv_rtt_measure(): a window of data takes a round trip at least, so that only a shorter time counts.
    #[inline]
    pub fn measure_rtt_of_window(&mut self, now_ns: u64, rcv_nxt: u64) {
        let is_before = (rcv_nxt as u32).wrapping_sub(self.rtt_seq) > i32::MAX as u32;
        if likely(is_before) {
            return;
        }
        let now_us = (now_ns / 1_000) as u32;
        if self.rtt_since_us > 0 {
            let sample_us = now_us.wrapping_sub(self.rtt_since_us).max(1);
            self.update_rtt(u64::from(sample_us), true);
        }
        self.rtt_seq = (rcv_nxt + self.rcv_wnd) as u32;
        self.rtt_since_us = now_us;
    }

    /// tcp_rcv_rtt_update(): a lesser sample counts at once. Source: Linux b879dcb1aeec, "tcp: always seek for minimal rtt
    /// in tcp_rcv_rtt_update()", which 5.10.262 and 6.12.117 have too.
    #[inline]
    fn update_rtt(&mut self, sample_us: u64, is_of_window: bool) {
        let smoothed = u64::from(self.rcv_rtt_x8_us);
        if smoothed == 0 || sample_us << 3 < smoothed {
            self.rcv_rtt_x8_us = (sample_us << 3) as u32;
        } else if !is_of_window {
            self.rcv_rtt_x8_us = (smoothed + sample_us - (smoothed >> 3)) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;

    fn window() -> ReceiveWindow {
        let settings = Settings {
            tcp_rmem_bytes: [4_096, 1_000_000, 6 << 20],
            ..Settings::untuned()
        };
        ReceiveWindow::new(&HostConf::new(settings, 1500))
    }

    #[test]
    fn the_window_of_jumbo_frames_is_a_part_of_the_buffer_too() {
        let settings = Settings {
            measures_payload: true,
            ..Settings::untuned()
        };
        for (mtu, truesize) in [(1500, 2304), (1664, 4352), (6010, 8448), (9001, 12_544)] {
            let conf = HostConf::new(settings.clone(), mtu);
            let mut window = ReceiveWindow::new(&conf);
            assert_eq!(wire_truesize(window.mss_bytes), truesize, "{mtu}");
            window.measure_mss(conf.mss_bytes);
            let share = window.win_from_space(1 << 20) as f64 / f64::from(1 << 20);
            let expected = f64::from(conf.mss_bytes) / truesize as f64;
            assert!(
                (share - expected).abs() < 0.01 && share < 1.0,
                "{mtu}: {share}"
            );
        }
    }

    /// Source: Linux 72d05c00d7ec, "tcp: select sane initial rcvq_space.space for big MSS".
    #[test]
    fn a_first_window_that_is_read_whole_lets_the_buffer_grow_whatever_the_mtu() {
        let settings = Settings {
            tcp_rmem_bytes: [4_096, 131_072, 6 << 20],
            ..Settings::untuned()
        };
        for (mtu, space) in [(1500, 14_480), (9001, 7 * 8_949)] {
            let window = ReceiveWindow::new(&HostConf::new(settings.clone(), mtu));
            assert_eq!(window.space_bytes, space, "{mtu}");
            assert!(window.space_bytes <= window.rcv_wnd, "{mtu}");
        }
    }

    #[test]
    fn the_right_edge_never_moves_back() {
        let mut window = window();
        let (first, _) = window.offer(1, 0);
        let (second, is_scarce) = window.offer(1_001, 600_000);
        assert!(is_scarce);
        assert!((first - 1_000..first - 1_000 + (1 << window.wscale)).contains(&second));
    }

    #[test]
    fn a_buffer_that_was_asked_for_is_twice_as_large_and_does_not_grow() {
        let mut window = window();
        window.set_rcvbuf(50_000);
        window.start(0);
        assert_eq!(window.rcvbuf_bytes(), 100_000);
        assert_eq!(window.rcv_wnd, 50_000 / 1_448 * 1_448);
        assert_eq!(window.wscale, 0);
        read(&mut window, &conf(BufferGrowth::Rise, 0), 1_000_000);
        assert_eq!(window.rcvbuf_bytes(), 100_000);
    }

    fn conf(rcvbuf_growth: BufferGrowth, low_rtt_us: u64) -> HostConf {
        let settings = Settings {
            rcvbuf_growth,
            tcp_rcvbuf_low_rtt: knee_units::Nanos(low_rtt_us * 1_000),
            tcp_rmem_bytes: [4_096, 1_000_000, 6 << 20],
            ..Settings::untuned()
        };
        HostConf::new(settings, 1500)
    }

    /// In a round trip of a millisecond.
    fn read(window: &mut ReceiveWindow, conf: &HostConf, bytes: u64) {
        let mut data = Reassembly::default();
        data.start();
        window.start(0);
        window.rcv_rtt_x8_us = 8_000;
        data.advance(1 + bytes);
        window.adjust_space(1_000_000, conf, &data);
    }

    /// Half of the buffer is window. A third more is read than before.
    #[test]
    fn the_buffer_grows_by_the_rule_of_the_release() {
        let grown = |rcvbuf_growth, low_rtt_us| {
            let mut window = window();
            window.rcvbuf_bytes = 1;
            window.space_bytes = 30_000;
            read(&mut window, &conf(rcvbuf_growth, low_rtt_us), 40_000);
            window.rcvbuf_bytes() / 2
        };
        assert_eq!(grown(BufferGrowth::Twice, 0), 80_000);
        assert_eq!(grown(BufferGrowth::Rise, 0), 80_000 + 2 * 26_666);
        assert_eq!(grown(BufferGrowth::Rise, 1_000), 80_000 + 2 * 26_666);
        assert_eq!(grown(BufferGrowth::Rise, 4_000), 80_000 + 20_000);
        assert_eq!(grown(BufferGrowth::Margin, 0), 103_168 + 2 * 34_389);
    }

    #[test]
    fn data_beyond_a_hole_gets_the_room_that_it_reaches_to_from_6_16_on() {
        let grown = |rcvbuf_growth| {
            let mut window = window();
            window.rcvbuf_bytes = 1;
            window.space_bytes = 100_000;
            window.make_room(&conf(rcvbuf_growth, 0), 30_000);
            window.rcvbuf_bytes()
        };
        assert_eq!(grown(BufferGrowth::Margin), 1);
        assert_eq!(grown(BufferGrowth::Twice), 2 * 230_000);
        assert_eq!(grown(BufferGrowth::Rise), 2 * 230_000);
    }

    #[test]
    fn what_stays_of_a_clamp_is_the_scale_that_it_chose() {
        for (clamp, most) in [
            (65_535, 65_535),
            (65_536, 2 * 65_535),
            (200_000, 4 * 65_535),
        ] {
            let mut window = window();
            window.set_clamp(clamp);
            window.start(0);
            assert!(window.rcv_wnd <= clamp && window.rcv_wnd > clamp - 1_448);
            window.measure_mss(1_448);
            while window.grow(1_448, 0, 1) {}
            assert_eq!(
                window.rcv_ssthresh,
                most.min(window.win_from_space(1_000_000))
            );
        }
    }

    #[test]
    fn a_smaller_segment_changes_no_estimate() {
        let mut window = window();
        assert!(window.measure_mss(1_000) && window.measure_mss(1_000));
        let ratio = window.scaling_ratio;
        assert!(!window.measure_mss(999) && window.scaling_ratio == ratio);
        assert!(!window.has_full_frame(window.rcv_wup() + 1_000));
        assert!(window.has_full_frame(window.rcv_wup() + 1_001));
    }

    #[test]
    fn the_window_opens_by_two_segments_until_the_buffer_is_used() {
        let mut window = window();
        window.start(0);
        window.rcv_ssthresh = window.window_clamp - 3 * 1_448;
        let before = window.rcv_ssthresh;
        assert!(window.grow(1_448, 0, 1));
        assert_eq!(window.rcv_ssthresh, before + 2 * 1_448);
        assert!(window.grow(1_448, 0, 1));
        assert!(!window.grow(1_448, 0, 1));
        assert_eq!(window.rcv_ssthresh, window.window_clamp);
    }

    #[test]
    fn a_round_trip_that_is_shorter_counts_at_once_and_a_longer_one_by_an_eighth() {
        let mut window = window();
        let mut after = |sample_us| {
            window.update_rtt(sample_us, false);
            window.rcv_rtt_x8_us
        };
        assert_eq!(after(40_000), 8 * 40_000);
        assert_eq!(after(48_000), 8 * 41_000);
        assert_eq!(after(24_000), 8 * 24_000);
        assert_eq!(after(24_000), 8 * 24_000);
    }

    #[test]
    fn a_window_of_data_is_a_round_trip_where_it_takes_less_than_any() {
        let mut window = window();
        let bytes = window.rcv_wnd;
        window.measure_rtt_of_window(1_000_000, 1);
        window.measure_rtt_of_window(1_100_000, bytes);
        assert_eq!(window.rcv_rtt_x8_us, 0, "the window is not over");
        window.measure_rtt_of_window(1_200_000, 1 + bytes);
        assert_eq!(window.rcv_rtt_x8_us, 8 * 200);
        window.measure_rtt_of_window(1_500_000, 1 + 2 * bytes);
        assert_eq!(window.rcv_rtt_x8_us, 8 * 200);
        window.measure_rtt_of_window(1_650_000, 1 + 3 * bytes);
        assert_eq!(window.rcv_rtt_x8_us, 8 * 150);
    }

    /// __tcp_select_window(): with less than half of the buffer free it is rounded down, so that no more is offered than
    /// there is, and below a sixteenth nothing is.
    #[test]
    fn a_window_of_a_full_buffer_is_never_more_than_what_is_free() {
        let (mut units, mut zeros) = (0, 0);
        for waiting in (1_000..500_000).step_by(1_237) {
            let mut rx = window();
            rx.rcv_ssthresh = u64::MAX >> 1;
            let (full, free) = (rx.window_clamp, rx.space(waiting, 0));
            let unit = 1 << rx.wscale;
            let (window, _) = rx.select(waiting);
            assert_eq!(window % unit, 0);
            let whole = free / unit * unit;
            if whole < full / 16 {
                assert_eq!(window, 0, "{free} of {full} are free");
                zeros += 1;
            } else if free < full / 2 {
                assert_eq!(window, whole, "{free} of {full} are free");
                units += 1;
            } else {
                assert_eq!(window, free.div_ceil(unit) * unit);
            }
        }
        assert!(units > 100 && zeros > 10, "{units} {zeros}");
    }

    #[test]
    fn the_sixteenth_of_a_buffer_is_offered_to_the_last_byte() {
        let mut rx = window();
        rx.rcv_ssthresh = u64::MAX >> 1;
        let offered = |waiting: &u64| rx.space(*waiting, 0) >> rx.wscale << rx.wscale;
        let fits = |waiting: &u64| (2_000..rx.window_clamp / 16).contains(&offered(waiting));
        let waiting = (1_000..600_000).step_by(517).find(fits).unwrap();
        let free = offered(&waiting);
        rx.window_clamp = free * 16;
        assert!(rx.window_clamp <= rx.win_from_space(rx.rcvbuf_bytes));
        assert_eq!(rx.select(waiting), (free, true));
        rx.window_clamp += 16;
        assert_eq!(rx.select(waiting), (0, true));
    }
}

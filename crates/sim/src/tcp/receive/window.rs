//! The window that a receiver offers, and the buffer behind it.

use super::{Cx, RATIO_SHIFT, Receiver};
use crate::segment::{Segment, WINDOW_FIELD_MAX};

impl Receiver {
    pub(super) fn win_from_space(&self, bytes: u64) -> u64 {
        (bytes * self.scaling_ratio) >> RATIO_SHIFT
    }

    /// Free space, as window: the buffer less what waits out of order and
    /// `unread_bytes` of memory.
    fn space(&self, unread_bytes: u64) -> u64 {
        let waiting = match self.out_of_order.total() {
            // Most of the time, and a division is slow.
            0 => 0,
            bytes => (bytes << RATIO_SHIFT) / self.scaling_ratio,
        };
        self.win_from_space(self.rcvbuf_bytes.saturating_sub(waiting + unread_bytes))
    }

    /// Rounded up to what the scaled window field can say.
    fn in_whole_units(&self, window: u64) -> u64 {
        let unit = 1u64 << self.wscale;
        (window + unit - 1) & !(unit - 1)
    }

    /// __tcp_select_window()
    fn select_window(&mut self) -> u64 {
        let full = self
            .window_clamp
            .min(self.win_from_space(self.rcvbuf_bytes));
        let mss = self.rcv_mss.min(full);
        let mut free = self.space(0);
        let unit = 1u64 << self.wscale;
        if free < full >> 1 {
            self.quick = 0;
            free &= !(unit - 1);
            if free < full >> 4 || free < mss {
                return 0;
            }
        }
        self.in_whole_units(free.min(self.rcv_ssthresh))
    }

    /// tcp_select_window(): offers a window; its right edge never moves back.
    pub fn offer_window(&mut self, syn: bool) -> u64 {
        if syn {
            return self.rcv_wnd.min(WINDOW_FIELD_MAX);
        }
        let current = (self.rcv_wup + self.rcv_wnd).saturating_sub(self.rcv_nxt);
        let mut window = self.select_window();
        if window < current {
            window = self.in_whole_units(current);
        }
        self.rcv_wnd = window;
        self.rcv_wup = self.rcv_nxt;
        window
    }

    /// tcp_init_buffer_space(): the window begins a segment below the buffer, so
    /// that it grows once more than it would, and is acked at once that often.
    pub(super) fn reserve_segment(&mut self) {
        let least = 2 * self.mss_bytes;
        if self.window_clamp > least {
            let full = self.win_from_space(self.rcvbuf_bytes);
            let below = full.saturating_sub(self.mss_bytes).max(least);
            self.window_clamp = self.window_clamp.min(below);
        }
        self.rcv_ssthresh = self.rcv_ssthresh.min(self.window_clamp);
    }

    /// tcp_grow_window(): data that fits its memory well opens the window, up to
    /// what the buffer has left. The segment itself, `unread_bytes` of memory, lies
    /// there still.
    pub(super) fn grow_window(&mut self, payload_bytes: u64, unread_bytes: u64) {
        let room = self
            .window_clamp
            .min(self.space(unread_bytes))
            .saturating_sub(self.rcv_ssthresh);
        if room > 0 {
            let step = (2 * self.mss_bytes).max(2 * payload_bytes);
            self.rcv_ssthresh += room.min(step);
            self.quick |= 1;
        }
    }

    /// tcp_rcv_space_adjust(): once per round trip the buffer is sized for
    /// twice what was read in it, and for the sender to double.
    pub(super) fn adjust_space(&mut self, cx: &Cx) {
        let elapsed_us = (cx.now_ns - self.space_since_ns) / 1_000;
        if self.rcv_rtt_x8_us == 0 || elapsed_us < self.rcv_rtt_x8_us >> 3 {
            return;
        }
        let copied = self.rcv_nxt - self.space_seq;
        if copied > self.space_bytes {
            let mut window = 2 * copied + 16 * self.mss_bytes;
            window += 2 * (window * (copied - self.space_bytes) / self.space_bytes);
            let wanted = ((window << RATIO_SHIFT) / self.scaling_ratio).min(self.rcvbuf_max_bytes);
            if wanted > self.rcvbuf_bytes {
                self.rcvbuf_bytes = wanted;
                self.window_clamp = self.win_from_space(wanted);
            }
            self.space_bytes = copied;
        }
        self.space_seq = self.rcv_nxt;
        self.space_since_ns = cx.now_ns;
    }

    /// tcp_rcv_rtt_measure_ts()
    pub(super) fn measure_rtt(&mut self, cx: &Cx, segment: &Segment) {
        if segment.tsecr_ms == self.last_tsecr_ms || u64::from(segment.payload_bytes) < self.rcv_mss
        {
            return;
        }
        self.last_tsecr_ms = segment.tsecr_ms;
        let sample_us = u64::from(cx.now_ms().wrapping_sub(segment.tsecr_ms).max(1)) * 1_000;
        self.rcv_rtt_x8_us = match self.rcv_rtt_x8_us {
            0 => sample_us << 3,
            smoothed => smoothed + sample_us - (smoothed >> 3),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::HostConf;

    fn receiver() -> Receiver {
        Receiver::new(&HostConf::with_keys("tcp_rmem_default = \"1MB\"\n"))
    }

    /// __tcp_select_window(): with less than half of the buffer free it is rounded down, so that no more is offered than
    /// there is, and below a sixteenth nothing is.
    #[test]
    fn a_window_of_a_full_buffer_is_never_more_than_what_is_free() {
        let (mut units, mut zeros) = (0, 0);
        for waiting in (1_000..500_000).step_by(1_237) {
            let mut rx = receiver();
            rx.rcv_ssthresh = u64::MAX >> 1;
            rx.out_of_order.insert(1, 1 + waiting, |_, _| {});
            let (full, free) = (rx.window_clamp, rx.space(0));
            let unit = 1 << rx.wscale;
            let window = rx.select_window();
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
}

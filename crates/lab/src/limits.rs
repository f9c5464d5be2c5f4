//! What limited a sender, counted from samples of its socket. Kernels report the time limited by the receive window, some
//! of the time limited by the send buffer (too little: for a nonblocking writer often none), and none by the congestion window.

use knee_collect::sock_diag::Diag;
use knee_collect::sock_diag::tcp_info::TcpInfo;

/// Samples of the steady part that showed each limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Those that told enough to see one.
    pub samples: u64,
    /// The congestion window was full.
    pub cwnd: u64,
    /// It had room and nothing waited to be sent, for which the send buffer had none.
    pub sndbuf: u64,
    /// It had room, data waited to be sent, and its pacing rate is about what arrives. A socket that nothing paces has such a
    /// rate too, far above that: what holds it back is the device or its qdisc (small queues), and is not counted.
    pub pacing: u64,
}

/// The pacing rate over what arrives, at most: BBR's first gain is 2.89.
const MOST_GAIN: u64 = 3;

fn may_be_paced(info: &TcpInfo<'_>) -> bool {
    let rates = info.pacing_rate().zip(info.delivery_rate());
    rates.is_none_or(|(paced, delivered)| delivered == 0 || paced / MOST_GAIN <= delivered)
}

/// Time of the steady part under each limit, by the kernel's counters or by samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limited {
    pub cwnd_us: Option<i64>,
    pub sndbuf_us: Option<i64>,
    pub pacing_us: Option<i64>,
}

impl Limits {
    pub fn add(&mut self, diag: &Diag<'_>, info: &TcpInfo<'_>) {
        let Some((cwnd, waiting_bytes)) = info.snd_cwnd().zip(info.notsent_bytes()) else {
            return;
        };
        self.samples += 1;
        let room = cwnd.saturating_sub(info.inflight());
        match waiting_bytes {
            // A sender waits for a third of its window before it sends a large packet: tcp_tso_should_defer().
            1.. if room <= cwnd / 3 => self.cwnd += 1,
            1.. => self.pacing += u64::from(may_be_paced(info)),
            0 if room == 0 => self.cwnd += 1,
            // A writer is woken when a third of the buffer is free: sk_stream_is_writeable().
            0 => {
                let is_full = |sndbuf: u32, queued: u32| queued > sndbuf / 3 * 2;
                let memory = diag.memory;
                let full = memory.is_some_and(|memory| is_full(memory.sndbuf, memory.wmem_queued));
                self.sndbuf += u64::from(full);
            }
        }
    }

    /// Splits the steady part among the limits. The kernel's own times (receive window, send buffer, application) come
    /// first; samples share out the rest in proportion to their counts. Time that neither shows stays unexplained.
    pub fn limited(
        &self,
        steady_us: i64,
        [rwnd_us, sndbuf_us, app_us]: [Option<i64>; 3],
    ) -> Limited {
        let mut rest_us = steady_us - [rwnd_us, sndbuf_us, app_us].iter().flatten().sum::<i64>();
        let mut take = |seen: u64, told_us: i64| {
            let shown_us = (steady_us as f64 * seen as f64 / self.samples.max(1) as f64) as i64;
            let us = (shown_us - told_us).clamp(0, rest_us.max(0));
            rest_us -= us;
            us
        };
        let cwnd_us = take(self.cwnd, 0);
        let shown_us = take(self.sndbuf, sndbuf_us.unwrap_or(0));
        let pacing_us = take(self.pacing, 0);
        Limited {
            cwnd_us: Some(cwnd_us).filter(|_| self.samples > 0),
            sndbuf_us: sndbuf_us.map(|us| us + shown_us),
            pacing_us: Some(pacing_us).filter(|_| self.samples > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use knee_collect::testing::diag;

    use super::*;

    /// linux/inet_diag.h
    const INET_DIAG_SKMEMINFO: u16 = 7;

    /// A sample with these of `tcp_info`, and bytes in a send buffer of 90,000.
    fn sample(cwnd: u32, unacked: u32, notsent_bytes: u32, queued_bytes: u32) -> Limits {
        sample_at(cwnd, unacked, notsent_bytes, queued_bytes, [0; 2])
    }

    /// The same at these pacing and delivery rates.
    fn sample_at(
        cwnd: u32,
        unacked: u32,
        notsent_bytes: u32,
        queued_bytes: u32,
        rates: [u64; 2],
    ) -> Limits {
        let mut bytes = [0; 192];
        for (at, value) in [(24, unacked), (80, cwnd), (144, notsent_bytes)] {
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        for (at, value) in [104, 160].into_iter().zip(rates) {
            bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        }
        let mut memory = [0; 36];
        for (at, value) in [(12, 90_000), (20, queued_bytes)] {
            memory[at..at + 4].copy_from_slice(&u32::to_ne_bytes(value));
        }
        let mut limits = Limits::default();
        let mut diag = diag(&bytes);
        diag.attribute(INET_DIAG_SKMEMINFO, &memory);
        limits.add(&diag, &TcpInfo(&bytes));
        limits
    }

    #[test]
    fn a_sample_shows_the_window_only_where_it_is_full() {
        let [none, cwnd, sndbuf, pacing] = [0, 1, 2, 3].map(|which| Limits {
            samples: 1,
            cwnd: u64::from(which == 1),
            sndbuf: u64::from(which == 2),
            pacing: u64::from(which == 3),
        });
        assert_eq!(sample(30, 30, 5_000, 90_000), cwnd);
        assert_eq!(sample(30, 30, 0, 10_000), cwnd);
        assert_eq!(sample(30, 20, 5_000, 90_000), cwnd, "it defers");
        assert_eq!(sample(30, 19, 5_000, 90_000), pacing);
        assert_eq!(sample_at(30, 19, 5_000, 90_000, [2_900, 1_000]), pacing);
        assert_eq!(
            sample_at(30, 19, 5_000, 90_000, [6_000, 1_000]),
            none,
            "not paced"
        );
        assert_eq!(sample(30, 29, 0, 60_001), sndbuf);
        assert_eq!(sample(30, 20, 0, 60_000), none, "not told");
    }

    #[test]
    fn a_kernel_that_does_not_tell_what_waits_shows_no_limit() {
        let bytes = [1; 144];
        let mut limits = Limits::default();
        limits.add(&diag(&bytes), &TcpInfo(&bytes));
        let limited = limits.limited(1_000, [None; 3]);
        assert_eq!([limited.cwnd_us, limited.pacing_us], [None; 2]);
    }

    #[test]
    fn time_that_neither_the_kernel_nor_samples_show_stays_unexplained() {
        let limits = Limits {
            samples: 100,
            cwnd: 30,
            sndbuf: 50,
            pacing: 10,
        };
        let limited = limits.limited(1_000, [Some(0), Some(0), Some(0)]);
        assert_eq!(limited.cwnd_us, Some(300));
        assert_eq!(limited.sndbuf_us, Some(500));
        assert_eq!(limited.pacing_us, Some(100));
        // The kernel's own time under the send buffer is among what samples show.
        let limited = limits.limited(1_000, [Some(0), Some(200), Some(0)]);
        assert_eq!(limited.sndbuf_us, Some(500));
        // What the kernel tells of others is not theirs.
        let limited = limits.limited(1_000, [Some(900), Some(0), Some(0)]);
        assert_eq!([limited.cwnd_us, limited.sndbuf_us], [Some(100), Some(0)]);
        let untold = Limits::default().limited(1_000, [None; 3]);
        assert_eq!(
            [untold.cwnd_us, untold.sndbuf_us, untold.pacing_us],
            [None; 3]
        );
    }
}

//! Decodes `struct tcp_info` field by field: fields that an older kernel lacks are null, and fields that only a newer
//! kernel has are skipped.
//!
//! Source: include/uapi/linux/tcp.h, Linux 4.19 to 7.0: fields are only ever appended,
//! but for the last four bytes, which tell how AccECN was negotiated. They are two
//! numbers of 16 bits in 6.18 and fields of bits from 7.0 on; the bytes do not say
//! which, so none of it is read.

/// A socket's `tcp_info`, as long as the kernel made it.
#[derive(Clone, Copy, Debug)]
pub struct TcpInfo<'a>(pub &'a [u8]);

/// Length of the longest struct that is understood.
pub const KNOWN_BYTES: usize = 280;

macro_rules! fields {
    ($($name:ident: $type:ty, $at:literal, $doc:literal;)*) => {
        impl TcpInfo<'_> {
            $(
                #[doc = $doc]
                #[inline]
                pub fn $name(&self) -> Option<$type> {
                    const BYTES: usize = size_of::<$type>();
                    let bytes = self.0.get($at..$at + BYTES)?;
                    Some(<$type>::from_ne_bytes(bytes.try_into().expect("the slice has this length")))
                }
            )*
        }

        /// Byte range of each field. A kernel whose struct ends within it lacks the field.
        #[allow(non_upper_case_globals)]
        pub mod place {
            use std::ops::Range;
            $(
                #[doc = $doc]
                pub const $name: Range<usize> = $at..$at + size_of::<$type>();
            )*
        }
    };
}

fields! {
    state: u8, 0, "TCP state, 1 is ESTABLISHED.";
    ca_state: u8, 1, "0 Open, 1 Disorder, 2 CWR, 3 Recovery, 4 Loss.";
    retransmits: u8, 2, "Timeouts in a row.";
    probes: u8, 3, "Window probes in a row.";
    backoff: u8, 4, "Doublings of the timeout.";
    options: u8, 5, "Bits of negotiated options.";
    wscales: u8, 6, "Window scales, the sender's in the low bits.";
    flags: u8, 7, "Bit 0: the delivery rate was application-limited.";
    rto_us: u32, 8, "Retransmission timeout, doubled by each backoff.";
    ato_us: u32, 12, "Delayed-ACK timeout.";
    snd_mss: u32, 16, "Payload bytes of a full segment sent.";
    rcv_mss: u32, 20, "The far end's, estimated.";
    unacked: u32, 24, "Segments sent and not yet acknowledged.";
    sacked: u32, 28, "Segments of unacked that SACK acknowledges.";
    lost: u32, 32, "Segments of unacked that are marked lost.";
    retrans: u32, 36, "Segments of unacked that were sent again.";
    last_data_sent_ms: u32, 44, "Milliseconds since data was last sent.";
    last_data_recv_ms: u32, 52, "Milliseconds since data was last received.";
    last_ack_recv_ms: u32, 56, "Milliseconds since an ACK was last received.";
    pmtu: u32, 60, "Path MTU in bytes.";
    rcv_ssthresh: u32, 64, "Bytes to which the window offered is clamped.";
    srtt_us: u32, 68, "Smoothed RTT.";
    rttvar_us: u32, 72, "RTT variation.";
    snd_ssthresh: u32, 76, "Slow-start threshold in segments.";
    snd_cwnd: u32, 80, "Congestion window in segments.";
    advmss: u32, 84, "MSS offered, in bytes.";
    reordering: u32, 88, "Reordering degree assumed, in segments.";
    rcv_rtt_us: u32, 92, "The receiver's estimate of the RTT.";
    rcv_space: u32, 96, "Receive buffer space in bytes.";
    total_retrans: u32, 100, "Segments sent again so far.";
    pacing_rate: u64, 104, "Bytes per second; ~0: unlimited.";
    max_pacing_rate: u64, 112, "Bytes per second; ~0: unlimited.";
    bytes_acked: u64, 120, "Bytes acknowledged so far.";
    bytes_received: u64, 128, "Bytes received so far.";
    segs_out: u32, 136, "Segments sent so far.";
    segs_in: u32, 140, "Segments received so far.";
    notsent_bytes: u32, 144, "Bytes written and not sent.";
    min_rtt_us: u32, 148, "Least RTT; ~0: none yet.";
    data_segs_in: u32, 152, "Data segments received so far.";
    data_segs_out: u32, 156, "Data segments sent so far.";
    delivery_rate: u64, 160, "Bytes per second.";
    busy_us: u64, 168, "Time with data outstanding.";
    rwnd_limited_us: u64, 176, "Time limited by the receive window.";
    sndbuf_limited_us: u64, 184, "Time limited by the send buffer.";
    delivered: u32, 192, "Segments delivered so far.";
    delivered_ce: u32, 196, "Segments of those that were marked CE.";
    bytes_sent: u64, 200, "Bytes sent so far, with retransmissions.";
    bytes_retrans: u64, 208, "Bytes sent again so far.";
    dsack_dups: u32, 216, "Duplicates that DSACK reported so far.";
    reord_seen: u32, 220, "Reordering events so far.";
    rcv_ooopack: u32, 224, "Segments received out of order so far.";
    snd_wnd: u32, 228, "Bytes that the far end's window allows.";
    rcv_wnd: u32, 232, "Bytes of the window offered.";
    rehash: u32, 236, "Changes of the flow label so far.";
    total_rto: u16, 240, "Retransmission timeouts so far.";
    total_rto_recoveries: u16, 242, "Recoveries from timeouts so far.";
    total_rto_time_ms: u32, 244, "Milliseconds spent in those so far.";
    received_ce: u32, 248, "CE marked packets received so far.";
    delivered_e1_bytes: u32, 252, "Bytes delivered as ECT(1) so far.";
    delivered_e0_bytes: u32, 256, "Bytes delivered as ECT(0) so far.";
    delivered_ce_bytes: u32, 260, "Bytes delivered as CE so far.";
    received_e1_bytes: u32, 264, "Bytes received as ECT(1) so far.";
    received_e0_bytes: u32, 268, "Bytes received as ECT(0) so far.";
    received_ce_bytes: u32, 272, "Bytes received as CE so far.";
}

impl TcpInfo<'_> {
    /// Segments in flight, as tcp_packets_in_flight() has them.
    pub fn inflight(&self) -> u32 {
        let part = |value: Option<u32>| value.unwrap_or(0);
        // Saturating: a broken kernel's counts must not cause a panic.
        part(self.unacked())
            .saturating_add(part(self.retrans()))
            .saturating_sub(part(self.sacked()).saturating_add(part(self.lost())))
    }

    /// [`inflight`](TcpInfo::inflight); `None` if the kernel lacks a part of it.
    pub fn known_inflight(&self) -> Option<u32> {
        self.retrans().map(|_| self.inflight())
    }

    /// 0 before the first sample.
    pub fn min_rtt_or_0_us(&self) -> Option<u32> {
        let us = self.min_rtt_us()?;
        Some(if us == u32::MAX { 0 } else { us })
    }

    /// The timeout before doubling; Linux stores it doubled.
    pub fn rto_without_backoff_us(&self) -> Option<u32> {
        Some(self.rto_us()? >> self.backoff()?.min(31))
    }

    /// The far end's window scale.
    pub fn snd_wscale(&self) -> Option<u8> {
        self.wscales().map(|scales| scales & 0xf)
    }

    /// This end's window scale.
    pub fn rcv_wscale(&self) -> Option<u8> {
        self.wscales().map(|scales| scales >> 4)
    }

    /// `None`: unlimited, or absent.
    pub fn pacing_rate_bits_per_sec(&self) -> Option<i64> {
        limited_bits_per_sec(self.pacing_rate())
    }

    /// `None`: unlimited, or absent.
    pub fn max_pacing_rate_bits_per_sec(&self) -> Option<i64> {
        limited_bits_per_sec(self.max_pacing_rate())
    }

    pub fn delivery_rate_bits_per_sec(&self) -> Option<i64> {
        self.delivery_rate().map(bits_per_sec)
    }

    /// Returns whether nothing has changed since `earlier`, apart from the clocks that always run.
    pub fn is_at_rest_since(&self, earlier: &TcpInfo<'_>) -> bool {
        // Times since (44 .. 60) and the busy times (168 .. 192) go on by themselves.
        const CLOCKS: [std::ops::Range<usize>; 2] = [44..60, 168..192];
        self.0.len() == earlier.0.len()
            && self
                .0
                .iter()
                .zip(earlier.0)
                .enumerate()
                .all(|(at, (a, b))| a == b || CLOCKS.iter().any(|clock| clock.contains(&at)))
    }
}

/// BBR's state (`struct tcp_bbr_info`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BbrInfo {
    pub bw_bytes_per_sec: u64,
    pub min_rtt_us: u32,
    pub pacing_gain: f64,
    pub cwnd_gain: f64,
    /// Further fields of BBR 3's longer struct.
    pub v3: Option<Bbr3Info>,
}

/// The further fields of BBR 3's `struct tcp_bbr_info`.
/// Source: google/bbr, branch v3, include/uapi/linux/inet_diag.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bbr3Info {
    /// Bounds that are not set are ~0.
    pub bw_hi_bytes_per_sec: u64,
    pub bw_lo_bytes_per_sec: u64,
    pub mode: u8,
    pub phase: u8,
    pub version: u8,
    /// Segments.
    pub inflight_lo: u32,
    pub inflight_hi: u32,
    pub extra_acked: u32,
}

impl BbrInfo {
    /// `None`: shorter than any kernel's.
    pub fn decode(bytes: &[u8]) -> Option<BbrInfo> {
        let word = |n: usize| {
            Some(u32::from_ne_bytes(
                bytes.get(n * 4..n * 4 + 4)?.try_into().ok()?,
            ))
        };
        let wide = |n: usize| Some(u64::from(word(n)?) | u64::from(word(n + 1)?) << 32);
        let v3 = || {
            let &[mode, phase, _, version] = bytes.get(36..40)? else {
                return None;
            };
            Some(Bbr3Info {
                bw_hi_bytes_per_sec: wide(5)?,
                bw_lo_bytes_per_sec: wide(7)?,
                mode,
                phase,
                version,
                inflight_lo: word(10)?,
                inflight_hi: word(11)?,
                extra_acked: word(12)?,
            })
        };
        // Gains are in 1/256 (BBR_UNIT).
        let gain = |n: usize| Some(f64::from(word(n)?) / 256.0);
        Some(BbrInfo {
            bw_bytes_per_sec: wide(0)?,
            min_rtt_us: word(2)?,
            pacing_gain: gain(3)?,
            cwnd_gain: gain(4)?,
            v3: v3(),
        })
    }

    /// The phase, which follows from the gains: each has its own pair. Until the
    /// first data is acked the gains are those of the SYN's ACK, which Linux hands
    /// to BBR before it sets BBR up; then it begins in Startup.
    /// Source: Linux 6.18, net/ipv4/tcp_bbr.c, bbr_init() and bbr_update_gains().
    pub fn phase(&self) -> &'static str {
        const HIGH: f64 = 739.0 / 256.0;
        const DRAIN: f64 = 88.0 / 256.0;
        match (self.pacing_gain, self.cwnd_gain) {
            _ if self.bw_bytes_per_sec == 0 => "Startup",
            (HIGH, HIGH) => "Startup",
            (DRAIN, HIGH) => "Drain",
            (_, 2.0) => "ProbeBw",
            (1.0, 1.0) => "ProbeRtt",
            // Gains of another kernel.
            _ => "",
        }
    }
}

/// State of Vegas (`struct tcpvegas_info`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VegasInfo {
    pub enabled: u32,
    pub rttcnt: u32,
    pub rtt_us: u32,
    pub minrtt_us: u32,
}

impl VegasInfo {
    /// `None`: shorter than any kernel's.
    pub fn decode(bytes: &[u8]) -> Option<VegasInfo> {
        let word = |n: usize| {
            Some(u32::from_ne_bytes(
                bytes.get(n * 4..n * 4 + 4)?.try_into().ok()?,
            ))
        };
        Some(VegasInfo {
            enabled: word(0)?,
            rttcnt: word(1)?,
            rtt_us: word(2)?,
            minrtt_us: word(3)?,
        })
    }
}

/// State of DCTCP (`struct tcp_dctcp_info`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DctcpInfo {
    pub enabled: u16,
    pub ce_state: u16,
    /// Share of marked bytes; the kernel has it in 1/1024.
    pub alpha: f64,
    pub ab_ecn_bytes: u32,
    pub ab_tot_bytes: u32,
}

impl DctcpInfo {
    /// `None`: shorter than any kernel's.
    pub fn decode(bytes: &[u8]) -> Option<DctcpInfo> {
        let half = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        Some(DctcpInfo {
            enabled: half(0)?,
            ce_state: half(2)?,
            alpha: f64::from(word(4)?) / 1024.0,
            ab_ecn_bytes: word(8)?,
            ab_tot_bytes: word(12)?,
        })
    }
}

/// Converts bytes per second to bits; `None`: unlimited, which Linux writes as ~0.
pub fn limited_bits_per_sec(bytes_per_sec: Option<u64>) -> Option<i64> {
    bytes_per_sec
        .filter(|&rate| rate != u64::MAX)
        .map(bits_per_sec)
}

pub fn bits_per_sec(bytes_per_sec: u64) -> i64 {
    i64::try_from(bytes_per_sec.saturating_mul(8)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shorter_struct_of_an_older_kernel_gives_nulls_and_never_another_field() {
        let bytes: Vec<u8> = (0..KNOWN_BYTES).map(|n| n as u8).collect();
        let info = TcpInfo(&bytes[..232]);
        assert_eq!(
            info.snd_wnd(),
            Some(u32::from_ne_bytes([228, 229, 230, 231]))
        );
        assert_eq!(info.rcv_wnd(), None);
        assert_eq!(TcpInfo(&bytes[..230]).snd_wnd(), None, "cut within a field");
        assert_eq!(TcpInfo(&[]).state(), None);
    }

    #[test]
    fn longer_struct_of_a_newer_kernel_is_read_as_far_as_known() {
        let bytes = vec![7; 400];
        assert_eq!(TcpInfo(&bytes).received_ce_bytes(), Some(0x0707_0707));
    }

    #[test]
    fn counts_that_no_kernel_has_do_not_overflow_what_is_in_flight() {
        let segments = |at: usize| {
            let mut bytes = [0; KNOWN_BYTES];
            bytes[at..at + 4].copy_from_slice(&u32::MAX.to_ne_bytes());
            bytes[36..40].copy_from_slice(&7u32.to_ne_bytes());
            TcpInfo(&bytes).inflight()
        };
        let [unacked, lost] = [24, 32].map(segments);
        assert_eq!((unacked, lost), (u32::MAX, 0));
        assert_eq!(TcpInfo(&[0xff; KNOWN_BYTES]).inflight(), 0);
    }

    #[test]
    fn running_clocks_do_not_make_a_flow_move() {
        let rest = vec![1; 248];
        let mut later = rest.clone();
        later[44] = 9;
        later[170] = 9;
        assert!(TcpInfo(&later).is_at_rest_since(&TcpInfo(&rest)));
        later[80] = 9;
        assert!(!TcpInfo(&later).is_at_rest_since(&TcpInfo(&rest)));
    }

    #[test]
    fn bbr_gains_are_in_256ths_and_bandwidth_in_two_words() {
        let words: [u32; 5] = [5, 1, 40_000, 739, 512];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let info = BbrInfo::decode(&bytes).unwrap();
        assert_eq!(info.bw_bytes_per_sec, (1 << 32) + 5);
        assert!((info.pacing_gain - 2.887).abs() < 1e-3);
        assert_eq!(info.cwnd_gain, 2.0);
        assert_eq!(BbrInfo::decode(&bytes[..19]), None);
    }

    #[test]
    fn longer_struct_of_bbr_3_is_read_and_a_cut_one_is_that_of_bbr_1() {
        let mut bytes: Vec<u8> = (0..52).collect();
        let word = |n: u8| u32::from_ne_bytes([n, n + 1, n + 2, n + 3]);
        let v3 = BbrInfo::decode(&bytes).unwrap().v3.unwrap();
        assert_eq!((v3.mode, v3.phase, v3.version), (36, 37, 39));
        let wide = |n| u64::from(word(n)) | u64::from(word(n + 4)) << 32;
        assert_eq!(
            (v3.bw_hi_bytes_per_sec, v3.bw_lo_bytes_per_sec),
            (wide(20), wide(28))
        );
        assert_eq!((v3.inflight_lo, v3.inflight_hi), (word(40), word(44)));
        assert_eq!(v3.extra_acked, word(48));
        bytes.pop();
        let shorter = BbrInfo::decode(&bytes).unwrap();
        assert_eq!((shorter.min_rtt_us, shorter.v3), (word(8), None));
    }

    #[test]
    fn each_pair_of_bbr_gains_is_one_phase() {
        let phase = |pacing: u32, cwnd: u32| {
            let words = [1, 0, 1, pacing, cwnd];
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            BbrInfo::decode(&bytes).unwrap().phase()
        };
        assert_eq!(phase(739, 739), "Startup");
        assert_eq!(phase(88, 739), "Drain");
        for pacing in [320, 192, 256] {
            assert_eq!(phase(pacing, 512), "ProbeBw");
        }
        assert_eq!(phase(256, 256), "ProbeRtt");
        assert_eq!(phase(300, 300), "");
        let unset = [0; 20];
        assert_eq!(BbrInfo::decode(&unset).unwrap().phase(), "Startup");
    }
}

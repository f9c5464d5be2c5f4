//! What a learner may see: the fields of a connection, of its rate sample, and of what came since the last decision.

use knee_sim::Sight;

/// Counts and times of 32 bits.
const U32: f64 = u32::MAX as f64;
/// A terabit per second: what is more is shown as that.
const RATE: f64 = 1e12;

/// Something that an agent can be shown.
pub struct Field {
    pub name: &'static str,
    /// "1": a share, or yes and no.
    pub unit: &'static str,
    pub low: f64,
    pub high: f64,
    pub doc: &'static str,
    value: fn(&Sight) -> f64,
}

impl Field {
    /// Within its bounds.
    pub fn value(&self, sight: &Sight) -> f64 {
        (self.value)(sight).clamp(self.low, self.high)
    }

    /// From 0 to 1, by its logarithm: counts and times are spread over many orders of magnitude, and the bounds tell nothing of
    /// the path.
    pub fn scaled(&self, value: f64) -> f64 {
        libm::log1p(value - self.low) / libm::log1p(self.high - self.low)
    }
}

fn known(value: i64) -> f64 {
    value.max(0) as f64
}

fn mean_rtt_us(sight: &Sight) -> f64 {
    match sight.since.rtts {
        0 => 0.0,
        rtts => sight.since.rtt_sum_us as f64 / f64::from(rtts),
    }
}

macro_rules! fields {
    ($($name:ident: $unit:literal, $high:expr, $doc:literal, |$sight:ident| $value:expr;)*) => {
        /// Every field there is. None is below 0.
        pub const FIELDS: &[Field] = &[$(Field {
            name: stringify!($name),
            unit: $unit,
            low: 0.0,
            high: $high,
            doc: $doc,
            value: |$sight| $value,
        },)*];
    };
}

fields! {
    snd_cwnd: "segments", U32, "congestion window",
        |s| s.cc.snd_cwnd.into();
    snd_ssthresh: "segments", U32, "slow start ends here; 2147483647 before the first loss. Half the window at each loss, as reno has it",
        |s| s.cc.snd_ssthresh.into();
    prior_cwnd: "segments", U32, "snd_cwnd just before recovery began",
        |s| s.cc.prior_cwnd.into();
    in_flight: "segments", U32, "sent, and neither acknowledged nor held for lost",
        |s| s.in_flight.into();
    packets_out: "segments", U32, "sent and not cumulatively acknowledged",
        |s| s.cc.packets_out.into();
    sacked_out: "segments", U32, "of those: selectively acknowledged",
        |s| s.cc.sacked_out.into();
    lost_out: "segments", U32, "of those: held for lost",
        |s| s.cc.lost_out.into();
    retrans_out: "segments", U32, "of those: sent again",
        |s| s.cc.retrans_out.into();
    max_packets_out: "segments", U32, "most packets_out in the last window",
        |s| s.cc.max_packets_out.into();
    is_cwnd_limited: "1", 1.0, "1: the window stopped sending in this round trip",
        |s| s.cc.is_cwnd_limited.into();
    ca_state: "1", 4.0, "0 Open, 1 Disorder, 2 CWR, 3 Recovery, 4 Loss",
        |s| s.cc.ca_state.into();
    notsent_bytes: "bytes", U32, "written by the application and never sent",
        |s| s.notsent_bytes as f64;
    pacing_rate_bits_per_sec: "bit/s", RATE, "rate at which packets are spaced, or that sizes them",
        |s| s.cc.pacing_rate as f64 * 8.0;
    srtt_us: "us", U32, "smoothed RTT",
        |s| s.cc.srtt_us.into();
    rttvar_us: "us", U32, "its mean deviation",
        |s| s.rttvar_us.into();
    min_rtt_us: "us", U32, "least RTT of the last minutes (net.ipv4.tcp_min_rtt_wlen); 0: none yet",
        |s| match s.cc.min_rtt_us {
            u32::MAX => 0.0,
            us => us.into(),
        };
    delivery_rate_bits_per_sec: "bit/s", RATE, "the last rate sample that counts; 0: none yet",
        |s| s.delivery_rate_bits_per_sec as f64;
    delivery_rate_app_limited: "1", 1.0, "1: the application was why it is no higher",
        |s| u32::from(s.delivery_rate_app_limited).into();
    rs_rtt_us: "us", U32, "RTT of the last ACK; 0: it gave none",
        |s| known(s.cc.rs_rtt_us);
    rs_interval_us: "us", U32, "length of its rate sample; 0: it has none",
        |s| known(s.cc.rs_interval_us);
    rs_delivered: "segments", U32, "delivered within that",
        |s| known(s.cc.rs_delivered.into());
    rs_acked_sacked: "segments", U32, "newly delivered by the last ACK",
        |s| s.cc.rs_acked_sacked.into();
    rs_losses: "segments", U32, "newly held for lost by it",
        |s| s.cc.rs_losses.into();
    rs_prior_in_flight: "segments", U32, "in flight before it",
        |s| s.cc.rs_prior_in_flight.into();
    rs_is_app_limited: "1", 1.0, "1: the application limited the packet that it samples",
        |s| s.cc.rs_is_app_limited.into();
    step_acks: "ACKs", U32, "since the last decision: ACKs",
        |s| s.since.acks.into();
    step_una_advanced: "1", 1.0, "1: one of them acknowledged cumulatively",
        |s| u32::from(s.since.una_advanced).into();
    step_delivered: "segments", U32, "since the last decision: delivered",
        |s| s.since.delivered.into();
    step_delivered_ce: "segments", U32, "of those: marked CE",
        |s| s.since.delivered_ce.into();
    step_lost: "segments", U32, "since the last decision: held for lost",
        |s| s.since.lost.into();
    step_sent: "segments", U32, "since the last decision: sent, retransmissions too",
        |s| s.since.sent.into();
    step_retransmitted: "segments", U32, "of those: sent again",
        |s| s.since.retransmitted.into();
    step_rtt_us_mean: "us", U32, "mean RTT since the last decision; 0: none",
        |s| mean_rtt_us(s);
    step_rtt_us_min: "us", U32, "least RTT since the last decision; 0: none",
        |s| s.since.least_rtt_us.into();
    step_us: "us", U32, "time since the last decision",
        |s| s.step.as_us() as f64;
}

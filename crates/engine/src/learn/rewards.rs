//! What a step is worth to a learner.

/// What happened between two decisions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Step {
    pub seconds: f64,
    /// Payload that was acknowledged.
    pub goodput_bits_per_sec: f64,
    pub delivered_per_sec: f64,
    /// What the bottleneck could have carried, IP headers included; 0 where no time passed or no hop has a rate.
    pub capacity_bits_per_sec: f64,
    /// Segments held for lost, of those and the delivered ones.
    pub loss: f64,
    /// Mean RTT, or the smoothed one where none was measured.
    pub rtt_us: f64,
    /// How fast it grows, s/s.
    pub rtt_slope: f64,
    /// Without queue, as the path has it.
    pub base_rtt_us: f64,
    pub others_goodput_bits_per_sec: f64,
    /// Other flows than the agent's, that have begun and are not done.
    pub others: f64,
}

/// A reward that may be chosen.
pub struct Reward {
    pub name: &'static str,
    /// In the names of [`Step`], shortened.
    pub formula: &'static str,
    pub source: &'static str,
    /// Is it of use only where the path has a rate?
    pub needs_rate: bool,
    pub value: fn(&Step) -> f64,
}

impl Step {
    /// Goodput over what the bottleneck could have carried.
    fn share(&self) -> f64 {
        ratio(self.goodput_bits_per_sec, self.capacity_bits_per_sec)
    }
}

fn ratio(of: f64, to: f64) -> f64 {
    if to > 0.0 { of / to } else { 0.0 }
}

/// Logarithms begin here: one part in a thousand.
const LEAST_SHARE: f64 = 1e-3;

/// Every reward there is.
pub const REWARDS: &[Reward] = &[
    Reward {
        name: "goodput",
        formula: "goodput / capacity",
        source: "tcpknee",
        needs_rate: true,
        value: Step::share,
    },
    Reward {
        name: "goodput-delay-loss",
        formula: "goodput / capacity - 0.5 max(rtt - base_rtt, 0) / base_rtt - 10 loss",
        source: "tcpknee: half a base RTT of queue costs a quarter of the link, 1 % of loss a tenth",
        needs_rate: true,
        value: |s| {
            let queue = (s.rtt_us - s.base_rtt_us).max(0.0);
            s.share() - 0.5 * ratio(queue, s.base_rtt_us) - 10.0 * s.loss
        },
    },
    Reward {
        name: "power",
        formula: "goodput / capacity × base_rtt / rtt",
        source: "Giessler et al., Free buffer allocation, Computer Networks 1978; Kleinrock, ICC 1979",
        needs_rate: true,
        value: |s| s.share() * ratio(s.base_rtt_us, s.rtt_us),
    },
    Reward {
        name: "log-power",
        formula: "log(max(goodput / capacity, 0.001)) - log(max(rtt / base_rtt, 1))",
        source: "Winstein and Balakrishnan, TCP ex Machina, SIGCOMM 2013: the objective with delta = 1",
        needs_rate: true,
        value: |s| {
            let delay = ratio(s.rtt_us, s.base_rtt_us).max(1.0);
            libm::log(s.share().max(LEAST_SHARE)) - libm::log(delay)
        },
    },
    Reward {
        name: "aurora",
        formula: "10 delivered - 1000 rtt - 2000 loss; delivered in segments/s, rtt in s",
        source: "Jay et al., A Deep Reinforcement Learning Perspective on Internet Congestion Control, ICML 2019",
        needs_rate: false,
        value: |s| 10.0 * s.delivered_per_sec - 1000.0 * s.rtt_us / 1e6 - 2000.0 * s.loss,
    },
    Reward {
        name: "vivace",
        formula: "x^0.9 - 900 x max(0, d rtt / dt) - 11.35 x loss; x: goodput in Mbit/s",
        source: "Dong et al., PCC Vivace, NSDI 2018: its utility; a falling RTT earns nothing",
        needs_rate: false,
        value: |s| {
            let x = s.goodput_bits_per_sec / 1e6;
            libm::pow(x, 0.9) - 900.0 * x * s.rtt_slope.max(0.0) - 11.35 * x * s.loss
        },
    },
    Reward {
        name: "harm",
        formula: "goodput / capacity - 2 max(0, 1 - others / fair); fair: capacity × other flows / all flows",
        source: "after Ware et al., Beyond Jain's Fairness Index, HotNets 2019; the equal share is in the place of what others have alone",
        needs_rate: true,
        value: |s| {
            let fair = s.capacity_bits_per_sec * ratio(s.others, s.others + 1.0);
            let lacks = match fair > 0.0 {
                true => (1.0 - s.others_goodput_bits_per_sec / fair).max(0.0),
                false => 0.0,
            };
            s.share() - 2.0 * lacks
        },
    },
];

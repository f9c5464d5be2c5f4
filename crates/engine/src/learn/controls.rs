//! What a learner may set.

use knee_sim::{Answer, Sight};

/// Something that an agent can set.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    pub name: &'static str,
    pub unit: &'static str,
    /// Bounds, unless the user says others.
    pub low: f64,
    pub high: f64,
    pub doc: &'static str,
    sets: Sets,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sets {
    Window,
    WindowBy,
    Rate,
    RateBy,
}

/// Every control there is.
pub const CONTROLS: &[Control] = &[
    Control {
        name: "snd_cwnd",
        unit: "segments",
        low: 1.0,
        high: 10_000.0,
        doc: "the congestion window",
        sets: Sets::Window,
    },
    Control {
        name: "snd_cwnd_factor",
        unit: "1",
        low: 0.5,
        high: 2.0,
        doc: "what the congestion window is multiplied by",
        sets: Sets::WindowBy,
    },
    Control {
        name: "pacing_rate_bits_per_sec",
        unit: "bit/s",
        low: 1e4,
        high: 1e10,
        doc: "the pacing rate",
        sets: Sets::Rate,
    },
    Control {
        name: "pacing_rate_factor",
        unit: "1",
        low: 0.5,
        high: 2.0,
        doc: "what the pacing rate is multiplied by",
        sets: Sets::RateBy,
    },
];

impl Control {
    /// The same with other bounds.
    pub fn within(self, low: f64, high: f64) -> Control {
        Control { low, high, ..self }
    }

    /// Is it of the window, and not of the pacing rate?
    pub fn is_of_window(&self) -> bool {
        matches!(self.sets, Sets::Window | Sets::WindowBy)
    }
}

/// Window and rate as the agent means them: whole segments would swallow small factors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meant {
    snd_cwnd: f64,
    rate_bytes_per_sec: f64,
}

impl Meant {
    /// What these values of these controls come to. Where the pacing rate alone is set, the window is twice what it carries
    /// in a smoothed round trip, and 4 at least, so that the rate decides.
    pub fn answer(&mut self, controls: &[Control], values: &[f64], sight: &Sight) -> Answer {
        let cc = &sight.cc;
        // Something else changed it meanwhile: a timeout, an undo.
        if self.snd_cwnd as u32 != cc.snd_cwnd {
            self.snd_cwnd = cc.snd_cwnd.into();
        }
        if self.rate_bytes_per_sec as u64 != cc.pacing_rate {
            self.rate_bytes_per_sec = cc.pacing_rate as f64;
        }
        let mut answer = Answer::default();
        for (control, &value) in controls.iter().zip(values) {
            let value = value.clamp(control.low, control.high);
            match control.sets {
                Sets::Window => self.snd_cwnd = value,
                Sets::WindowBy => self.snd_cwnd *= value,
                Sets::Rate => self.rate_bytes_per_sec = value / 8.0,
                Sets::RateBy => self.rate_bytes_per_sec *= value,
            }
            match control.is_of_window() {
                true => {
                    self.snd_cwnd = self.snd_cwnd.clamp(1.0, MOST_SEGMENTS);
                    answer.snd_cwnd = Some(self.snd_cwnd as u32);
                }
                false => {
                    self.rate_bytes_per_sec =
                        self.rate_bytes_per_sec.clamp(1e3, MOST_BYTES_PER_SEC);
                    answer.pacing_rate = Some(self.rate_bytes_per_sec as u64);
                }
            }
        }
        if let (Some(rate), None) = (answer.pacing_rate, answer.snd_cwnd) {
            let bytes = 2.0 * rate as f64 * f64::from(cc.srtt_us) / 1e6;
            let segs = (bytes / f64::from(cc.mss_bytes)).ceil();
            answer.snd_cwnd = Some(segs.clamp(4.0, MOST_SEGMENTS) as u32);
        }
        answer
    }
}

/// 10 Tbit/s for 10 ms.
const MOST_SEGMENTS: f64 = 1e7;
const MOST_BYTES_PER_SEC: f64 = 1.25e11;

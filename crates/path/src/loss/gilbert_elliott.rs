//! Loss in bursts: a path that is in one of two states, each with a loss of its
//! own, and may change its state with every packet.
//!
//! In the long run it is bad for p / (p + r) of the packets, and stays so for
//! 1 / r of them in a row. As in netem, it begins good.

use std::fmt;

use knee_units::rng::{Chance, Stream};
use knee_units::text::TextError;
use serde::Serialize;

use super::{Loss, LossKind, LossSpec, Pattern, percent, share};

pub(super) const KIND: LossKind = LossKind {
    name: "gilbert",
    summary: "packets are lost in bursts: a good and a bad state, each with its own loss, that follow each other at random (Gilbert-Elliott)",
    source: "Gilbert: BSTJ 39(5) 1960; Elliott: BSTJ 42(5) 1963; tc-netem(8), loss gemodel",
    example: "gilbert 1% burst 5",
    read: |text, _| read(text),
    build: |spec, rng| {
        let Pattern::Chain(chain) = spec.pattern else {
            unreachable!("a loss of this kind is a chain")
        };
        Box::new(GilbertElliott {
            worsens: Chance::new(chain.worsens),
            mends: Chance::new(chain.mends),
            loss: [Chance::new(chain.good_loss), Chance::new(chain.bad_loss)],
            is_bad: false,
            rng,
        })
    },
};

/// The chain's probabilities, per packet. netem's letters are p, r, 1-h and 1-k.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Chain {
    /// From good to bad.
    pub worsens: f64,
    /// From bad to good.
    pub mends: f64,
    /// Loss while bad, and while good.
    pub bad_loss: f64,
    pub good_loss: f64,
}

impl Chain {
    /// All is lost while bad, nothing while good: share and mean length of a burst.
    fn of_bursts(share: f64, burst: f64) -> Result<Chain, TextError> {
        let mends = 1.0 / burst;
        let worsens = mends * share / (1.0 - share);
        if !(share < 1.0 && worsens <= 1.0) {
            let most = percent(burst / (burst + 1.0));
            return Err(TextError::Impossible(format!(
                "a loss of at most {most} when bursts are {burst} packets long, because a packet that is not lost lies between two bursts"
            )));
        }
        Ok(Chain {
            worsens,
            mends,
            bad_loss: 1.0,
            good_loss: 0.0,
        })
    }

    /// In the long run; a chain that never leaves its first state is good.
    fn share(&self) -> f64 {
        if self.worsens == 0.0 {
            return self.good_loss;
        }
        let bad = self.worsens / (self.worsens + self.mends);
        bad * self.bad_loss + (1.0 - bad) * self.good_loss
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if (self.bad_loss, self.good_loss) == (1.0, 0.0) && self.mends > 0.0 {
            let burst = format!("{:.6}", 1.0 / self.mends);
            let burst = burst.trim_end_matches('0').trim_end_matches('.');
            return write!(f, "{} burst {burst}", percent(self.share()));
        }
        let [p, r, bad, good] =
            [self.worsens, self.mends, self.bad_loss, self.good_loss].map(percent);
        write!(f, "p {p} r {r} 1-h {bad} 1-k {good}")
    }
}

/// `1% burst 5`, or netem's parameters: `p 0.2% r 20%`, `p 0.2% r 20% 1-h 90% 1-k 0.1%`.
fn read(text: &str) -> Result<LossSpec, TextError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let chain = match words[..] {
        [lost, "burst", burst] => {
            let length: f64 = burst.parse().map_err(|_| TextError::Form)?;
            if !(1.0..=1e6).contains(&length) {
                return Err(TextError::Form);
            }
            Chain::of_bursts(share(lost)?, length)?
        }
        ["p", p, "r", r] => of_netem([p, r, "100%", "0%"])?,
        ["p", p, "r", r, "1-h", bad] => of_netem([p, r, bad, "0%"])?,
        ["p", p, "r", r, "1-h", bad, "1-k", good] => of_netem([p, r, bad, good])?,
        _ => return Err(TextError::Form),
    };
    Ok(LossSpec {
        kind: KIND.name,
        share: chain.share(),
        pattern: Pattern::Chain(chain),
    })
}

fn of_netem([p, r, bad, good]: [&str; 4]) -> Result<Chain, TextError> {
    Ok(Chain {
        worsens: share(p)?,
        mends: share(r)?,
        bad_loss: share(bad)?,
        good_loss: share(good)?,
    })
}

struct GilbertElliott {
    worsens: Chance,
    mends: Chance,
    /// While good, while bad.
    loss: [Chance; 2],
    is_bad: bool,
    rng: Stream,
}

impl Loss for GilbertElliott {
    #[inline]
    fn lose(&mut self) -> bool {
        let lost = self.loss[usize::from(self.is_bad)].hits(&mut self.rng);
        let turn = if self.is_bad {
            self.mends
        } else {
            self.worsens
        };
        self.is_bad ^= turn.hits(&mut self.rng);
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_burst_is_as_long_as_asked() {
        let spec = read("5% burst 8").unwrap();
        let mut process = spec.build(Stream::new(1, "loss")).unwrap();
        let (mut lost, mut bursts, mut before) = (0u32, 0u32, false);
        for _ in 0..2_000_000 {
            let now = process.lose();
            lost += u32::from(now);
            bursts += u32::from(now && !before);
            before = now;
        }
        let mean = f64::from(lost) / f64::from(bursts);
        assert!((mean / 8.0 - 1.0).abs() < 0.04, "{mean}");
    }

    #[test]
    fn bursts_and_netems_parameters_say_the_same() {
        let short = read("20% burst 5").unwrap();
        // p = r share / (1 - share) = 20 % / 4.
        let long = read("p 5% r 20% 1-h 100% 1-k 0%").unwrap();
        assert!((short.share - long.share).abs() < 1e-9);
        assert_eq!(short.to_string(), "gilbert 20% burst 5");
        assert_eq!(long.to_string(), "gilbert 20% burst 5");
        let bleeding = read("p 0.2% r 20% 1-h 90% 1-k 0.1%").unwrap();
        assert_eq!(
            bleeding.to_string(),
            "gilbert p 0.2% r 20% 1-h 90% 1-k 0.1%"
        );
    }

    #[test]
    fn loss_that_leaves_no_packet_between_bursts_is_refused() {
        assert!(matches!(read("90% burst 5"), Err(TextError::Impossible(_))));
        assert!(read("83% burst 5").is_ok());
    }
}

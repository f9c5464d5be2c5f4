//! A token bucket without a queue: what exceeds a rate and a burst is dropped,
//! or marked, at once. Operators police so what a customer pays for; it stands
//! in front of the bottleneck's queue and holds nothing back.
//!
//! ```text
//! tokens = min(burst, tokens + rate * time)             full at the start
//! packet <= tokens: conforms, tokens -= packet          else exceeds, and takes none
//! ```
//!
//! Source: RFC 2697 section 3, its committed bucket; Linux 6.12
//! net/sched/act_police.c; Flach et al.: An Internet-Wide Analysis of Traffic
//! Policing, SIGCOMM 2016.
//!
//! Differs from Linux: tokens are exact, while Linux rounds a packet's time to
//! whole ns; `mark` sets ECN's CE, which act_police leaves to another action.

use knee_units::{Nanos, Rate};
use serde::Serialize;

use crate::packet::Packet;

/// Tokens per byte: a rate in bit/s fills this unit in whole numbers each ns.
const PER_BYTE: u64 = 8_000_000_000;

/// Largest burst: its tokens fit into 64 bits.
pub const MAX_BURST_BYTES: u64 = 1 << 30;

/// What happens to a packet that exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Action {
    Drop,
    /// Marked with CE, or dropped where the sender does not understand ECN.
    Mark,
}

/// What a policer is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PolicerSpec {
    pub rate: Rate,
    pub burst_bytes: u64,
    pub action: Action,
}

/// The bucket.
#[derive(Clone, Debug)]
pub struct Policer {
    spec: PolicerSpec,
    /// [`PER_BYTE`] each byte.
    tokens: u64,
    full: u64,
    filled: Nanos,
}

impl Policer {
    pub fn new(spec: PolicerSpec) -> Policer {
        let full = spec.burst_bytes.min(MAX_BURST_BYTES) * PER_BYTE;
        Policer {
            spec,
            tokens: full,
            full,
            filled: Nanos::ZERO,
        }
    }

    /// May the packet pass, marked or not? If not, it is to be dropped.
    #[inline]
    pub fn admit(&mut self, now: Nanos, packet: &mut Packet) -> bool {
        let gained = u128::from(self.spec.rate.bits_per_sec())
            * u128::from(now.saturating_sub(self.filled).0);
        self.filled = now;
        let tokens = u128::from(self.tokens) + gained;
        self.tokens = tokens.min(u128::from(self.full)) as u64;
        let price = u64::from(packet.bytes) * PER_BYTE;
        if price <= self.tokens {
            self.tokens -= price;
            return true;
        }
        self.spec.action == Action::Mark && packet.mark_ce()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Ecn;
    use crate::queue::testing::{mbit, packet};

    fn policer(action: Action) -> Policer {
        Policer::new(PolicerSpec {
            rate: mbit(12),
            burst_bytes: 15_000,
            action,
        })
    }

    /// Packets of 1500 bytes that pass when they come every `gap` for a second.
    fn passed(policer: &mut Policer, gap: Nanos) -> u64 {
        let times = (0..Nanos::from_secs(1).0).step_by(gap.0 as usize);
        times
            .filter(|&ns| policer.admit(Nanos(ns), &mut packet(0)))
            .count() as u64
    }

    #[test]
    fn policer_passes_its_rate_and_one_burst() {
        // 12 Mbit/s is a packet per ms; the bucket holds ten.
        let passed = passed(&mut policer(Action::Drop), Nanos::from_us(100));
        assert!((1_009..=1_010).contains(&passed), "{passed}");
    }

    #[test]
    fn largest_burst_passes_whole() {
        let mut policer = Policer::new(PolicerSpec {
            rate: mbit(12),
            burst_bytes: MAX_BURST_BYTES,
            action: Action::Drop,
        });
        let mut half = || {
            let mut packet = packet(0);
            packet.bytes = 1 << 29;
            policer.admit(Nanos::ZERO, &mut packet)
        };
        assert_eq!([half(), half(), half()], [true, true, false]);
    }

    #[test]
    fn policer_drops_nothing_at_its_rate() {
        let mut policer = policer(Action::Drop);
        assert_eq!(passed(&mut policer, Nanos::from_ms(1)), 1_000);
    }

    #[test]
    fn policer_saves_no_more_than_its_burst() {
        let mut policer = policer(Action::Drop);
        let later = Nanos::from_secs(86_400);
        let passed = (0..100)
            .filter(|_| policer.admit(later, &mut packet(0)))
            .count();
        assert_eq!(passed, 10);
    }

    #[test]
    fn policer_marks_what_understands_ecn_and_drops_the_rest() {
        let mut policer = policer(Action::Mark);
        for n in 0..20 {
            let mut capable = Packet {
                ecn: Ecn::Ect0,
                ..packet(0)
            };
            assert!(policer.admit(Nanos::ZERO, &mut capable));
            let expected = if n < 10 { Ecn::Ect0 } else { Ecn::Ce };
            assert_eq!(capable.ecn, expected, "packet {n}");
        }
        assert!(!policer.admit(Nanos::ZERO, &mut packet(0)));
    }

    #[test]
    fn policer_takes_no_tokens_for_what_it_drops() {
        let mut policer = policer(Action::Drop);
        for _ in 0..100 {
            policer.admit(Nanos::ZERO, &mut packet(0));
        }
        assert!(policer.admit(Nanos::from_ms(1), &mut packet(0)));
    }
}

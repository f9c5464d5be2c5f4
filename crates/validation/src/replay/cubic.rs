//! The one difference by design: the kernel's cube root is a table and one Newton step, ours is exact.
//!
//! A root that is off by 0.15 % lets the curve reach a window a few ms earlier or later. The slope is updated 32 times
//! a second, so where the two fall on either side of an update all ACKs up to the next one may differ: how many do
//! says little. What is held instead is that K itself is as near as that table and step can be.

use knee_cc::{Instance, Op};

use super::op_record::OpRecord;
use super::step::step;

/// Where K and the time of the last update lie in cubic's state, in words of 32 bits: after seven parameters. A test
/// holds them to that.
const K_WORD: usize = 12;
const LAST_TIME_WORD: usize = 10;

/// The default of cubic's parameter `beta`, 1/1024.
const BETA: u32 = 717;

/// May the kernel's K stand for our exact one, both in 1/1024 s? A first value from a table for the six highest bits is
/// within 4 %; one Newton step squares that to 0.16 %, its division by 341/1024 for a third takes 0.1 % off, and each
/// result is cut to a whole number.
fn is_near(ours: u32, kernels: u32) -> bool {
    ours.abs_diff(kernels) <= 1 + ours / 500
}

/// Our cubic, but with the kernel's K: where it does what the kernel did and ours does not, the cube root is why.
pub(super) struct WithKernelsK {
    cubic: Instance,
    /// Its slope is still the one made with its own K.
    is_stale: bool,
}

impl WithKernelsK {
    /// One that begins as `ours` does; none for an algorithm without K.
    pub(super) fn of(ours: &Instance) -> Option<Self> {
        (ours.algorithm().name() == "cubic").then(|| WithKernelsK {
            cubic: ours.clone(),
            is_stale: false,
        })
    }

    /// Takes the op too. Is the cube root enough to tell why `ours`, which took it, may differ from the kernel here?
    ///
    /// The op that begins an epoch takes the root and makes a slope of it at once, which holds until the next
    /// update of the slope. Until then K cannot be given in time.
    pub(super) fn explains(&mut self, op: Op, record: &OpRecord, ours: &Instance) -> bool {
        let updated = word(&self.cubic, LAST_TIME_WORD);
        let is_equal = step(&mut self.cubic, op, record).is_equal();
        self.is_stale &= word(&self.cubic, LAST_TIME_WORD) == updated;
        if word(&self.cubic, K_WORD) != record.kernel_k {
            set_word(&mut self.cubic, K_WORD, record.kernel_k);
            self.is_stale = true;
        }
        is_near(word(ours, K_WORD), record.kernel_k) && (is_equal || self.is_stale)
    }
}

/// Is this a loss at a window whose product with beta (717 / 1024) leaves the 32 bits that the kernel has for it?
/// Ours has 64.
pub(super) fn overflows(op: Op, record: &OpRecord) -> bool {
    op == Op::Ssthresh && record.input.snd_cwnd.checked_mul(BETA).is_none()
}

pub(super) fn word(of: &Instance, at: usize) -> u32 {
    let pair = of.state()[at / 2].to_ne_bytes();
    let from = at % 2 * 4;
    u32::from_ne_bytes([pair[from], pair[from + 1], pair[from + 2], pair[from + 3]])
}

fn set_word(of: &mut Instance, at: usize, value: u32) {
    let pair = &mut of.state_mut()[at / 2];
    let mut bytes = pair.to_ne_bytes();
    let from = at % 2 * 4;
    bytes[from..from + 4].copy_from_slice(&value.to_ne_bytes());
    *pair = u64::from_ne_bytes(bytes);
}

#[cfg(test)]
mod tests {
    use knee_cc::{CcIn, CcOut, find};

    use super::*;

    /// 2^40 / 410 is what a window of one segment below W_max is under the root (`cc/cubic.c`).
    #[test]
    fn k_and_the_last_update_lie_where_the_replay_reads_them() {
        let mut cubic = Instance::new(find("cubic").unwrap(), &[]).unwrap();
        let mut input = CcIn {
            hz: 250,
            jiffies: 4711,
            snd_cwnd_clamp: u32::MAX,
            is_cwnd_limited: 1,
            acked: 1,
            ..CcIn::default()
        };
        cubic.call(Op::Init, &input, &mut CcOut::default());
        let mut out = CcOut {
            snd_cwnd: 100,
            ..CcOut::default()
        };
        cubic.call(Op::Ssthresh, &input, &mut out);
        input.jiffies += 10;
        out = CcOut {
            snd_cwnd: 70,
            snd_ssthresh: 70,
            ..CcOut::default()
        };
        cubic.call(Op::CongAvoid, &input, &mut out);

        let under_the_root = (1u64 << 40) / 410 * 30;
        assert_eq!(word(&cubic, K_WORD), (under_the_root as f64).cbrt() as u32);
        assert_eq!(word(&cubic, LAST_TIME_WORD), input.jiffies);
    }
}

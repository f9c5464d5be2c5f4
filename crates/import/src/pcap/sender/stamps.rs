//! Values of the timestamps option that the far end has not echoed yet.

use std::collections::VecDeque;

use super::KEPT;

struct Stamp {
    value: u32,
    t_ns: i64,
    with_data: bool,
}

/// In the order in which they were sent.
#[derive(Default)]
pub struct Stamps(VecDeque<Stamp>);

impl Stamps {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Gives back half of the memory: the oldest are forgotten.
    pub fn forget(&mut self) {
        self.0.drain(..self.0.len().div_ceil(2));
    }

    /// A segment carried that value: of several with the same, the first counts.
    pub fn add(&mut self, t_ns: i64, value: u32, with_data: bool) {
        let is_newer =
            (self.0.back()).is_none_or(|last| (value.wrapping_sub(last.value) as i32) > 0);
        if is_newer {
            self.0.push_back(Stamp {
                value,
                t_ns,
                with_data,
            });
            // Nothing comes back.
            if self.0.len() > KEPT {
                self.0.pop_front();
            }
        }
    }

    /// Takes the values up to the one echoed. How long ago that one was sent, and
    /// whether with data; `None`: it is none of them.
    pub fn echo(&mut self, t_ns: i64, echo: u32) -> Option<(i64, bool)> {
        let mut found = None;
        while let Some(stamp) = self.0.front() {
            if (echo.wrapping_sub(stamp.value) as i32) < 0 {
                break;
            }
            if stamp.value == echo {
                found = Some((t_ns - stamp.t_ns, stamp.with_data));
            }
            self.0.pop_front();
        }
        found.filter(|&(rtt_ns, _)| rtt_ns >= 0)
    }
}

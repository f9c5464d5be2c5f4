//! Every n-th packet is lost: the loss process behind the response functions
//! of RFC 9438 (Table 1) and of Mathis et al.

use knee_units::text::TextError;

use super::{Loss, LossKind, LossSpec};

pub(super) const KIND: LossKind = LossKind {
    name: "periodic",
    summary: "exactly every n-th packet is lost, n = 1 / share, rounded; no share between 50 % and 100 %",
    source: "Mathis, Semke, Mahdavi, Ott: CCR 27(3) 1997, section 2",
    example: "periodic 0.1%",
    read: |text, _| {
        let spec = LossSpec::of_share(&KIND, text)?;
        if 0.5 < spec.share && spec.share < 1.0 {
            let expected = "at most 50%, which is every second packet, or 100%";
            return Err(TextError::Impossible(expected.into()));
        }
        Ok(spec)
    },
    build: |spec, _| {
        Box::new(Periodic {
            every: (1.0 / spec.share).round().max(1.0) as u64,
            count: 0,
        })
    },
};

struct Periodic {
    every: u64,
    count: u64,
}

impl Loss for Periodic {
    #[inline]
    fn lose(&mut self) -> bool {
        self.count += 1;
        if self.count == self.every {
            self.count = 0;
            return true;
        }
        false
    }
}

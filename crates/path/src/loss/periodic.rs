//! Every n-th packet is lost: the loss process behind the response functions
//! of RFC 9438 (Table 1) and of Mathis et al.

use super::{Loss, LossKind, LossSpec};

pub(super) const KIND: LossKind = LossKind {
    name: "periodic",
    summary: "exactly every n-th packet is lost, n = 1 / share",
    source: "Mathis, Semke, Mahdavi, Ott: CCR 27(3) 1997, section 2",
    example: "periodic 0.1%",
    read: |text, _| LossSpec::of_share(&KIND, text),
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

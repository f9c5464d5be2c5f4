//! What a processor has spent, by operation and by context.

use crate::bundles::{BUNDLES, Bundle};
use crate::costs::{COUNT, Cost, Costs};

/// Where a processor's time went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    /// By operation, ps, without those of bundles, and how many of each bundle.
    ps: [u64; COUNT],
    bundles: [u64; BUNDLES],
    /// In threads: in programs and in the kernel for them. All else is in softirqs with the interrupts before them.
    threads_ps: u64,
    /// Taken by the hypervisor, or by other work.
    pub steal_ns: u64,
    pub other_ns: u64,
}

impl Default for Spent {
    fn default() -> Spent {
        Spent {
            ps: [0; COUNT],
            bundles: [0; BUNDLES],
            threads_ps: 0,
            steal_ns: 0,
            other_ns: 0,
        }
    }
}

impl Spent {
    /// Part of a job: an operation.
    #[inline]
    pub(crate) fn on(&mut self, cost: Cost, ps: u64) {
        self.ps[cost as usize] += ps;
    }

    /// Part of a job: a bundle of operations.
    #[inline]
    pub(crate) fn on_bundle(&mut self, bundle: Bundle, count: u64) {
        self.bundles[bundle as usize] += count;
    }

    pub(crate) fn bundled(&self, bundle: Bundle) -> u64 {
        self.bundles[bundle as usize]
    }

    /// The same without bundles: each of their operations counts for itself.
    pub(crate) fn unbundled(&self, costs: &Costs) -> Spent {
        let mut spent = self.clone();
        for bundle in Bundle::ALL {
            let count = std::mem::take(&mut spent.bundles[bundle as usize]);
            for &cost in bundle.costs() {
                spent.on(cost, count * costs.ps(cost));
            }
        }
        spent
    }

    /// A whole job of a thread.
    #[inline]
    pub(crate) fn in_thread(&mut self, ps: u64) {
        self.threads_ps += ps;
    }

    /// Spent on the operation at that position of [`crate::COSTS`], ns.
    pub fn on_ns(&self, position: usize) -> u64 {
        self.ps[position] / 1_000
    }

    /// In programs, which only threads run.
    pub fn user_ns(&self) -> u64 {
        self.ps[Cost::Service as usize] / 1_000
    }

    /// In the kernel on behalf of programs.
    pub fn system_ns(&self) -> u64 {
        (self.threads_ps - self.ps[Cost::Service as usize]) / 1_000
    }

    /// In softirqs.
    pub fn softirq_ns(&self) -> u64 {
        (self.all_ps() - self.threads_ps - self.ps[Cost::Interrupt as usize]) / 1_000
    }

    /// In interrupts. A softirq's job follows each, which is charged for it.
    pub fn irq_ns(&self) -> u64 {
        self.ps[Cost::Interrupt as usize] / 1_000
    }

    /// Not idle, and not taken by others.
    pub fn busy_ns(&self) -> u64 {
        self.all_ps() / 1_000
    }

    fn all_ps(&self) -> u64 {
        self.ps.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_paid_by_operation_and_by_context() {
        let mut spent = Spent::default();
        spent.on(Cost::Interrupt, 500_000);
        spent.on(Cost::CopyIn, 1_000_000);
        spent.on(Cost::CopyIn, 1_000_000);
        spent.on(Cost::Service, 2_000_000);
        spent.in_thread(3_000_000);
        assert_eq!((spent.irq_ns(), spent.user_ns()), (500, 2_000));
        assert_eq!((spent.system_ns(), spent.softirq_ns()), (1_000, 1_000));
        assert_eq!(spent.on_ns(Cost::CopyIn as usize), 2_000);
        assert_eq!(spent.busy_ns(), 4_500);
    }
}

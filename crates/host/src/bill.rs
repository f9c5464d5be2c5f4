//! What a job did, and what a processor has spent.

use crate::costs::{COUNT, Cost, Costs};

/// Operations of one job, with what they cost.
#[derive(Clone, Debug)]
pub struct Bill {
    ps: [u64; COUNT],
    total_ps: u64,
}

impl Default for Bill {
    fn default() -> Bill {
        Bill {
            ps: [0; COUNT],
            total_ps: 0,
        }
    }
}

impl Bill {
    /// `count` such operations, or bytes.
    #[inline]
    pub fn charge(&mut self, costs: &Costs, cost: Cost, count: u64) {
        self.add_ps(cost, costs.ps(cost) * count);
    }

    /// Time that is not in any profile, as an application's own.
    #[inline]
    pub fn charge_ns(&mut self, cost: Cost, ns: u64) {
        self.add_ps(cost, ns * 1_000);
    }

    #[inline]
    fn add_ps(&mut self, cost: Cost, ps: u64) {
        self.ps[cost as usize] += ps;
        self.total_ps += ps;
    }

    /// All of it, ns.
    #[inline]
    pub fn total_ns(&self) -> u64 {
        self.total_ps / 1_000
    }

    pub fn is_empty(&self) -> bool {
        self.total_ps == 0
    }
}

/// Where a processor's time went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spent {
    /// By operation, ps.
    ps: [u64; COUNT],
    /// In programs, in the kernel for them, in softirqs, in interrupts.
    user_ps: u64,
    system_ps: u64,
    softirq_ps: u64,
    irq_ps: u64,
    /// Taken by the hypervisor, or by other work.
    pub steal_ns: u64,
    pub other_ns: u64,
}

impl Default for Spent {
    fn default() -> Spent {
        Spent {
            ps: [0; COUNT],
            user_ps: 0,
            system_ps: 0,
            softirq_ps: 0,
            irq_ps: 0,
            steal_ns: 0,
            other_ns: 0,
        }
    }
}

impl Spent {
    /// A job's bill; `in_softirq`: it is no thread's.
    #[inline]
    pub(crate) fn pay(&mut self, bill: &Bill, in_softirq: bool) {
        for (spent, &ps) in self.ps.iter_mut().zip(&bill.ps) {
            *spent += ps;
        }
        let irq_ps = bill.ps[Cost::Interrupt as usize];
        let user_ps = bill.ps[Cost::Service as usize];
        self.irq_ps += irq_ps;
        self.user_ps += user_ps;
        *match in_softirq {
            true => &mut self.softirq_ps,
            false => &mut self.system_ps,
        } += bill.total_ps - irq_ps - user_ps;
    }

    /// Spent on the operation at that position of [`crate::COSTS`], ns.
    pub fn on_ns(&self, position: usize) -> u64 {
        self.ps[position] / 1_000
    }

    /// In programs.
    pub fn user_ns(&self) -> u64 {
        self.user_ps / 1_000
    }

    /// In the kernel on behalf of programs.
    pub fn system_ns(&self) -> u64 {
        self.system_ps / 1_000
    }

    /// In softirqs.
    pub fn softirq_ns(&self) -> u64 {
        self.softirq_ps / 1_000
    }

    /// In interrupts.
    pub fn irq_ns(&self) -> u64 {
        self.irq_ps / 1_000
    }

    /// Not idle, and not taken by others.
    pub fn busy_ns(&self) -> u64 {
        (self.user_ps + self.system_ps + self.softirq_ps + self.irq_ps) / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_is_paid_by_operation_and_by_context() {
        let mut costs = Costs::default();
        costs.set(Cost::Interrupt as usize, 500.0);
        costs.set(Cost::CopyIn as usize, 0.25);
        let mut bill = Bill::default();
        bill.charge(&costs, Cost::Interrupt, 1);
        bill.charge(&costs, Cost::CopyIn, 4_000);
        bill.charge_ns(Cost::Service, 2_000);
        assert_eq!(bill.total_ns(), 3_500);
        let mut spent = Spent::default();
        spent.pay(&bill, false);
        spent.pay(&bill, true);
        assert_eq!((spent.irq_ns(), spent.user_ns()), (1_000, 4_000));
        assert_eq!((spent.system_ns(), spent.softirq_ns()), (1_000, 1_000));
        assert_eq!(spent.on_ns(Cost::CopyIn as usize), 2_000);
        assert_eq!(spent.busy_ns(), 7_000);
    }
}

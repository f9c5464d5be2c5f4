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
    pub user_ns: u64,
    pub system_ns: u64,
    pub softirq_ns: u64,
    pub irq_ns: u64,
    /// Taken by the hypervisor, or by other work.
    pub steal_ns: u64,
    pub other_ns: u64,
}

impl Default for Spent {
    fn default() -> Spent {
        Spent {
            ps: [0; COUNT],
            user_ns: 0,
            system_ns: 0,
            softirq_ns: 0,
            irq_ns: 0,
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
        let irq_ns = bill.ps[Cost::Interrupt as usize] / 1_000;
        let user_ns = bill.ps[Cost::Service as usize] / 1_000;
        let rest_ns = bill.total_ns() - irq_ns - user_ns;
        self.irq_ns += irq_ns;
        self.user_ns += user_ns;
        *match in_softirq {
            true => &mut self.softirq_ns,
            false => &mut self.system_ns,
        } += rest_ns;
    }

    /// Spent on the operation at that position of [`crate::COSTS`], ns.
    pub fn on_ns(&self, position: usize) -> u64 {
        self.ps[position] / 1_000
    }

    /// Not idle, and not taken by others.
    pub fn busy_ns(&self) -> u64 {
        self.user_ns + self.system_ns + self.softirq_ns + self.irq_ns
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
        assert_eq!((spent.irq_ns, spent.user_ns), (1_000, 4_000));
        assert_eq!((spent.system_ns, spent.softirq_ns), (1_000, 1_000));
        assert_eq!(spent.on_ns(Cost::CopyIn as usize), 2_000);
        assert_eq!(spent.busy_ns(), 7_000);
    }
}

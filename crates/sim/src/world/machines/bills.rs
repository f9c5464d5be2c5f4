//! What a processor pays for.

use knee_host::Cost;
use knee_scenario::Reception;

use crate::job::Came;
use crate::machine::{NAPI_WEIGHT, Processor};
use crate::napi::Cause;

impl Processor {
    /// It has idled for `rested_ns` and begins to work. If it polls without a pause it has polled all that time.
    #[inline(always)]
    pub(super) fn leave_idle(&mut self, now_ns: u64, rested_ns: u64, polls: impl Fn() -> bool) {
        if rested_ns == 0 {
            return;
        }
        match self.reception == Reception::BusyPoll && polls() {
            true => self.core.polled(now_ns, rested_ns),
            false => self.core.charge(Cost::IdleExit, 1),
        }
    }

    /// A poll that took that many packets, without what becomes of them.
    #[inline(always)]
    pub(super) fn charge_poll(&mut self, pkts: u32, cause: Cause, gro: bool) {
        let interrupts = u32::from(cause == Cause::Interrupt);
        let Processor {
            core: of,
            counts,
            reception,
            ..
        } = self;
        counts.napi_polls += 1;
        counts.napi_packets += u64::from(pkts);
        counts.napi_budget_ends += u64::from(pkts == NAPI_WEIGHT);
        let served = match reception {
            Reception::Napi => interrupts.into(),
            Reception::Interrupts => pkts.into(),
            Reception::BusyPoll => 0,
        };
        counts.interrupts += served;
        of.charge(Cost::Interrupt, served);
        if *reception != Reception::BusyPoll {
            of.charge(Cost::Softirq, interrupts.into());
        }
        if cause == Cause::Timer {
            of.charge(Cost::TimerFire, 1);
            of.charge(Cost::Softirq, 1);
        }
        of.charge(Cost::Poll, 1);
        of.charge(Cost::DriverReceive, pkts.into());
        if gro {
            of.charge(Cost::Gro, pkts.into());
        }
    }

    /// A packet goes up the stack to its end's socket.
    #[inline(always)]
    pub(super) fn climb(&mut self, from: Came, packets: u16) {
        let Processor {
            core: of,
            counts,
            backlog,
            ..
        } = self;
        if let Came::Backlog { starts, by_ipi } = from {
            backlog.1 -= 1;
            of.charge(Cost::Backlog, 1);
            if starts {
                of.charge(Cost::Softirq, 1);
                of.charge(Cost::Poll, 1);
            }
            if by_ipi {
                of.charge(Cost::Ipi, 1);
                counts.ipis += 1;
            }
        }
        of.charge(Cost::IpReceive, 1);
        counts.skbs_received += 1;
        counts.segments_received += u64::from(packets);
    }
}

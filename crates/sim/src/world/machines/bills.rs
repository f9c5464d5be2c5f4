//! What a processor pays for.

use knee_host::{Bundle, Cost};
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
        let counts = &mut self.counts;
        counts.napi_polls += 1;
        counts.napi_packets += u64::from(pkts);
        counts.napi_budget_ends += u64::from(pkts == NAPI_WEIGHT);
        match cause == Cause::Interrupt && self.reception == Reception::Napi {
            true => {
                counts.interrupts += 1;
                self.core.charge_bundle(Bundle::InterruptedPoll, 1);
            }
            false => self.charge_other_poll(pkts, cause),
        }
        match gro {
            true => self.core.charge_bundle(Bundle::GroPacket, pkts.into()),
            false => self.core.charge(Cost::DriverReceive, pkts.into()),
        }
    }

    #[inline(never)]
    fn charge_other_poll(&mut self, pkts: u32, cause: Cause) {
        let of = &mut self.core;
        if self.reception == Reception::Interrupts {
            self.counts.interrupts += u64::from(pkts);
            of.charge(Cost::Interrupt, pkts.into());
            of.charge(Cost::Softirq, (cause == Cause::Interrupt).into());
        }
        if cause == Cause::Timer {
            of.charge(Cost::TimerFire, 1);
            of.charge(Cost::Softirq, 1);
        }
        of.charge(Cost::Poll, 1);
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

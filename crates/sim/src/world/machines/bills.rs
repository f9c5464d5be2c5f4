//! What a processor pays for.

use knee_host::{Bundle, Cost};
use knee_scenario::Reception;
use knee_tcp::segment::Segment;

use crate::job::Came;
use crate::machine::{MachineConf, NAPI_WEIGHT, Qdisc, TxQueue};
use crate::napi::Cause;
use crate::processor::Processor;

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

    /// A poll in an interrupt, of packets that go up at once as one skb; it has idled for `rested_ns`.
    #[inline(always)]
    pub(super) fn charge_poll_at_once(&mut self, pkts: u32, gro: bool, rested_ns: u64) {
        match rested_ns > 0 {
            true => self.core.charge_bundle(Bundle::PollFromIdle, 1),
            false => self.core.charge_bundle(Bundle::PollAtOnce, 1),
        }
        match gro {
            true => (self.core).charge_bundle(Bundle::GroPacketAtOnce, pkts.into()),
            false => self.core.charge_bundle(Bundle::PacketAtOnce, pkts.into()),
        }
    }

    /// A packet goes up the stack to its end's socket.
    #[inline(always)]
    pub(super) fn climb(&mut self, from: Came, packets: u32) {
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

    /// An end has sent a packet that is not charged as one, whose way out the job pays for. Is it the first one that its qdisc has, and is it held there?
    #[inline(never)]
    pub(super) fn charge_sending(
        &mut self,
        conf: &MachineConf,
        tx: (&mut [TxQueue], u32),
        segment: &Segment,
        (is_first, is_held): (bool, bool),
        now_ns: u64,
    ) {
        let (payload_bytes, packets) = (segment.payload_bytes, u64::from(segment.packets));
        let is_ack = segment.seq_len() == 0;
        let queued = !is_first || is_held;
        let (of, counts) = (&mut self.core, &mut self.counts);
        match is_ack {
            true => of.charge_bundle(Bundle::AckBuilt, 1),
            false => {
                counts.data_skbs_sent += u64::from(payload_bytes > 0);
                counts.data_segments_sent += packets;
                counts.data_bytes_sent += u64::from(payload_bytes);
                of.charge_bundle(Bundle::DataBuilt, 1);
            }
        }
        match conf.qdisc {
            Qdisc::None => {}
            Qdisc::Fifo => of.charge(Cost::Qdisc, 1),
            Qdisc::Fq { fast_path } => {
                let op = match fast_path && !queued {
                    true => Cost::FqFast,
                    false => Cost::Fq,
                };
                let leaf = &mut tx.0[tx.1 as usize];
                let waits_ns = leaf.waits_ns(self.number, now_ns + of.job_ns());
                of.charge_ns(Cost::QdiscLock, waits_ns);
                let from_ns = now_ns + of.job_ns();
                of.charge(op, 1);
                leaf.lock(self.number, from_ns, now_ns + of.job_ns());
            }
        }
        if queued {
            // Its transmission is charged when the qdisc lets it go.
            if is_first {
                of.charge(Cost::TimerArm, 1);
            }
            return;
        }
        match conf.tx_coalesce_ns == 0 || payload_bytes == 0 {
            true => of.charge_bundle(Bundle::Transmission, 1),
            false => of.charge(Cost::Xmit, 1),
        }
        if conf.splits {
            of.charge(Cost::Segment, packets - 1);
        }
        if is_ack {
            of.charge(Cost::SkbFree, 1);
        }
    }
}

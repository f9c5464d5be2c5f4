//! Processors as the machines of a run have them: what each of their jobs looks at, how it ends, and what they have done.

use std::mem::ManuallyDrop;
use std::ops::{Index, IndexMut};

use knee_host::{Budget, Bundle, Cpu, FlowLimit};
use knee_scenario::Reception;

use crate::event::{EventQueue, Side};
use crate::job::{Job, Last, Outcome};

/// There is more to do when the job of a processor ends, or it has none.
pub const WITH_MORE: u64 = 0;
/// When its job ends the processor idles, after one effect. Its queue, its thread and their socket are already what they are
/// then, for whoever looks at them before has it end with more.
pub const PLAINLY: u64 = u64::MAX;

/// A processor of a machine, with what each of its jobs looks at.
pub struct Processor {
    /// Its number among those of all machines.
    pub number: u32,
    pub machine: u32,
    /// The side whose settings its machine has.
    pub side: Side,
    pub reception: Reception,
    /// Has its machine others? Does it send by queues of its own?
    pub has_others: bool,
    pub xps: bool,
    /// What a pure ACK is charged that its qdisc does not hold. `None`: with fq, whose lock is held for a time that has to be
    /// known.
    pub sent_ack: Option<Bundle>,
    /// Bytes that an application asks for in one call, and is the processor remembered that reads?
    pub read_bytes: u64,
    pub has_rfs: bool,
    pub core: Cpu<Job>,
    /// How its job ends: [`WITH_MORE`], [`PLAINLY`], or quietly, without an event. Then it is the number reserved for that.
    pub ends: u64,
    /// What comes of the job that is at work.
    pub outcome: Outcome,
    /// What it has done, besides what bundles count.
    pub counts: Counts,
    /// Of its polls.
    pub budget: Budget,
    /// How many packets the poll took that ends plainly or quietly, if it took them at once. 0: it did not.
    pub at_once_pkts: u32,
    /// Packets that ever came to its backlog, and that wait there.
    pub backlog: (u64, u64),
    /// What it puts into backlogs, if it limits flows.
    pub flow_limit: Option<Box<FlowLimit>>,
}

impl Processor {
    /// Has its job ended by now, quietly?
    #[inline]
    pub fn is_done(&self, now_ns: u64, events: &EventQueue) -> bool {
        let ends_quietly = self.ends != WITH_MORE && self.ends != PLAINLY;
        ends_quietly && events.has_come(self.core.until_ns(), self.ends, now_ns)
    }

    /// What it has done.
    pub fn done(&self) -> Counts {
        let bundled = |bundle| self.core.bundled(bundle);
        let polls = bundled(Bundle::PollAtOnce) + bundled(Bundle::PollFromIdle);
        let pkts = bundled(Bundle::PacketAtOnce) + bundled(Bundle::GroPacketAtOnce);
        let mut counts = self.counts;
        counts.interrupts += polls;
        counts.napi_polls += polls;
        counts.napi_packets += pkts;
        counts.skbs_received += polls;
        counts.segments_received += pkts;
        counts.acks_sent += bundled(Bundle::AckBuilt);
        counts.acks_sent += bundled(Bundle::AckSent) + bundled(Bundle::AckByFifo);
        counts.wakeups += bundled(Bundle::Woken);
        counts.context_switches += bundled(Bundle::Switched);
        counts
    }

    /// Its job ends, plainly or quietly, and it idles.
    #[inline(always)]
    pub fn rest(&mut self) {
        self.ends = WITH_MORE;
        self.outcome.last = Last::Nothing;
        self.core.rest();
        self.budget.end();
    }
}

/// A processor that is with a job, and to be put back. Nobody else would drop it, for which code would have to be ready.
pub type Taken = ManuallyDrop<Box<Processor>>;

/// The processors of all machines by their number. A job has its own with it, and not in the list.
#[derive(Default)]
pub struct Processors(Vec<Option<Box<Processor>>>);

impl Processors {
    pub fn push(&mut self, of: Processor) {
        self.0.push(Some(Box::new(of)));
    }

    /// One begins with a job, or turns to what is next.
    #[inline(always)]
    pub fn take(&mut self, number: u32) -> Taken {
        let of = self.0[number as usize].take();
        ManuallyDrop::new(of.expect(ONE_AT_A_TIME))
    }

    /// Its job has begun.
    #[inline(always)]
    pub fn put_back(&mut self, of: Taken) {
        let before = self.0[of.number as usize].replace(ManuallyDrop::into_inner(of));
        debug_assert!(before.is_none(), "it has one job at a time");
        // There is nothing to drop, which the compiler cannot know.
        std::mem::forget(before);
    }

    pub fn iter(&self) -> impl Iterator<Item = &Processor> {
        self.0.iter().flatten().map(|of| &**of)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Processor> {
        self.0.iter_mut().flatten().map(|of| &mut **of)
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }
}

/// Where none of its jobs begins.
impl Index<u32> for Processors {
    type Output = Processor;

    #[inline]
    fn index(&self, number: u32) -> &Processor {
        self.0[number as usize].as_ref().expect(ONE_AT_A_TIME)
    }
}

impl IndexMut<u32> for Processors {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut Processor {
        self.0[number as usize].as_mut().expect(ONE_AT_A_TIME)
    }
}

const ONE_AT_A_TIME: &str = "a processor begins with one job at a time";

/// Declares what is counted of a machine, each field by the name that the table `host_costs` has for it.
macro_rules! counts {
    ($($name:ident,)*) => {
        /// What a machine has done.
        #[derive(Clone, Copy, Debug, Default)]
        pub struct Counts {
            $(pub $name: u64,)*
        }

        impl Counts {
            /// Each by its name, less what it was before.
            pub fn since(&self, before: &Counts) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name - before.$name),)*]
            }
        }
    };
}

counts! {
    pacing_timer_arms,
    pacing_timer_fires,
    qdisc_timer_fires,
    data_skbs_sent,
    data_segments_sent,
    data_bytes_sent,
    acks_sent,
    skbs_received,
    segments_received,
    napi_polls,
    napi_packets,
    napi_budget_ends,
    interrupts,
    ipis,
    ring_drops,
    backlog_drops,
    backlog_squeezes,
    backlog_flow_limits,
    rx_coalesce_changes,
    wakeups,
    context_switches,
    cross_cpu_reads,
}

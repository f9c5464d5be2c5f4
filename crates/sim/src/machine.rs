//! The machines of a run: hosts whose processors are busy with what is sent and received.

use std::collections::VecDeque;

use knee_host::{Bill, Costs, Cpu, Rfs, Ring, Spent, Steal, Thread};
use knee_path::pipe::Passing;
use knee_scenario::{GroTable, Reception};
use knee_segment::Segment;
use knee_units::rng::Stream;

use crate::event::{EndpointId, Side};

/// What stands between TCP and the NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Qdisc {
    /// noqueue, as of a veth.
    None,
    /// pfifo_fast, or another simple queue.
    Fifo,
    Fq {
        /// Does a flow with nothing queued pass its tree by (Linux 6.7)?
        fast_path: bool,
    },
}

/// What a machine is like.
#[derive(Clone, Debug)]
pub struct MachineConf {
    pub costs: Costs,
    pub cpus: u32,
    /// Receive queues of the NIC.
    pub queues: u32,
    /// Descriptors of each.
    pub rx_ring: u32,
    pub rps_cpus: Vec<u32>,
    pub rps_sock_flow_entries: u32,
    pub netdev_max_backlog: u32,
    /// Where applications run; empty: anywhere.
    pub app_cpus: Vec<u32>,
    pub threads: u32,
    /// Bytes that an application asks for in one call.
    pub read_bytes: u64,
    pub qdisc: Qdisc,
    /// How long the NIC gathers packets that it has sent before it reports them; 0: it reports each at once.
    pub tx_coalesce_ns: u64,
    pub reception: Reception,
    pub gro_table: GroTable,
    /// Are TSO packets split by software, before the driver?
    pub splits: bool,
    /// The share of each processor that the hypervisor takes, and for how long at a time, ns.
    pub steal: Option<(f64, u64)>,
    /// Has somebody else work for every processor?
    pub contention: bool,
    /// Does a thread that is woken interrupt the one that runs?
    pub wakeup_preemption: bool,
}

/// Packets that a poll takes at most.
pub const NAPI_WEIGHT: u32 = 64;

/// Writes of a connection in a row, before its thread looks at others.
pub const MOST_CALLS: u32 = 16;

/// What a softirq has to do.
#[derive(Debug)]
pub enum Job {
    /// Polls a receive queue, after so many interrupts.
    Poll {
        queue: u32,
        interrupts: u32,
    },
    /// A packet goes up the stack.
    Up(Up),
    Timer(EndpointId),
    /// The qdisc lets go what is due.
    Transmit(EndpointId),
    /// The machine's NIC reports what it has sent.
    Report(u32),
    /// So many bytes of an end have left, which it may replace.
    Freed(EndpointId, u32),
}

/// A packet on its way up the stack.
#[derive(Debug)]
pub struct Up {
    pub to: EndpointId,
    pub segment: Segment,
    pub from: Came,
    /// The queue whose poll is over when this packet is up.
    pub ends_poll: Option<u32>,
}

/// Where a packet comes from that goes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// From the poll at work.
    Poll,
    /// Out of the processor's backlog.
    Backlog {
        /// Does it start the backlog's softirq, and does that take an interrupt from another processor?
        starts: bool,
        by_ipi: bool,
    },
}

/// What comes of a job when it is done.
#[derive(Debug)]
pub enum Effect {
    /// An end has sent that, which the qdisc held back then if it has a time.
    Sent(EndpointId, u32, Option<u64>),
    /// The qdisc has let it go.
    Released(EndpointId, u32),
    /// A thread can run.
    Wake(u32),
    /// Another processor has a job.
    Raise(u32, Job),
    /// A poll is over.
    Polled(u32),
    /// An application gives its socket's lock back.
    Unlock(EndpointId),
}

/// A thread that runs applications.
pub struct AppThread {
    /// The processor that it was on last, and where it may be.
    pub cpu: u32,
    pub allowed: Vec<u32>,
    /// Ends with something to do.
    pub ready: VecDeque<EndpointId>,
    /// What waited for the lock of the socket that it has.
    pub locked: VecDeque<Job>,
    /// How many of those its last wait told of.
    pub told: usize,
    /// How many calls in a row it has made for the end that is first in `ready`, if it goes on with that.
    pub serves: Option<u32>,
    pub awake: bool,
    /// Is a job under way that will wake it?
    pub waking: bool,
    pub effects: Vec<Effect>,
}

/// A receive queue, the machine that it is of, and the processor that it interrupts.
pub struct Queue {
    pub ring: Ring<Passing<()>>,
    pub machine: u32,
    /// The side of the ends that its packets are for.
    pub side: Side,
    pub cpu: u32,
    /// Did its last poll take all that it may?
    pub was_full: bool,
    /// What GRO holds from poll to poll, and the jiffy of the host's clock since when.
    pub held: Vec<(EndpointId, Segment, u64)>,
}

/// One machine; its processors, queues and threads have consecutive numbers.
pub struct Machine {
    /// The side whose settings it has.
    pub side: usize,
    pub first_cpu: u32,
    /// Of the packets for each side, and of its applications.
    pub first_queue: [u32; 2],
    pub first_thread: [u32; 2],
    pub rfs: Option<Rfs>,
    /// Packets with data that the NIC has not reported sent: whose, and of how many bytes.
    pub unreported: Vec<(EndpointId, u32)>,
    pub counts: Counts,
}

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
    wakeups,
    context_switches,
    cross_cpu_reads,
}

/// The machines of a run; none where no host has one.
#[derive(Default)]
pub struct Machines {
    /// The machine of each host, by side and number.
    pub of_host: [Vec<u32>; 2],
    pub list: Vec<Machine>,
    pub cpus: Vec<Cpu<Job>>,
    /// The machine of each processor.
    pub of_cpu: Vec<u32>,
    /// What comes of the softirq that is at work on each processor.
    pub effects: Vec<Vec<Effect>>,
    /// Packets in each processor's backlog, that ever came there, and that left it.
    pub backlogs: Vec<(u64, u64)>,
    pub queues: Vec<Queue>,
    pub threads: Vec<Thread>,
    pub apps: Vec<AppThread>,
    /// Jobs that wait for an application to give a socket's lock back.
    pub deferred: Vec<(EndpointId, Job)>,
    /// What comes of the job at work, and what it costs.
    pub coming: Vec<Effect>,
    pub bill: Bill,
    // Scratch, kept to spare allocations.
    pub spare: Vec<Vec<Effect>>,
    pub polled: Vec<Passing<()>>,
    pub ups: Vec<(EndpointId, Segment)>,
    /// When the table `cpu` has its next rows.
    pub next_rows_ns: u64,
    /// What each machine had done, and each processor spent, when the warm-up was over.
    pub at_warm: (Vec<Counts>, Vec<Spent>),
}

impl Machines {
    /// A machine with the settings of a side, on which applications run as these say. `stream` gives draws for a purpose.
    pub fn add(
        &mut self,
        side: usize,
        conf: &MachineConf,
        apps: [Option<&MachineConf>; 2],
        now_ns: u64,
        stream: &dyn Fn(&str) -> Stream,
    ) -> u32 {
        let number = self.list.len() as u32;
        let mut machine = Machine {
            side,
            first_cpu: self.cpus.len() as u32,
            first_queue: [0; 2],
            first_thread: [0; 2],
            unreported: Vec::new(),
            rfs: (conf.rps_sock_flow_entries > 0).then(|| Rfs::new(conf.rps_sock_flow_entries)),
            counts: Counts::default(),
        };
        for cpu in 0..conf.cpus {
            let draws = || stream(&format!("machine.{number}.cpu.{cpu}.steal"));
            let steal = conf.steal;
            let steal = steal.map(|(share, slice_ns)| Steal::new(share, slice_ns, draws(), now_ns));
            let cpu = Cpu::new(steal, conf.contention, conf.wakeup_preemption);
            self.cpus.push(cpu);
            self.of_cpu.push(number);
            self.effects.push(Vec::new());
            self.backlogs.push((0, 0));
        }
        for (side, of) in [Side::Sender, Side::Receiver].into_iter().zip(apps) {
            machine.first_queue[side as usize] = self.queues.len() as u32;
            machine.first_thread[side as usize] = self.apps.len() as u32;
            let Some(of) = of else {
                continue;
            };
            for queue in 0..of.queues {
                self.queues.push(Queue {
                    ring: Ring::new(of.rx_ring),
                    machine: number,
                    side,
                    cpu: machine.first_cpu + queue % conf.cpus,
                    was_full: false,
                    held: Vec::new(),
                });
            }
            self.add_threads(machine.first_cpu, conf.cpus, of);
        }
        self.list.push(machine);
        number
    }

    fn add_threads(&mut self, first_cpu: u32, cpus: u32, conf: &MachineConf) {
        let is_pinned = !conf.app_cpus.is_empty();
        let allowed = match is_pinned {
            true => conf.app_cpus.clone(),
            false => (0..cpus).collect(),
        };
        for thread in 0..conf.threads {
            let place = allowed[thread as usize % allowed.len()];
            self.threads.push(Thread::default());
            self.apps.push(AppThread {
                cpu: first_cpu + place,
                // Those that are pinned are so in turn.
                allowed: match is_pinned {
                    true => vec![place],
                    false => allowed.clone(),
                },
                ready: VecDeque::new(),
                locked: VecDeque::new(),
                told: 0,
                serves: None,
                awake: false,
                waking: false,
                effects: Vec::new(),
            });
        }
    }

    /// The warm-up is over.
    pub fn warm(&mut self) {
        let counts = self.list.iter().map(|machine| machine.counts).collect();
        let spent = self.cpus.iter().map(|cpu| cpu.spent.clone()).collect();
        self.at_warm = (counts, spent);
    }

    /// What comes of the job that has just run.
    pub fn take_coming(&mut self) -> Vec<Effect> {
        let empty = self.spare.pop().unwrap_or_default();
        std::mem::replace(&mut self.coming, empty)
    }

    /// The processor on which a thread goes on that wakes: where it was, if that is idle, or another idle one.
    pub fn place_of(&self, thread: u32) -> u32 {
        let app = &self.apps[thread as usize];
        let machine = self.of_cpu[app.cpu as usize];
        let first_cpu = self.list[machine as usize].first_cpu;
        let idles = |cpu: &u32| self.cpus[*cpu as usize].is_idle();
        if app.allowed.len() == 1 || idles(&app.cpu) {
            return app.cpu;
        }
        let mut others = app.allowed.iter().map(|cpu| first_cpu + cpu);
        others.find(idles).unwrap_or(app.cpu)
    }
}

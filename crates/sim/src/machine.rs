//! The machines of a run: hosts whose processors are busy with what is sent and received.

use std::collections::VecDeque;

use knee_host::{
    Budget, Bundle, Costs, Cpu, Rfs, Ring, Spent, Steal, Thread, hash, pick, sends_by,
};
use knee_kit::head_queue::HeadQueue;
use knee_path::sink::Passing;
use knee_scenario::{GroTable, Reception};
use knee_tcp::segment::Segment;
use knee_units::rng::Stream;

use crate::event::{EndpointId, EventQueue, Side};
use crate::gro::lists::GroLists;
use crate::job::{Job, Outcome};
use crate::napi::Napi;
use crate::processor::{Counts, Processor, Processors, WITH_MORE};

/// What stands between TCP and the NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
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
    /// Of a processor's polls in a round: packets, and time.
    pub netdev_budget: u32,
    pub netdev_budget_ns: u64,
    pub gro_flush_timeout_ns: u64,
    pub napi_defer_hard_irqs: u32,
    /// Does the driver choose how long each queue gathers packets?
    pub adaptive_rx: bool,
    /// Has each queue of the NIC a qdisc of its own?
    pub mq: bool,
    /// Does each processor send by queues of its own?
    pub xps: bool,
    pub rps_cpus: Vec<u32>,
    pub rps_sock_flow_entries: u32,
    pub netdev_max_backlog: u32,
    /// Processors that limit flows.
    pub flow_limit_cpus: Vec<u32>,
    /// Where applications run; empty: anywhere.
    pub app_cpus: Vec<u32>,
    pub threads: u32,
    /// Bytes that an application asks for in one call.
    pub read_bytes: u64,
    pub qdisc: Qdisc,
    /// How long the NIC gathers packets that it has sent before it reports them; 0: it reports each at once.
    pub tx_coalesce_ns: u64,
    pub reception: Reception,
    pub gro: bool,
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

/// A thread that runs applications.
pub struct AppThread {
    /// The processor that it was on last, and where it may be.
    pub cpu: u32,
    pub allowed: Vec<u32>,
    /// Ends with something to do.
    pub ready: HeadQueue<EndpointId>,
    /// What waited for the lock of the socket that it has.
    pub locked: VecDeque<Job>,
    /// How many of those its last wait told of.
    pub told: usize,
    /// How many calls in a row it has made for the end that is first in `ready`, if it goes on with that; else 0.
    pub serves: u32,
    pub awake: bool,
    /// Is a job under way that will wake it?
    pub waking: bool,
    /// What comes of its job, while softirqs interrupt that.
    pub interrupted: Outcome,
}

/// What a thread does in its turn.
pub struct AppTurn {
    /// The end that it serves.
    pub id: Option<EndpointId>,
    /// How many calls in a row it has made for that end before, if it goes on with it; else 0.
    pub calls_before: u32,
    /// Does it ask first what is ready?
    pub waits: bool,
}

impl AppThread {
    /// Its next turn, which begins: there is an end that is ready.
    #[inline(always)]
    pub fn next_turn(&mut self) -> AppTurn {
        let calls_before = std::mem::take(&mut self.serves);
        let waits = calls_before == 0 && self.told == 0;
        if waits {
            self.told = self.ready.others();
        } else if calls_before == 0 {
            self.told -= 1;
        }
        AppTurn {
            id: self.ready.pop(),
            calls_before,
            waits,
        }
    }

    /// Has it something to do?
    #[inline]
    pub fn has_work(&self) -> bool {
        !self.ready.is_empty() || !self.locked.is_empty()
    }
}

/// A receive queue, the machine that it is of, and the processor that it interrupts.
pub struct Queue {
    pub ring: Ring<Passing<()>>,
    pub machine: u32,
    /// The side of the ends that its packets are for.
    pub side: Side,
    /// So many packets at most may be polled in the interrupt that they come with, if nothing waits.
    pub at_once_pkts: u32,
    pub gro: bool,
    pub cpu: u32,
    /// How many packets its last poll took.
    pub polled_pkts: u32,
    pub napi: Napi,
    /// What GRO holds from poll to poll.
    pub held: GroLists,
}

impl Queue {
    /// Has its last poll taken as many packets as it may take?
    #[inline]
    pub fn was_full(&self) -> bool {
        self.polled_pkts == NAPI_WEIGHT
    }

    /// Has its poll left nothing?
    #[inline]
    pub fn is_drained(&self) -> bool {
        self.ring.is_empty() && self.held.is_empty()
    }

    /// Does its poll end with nothing more to do?
    #[inline]
    pub fn ends_quietly(&self) -> bool {
        self.is_drained() && self.napi.is_plain()
    }
}

/// A transmit queue of a NIC with the qdisc before it.
pub struct TxQueue {
    /// The processor that it interrupts.
    pub cpu: u32,
    /// Packets with data that it has not reported sent: whose, and of how many bytes.
    pub unreported: Vec<(EndpointId, u32)>,
    /// When a processor last had the qdisc's lock, and which.
    locked_ns: (u64, u64),
    locked_by: u32,
}

impl TxQueue {
    /// A processor wants the qdisc's lock. Returns how long another one still has it; a processor never waits for itself.
    #[inline]
    pub fn waits_ns(&self, cpu: u32, at_ns: u64) -> u64 {
        let (from_ns, until_ns) = self.locked_ns;
        match cpu != self.locked_by && from_ns <= at_ns {
            true => until_ns.saturating_sub(at_ns),
            false => 0,
        }
    }

    /// A processor has the qdisc's lock for that time.
    #[inline]
    pub fn lock(&mut self, cpu: u32, from_ns: u64, until_ns: u64) {
        if until_ns > self.locked_ns.1 {
            (self.locked_ns, self.locked_by) = ((from_ns, until_ns), cpu);
        }
    }
}

/// One machine; its processors, queues and threads have consecutive numbers.
pub struct Machine {
    /// The side whose settings it has.
    pub side: Side,
    pub first_cpu: u32,
    /// Of the packets for each side, and of its applications.
    pub first_queue: [u32; 2],
    pub first_thread: [u32; 2],
    /// How many queues there are for packets to each side.
    pub queues: [u32; 2],
    pub rfs: Option<Rfs>,
    /// Of the NIC's transmit queues, and how many it has.
    pub first_tx: u32,
    pub tx_queues: u32,
    /// How many processors there are.
    pub cpus: u32,
    /// Do packets go on at other processors than where they came?
    pub steers: bool,
}

/// The machines of a run; none where no host has one.
#[derive(Default)]
pub struct Machines {
    /// The machine of each host, by side and number.
    pub of_host: [Vec<u32>; 2],
    pub list: Vec<Machine>,
    pub cpus: Processors,
    pub queues: Vec<Queue>,
    pub tx: Vec<TxQueue>,
    pub threads: Vec<Thread>,
    pub apps: Vec<AppThread>,
    /// Jobs that wait for an application to give a socket's lock back.
    pub deferred: Vec<(EndpointId, Job)>,
    // Scratch, kept to spare allocations.
    pub polled: Vec<Passing<()>>,
    pub ups: Vec<(EndpointId, Segment)>,
    /// When the connections were last asked whether a processor held them up, and for how long each had been busy, ns.
    pub looked: (u64, Vec<u64>),
    /// When the table `cpu` has its next rows.
    pub next_rows_ns: u64,
    /// What each processor had done and spent when the warm-up was over.
    pub at_warm: (Vec<Counts>, Vec<Spent>),
}

impl Machines {
    /// A machine with the settings of a side, on which applications run as these say. `stream` gives draws for a purpose.
    pub fn add(
        &mut self,
        side: Side,
        conf: &MachineConf,
        apps: [Option<&MachineConf>; 2],
        now_ns: u64,
        stream: &dyn Fn(&str) -> Stream,
    ) -> u32 {
        let number = self.list.len() as u32;
        let mut machine = Machine {
            side,
            first_cpu: self.cpus.count(),
            first_queue: [0; 2],
            first_thread: [0; 2],
            queues: [0; 2],
            first_tx: self.tx.len() as u32,
            tx_queues: if conf.mq { conf.queues } else { 1 },
            cpus: conf.cpus,
            rfs: (conf.rps_sock_flow_entries > 0).then(|| Rfs::new(conf.rps_sock_flow_entries)),
            steers: !conf.rps_cpus.is_empty() || conf.rps_sock_flow_entries > 0,
        };
        for cpu in 0..conf.cpus {
            let draws = || stream(&format!("machine.{number}.cpu.{cpu}.steal"));
            let steal = conf.steal;
            let steal = steal.map(|(share, slice_ns)| Steal::new(share, slice_ns, draws(), now_ns));
            let core = Cpu::new(
                conf.costs.clone(),
                steal,
                conf.contention,
                conf.wakeup_preemption,
                now_ns,
            );
            self.cpus.push(Processor {
                number: machine.first_cpu + cpu,
                machine: number,
                side,
                reception: conf.reception,
                has_others: conf.cpus > 1,
                xps: conf.xps,
                sent_ack: match conf.qdisc {
                    Qdisc::None => Some(Bundle::AckSent),
                    Qdisc::Fifo => Some(Bundle::AckByFifo),
                    Qdisc::Fq { .. } => None,
                },
                core,
                ends: WITH_MORE,
                outcome: Outcome::default(),
                counts: Counts::default(),
                budget: Budget::new(conf.netdev_budget, conf.netdev_budget_ns),
                at_once_pkts: 0,
                read_bytes: conf.read_bytes,
                has_rfs: machine.rfs.is_some(),
                backlog: (0, 0),
                flow_limit: conf.flow_limit_cpus.contains(&cpu).then(Box::default),
            });
        }
        for queue in 0..machine.tx_queues {
            self.tx.push(TxQueue {
                cpu: machine.first_cpu + queue % conf.cpus,
                unreported: Vec::new(),
                locked_ns: (0, 0),
                locked_by: 0,
            });
        }
        for (side, of) in [Side::Sender, Side::Receiver].into_iter().zip(apps) {
            machine.first_queue[side as usize] = self.queues.len() as u32;
            machine.first_thread[side as usize] = self.apps.len() as u32;
            let Some(of) = of else {
                continue;
            };
            machine.queues[side as usize] = of.queues;
            for queue in 0..of.queues {
                let napi = Napi::new(
                    of.gro_flush_timeout_ns,
                    of.napi_defer_hard_irqs,
                    of.adaptive_rx,
                );
                self.queues.push(Queue {
                    ring: Ring::new(of.rx_ring),
                    machine: number,
                    side,
                    at_once_pkts: match conf.reception {
                        Reception::Napi if !machine.steers && napi.is_plain() => {
                            of.rx_ring.min(NAPI_WEIGHT - 1)
                        }
                        _ => 0,
                    },
                    gro: of.gro,
                    cpu: machine.first_cpu + queue % conf.cpus,
                    polled_pkts: 0,
                    napi,
                    held: GroLists::default(),
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
                ready: HeadQueue::default(),
                locked: VecDeque::new(),
                told: 0,
                serves: 0,
                awake: false,
                waking: false,
                interrupted: Outcome::default(),
            });
        }
    }

    /// The warm-up is over.
    pub fn warm(&mut self) {
        let counts = self.cpus.iter().map(Processor::done);
        let spent = self.cpus.iter().map(|cpu| cpu.core.spent());
        self.at_warm = (counts.collect(), spent.collect());
    }

    /// The transmit queue of a connection's end, by its hash (skb_tx_hash()).
    pub fn tx_queue_of(&self, machine: u32, flow: u32) -> u32 {
        let of = &self.list[machine as usize];
        of.first_tx + pick(hash(flow), of.tx_queues)
    }

    /// The transmit queue by which a processor sends for a connection, if it has queues of its own.
    pub fn xps_queue_of(&self, by: &Processor, flow: u32) -> u32 {
        let of = &self.list[by.machine as usize];
        of.first_tx + sends_by(by.number - of.first_cpu, of.cpus, of.tx_queues, hash(flow))
    }

    /// The queue of a machine that a connection's packets for that side come to (RSS).
    pub fn rx_queue_of(&self, machine: u32, side: Side, flow: u32) -> u32 {
        let of = &self.list[machine as usize];
        of.first_queue[side as usize] + pick(hash(flow), of.queues[side as usize])
    }

    /// An idle processor where a thread may run, while the one where it was is taken out.
    /// The others may be done quietly by now, and thus idle.
    pub fn idle_place_of(
        &self,
        thread: u32,
        was_on: &Processor,
        now_ns: u64,
        events: &EventQueue,
    ) -> Option<u32> {
        let first_cpu = self.list[was_on.machine as usize].first_cpu;
        let idles = |cpu: &u32| {
            let of = &self.cpus[*cpu];
            of.core.is_idle() || of.is_done(now_ns, events)
        };
        let allowed = self.apps[thread as usize].allowed.iter();
        let mut others = allowed.map(|cpu| first_cpu + cpu);
        others.find(|cpu| *cpu != was_on.number && idles(cpu))
    }
}

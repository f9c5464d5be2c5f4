//! A connection in the world: its two ends, their applications, and what is
//! counted about it.

use std::collections::VecDeque;
use std::mem::offset_of;
use std::num::NonZeroU64;
use std::ops::{Index, IndexMut};

use knee_kit::ahead;
use knee_kit::places::{Place, Placed, places};
use knee_path::sink::Passing;
use knee_scenario::workload::Apps;
use knee_tables::{Histogram, Reads};
use knee_units::{NEVER, Nanos};

use crate::event::{EndpointId, Side};
use knee_tcp::segment::Slab;
use knee_tcp::{Endpoint, LIMITS, Limit};

/// One connection. What each packet looks at lies together, at its beginning.
#[repr(C)]
pub struct Flow {
    /// Packets of its ends that have not arrived, and are not lost.
    pub under_way: u32,
    /// Index of its `[[flow]]`.
    pub group: u32,
    /// Does the receiver's application read, and nothing else?
    pub receiver_only_reads: bool,
    /// Does the sender's application write without end, and nothing else?
    pub sender_only_writes: bool,
    /// Does what happens now count? Of a transfer all does, of others what happens in the steady part.
    pub measured: bool,
    pub apps: Apps,
    pub queue_delay_us: Histogram,
    /// Calls of the sender's application that its socket took something of.
    pub writes: u64,
    /// Payload lost or dropped on the path.
    pub dropped_bytes: u64,
    pub path_lost_pkts: u64,
    pub queue_dropped_pkts: u64,
    pub ends: [End; 2],
    /// The number of the host at each side.
    pub hosts: [u32; 2],
    pub open_ns: u64,
    /// How much it is to carry, 1 B at least; `None`: it is no finite transfer.
    pub transfer_bytes: Option<NonZeroU64>,
    /// Payload of copies that the path made.
    pub duplicated_bytes: u64,
    /// Of an application that asks, once it has had an answer.
    pub latency_us: Option<Box<Histogram>>,
    /// Of a workload that counts how its receiver's reads come.
    pub reads: Option<Box<Reads>>,
    /// Where the counters stood when the steady part began, unless the connection counts from its opening.
    pub baseline: Option<Box<Baseline>>,
    /// How the sender's time was spent until the work was complete; what follows counts no more.
    pub final_times: Option<Box<Times>>,
    /// Where hosts have processors.
    pub held_up: Option<Box<HeldUp>>,
}

/// Time under TCP's limits in which a processor had none left, and so held the connection up.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeldUp {
    /// Time under each limit at the last look.
    seen_ns: [u64; LIMITS],
    /// Of the time under each limit since the steady part began.
    held_ns: [u64; LIMITS],
}

/// From this many connections on, their state does not fit into the nearest caches: each has about 4 KiB.
const MANY: usize = 64;

/// How a sender's time was spent.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Of its window and of what was in flight, over time.
    pub integrals: (f64, f64),
    pub limit_ns: [u64; LIMITS],
}

impl Times {
    fn of(sender: &Endpoint) -> Times {
        Times {
            integrals: sender.means().integrals(),
            limit_ns: sender.time().settled_ns(),
        }
    }
}

/// Connections whose memory is taken together: several large pages.
const GROUP: usize = 1 << 12;

/// The connections of a run by their number: those that have begun and are not over. The others take a word each.
pub struct Flows {
    list: Vec<Option<Placed<Flow>>>,
    /// How many have not begun.
    to_come: usize,
    /// Room that nobody has had yet, and room of those that are over.
    fresh: Box<dyn Iterator<Item = Place<Flow>> + Send>,
    free: Vec<Place<Flow>>,
}

impl Flows {
    /// None of `count` connections has begun.
    pub fn new(count: usize) -> Flows {
        Flows {
            list: (0..count).map(|_| None).collect(),
            to_come: count,
            fresh: Box::new(std::iter::empty()),
            free: Vec::new(),
        }
    }

    /// One begins.
    pub fn begin(&mut self, number: u32, flow: Flow) {
        let place = self.free.pop().or_else(|| self.fresh.next());
        let place = place.unwrap_or_else(|| {
            self.fresh = Box::new(places(self.to_come.min(GROUP)));
            self.fresh.next().expect("one is to come")
        });
        self.to_come -= 1;
        self.insert(number, place.put(flow));
    }

    /// One is over, and was taken out.
    pub fn end(&mut self, flow: Placed<Flow>) {
        self.free.push(flow.empty());
    }

    /// The turn of one is over.
    #[inline]
    pub fn insert(&mut self, number: u32, flow: Placed<Flow>) {
        let before = self.list[number as usize].replace(flow);
        debug_assert!(before.is_none(), "it has one turn at a time");
        // There is nothing to drop, which the compiler cannot know.
        std::mem::forget(before);
    }

    /// One is over, or has its turn.
    #[inline]
    pub fn remove(&mut self, number: u32) -> Placed<Flow> {
        self.try_remove(number).expect(NOTHING_FOLLOWS)
    }

    /// One has its turn, if it is not over.
    #[inline]
    pub fn try_remove(&mut self, number: u32) -> Option<Placed<Flow>> {
        self.list[number as usize].take()
    }

    /// Is there still such a connection?
    pub fn has(&self, number: u32) -> bool {
        self.get(number).is_some()
    }

    /// A connection, if it is not over.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&Flow> {
        self.list[number as usize].as_deref()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flow> {
        self.list.iter_mut().flatten().map(|flow| &mut **flow)
    }

    /// How many there are in the run.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// The timers of these ends are due one after the other, now: asks for what the next ones look at, first of all whether
    /// they were superseded.
    #[inline]
    pub fn expect_timers(&self, next: &[EndpointId], now_ns: u64) {
        if !self.are_many() {
            return;
        }
        let nth = |n: usize| {
            let id = *next.get(n)?;
            Some((self.get(id.flow())?, id.side()))
        };
        let nth_due =
            |n: usize| nth(n).filter(|(flow, side)| flow.ends[*side as usize].armed_ns == now_ns);
        if let Some((flow, side)) = nth(7) {
            ahead::fetch(&flow.ends[side as usize].armed_ns);
        }
        if let Some((flow, side)) = nth_due(3) {
            flow.fetch(side);
        }
        if let Some((flow, side)) = nth_due(0) {
            flow.fetch_parts(side);
        }
    }

    /// Asks for what an arrival looks at, as it is next or comes soon.
    #[inline]
    pub fn fetch(&self, slab: &Slab, side: Side, passing: &Passing<()>, is_next: bool) {
        let flow = &self[passing.flow as usize];
        match is_next {
            true => flow.fetch_parts(side),
            false => {
                ahead::fetch(slab.get(passing.handle));
                flow.fetch(side);
            }
        }
    }

    /// Does the run have more than the nearest caches hold?
    #[inline]
    pub fn are_many(&self) -> bool {
        self.list.len() >= MANY
    }
}

/// Some of the connections of a run.
pub struct FlowSet(Vec<u64>);

impl FlowSet {
    /// None of `count` connections.
    pub fn new(count: usize) -> FlowSet {
        FlowSet(vec![0; count.div_ceil(64)])
    }

    #[inline]
    pub fn insert(&mut self, number: u32) {
        self.0[number as usize / 64] |= 1 << (number % 64);
    }

    pub fn has(&self, number: u32) -> bool {
        self.0[number as usize / 64] >> (number % 64) & 1 != 0
    }

    /// Takes all out, in the order of their numbers.
    pub fn drain(&mut self, mut each: impl FnMut(u32)) {
        for (place, word) in (0..).zip(&mut self.0) {
            while *word != 0 {
                each(place * 64 + word.trailing_zeros());
                *word &= *word - 1;
            }
        }
    }
}

/// Where something still happens to it.
impl Index<usize> for Flows {
    type Output = Flow;

    #[inline]
    fn index(&self, number: usize) -> &Flow {
        self.list[number].as_ref().expect(NOTHING_FOLLOWS)
    }
}

impl IndexMut<usize> for Flows {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut Flow {
        self.list[number].as_mut().expect(NOTHING_FOLLOWS)
    }
}

const NOTHING_FOLLOWS: &str =
    "nothing happens to a connection before it begins or after it is over";

/// One end with what the world keeps beside it.
#[repr(C)]
pub struct End {
    /// Segments that wait in the qdisc for their departure time.
    pub egress: VecDeque<(u64, u32)>,
    /// Of a host that has processors: the one that worked for it last, the application's thread, and how many packets
    /// wait to be read.
    pub cpu: u32,
    pub thread: u32,
    pub unread_skbs: u32,
    /// And the queues of its NIC.
    pub rx_queue: u32,
    pub tx_queue: u32,
    /// Has its application the socket's lock?
    pub is_owned: bool,
    /// Was it found that nothing is left to do at this end?
    pub is_done: bool,
    /// When its application is asked again; NEVER: when something happens.
    pub app_wakes_ns: u64,
    /// When the event queue wakes this end next; NEVER: not at all.
    pub armed_ns: u64,
    pub tcp: Endpoint,
}

impl End {
    pub fn new(tcp: Endpoint) -> End {
        End {
            tcp,
            egress: VecDeque::new(),
            armed_ns: NEVER,
            app_wakes_ns: NEVER,
            cpu: 0,
            thread: 0,
            unread_skbs: 0,
            rx_queue: 0,
            tx_queue: 0,
            is_owned: false,
            is_done: false,
        }
    }
}

/// Counters at the start of the steady part.
#[derive(Clone, Copy, Debug)]
pub struct Baseline {
    pub t_ns: u64,
    pub bytes_read: u64,
    pub bytes_sent: u64,
    pub limit_ns: [u64; LIMITS],
}

impl Flow {
    /// Fetches ahead what an arrival at that side looks at.
    #[inline]
    pub fn fetch(&self, side: Side) {
        ahead::fetch_until(self, offset_of!(Flow, ends));
        let end = &self.ends[side as usize];
        ahead::fetch_until(end, offset_of!(End, tcp));
        end.tcp.fetch(side == Side::Sender);
    }

    /// The same of what a sample looks at.
    pub fn fetch_sampled(&self) {
        self.fetch(Side::Sender);
        ahead::fetch(&self.ends[1].tcp.rx);
    }

    /// The same of what lies elsewhere in memory.
    pub fn fetch_parts(&self, side: Side) {
        let tcp = &self.ends[side as usize].tcp;
        match side {
            Side::Sender => {
                ahead::fetch(&*self.apps.sender);
                tcp.fetch_parts();
            }
            Side::Receiver => tcp.rx.fetch_parts(),
        }
    }

    pub fn end(&mut self, side: Side) -> &mut End {
        &mut self.ends[side as usize]
    }

    /// The connection opens, and counts from the beginning.
    pub fn open_measuring(&mut self, now_ns: u64) {
        self.measured = true;
        for end in &mut self.ends {
            end.tcp.start_measuring(now_ns);
        }
    }

    /// The steady part begins.
    pub fn start_measuring(&mut self, now_ns: u64) {
        self.open_measuring(now_ns);
        self.latency_us = None;
        let sender = &self.ends[0].tcp;
        self.baseline = Some(Box::new(Baseline {
            t_ns: now_ns,
            bytes_read: self.ends[1].tcp.rx.bytes_read(),
            bytes_sent: sender.counters.bytes_sent,
            limit_ns: sender.time().settled_ns(),
        }));
        if let Some(held_up) = &mut self.held_up {
            **held_up = HeldUp {
                seen_ns: sender.time().settled_ns(),
                ..HeldUp::default()
            };
        }
    }

    /// Has a processor that it needs had no time left since the last look?
    pub fn look(&mut self, now_ns: u64, was_held_up: bool) {
        let Some(held_up) = &mut self.held_up else {
            return;
        };
        let time = self.ends[0].tcp.time();
        for limit in [
            Limit::Cwnd,
            Limit::Rwnd,
            Limit::Sndbuf,
            Limit::Pacing,
            Limit::App,
        ] {
            let at = limit as usize;
            let ns = match &self.final_times {
                Some(times) => times.limit_ns[at],
                None => time.limited_ns(limit, now_ns),
            };
            // An application that always has something to write waits for its processor.
            if was_held_up && (limit != Limit::App || self.sender_only_writes) {
                held_up.held_ns[at] += ns - held_up.seen_ns[at];
            }
            held_up.seen_ns[at] = ns;
        }
    }

    /// Its work is complete.
    pub fn complete(&mut self, now_ns: u64) {
        let sender = &mut self.ends[0].tcp;
        sender.settle(now_ns);
        self.final_times = Some(Box::new(Times::of(sender)));
    }

    /// When its work was complete, on the hosts' clock.
    pub fn completed_ns(&self) -> Option<u64> {
        self.apps.receiver.completed().map(|at| at.0)
    }

    /// The row of the `flows` table. `end_ns` is when the run ended.
    pub fn row(&self, id: RowId, end_ns: u64) -> knee_tables::Flow {
        let completed_ns = self.completed_ns();
        let end_ns = completed_ns.unwrap_or(end_ns).max(self.open_ns);
        // A flow done before the steady part began counts as a whole.
        let baseline = match self.baseline.as_deref() {
            Some(baseline) if baseline.t_ns < end_ns => *baseline,
            _ => Baseline {
                t_ns: self.open_ns,
                bytes_read: 0,
                bytes_sent: 0,
                limit_ns: [0; LIMITS],
            },
        };
        let seconds = (end_ns - baseline.t_ns) as f64 / 1e9;
        let per_sec = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
        let sender = &self.ends[0].tcp;
        let counters = &sender.counters;
        let bytes_read = self.ends[1].tcp.rx.bytes_read();
        let times = self.final_times.as_deref().copied();
        let times = times.unwrap_or_else(|| Times::of(sender));
        let held_ns = (self.held_up.as_deref()).map(|held_up| held_up.held_ns);
        let limited_us = |limit: Limit| {
            let at = limit as usize;
            let held_ns = held_ns.map_or(0, |held_ns| held_ns[at]);
            ((times.limit_ns[at] - baseline.limit_ns[at] - held_ns) / 1_000) as i64
        };
        let (cwnd_integral, inflight_integral) = times.integrals;
        let mean_over_time = |integral: f64| per_sec(integral / 1e9);
        let srtt = sender.means().srtt_us();
        let asks = self.apps.receiver_opens;
        let requests = self
            .latency_us
            .as_ref()
            .map_or(0, |latency| latency.count());
        let latency = |share: f64| self.latency_us.as_ref()?.quantile(share);
        let read =
            |of: fn(&Reads) -> &Histogram, share: f64| of(self.reads.as_ref()?).quantile(share);
        knee_tables::Flow {
            cell: id.cell,
            rep: id.rep,
            flow: id.flow,
            group: self.group as i32,
            name: id.name.to_owned(),
            algorithm: id.algorithm.to_owned(),
            workload: id.workload,
            start_ns: (self.open_ns - id.boot_ns) as i64,
            end_ns: completed_ns.map(|ns| (ns - id.boot_ns) as i64),
            completion_us: completed_ns
                .map(|ns| ((ns - self.open_ns) / 1_000) as i64)
                .filter(|_| !asks),
            transfer_bytes: self.transfer_bytes.map(|bytes| bytes.get() as i64),
            slowdown: completed_ns
                .zip(id.least_completion)
                .map(|(ns, least)| (ns - self.open_ns) as f64 / least.0 as f64),
            goodput_bits_per_sec: per_sec((bytes_read - baseline.bytes_read) as f64 * 8.0),
            throughput_bits_per_sec: Some(per_sec(
                (counters.bytes_sent - baseline.bytes_sent) as f64 * 8.0,
            )),
            bytes_read: bytes_read as i64,
            bytes_acked: Some(counters.bytes_acked as i64),
            bytes_sent: Some(counters.bytes_sent as i64),
            bytes_retrans: Some(counters.bytes_retrans as i64),
            data_segs_out: Some(counters.data_segs_out as i64),
            total_retrans: counters.total_retrans as i64,
            retransmit_pct: Some(match counters.data_segs_out {
                0 => 0.0,
                sent => counters.total_retrans as f64 * 100.0 / sent as f64,
            }),
            path_lost_pkts: Some(self.path_lost_pkts as i64),
            queue_dropped_pkts: Some(self.queue_dropped_pkts as i64),
            srtt_us_mean: srtt.mean(),
            srtt_us_p50: srtt.quantile(0.50),
            srtt_us_p95: srtt.quantile(0.95),
            srtt_us_p99: srtt.quantile(0.99),
            min_rtt_us: Some(sender.cc.min_rtt_us)
                .filter(|&us| us != u32::MAX)
                .map(i64::from),
            queue_delay_us_mean: self.queue_delay_us.mean(),
            queue_delay_us_p50: self.queue_delay_us.quantile(0.50),
            queue_delay_us_p95: self.queue_delay_us.quantile(0.95),
            queue_delay_us_p99: self.queue_delay_us.quantile(0.99),
            snd_cwnd_mean: Some(mean_over_time(cwnd_integral)),
            inflight_mean: Some(mean_over_time(inflight_integral)),
            cwnd_limited_us: Some(limited_us(Limit::Cwnd)),
            rwnd_limited_us: Some(limited_us(Limit::Rwnd)),
            sndbuf_limited_us: Some(limited_us(Limit::Sndbuf)),
            pacing_limited_us: Some(limited_us(Limit::Pacing)),
            app_limited_us: Some(limited_us(Limit::App)),
            cpu_limited_us: held_ns.map(|held_ns| (held_ns.iter().sum::<u64>() / 1_000) as i64),
            rto_count: Some(counters.rto_count as i64),
            recovery_count: Some(counters.recovery_count as i64),
            undo_count: Some(counters.undo_count as i64),
            tlp_count: Some(counters.tlp_count as i64),
            requests: asks.then_some(requests as i64),
            requests_per_sec: asks.then(|| per_sec(requests as f64)),
            latency_us_p50: latency(0.50),
            latency_us_p95: latency(0.95),
            latency_us_p99: latency(0.99),
            writes: self.writes as i64,
            reads: self.reads.as_ref().map(|reads| reads.bytes.count() as i64),
            read_bytes_p50: read(|reads| &reads.bytes, 0.50),
            read_bytes_p99: read(|reads| &reads.bytes, 0.99),
            read_gap_us_p50: read(|reads| &reads.gap_us, 0.50),
            read_gap_us_p99: read(|reads| &reads.gap_us, 0.99),
        }
    }
}

/// What a flow's row needs to know besides.
pub struct RowId<'a> {
    pub cell: i32,
    pub rep: i32,
    pub flow: i32,
    pub name: &'a str,
    pub algorithm: &'a str,
    pub workload: &'static str,
    /// Of such a transfer on this path.
    pub least_completion: Option<Nanos>,
    /// Time of the hosts' clocks when the run began.
    pub boot_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_gives_each_flow_once_and_in_order() {
        let mut set = FlowSet::new(200);
        for number in [199, 64, 0, 63, 64, 130] {
            set.insert(number);
        }
        assert!(set.has(63) && !set.has(62));
        let mut taken = Vec::new();
        set.drain(|number| taken.push(number));
        assert_eq!(taken, [0, 63, 64, 130, 199]);
        set.drain(|number| panic!("{number} was taken before"));
    }
}

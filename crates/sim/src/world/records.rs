//! What a run leaves: rows of its tables, captures, and the account of every byte.

use std::ops::Range;

use knee_path::sink::Passing;
use knee_scenario::Cell;
use knee_tables::{Event, KeptSamples, QueueSample, Samples, Table, position};

use super::World;
use crate::event::Side;
use crate::flow::{Flow, FlowSet, Flows, RowId};
use crate::{Account, CapturedPacket, Output, Rows};
use knee_tcp::segment::Segment;
use knee_tcp::{HostConf, Limit};

/// What a run leaves so far.
pub(super) struct Recorder {
    /// Of the cell, and of the repetition.
    id: (i32, i32),
    boot_ns: u64,
    /// Columns of `samples` that are kept.
    kept: KeptSamples,
    /// Flows that changed since the last sample.
    pub changed: FlowSet,
    /// Since they were last taken.
    pub rows: Rows,
    /// All but rows.
    pub output: Output,
    /// Scratch, kept to spare allocations.
    numbers: Vec<u32>,
}

impl Recorder {
    pub fn new(
        cell: &Cell,
        rep: u32,
        boot_ns: u64,
        connections: usize,
        accounts: bool,
    ) -> Recorder {
        let accounts = if accounts { connections } else { 0 };
        Recorder {
            id: (cell.index as i32, rep as i32),
            boot_ns,
            kept: cell.samples,
            changed: FlowSet::new(connections),
            rows: Rows::default(),
            output: Output {
                accounts: vec![Account::default(); accounts],
                ..Output::default()
            },
            numbers: Vec::new(),
        }
    }

    /// Cell, repetition and time of a row.
    pub fn at(&self, now_ns: u64) -> (i32, i32, i64) {
        let (cell, rep) = self.id;
        (cell, rep, (now_ns - self.boot_ns) as i64)
    }

    /// Is there nothing of a flow that the next sample would have?
    pub fn has_all_of(&self, number: u32) -> bool {
        !self.changed.has(number) || !self.kept.any()
    }

    pub fn log_event(&mut self, now_ns: u64, number: u32, flow: &Flow, event: &'static str) {
        let cc = &flow.ends[0].tcp.cc;
        let (cell, rep, t_ns) = self.at(now_ns);
        self.rows.events.push(Event {
            cell,
            rep,
            t_ns,
            flow: number as i32,
            event,
            snd_cwnd: Some(cc.snd_cwnd.into()),
            snd_ssthresh: Some(cc.snd_ssthresh.into()),
        });
    }

    fn sample_queues(&mut self, now_ns: u64, queues: impl Iterator<Item = QueueSample>) {
        let (cell, rep, t_ns) = self.at(now_ns);
        for row in queues {
            self.rows.queue.push(QueueSample {
                cell,
                rep,
                t_ns,
                ..row
            });
        }
    }

    /// The flows that changed.
    fn sample_flows(&mut self, now_ns: u64, flows: &Flows, conf: &HostConf) {
        let id = self.at(now_ns);
        // In flow order, so that tables do not depend on who moved first.
        let mut numbers = std::mem::take(&mut self.numbers);
        self.changed.drain(|number| numbers.push(number));
        // Without a column to keep there are no rows.
        if !self.kept.any() {
            numbers.clear();
        }
        for (place, &number) in numbers.iter().enumerate() {
            if let Some(&soon) = numbers.get(place + 2) {
                flows[soon as usize].fetch_sampled();
            }
            let (samples, flow) = (&mut self.rows.samples, &flows[number as usize]);
            push_sample(samples, self.kept, flow, conf, now_ns, (id, number as i32));
        }
        numbers.clear();
        self.numbers = numbers;
    }
}

impl World {
    /// Records a packet at the sender's interface.
    fn capture(&mut self, flow: u32, outbound: bool, segment: &Segment) {
        let origin = if outbound {
            &self.types[0].tcp
        } else {
            &self.types[1].tcp
        };
        let packet = CapturedPacket::new(self.now(), flow, outbound, segment, origin);
        self.recorder.output.capture.push(packet);
    }

    #[cold]
    pub(super) fn capture_sent(&mut self, flow: u32, handle: u32) {
        let pkts = self.conns.slab.get(handle).packets.into();
        self.capture_packets(flow, true, handle, 0..pkts);
    }

    #[cold]
    pub(super) fn capture_arrived(&mut self, packets: &[Passing<()>]) {
        for (n, passing) in packets.iter().enumerate() {
            let of_handle = |before: &&Passing<()>| before.handle == passing.handle;
            let begin: u32 = packets[..n].iter().filter(of_handle).map(|p| p.pkts).sum();
            let pkts = begin..begin + passing.pkts;
            self.capture_packets(passing.flow, false, passing.handle, pkts);
        }
    }

    /// Of the packets that a handle stands for, those at these places.
    fn capture_packets(&mut self, flow: u32, outbound: bool, handle: u32, pkts: Range<u32>) {
        let mut train = self.conns.slab.get(handle).clone();
        for place in 0..pkts.end {
            let packet = train.cut(1);
            if pkts.contains(&place) {
                self.capture(flow, outbound, &packet);
            }
        }
    }

    pub(super) fn sample(&mut self) {
        let (now_ns, recorder) = (self.now_ns, &mut self.recorder);
        recorder.sample_queues(now_ns, self.ways[Side::Receiver as usize].sample(now_ns));
        recorder.sample_flows(now_ns, &self.conns.flows, &self.types[0].tcp);
        self.sample_cpus();
        self.look_at_processors();
    }

    /// The last samples, the flows' rows and the account of every byte.
    pub fn finish(mut self) -> Output {
        self.begin_rest();
        let now_ns = self.now_ns;
        for flow in self.conns.flows.iter_mut() {
            for end in &mut flow.ends {
                end.tcp.settle(now_ns);
            }
        }
        self.settle(now_ns);
        self.machines.next_rows_ns = 0;
        self.sample();
        let on_path = self.ways[Side::Receiver as usize].drain(now_ns);
        let mut under_way = vec![0u64; self.conns.flows.count()];
        let late = self.late[Side::Sender as usize].iter().flatten();
        let late = late.flat_map(|late| &late.waiting);
        for &(_, from, handle) in late {
            under_way[from.flow() as usize] += u64::from(self.conns.slab.get(handle).payload_bytes);
        }
        for (flow, handle, pkts) in on_path {
            let segment = self.conns.slab.take(handle, pkts);
            under_way[flow as usize] += u64::from(segment.payload_bytes);
        }
        for (to, payload_bytes) in self.drain_machines() {
            if to.side() == Side::Receiver {
                under_way[to.flow() as usize] += u64::from(payload_bytes);
            }
        }
        self.record_machines();
        for (number, on_way) in (0..).zip(under_way) {
            if self.conns.flows.has(number) {
                let flow = self.conns.flows.remove(number);
                let leaving = flow.ends[0].egress.iter();
                let leaving = leaving.map(|&(_, handle)| self.conns.slab.get(handle).payload_bytes);
                let leaving: u64 = leaving.map(u64::from).sum();
                self.record(number, &flow, on_way + leaving);
            }
        }
        let Rows {
            mut flows,
            samples,
            queue,
            events,
            cpu,
            host_costs,
        } = self.recorder.rows;
        // Those that were over came before.
        if !flows.flow.is_sorted() {
            let mut order: Vec<u32> = (0..flows.flow.len() as u32).collect();
            order.sort_unstable_by_key(|&row| flows.flow[row as usize]);
            flows.reorder(&order);
        }
        Output {
            flows,
            samples,
            queue,
            events,
            cpu,
            host_costs,
            ..self.recorder.output
        }
    }

    /// The row of a connection to which nothing happens any more, and where its bytes are.
    pub(super) fn record(&mut self, number: u32, flow: &Flow, under_way_bytes: u64) {
        let sender = &flow.ends[0].tcp;
        let receiver = &flow.ends[1].tcp.rx;
        let account = Account {
            sent_bytes: sender.counters.bytes_sent,
            arrived_bytes: receiver.bytes_arrived(),
            dropped_bytes: flow.dropped_bytes,
            duplicated_bytes: flow.duplicated_bytes,
            under_way_bytes,
            written_bytes: sender.written_bytes(),
            read_bytes: receiver.bytes_read(),
        };
        if let Some(place) = self.recorder.output.accounts.get_mut(number as usize) {
            *place = account;
        }
        let spec = &self.cell.flows[flow.group as usize];
        let (cell, rep, _) = self.recorder.at(self.now_ns);
        let id = RowId {
            cell,
            rep,
            flow: number as i32,
            name: &spec.name,
            algorithm: &spec.algorithm,
            workload: spec.workload.kind().name,
            least_completion: flow
                .transfer_bytes
                .and_then(|bytes| self.cell.least_completion(spec, bytes.get())),
            boot_ns: self.boot_ns,
        };
        self.recorder.rows.flows.push(flow.row(id, self.now_ns));
    }
}

/// Appends to the columns that are kept; the values of the others are not computed.
macro_rules! push_kept {
    ($samples:expr, $kept:expr, { $($column:ident: $value:expr,)* }) => {
        // None may be left out.
        let Samples { $($column: _,)* } = $samples;
        $(
            if $kept.has_at(const { position(stringify!($column), Samples::COLUMNS) }) {
                $samples.$column.push($value);
            }
        )*
    };
}

fn push_sample(
    samples: &mut Samples,
    kept: KeptSamples,
    flow: &Flow,
    conf: &HostConf,
    now_ns: u64,
    ((cell, rep, t_ns), number): ((i32, i32, i64), i32),
) {
    let tcp = &flow.ends[0].tcp;
    let (cc, counters, flight) = (&tcp.cc, &tcp.counters, tcp.board().flight());
    let info = tcp.cc_info(now_ns);
    let info = info.as_ref();
    let us = |limit: Limit| (tcp.time().limited_ns(limit, now_ns) / 1_000) as i64;
    push_kept!(samples, kept, {
        cell: cell,
        rep: rep,
        t_ns: t_ns,
        flow: number,
        ca_state: tcp.ca_state() as i32,
        snd_cwnd: i64::from(cc.snd_cwnd),
        snd_ssthresh: i64::from(cc.snd_ssthresh),
        inflight: i64::from(flight.packets_in_flight()),
        unacked: i64::from(flight.packets_out),
        sacked: i64::from(flight.sacked_out),
        lost: i64::from(flight.lost_out),
        retrans: i64::from(flight.retrans_out),
        total_retrans: counters.total_retrans as i64,
        data_segs_out: Some(counters.data_segs_out as i64),
        srtt_us: i64::from(tcp.srtt_us()),
        rttvar_us: i64::from(tcp.rttvar_us()),
        min_rtt_us: Some(match cc.min_rtt_us {
            u32::MAX => 0,
            us => us.into(),
        }),
        rto_us: tcp.rto_us(conf) as i64,
        backoff: tcp.backoff() as i32,
        // ~0 means no limit.
        pacing_rate_bits_per_sec: i64::try_from(cc.pacing_rate.saturating_mul(8)).ok(),
        delivery_rate_bits_per_sec: Some(tcp.delivery_rate_bits_per_sec() as i64),
        delivery_rate_app_limited: tcp.delivery_rate_app_limited(),
        delivered: Some(i64::from(tcp.board().delivered())),
        delivered_ce: Some(i64::from(tcp.delivered_ce())),
        bytes_sent: Some(counters.bytes_sent as i64),
        bytes_retrans: Some(counters.bytes_retrans as i64),
        bytes_acked: Some(counters.bytes_acked as i64),
        bytes_read: flow.ends[1].tcp.rx.bytes_read() as i64,
        notsent_bytes: Some(tcp.notsent_bytes() as i64),
        snd_wnd_bytes: Some(tcp.snd_wnd_bytes() as i64),
        sndbuf_bytes: Some(tcp.sndbuf_bytes() as i64),
        rcvbuf_bytes: Some(flow.ends[1].tcp.rx.rcvbuf_bytes() as i64),
        busy_us: Some((tcp.time().busy_ns(now_ns) / 1_000) as i64),
        rwnd_limited_us: Some(us(Limit::Rwnd)),
        sndbuf_limited_us: Some(us(Limit::Sndbuf)),
        reordering: tcp.board().reordering() as i32,
        reord_seen: Some(i64::from(tcp.board().reord_seen())),
        dsack_dups: Some(counters.dsack_dups as i64),
        bbr_bw_bits_per_sec: info
            .and_then(|info| info.bw_bytes_per_sec)
            .map(|bw| bw.saturating_mul(8) as i64),
        bbr_min_rtt_us: info.and_then(|info| info.min_rtt_us).map(i64::from),
        bbr_pacing_gain: info.map(|info| info.pacing_gain),
        bbr_cwnd_gain: info.map(|info| info.cwnd_gain),
        cc_phase: info.map_or("", |info| info.phase),
    });
}

//! Samples of a lab's sockets.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::Ordering;

use knee_clock::{monotonic_ns, thread_ns};
use knee_collect::KernelError;
use knee_collect::sock_diag::tcp_info::TcpInfo;
use knee_collect::sock_diag::{CONNECTED, Diag, Extensions, Family, Question, SockDiag};
use knee_link::SERVICE_PORT;
use knee_scenario::Cell;
use knee_tables::{Event, Histogram, Samples, TcpInfoSamples};

use crate::limits::Limits;
use crate::repetition::Id;
use crate::sample;
use crate::{Addresses, FIRST_PORT, Lab};
use knee_traffic::{Flow, Shared};

/// Both ends of a connection, the sender's first.
pub type Ends = [(IpAddr, u16); 2];

/// What is kept of a flow between samples.
#[derive(Clone, Debug, Default)]
pub struct Track {
    pub group: usize,
    /// A transfer, which counts from its opening.
    pub is_transfer: bool,
    /// The connection, when one of the user's programs opened it.
    pub external: Option<Ends>,
    /// The sender's `tcp_info` at the last sample.
    pub last: Vec<u8>,
    pub rcvbuf_bytes: Option<i64>,
    /// When it was first and last seen, since the start.
    pub first_ns: Option<u64>,
    pub last_ns: u64,
    /// Counters at the beginning of the steady part.
    pub baseline: Baseline,
    /// Over the ACKs that the samples that count stand for.
    pub srtt_us: Histogram,
    /// Over the samples that count.
    pub cwnd_sum: u64,
    pub inflight_sum: u64,
    pub samples: u64,
    pub limits: Limits,
    ca_state: u8,
}

/// Counters when the steady part began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Baseline {
    pub t_ns: u64,
    pub bytes_read: u64,
    pub bytes_sent: u64,
    pub busy_us: u64,
    pub rwnd_limited_us: u64,
    pub sndbuf_limited_us: u64,
}

/// Takes the samples.
pub struct Sampler {
    senders: SockDiag,
    receivers: SockDiag,
    pub book: Book,
    /// Samples left out because there was no time for them.
    pub missed: u64,
    /// Processor time that sampling took, and how often it was done.
    pub cost_ns: u64,
    pub count: u64,
    /// From the beginning of a sample to its end.
    pub span_us: Histogram,
    /// How late the samples were.
    pub late_us: Histogram,
    /// Had the sampler real-time priority?
    pub realtime: bool,
}

/// What samples leave.
pub struct Book {
    pub cell: Cell,
    pub rep: u32,
    pub flows: Vec<Flow>,
    pub shared: Shared,
    pub tracks: Vec<Track>,
    pub rows: Samples,
    pub more: TcpInfoSamples,
    /// Not yet in order of time.
    pub events: Vec<Event>,
    addresses: Vec<Addresses>,
    external: HashMap<Ends, usize>,
    measuring: bool,
}

impl Sampler {
    /// The caller may be in any namespace; it is in the receiver's afterwards.
    pub fn new(
        cell: &Cell,
        rep: u32,
        flows: &[Flow],
        lab: &Lab,
        shared: Shared,
    ) -> Result<Sampler, KernelError> {
        lab.sender.enter()?;
        let senders = SockDiag::new().map_err(KernelError::system("reach sock_diag"))?;
        lab.receiver.enter()?;
        let receivers = SockDiag::new().map_err(KernelError::system("reach sock_diag"))?;
        Ok(Sampler {
            senders,
            receivers,
            book: Book::new(cell, rep, flows, shared, lab.addresses.clone()),
            missed: 0,
            cost_ns: 0,
            span_us: Histogram::default(),
            count: 0,
            late_us: Histogram::default(),
            realtime: false,
        })
    }

    /// A row for each flow that moved; `t_ns` is when it was meant to be.
    pub fn sample(&mut self, t_ns: u64, start_ns: u64) -> Result<(), KernelError> {
        let (began_ns, used_ns) = (monotonic_ns(), thread_ns());
        self.late_us
            .add(began_ns.saturating_sub(start_ns + t_ns) / 1_000);
        self.count += 1;
        // What a program's listener of both families accepts is a socket of IPv6.
        const RECEIVERS: Question = Question::of(Family::Both, CONNECTED, Extensions::MEMORY);
        const SENDERS: Question = Question::of(Family::Both, CONNECTED, Extensions::ALL);
        self.receivers
            .dump(&RECEIVERS, |diag| {
                self.book.take_receiver(&diag);
            })
            .map_err(KernelError::system("ask for the receivers' sockets"))?;
        // The moment that the rows tell of.
        let t_ns = monotonic_ns() - start_ns;
        self.senders
            .dump(&SENDERS, |diag| {
                self.book.take_sender(t_ns, &diag);
            })
            .map_err(KernelError::system("ask for the senders' sockets"))?;
        self.cost_ns += thread_ns() - used_ns;
        self.span_us.add((monotonic_ns() - began_ns) / 1_000);
        Ok(())
    }

    /// The steady part begins with what the last sample saw.
    pub fn start_measuring(&mut self, t_ns: u64) {
        self.book.start_measuring(t_ns);
    }
}

impl Book {
    pub fn new(
        cell: &Cell,
        rep: u32,
        flows: &[Flow],
        shared: Shared,
        addresses: Vec<Addresses>,
    ) -> Book {
        let track = |flow: &Flow| Track {
            group: flow.group,
            is_transfer: cell.flows[flow.group].workload.is_transfer(),
            ..Track::default()
        };
        Book {
            cell: cell.clone(),
            rep,
            flows: flows.to_vec(),
            shared,
            tracks: flows.iter().map(track).collect(),
            rows: Samples::default(),
            more: TcpInfoSamples::default(),
            events: Vec::new(),
            addresses,
            external: HashMap::new(),
            measuring: false,
        }
    }

    /// The flow that a socket belongs to; a program's new one gets the next number.
    fn find(&mut self, ends: Ends) -> Option<usize> {
        let ends = ends.map(|(address, port)| (address.to_canonical(), port));
        let [(own, port), (_, far_port)] = ends;
        let ours = match (port, far_port) {
            (SERVICE_PORT, port) | (port, SERVICE_PORT) => port.checked_sub(FIRST_PORT),
            _ => None,
        };
        if let Some(number) = ours.filter(|&number| usize::from(number) < self.flows.len()) {
            return Some(usize::from(number));
        }
        if let Some(&index) = self.external.get(&ends) {
            return Some(index);
        }
        let group = self
            .addresses
            .iter()
            .position(|addresses| own == addresses.sender)?;
        let index = self.add_external(group, ends);
        self.external.insert(ends, index);
        Some(index)
    }

    /// A connection that a program opened gets the next number.
    pub fn add_external(&mut self, group: usize, ends: Ends) -> usize {
        self.tracks.push(Track {
            group,
            external: Some(ends),
            ..Track::default()
        });
        self.tracks.len() - 1
    }

    fn take_receiver(&mut self, diag: &Diag<'_>) {
        let ends = [diag.destination, diag.source];
        if let Some(index) = self.find(ends) {
            self.receiver_was(index, diag);
        }
    }

    /// What the flow's receiving socket was like.
    pub fn receiver_was(&mut self, index: usize, diag: &Diag<'_>) {
        if let Some(memory) = diag.memory {
            self.tracks[index].rcvbuf_bytes = Some(memory.rcvbuf.into());
        }
    }

    fn take_sender(&mut self, t_ns: u64, diag: &Diag<'_>) {
        if let Some(index) = self.find([diag.source, diag.destination]) {
            self.sender_was(index, t_ns, diag);
        }
    }

    /// What the flow's sending socket was like.
    pub fn sender_was(&mut self, index: usize, t_ns: u64, diag: &Diag<'_>) {
        let Some(info) = diag.info else {
            return;
        };
        let bytes_read = self.bytes_read(index, &info);
        let track = &mut self.tracks[index];
        let measuring = self.measuring || track.is_transfer;
        if track.first_ns.is_none() {
            track.first_ns = Some(t_ns);
            if measuring {
                track.baseline.t_ns = t_ns;
            }
        }
        track.last_ns = t_ns;
        if measuring {
            if let Some(srtt_us) = info.srtt_us().filter(|&us| us > 0) {
                // As in the simulator it is of ACKs, and not of time: those since the last sample stand for as many.
                let then = TcpInfo(&track.last).segs_in().unwrap_or(0);
                let acks = info.segs_in().map_or(1, |now| now.saturating_sub(then));
                track.srtt_us.add_times(u64::from(srtt_us), acks);
            }
            track.cwnd_sum += u64::from(info.snd_cwnd().unwrap_or(0));
            track.inflight_sum += u64::from(info.inflight());
            track.samples += 1;
            track.limits.add(diag, &info);
        }
        let at_rest = !track.last.is_empty() && info.is_at_rest_since(&TcpInfo(&track.last));
        track.last.clear();
        track.last.extend_from_slice(info.0);
        if at_rest {
            return;
        }
        let (was, is) = (track.ca_state, info.ca_state().unwrap_or(0));
        track.ca_state = is;
        let id = Id {
            cell: self.cell.index as i32,
            rep: self.rep as i32,
            t_ns: t_ns as i64,
            flow: index as i32,
        };
        if let Some(event) = knee_collect::turning_point(was, is) {
            self.events.push(sample::event(id, event, &info));
        }
        let (row, more) = sample::sample(id, diag, &info, bytes_read, track.rcvbuf_bytes);
        self.rows.push(row);
        self.more.push(more);
    }

    /// What the far application has read: our own applications tell; of a
    /// program's, what its host has acknowledged.
    pub fn bytes_read(&self, index: usize, info: &TcpInfo<'_>) -> u64 {
        match self.flows.get(index) {
            Some(flow) => {
                let progress = self.shared.get(flow.number);
                progress.bytes_read.load(Ordering::Relaxed)
            }
            None => info.bytes_acked().unwrap_or(0),
        }
    }

    /// The steady part begins with what the last samples saw.
    pub fn start_measuring(&mut self, t_ns: u64) {
        self.measuring = true;
        for index in 0..self.tracks.len() {
            let last = std::mem::take(&mut self.tracks[index].last);
            let info = TcpInfo(&last);
            let baseline = Baseline {
                t_ns,
                bytes_read: self.bytes_read(index, &info),
                bytes_sent: info.bytes_sent().unwrap_or(0),
                busy_us: info.busy_us().unwrap_or(0),
                rwnd_limited_us: info.rwnd_limited_us().unwrap_or(0),
                sndbuf_limited_us: info.sndbuf_limited_us().unwrap_or(0),
            };
            let track = &mut self.tracks[index];
            track.baseline = baseline;
            track.last = last;
        }
    }
}

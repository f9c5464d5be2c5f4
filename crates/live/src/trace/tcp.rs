//! Connections, segment by segment.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;

use knee_clock as clock;
use knee_collect::KernelError;
use knee_loader::programs;
use knee_tables::{Acks, Connection, Connections, Table, TraceEvents};
use libbpf_rs::RingBufferBuilder;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::attached::{Attached, Wanted, unreadable};
use super::cost::Cost;
use super::filter::TcpFilter;
use super::record::{Record, SEGMENT};

/// The program wakes its reader only when much waits; else it looks this often.
const LOOK_MS: u8 = 50;
/// Records of one batch at most, which bounds the memory.
const BATCH: usize = 1 << 15;

/// What came since the last batch.
#[derive(Default)]
pub struct Batch {
    pub acks: Acks,
    pub events: TraceEvents,
    /// Those that were closed; in the last batch, all that are left.
    pub connections: Connections,
    /// Records that found no room so far, in all.
    pub lost: u64,
}

/// What a trace came to.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Records that found no room.
    pub lost: u64,
    /// Times that a segment found more acknowledged than the one before it had
    /// left: the kernel did not run the program in between.
    pub gaps: u64,
    pub cost: Cost,
}

/// Traces what `filter` lets through and hands it to `take` about twenty times
/// a second, at first an empty batch as soon as all is attached, until it says
/// false. The last batch comes after that, and what it says does not count.
///
/// # Errors
/// Why the kernel or the caller's rights do not allow it.
pub fn trace(
    filter: &TcpFilter,
    mut take: impl FnMut(Batch) -> bool,
) -> Result<Ended, KernelError> {
    let mut attached = Attached::attach(&Wanted {
        name: "trace_tcp",
        bytes: programs::TRACE_TCP,
        filter: &filter.to_bytes(),
        tracepoints: &["tcp_probe", "inet_sock_set_state", "tcp_retransmit_skb"],
        left_out: &[],
        since: "5.12",
    })?;
    let gathered = RefCell::new(Gathered::new(clock::monotonic_ns()));
    let records = attached.map("records");
    let mut builder = RingBufferBuilder::new();
    builder
        .add(&records, |bytes| {
            let record = Record::from_bytes(bytes).expect("a record of bpf/trace_tcp.bpf.c");
            gathered.borrow_mut().add(&record);
            0
        })
        .map_err(unreadable)?;
    let ring = builder.build().map_err(unreadable)?;
    // SAFETY: the ring's descriptor is open while it lives, which is longer.
    let readable = unsafe { BorrowedFd::borrow_raw(ring.epoll_fd()) };

    let mut goes_on = take(Batch::default());
    while goes_on {
        let mut fds = [PollFd::new(readable, PollFlags::POLLIN)];
        // A signal is a reason to look as well.
        let _ = poll(&mut fds, PollTimeout::from(LOOK_MS));
        consume(&ring)?;
        let mut batch = gathered.borrow_mut().batch();
        batch.lost = attached.lost()?;
        goes_on = take(batch);
    }
    attached.detach();
    while consume(&ring)? == BATCH {
        take(gathered.borrow_mut().batch());
    }
    let mut rest = gathered.borrow_mut().batch();
    gathered.borrow_mut().leave(&mut rest.connections);
    let cost = attached.cost();
    rest.lost = attached.lost()?;
    let lost = rest.lost;
    take(rest);
    let gaps = gathered.borrow().gaps;
    Ok(Ended { lost, gaps, cost })
}

/// Takes what waits, a batch at most; how many.
fn consume(ring: &libbpf_rs::RingBuffer<'_>) -> Result<usize, KernelError> {
    let taken = ring.consume_raw_n(BATCH);
    usize::try_from(taken).map_err(|_| {
        let error = std::io::Error::from_raw_os_error(-taken);
        KernelError::system("cannot read what the trace's programs wrote")(error)
    })
}

/// Rows since the last batch, and the connections that are open.
struct Gathered {
    begin_ns: u64,
    batch: Batch,
    open: BTreeMap<u64, Connection>,
    /// What the last segment of each left acknowledged.
    acknowledged: BTreeMap<u64, u32>,
    gaps: u64,
}

impl Gathered {
    fn new(begin_ns: u64) -> Self {
        Gathered {
            begin_ns,
            batch: Batch::default(),
            open: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            gaps: 0,
        }
    }

    fn add(&mut self, record: &Record) {
        if record.is_of_listener() {
            return;
        }
        let mut connection = self.open.remove(&record.cookie).unwrap_or_else(|| {
            let t_ns = record.t_ns.saturating_sub(self.begin_ns).cast_signed();
            Connection {
                cookie: record.cookie.cast_signed(),
                netns: record.netns.into(),
                source: String::new(),
                source_port: 0,
                destination: String::new(),
                destination_port: 0,
                algorithm: String::new(),
                first_ns: t_ns,
                last_ns: t_ns,
                acks: 0,
                events: 0,
                closed: false,
            }
        });
        let ports = (record.local_port.into(), record.remote_port.into());
        // A connection that opens has not all of them yet.
        if (connection.source_port, connection.destination_port) != ports && !record.closes() {
            connection.source = record.source();
            connection.destination = record.destination();
            (connection.source_port, connection.destination_port) = ports;
        }
        let name = record.algorithm.split(|byte| *byte == 0).next();
        let name = String::from_utf8_lossy(name.unwrap_or_default());
        if connection.algorithm != name {
            connection.algorithm = name.into_owned();
        }
        if record.kind == SEGMENT {
            let row = record.ack(self.begin_ns);
            connection.last_ns = row.t_ns;
            connection.acks += 1;
            self.batch.acks.push(row);
            let (before, after) = record.acknowledged();
            let last = self.acknowledged.insert(record.cookie, after);
            self.gaps += u64::from(last.is_some_and(|last| last != before));
        } else if let Some(row) = record.event(self.begin_ns) {
            connection.last_ns = row.t_ns;
            connection.events += 1;
            self.batch.events.push(row);
        }
        if record.closes() {
            connection.closed = true;
            self.acknowledged.remove(&record.cookie);
            self.batch.connections.push(connection);
        } else {
            self.open.insert(record.cookie, connection);
        }
    }

    fn batch(&mut self) -> Batch {
        std::mem::take(&mut self.batch)
    }

    /// The connections that are open still.
    fn leave(&mut self, to: &mut Connections) {
        for connection in std::mem::take(&mut self.open).into_values() {
            to.push(connection);
        }
    }
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.acks.rows() == 0 && self.events.rows() == 0 && self.connections.rows() == 0
    }
}

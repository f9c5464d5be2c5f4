//! A repetition between two hosts of the user's: what their helpers said, as the rows of a run.

use std::sync::atomic::Ordering;

use knee_collect::KernelError;
use knee_collect::sock_diag::{Diag, MESSAGE_BYTES};
use knee_scenario::{Cell, Pacing};
use knee_traffic::{EndReport, Shared};
use serde::Deserialize;

use crate::repetition::Output;
use crate::rows::{self, Reports};
use crate::sampler::Book;

/// In the place of a flow's number: the samples of the warm-up end here.
const WARM: u32 = u32::MAX;
/// Length of a record before its attributes.
const HEAD_BYTES: usize = 24;
/// Both hosts sample at the same instants, as far as their clocks are known.
const SAME_NS: u64 = 2_000_000;
/// A run begins here, so that no time of it is 0, which means: not yet.
const BEGAN_NS: u64 = 1_000_000_000;

/// What a helper says at the end, and its samples.
#[derive(Debug, Deserialize)]
pub struct End {
    ended_ns: u64,
    /// By flow number: bytes read, and when it was opened, established, complete and closed, since the start.
    progress: Vec<(u64, [Option<u64>; 4])>,
    reports: Vec<EndReport>,
    #[serde(skip)]
    pub records: Vec<u8>,
}

/// Refuses what cannot be asked of hosts that are not ours to set.
///
/// # Errors
/// The key, and what to do.
pub fn check(cell: &Cell) -> Result<(), KernelError> {
    let refuse = |what: String, hint: &str| {
        Err(KernelError::Unsupported {
            what,
            lacks: "is that of two hosts of yours, which this engine leaves as they are".into(),
            hint: hint.into(),
        })
    };
    let simulate = "Leave it out, set it on the hosts, or take the engine sim or kernel.";
    for (group, flow) in cell.flows.iter().enumerate() {
        if flow.blocking {
            return refuse(format!("flow.{group}.blocking = true"), simulate);
        }
        if flow.workload.commands().is_some() {
            return refuse(format!("flow.{group}.workload = \"programs\""), simulate);
        }
        if !flow.params.is_empty() {
            return refuse(
                format!("parameters of flow.{group}.algorithm"),
                "Leave them out: the hosts run their own kernels' algorithms.",
            );
        }
        if flow.pacing == Some(Pacing::Fq) {
            return refuse(
                format!("flow.{group}.pacing = \"fq\""),
                "Leave it out: the qdisc is the host's. pacing = \"timer\" is a socket's own.",
            );
        }
    }
    Ok(())
}

/// The rows of a repetition.
pub fn output(cell: &Cell, rep: u32, sender: &End, receiver: &End) -> Result<Output, KernelError> {
    let flows = knee_traffic::flows(cell, rep);
    let shared = Shared::new(flows.len())
        .map_err(KernelError::system("make room for a repetition's flows"))?;
    let mut book = Book::new(cell, rep, &flows, shared, Vec::new());
    let mut far = records(&receiver.records).peekable();
    let mut body = vec![0; MESSAGE_BYTES];
    for record in records(&sender.records) {
        while let Some(there) = far.next_if(|there| there.t_ns <= record.t_ns + SAME_NS) {
            if let Some(index) = there.index(flows.len()) {
                let read = &shared.get(there.number).bytes_read;
                read.fetch_max(there.read_bytes, Ordering::Relaxed);
                there.decoded(&mut body, |diag| book.receiver_was(index, diag));
            }
        }
        match record.index(flows.len()) {
            Some(index) => record.decoded(&mut body, |diag| {
                book.sender_was(index, record.t_ns, diag);
            }),
            None if record.number == WARM => book.start_measuring(record.t_ns),
            None => {}
        }
    }
    for flow in &flows {
        let told = |end: &End| end.progress.get(flow.number as usize).copied();
        let (_, of_sender) = told(sender).unwrap_or_default();
        let (read_bytes, of_receiver) = told(receiver).unwrap_or_default();
        let opener = match flow.receiver_opens {
            true => of_receiver,
            false => of_sender,
        };
        let progress = shared.get(flow.number);
        let last = [
            (&progress.opened_ns, opener[0]),
            (&progress.established_ns, opener[1]),
            (&progress.completed_ns, of_receiver[2]),
            (&progress.closed_ns, of_sender[3]),
        ];
        for (slot, at_ns) in last {
            slot.store(at_ns.map_or(0, |ns| BEGAN_NS + ns), Ordering::Relaxed);
        }
        // What was read by the last sample; of a transfer that is over, all.
        let all_read = of_receiver[2].is_some();
        let read = &progress.bytes_read;
        read.fetch_max(if all_read { read_bytes } else { 0 }, Ordering::Relaxed);
    }
    let reports = Reports {
        link: None,
        sender: &sender.reports,
        receiver: &receiver.reports,
        start_ns: BEGAN_NS,
        ended_ns: sender.ended_ns,
    };
    let mut output = Output::default();
    rows::fill(book, reports, &mut output);
    Ok(output)
}

/// One sample of a socket.
struct Record<'a> {
    t_ns: u64,
    number: u32,
    read_bytes: u64,
    attributes: &'a [u8],
}

impl Record<'_> {
    fn index(&self, flows: usize) -> Option<usize> {
        Some(self.number as usize).filter(|&index| index < flows)
    }

    /// As an answer of sock_diag is decoded. `body` is a message's head without addresses, and room.
    fn decoded(&self, body: &mut Vec<u8>, take: impl FnOnce(&Diag<'_>)) {
        body.truncate(MESSAGE_BYTES);
        body.extend_from_slice(self.attributes);
        if let Some(diag) = Diag::decode(body) {
            take(&diag);
        }
    }
}

/// As `crates/remote/src/sampler.rs` writes them; one that is cut off ends them.
fn records(mut bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let number = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().expect("four"));
        let long = |at: usize| u64::from_ne_bytes(head[at..at + 8].try_into().expect("eight"));
        let length = (number(12) as usize).checked_sub(8)?;
        let (attributes, further) = rest.split_at_checked(length)?;
        bytes = further;
        Some(Record {
            t_ns: long(0),
            number: number(8),
            read_bytes: long(16),
            attributes,
        })
    })
}

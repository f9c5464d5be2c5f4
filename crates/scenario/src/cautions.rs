//! What an author should know of a cell before its figures are trusted.

use knee_path::Path;
use knee_path::queue;
use knee_path::queue::BufferLimit;
use knee_units::params::Params;
use knee_units::{Nanos, Rate};

use crate::cell::{Cell, FlowSpec};
use crate::rules::{self, Subject};

/// A sentence each, without the cell's number; empty for nearly every cell.
pub fn cautions(cell: &Cell) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for hop in cell.hops() {
        let (data, ack) = (&hop.queue_params, &hop.ack.queue_params);
        let ends = [
            (hop.queue, data, hop.rate),
            (hop.ack.queue, ack, hop.ack.rate),
        ];
        let of_queues = ends.into_iter().filter_map(|end| of_queue(hop, end));
        for text in of_queues.chain(of_no_rate(hop)) {
            if !found.contains(&text) {
                found.push(text);
            }
        }
    }
    found.extend(of_times(cell));
    found.extend(of_release(cell));
    found
}

/// Flows that begin after the warm-up count from their own beginning. Of transfers, which count as a whole, that is their
/// meaning.
fn of_times(cell: &Cell) -> Option<String> {
    let endless = cell
        .flows
        .iter()
        .filter(|flow| !flow.workload.is_transfer());
    let begins = endless.flat_map(|flow| {
        let last = flow.start.0 + flow.stagger.0 * u64::from(flow.count - 1);
        [flow.start.0, last].map(|start| cell.warmup.0.max(start))
    });
    let (first, last) = (begins.clone().min()?, begins.max()?);
    let limit = cell.duration.0;
    (first < last && last < limit).then(|| {
        let [first, last] = [first, last].map(Nanos);
        format!(
            "goodput of some flows counts from {first} on, of others from up to {last}: Jain's index and verdicts mix these times. With warmup = \"{last}\" all count from there"
        )
    })
}

/// Algorithms that the release did not have.
fn of_release(cell: &Cell) -> Option<String> {
    let release = cell.kernel.as_ref()?.release;
    let rule = rules::RULES
        .iter()
        .find(|rule| rule.subject == Subject::NotModelled(BBR))?;
    let [_, first] = rule.changes else {
        return None;
    };
    let is_bbr = |flow: &FlowSpec| flow.algorithm == "bbr1";
    (release < first.since && cell.flows.iter().any(is_bbr)).then(|| {
        format!(
            "Linux has bbr1 from {} on: with kernel = \"{release}\" it is that of later releases on the rules of this one, which does not pace",
            first.since
        )
    })
}

/// The rule that says which release has it.
const BBR: &str = "BBR version 1";

/// The lateness of hosts that shows whether the shares of a cell's flows depend on their phase: half a packet's time at
/// the bottleneck, in the mean. `None` where they cannot: unless several flows write without end behind drop-tail, and
/// nothing on their way or at their hosts is random, not even the moment at which a host sends.
///
/// Source: Floyd, Jacobson: On Traffic Phase Effects in Packet-Switched Gateways, Internetworking 3(3) 1992, section 3:
/// a random delay of up to the bottleneck's service time of a packet takes the effect away.
pub fn phase_noise(cell: &Cell) -> Option<Nanos> {
    let flows: u64 = cell.flows.iter().map(|flow| u64::from(flow.count)).sum();
    let may_lock =
        flows > 1 && cell.flows.iter().all(|flow| flow.workload.is_endless()) && !is_random(cell);
    let drops_tail = |hop: &&Path| hop.queue == "fifo" && hop.buffer != BufferLimit::Unlimited;
    let packet_times = cell.hops().filter(drops_tail).filter_map(|hop| {
        let bytes = u64::from(hop.mtu_bytes + hop.overhead_bytes);
        Some(hop.rate?.transmit_time(bytes))
    });
    packet_times
        .max()
        .filter(|_| may_lock)
        .map(|time| Nanos(time.0 / 2))
}

/// Is anything random on the way of a cell's flows or at their hosts, or are the flows themselves drawn? What
/// algorithms and queues draw does not count.
pub fn is_random(cell: &Cell) -> bool {
    let is_even = |hop: &Path| {
        hop.rate_trace.is_none()
            && hop.loss.share == 0.0
            && hop.ack_loss.share == 0.0
            && !hop.impairments.are_random()
    };
    let hosts = [&cell.sender, &cell.receiver];
    !cell.hops().all(is_even)
        || hosts.iter().any(|host| host.noise > Nanos::ZERO)
        || cell.flows.iter().any(|flow| flow.workload.kind().draws)
}

/// The file sets a queue, and the path has none.
fn of_no_rate(hop: &Path) -> Option<String> {
    let is_told = hop.queue != "fifo" || hop.buffer != BufferLimit::Unlimited;
    (hop.rate.is_none() && is_told).then(|| {
        "at a rate that is unlimited no packet waits: buffer, queue and its parameters have no effect".into()
    })
}

/// A queue's own caution, at the rate of the link behind it.
fn of_queue(hop: &Path, (name, params, rate): (&str, &Params, Option<Rate>)) -> Option<String> {
    let caution = queue::find(name)?.caution?;
    caution(params, rate?, hop.mtu_bytes + hop.overhead_bytes)
}

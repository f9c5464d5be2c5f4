//! What an author should know of a cell before its figures are trusted.

use super::{Cell, Path};
use crate::params::Params;
use crate::queue;
use crate::units::Rate;

/// A sentence each, without the cell's number; empty for nearly every cell.
pub fn cautions(cell: &Cell) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for hop in cell.hops() {
        let (data, ack) = (&hop.queue_params, &hop.ack.queue_params);
        let ends = [
            (hop.queue, data, hop.rate),
            (hop.ack.queue, ack, hop.ack.rate),
        ];
        for text in ends.into_iter().filter_map(|end| of_queue(hop, end)) {
            if !found.contains(&text) {
                found.push(text);
            }
        }
    }
    found
}

/// A queue's own caution, at the rate of the link behind it.
fn of_queue(hop: &Path, (name, params, rate): (&str, &Params, Option<Rate>)) -> Option<String> {
    let caution = queue::find(name)?.caution?;
    caution(params, rate?, hop.mtu_bytes + hop.overhead_bytes)
}

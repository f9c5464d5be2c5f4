//! What an author should know of a cell before it is simulated, where that takes the algorithms themselves.

use knee_cc::EcnMode;
use knee_scenario::Cell;
use knee_tcp::agreed_ecn;

use crate::world::algorithm_of;

/// A sentence each; those of the scenario alone are [`knee_scenario::cautions`].
pub fn cautions(cell: &Cell) -> Vec<String> {
    let mut found: Vec<String> = knee_scenario::cautions(cell);
    for text in (0..cell.flows.len()).filter_map(|group| without_ecn(cell, group)) {
        if !found.contains(&text) {
            found.push(text);
        }
    }
    found
}

/// An algorithm that goes by marks, between ends that do not agree on ECN.
fn without_ecn(cell: &Cell, group: usize) -> Option<String> {
    let flow = &cell.flows[group];
    let of_sender = algorithm_of(cell, &flow.algorithm).filter(|one| one.needs_ecn())?;
    let of_receiver = algorithm_of(cell, &cell.receiver.algorithm)?;
    let ends = [
        (of_sender, cell.sender.tcp_ecn),
        (of_receiver, cell.receiver.tcp_ecn),
    ];
    let receiver_opens = (flow.workload.apps(0)).is_some_and(|apps| apps.receiver_opens);
    let [first, second] = match receiver_opens {
        true => [ends[1], ends[0]],
        false => ends,
    };
    let agreed = agreed_ecn([first.0, second.0], [first.1, second.1]);
    let name = &flow.algorithm;
    (agreed == EcnMode::None).then(|| {
        format!(
            "{name} goes by ECN, on which the ends of this scenario do not agree: no packet of it is marked. With receiver.algorithm = \"{name}\", or tcp_ecn = 3 at both ends, they do"
        )
    })
}

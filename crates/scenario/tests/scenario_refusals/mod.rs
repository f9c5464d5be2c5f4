//! Every check of the scenario parser, by a file that it refuses.
//!
//! Each row edits one passage of the least good file (`common::GOOD`) and
//! states the whole error.

mod contradictions;
mod direct;
mod files;
mod matrix;
mod mistakes;
mod names;
mod published;
mod values;
mod withheld;

use crate::common::{edited, read};
use knee_scenario::keys;
use knee_scenario::workload::WORKLOADS;

/// (passage of `GOOD`, what replaces it, the error). `{keys of path}` stands for all keys of that table, as
/// docs/scenario.md lists them, `{workloads}` for the names of all.
type Row = (&'static str, &'static str, &'static str);

fn refused(rows: &[Row]) {
    let all = keys();
    let of = |table: &str| {
        let prefix = format!("{table}.");
        let names = all.iter().filter_map(|key| key.path.strip_prefix(&prefix));
        names.collect::<Vec<_>>().join(", ")
    };
    for (from, to, error) in rows {
        let error = ["path", "sender", "flow"]
            .iter()
            .fold(error.to_string(), |error, table| {
                error.replace(&format!("{{keys of {table}}}"), &of(table))
            });
        let workloads: Vec<&str> = WORKLOADS.iter().map(|kind| kind.name).collect();
        let error = error.replace("{workloads}", &workloads.join(", "));
        match read(&edited(from, to)) {
            Ok(_) => panic!("{to:?} was accepted; expected: {error}"),
            Err(got) => assert_eq!(got.to_string(), error, "with {to:?}"),
        }
    }
}

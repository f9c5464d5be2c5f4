//! A scenario's first cell, simulated up to a time; prints how many data packets that took.
//!
//! It does nothing else, so it is what a profiler and a counter of instructions look at:
//! `packets crates/sim/benches/cells/one-flow.toml 2`, with seconds of simulated time.

use std::env;
use std::fs;

use knee_engine::{BATCH_ROWS, Options, Run, parse};
use knee_units::Nanos;

fn main() -> Result<(), String> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [file, seconds] = arguments.as_slice() else {
        return Err("expected a scenario file and seconds of simulated time".to_owned());
    };
    let seconds: u64 = seconds
        .parse()
        .map_err(|_| format!("seconds: got \"{seconds}\"; expected a whole number"))?;
    let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let scenario = parse(&text, file, None).map_err(|errors| errors.to_string())?;
    let mut cell = scenario
        .cell(0)
        .ok_or_else(|| format!("{file}: has no cell"))?;
    cell.duration = cell.duration.min(Nanos::from_secs(seconds));
    let run = Run::new(cell, 0, &Options::default()).map_err(|error| format!("{file}: {error}"))?;
    // Rows are taken as the native module takes them, which writes them.
    let output = run.to_end(&mut |_, rows| {
        if rows.count() >= BATCH_ROWS {
            rows.clear();
        }
        true
    });
    println!("{}", output.data_packets);
    Ok(())
}

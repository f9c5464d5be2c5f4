//! One cell in a page: text goes in and tables come out, through the memory that a module of WebAssembly shares with it.
//!
//! Build: `cargo build --release --target wasm32-unknown-unknown -p knee-run --example cell`, with clang as the C compiler.

use knee_run::{Options, Run, csv, parse};
use knee_units::Nanos;

/// How long a step is: what a page shows at once.
const STEP: Nanos = Nanos::from_ms(100);

/// Memory for a text of so many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn room(bytes: usize) -> *mut u8 {
    Box::leak(vec![0u8; bytes].into_boxed_slice()).as_mut_ptr()
}

/// Runs repetition 0 of a cell of the scenario in `room`; returns its tables as CSV, or what is wrong. The answer's
/// first four bytes are its length.
///
/// # Safety
/// `text` is what `room` gave for `bytes`, and is given away.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn run(text: *mut u8, bytes: usize, index: usize) -> *const u8 {
    // SAFETY: as the caller promises.
    let text = unsafe { Vec::from_raw_parts(text, bytes, bytes) };
    let answer = tables(&String::from_utf8_lossy(&text), index);
    let length = u32::try_from(answer.len()).expect("a table fits into memory");
    let framed = [&length.to_le_bytes(), answer.as_bytes()].concat();
    Box::leak(framed.into_boxed_slice()).as_ptr()
}

fn tables(text: &str, index: usize) -> String {
    let scenario = match parse(text, "page", None) {
        Ok(scenario) => scenario,
        Err(errors) => return errors.to_string(),
    };
    let Some(cell) = scenario.cell(index) else {
        return format!("got cell {index}; there are {}", scenario.n_cells());
    };
    let mut run = match Run::new(cell, 0, &Options::default()) {
        Ok(run) => run,
        Err(error) => return error.to_string(),
    };
    while run.step(run.now() + STEP) {}
    let output = run.finish();
    let tables = [
        csv(&output.flows),
        csv(&output.samples),
        csv(&output.queue),
        csv(&output.events),
    ];
    tables.join("\n")
}

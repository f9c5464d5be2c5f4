//! One cell in a page: text goes in and tables come out, through the memory that a module of WebAssembly shares with it.
//!
//! Build: `CC_wasm32_unknown_unknown=clang-16 cargo build --release --target wasm32-unknown-unknown -p knee-engine --example cell`
//!
//! A host asks for `room`, writes a scenario into it, calls `run`, reads the answer and gives it to `release`, as
//! tests/native/cell.mjs does. The module imports nothing from its host.

use knee_engine::{Options, Run, csv, parse};
use knee_units::Nanos;

/// How long a step is: what a page shows at once.
const STEP: Nanos = Nanos::from_ms(100);

/// An answer begins with two little-endian u32: the length of the text behind them, and 1 if that text is an error.
const HEAD_BYTES: usize = 8;

/// Memory for a text of so many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn room(bytes: usize) -> *mut u8 {
    leak(vec![0; bytes])
}

/// Runs repetition 0 of a cell of the scenario in `room`. The answer's text is its tables `flows`, `samples`, `queue`
/// and `events` as CSV with an empty line between them, or what is wrong.
///
/// # Safety
/// `text` is what `room` returned for `bytes`; from now on it belongs to this module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn run(text: *mut u8, bytes: usize, index: usize) -> *mut u8 {
    // SAFETY: as the caller promises.
    let text = unsafe { taken(text, bytes) };
    let (refused, answer) = match tables(&String::from_utf8_lossy(&text), index) {
        Ok(tables) => (0u32, tables),
        Err(error) => (1, error),
    };
    let length = u32::try_from(answer.len()).expect("a table fits into memory");
    let head = [length.to_le_bytes(), refused.to_le_bytes()].concat();
    leak([&head, answer.as_bytes()].concat())
}

/// Frees an answer.
///
/// # Safety
/// `answer` is what `run` returned, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn release(answer: *mut u8) {
    // SAFETY: as the caller promises, it begins with its head, which has the length.
    unsafe {
        let length = u32::from_le_bytes(answer.cast::<[u8; 4]>().read());
        drop(taken(answer, HEAD_BYTES + length as usize));
    }
}

fn leak(bytes: Vec<u8>) -> *mut u8 {
    Box::leak(bytes.into_boxed_slice()).as_mut_ptr()
}

/// # Safety
/// `start` is what `leak` returned for so many bytes.
unsafe fn taken(start: *mut u8, bytes: usize) -> Box<[u8]> {
    // SAFETY: as the caller promises.
    unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(start, bytes)) }
}

fn tables(text: &str, index: usize) -> Result<String, String> {
    let scenario = parse(text, "page", None).map_err(|errors| errors.to_string())?;
    let cell = scenario
        .cell(index)
        .ok_or_else(|| format!("got cell {index}; there are {}", scenario.n_cells()))?;
    let mut run = Run::new(cell, 0, &Options::default()).map_err(|error| error.to_string())?;
    while run.step(run.now() + STEP) {}
    let output = run.finish();
    let tables = [
        csv(&output.flows),
        csv(&output.samples),
        csv(&output.queue),
        csv(&output.events),
    ];
    Ok(tables.join("\n"))
}

//! One cell in a page, step by step: text goes in and tables come out, through the memory that a module of WebAssembly
//! shares with its host.
//!
//! `make play` builds it, and site/play/engine.mjs calls it. The module imports nothing from its host.
//!
//! A host asks for `room` and writes a scenario into it, which `open` takes. Each `step` answers with the rows of that step;
//! those of all steps and of `finish` behind one another are the tables of the run. Every answer goes back by `release`.

use std::cell::RefCell;

use knee_engine::{Answer, Decisions, Options, Rows, Run, Steered, csv, parse};
use knee_units::Nanos;

/// An answer begins with two little-endian u32: the length of the text behind them, and what that text is.
const HEAD_BYTES: usize = 8;

/// The run is not over.
const GOES_ON: u32 = 0;
/// The run is over, or nothing was run.
const OVER: u32 = 1;
/// The text says what is wrong.
const REFUSED: u32 = 2;

/// How often somebody in the place of an algorithm decides.
const DECIDES: Nanos = Nanos::from_ms(10);

thread_local! {
    static OPEN: RefCell<Option<Open>> = const { RefCell::new(None) };
}

/// The run under way.
struct Open {
    run: Run,
    /// The window of whoever decides in the place of an algorithm, segments.
    steered: Option<u32>,
}

/// Memory for a text of so many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn room(bytes: usize) -> *mut u8 {
    leak(vec![0; bytes])
}

/// Begins repetition 0 of a cell of the scenario in `room`, in the place of the run before. Of the flow `steered`, if there
/// is one, the window is what `steer` says. The answer is empty, or says what is wrong.
///
/// # Safety
/// `text` is what `room` returned for `bytes`; from now on it belongs to this module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(text: *mut u8, bytes: usize, index: usize, steered: i32) -> *mut u8 {
    // SAFETY: as the caller promises.
    let text = unsafe { taken(text, bytes) };
    let opened = begin(
        &String::from_utf8_lossy(&text),
        index,
        usize::try_from(steered).ok(),
    );
    let (what, error, open) = match opened {
        Ok(open) => (GOES_ON, String::new(), Some(open)),
        Err(error) => (REFUSED, error, None),
    };
    OPEN.set(open);
    answer(what, &error)
}

/// The window of the steered flow from now on, segments.
#[unsafe(no_mangle)]
pub extern "C" fn steer(snd_cwnd: u32) {
    OPEN.with_borrow_mut(|open| {
        if let Some(steered) = open.as_mut().and_then(|open| open.steered.as_mut()) {
            *steered = snd_cwnd;
        }
    });
}

/// Runs on to `until_ns` after the start. The answer has the rows of this step: `flows`, `samples`, `queue` and `events` as
/// CSV, with an empty line between them. Flows come at the end, in their order.
#[unsafe(no_mangle)]
pub extern "C" fn step(until_ns: f64) -> *mut u8 {
    OPEN.with_borrow_mut(|open| {
        let Some(open) = open else {
            return answer(OVER, "");
        };
        let goes_on = open.step(Nanos(until_ns as u64));
        let rows = open.run.rows();
        let flows = std::mem::take(&mut rows.flows);
        let text = tables(rows);
        rows.clear();
        rows.flows = flows;
        answer(if goes_on { GOES_ON } else { OVER }, &text)
    })
}

/// Ends the run where it is. The answer has the rows that were left, as those of `step`.
#[unsafe(no_mangle)]
pub extern "C" fn finish() -> *mut u8 {
    let text = OPEN.take().map_or_else(String::new, |open| {
        let output = open.run.finish();
        tables(&Rows {
            flows: output.flows,
            samples: output.samples,
            queue: output.queue,
            events: output.events,
            ..Rows::default()
        })
    });
    answer(OVER, &text)
}

/// Frees an answer.
///
/// # Safety
/// `answer` is what a function above returned, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn release(answer: *mut u8) {
    // SAFETY: as the caller promises, it begins with its head, which has the length.
    unsafe {
        let length = u32::from_le_bytes(answer.cast::<[u8; 4]>().read());
        drop(taken(answer, HEAD_BYTES + length as usize));
    }
}

fn begin(text: &str, index: usize, steered: Option<usize>) -> Result<Open, String> {
    let scenario = parse(text, "page", None).map_err(|errors| errors.to_string())?;
    let cell = scenario
        .cell(index)
        .ok_or_else(|| format!("got cell {index}; there are {}", scenario.n_cells()))?;
    let first = cell.sender.initcwnd;
    let options = Options {
        agent: steered.map(|group| Steered {
            group,
            decisions: Decisions::Every(DECIDES),
        }),
        ..Options::default()
    };
    let run = Run::new(cell, 0, &options).map_err(|error| error.to_string())?;
    Ok(Open {
        run,
        steered: steered.map(|_| first),
    })
}

impl Open {
    fn step(&mut self, until: Nanos) -> bool {
        if self.steered.is_none() {
            return self.run.step(until);
        }
        while self.run.now() < until {
            if !self.run.next_decision() {
                return self.run.step(until);
            }
            self.run.decide(Answer {
                snd_cwnd: self.steered,
                pacing_rate: None,
            });
        }
        true
    }
}

fn tables(rows: &Rows) -> String {
    let tables = [
        csv(&rows.flows),
        csv(&rows.samples),
        csv(&rows.queue),
        csv(&rows.events),
    ];
    tables.join("\n")
}

fn answer(what: u32, text: &str) -> *mut u8 {
    let length = u32::try_from(text.len()).expect("a table fits into memory");
    let head = [length.to_le_bytes(), what.to_le_bytes()].concat();
    leak([&head, text.as_bytes()].concat())
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

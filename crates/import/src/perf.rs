//! Output of `perf script`, as rows of `stacks`.
//!
//! A sample is a line `COMM PID [CPU] TIME: PERIOD EVENT:` and a line for each function of its stack, the innermost
//! first; without `perf record -g` the one function stands behind the event. Source: `builtin-script.c` and
//! `evsel_fprintf.c` of perf 4.4 to 6.18.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use knee_collect::stacks::{class_of, fold};
use knee_store::Anonymiser;
use knee_tables::{Stack, Stacks, Table};

use super::counts::counts;
use super::kind::first_lines;
use super::lines::{self, Lines, fills};
use super::{Columns, Kind, More as _, Opt, Sample, TableKind, Takes};

/// Different stacks are held until they have so many bytes together; then their rows leave.
const HELD_BYTES: usize = 64 << 20;
/// Functions of a stack at most so long are kept: perf takes 127 at most where nobody raises the limit.
const STACK_BYTES: usize = 64 << 10;
/// Different events that are known by name; samples of further ones are left out.
const EVENTS: usize = 64;
/// Addresses from here on are the kernel's, on x86 and arm64.
const KERNEL_FROM: u64 = 0xffff_0000_0000_0000;
/// Of the objects in brackets, those that are not the kernel's or a module's.
const OF_PROGRAMS: [&str; 6] = [
    "[unknown]",
    "[vdso]",
    "[vsyscall]",
    "[heap]",
    "[stack]",
    "[vvar]",
];

pub static KIND: Kind = Kind {
    name: "perf",
    summary: "Call stacks of perf script.",
    about: "Import output of perf script: a row of the table `stacks` for each different call stack, as `knee profile` \
        writes them.\n\n\
        Of perf record -g, with times and the event, as perf script prints by itself; plain, gzip or zstd. Stacks of idle \
        processors are left out. `knee report` draws the folder as a flame graph.",
    page: "\
`perf record -g -a -e cpu-clock -- sleep 10; perf script > stacks.txt` records and prints what this reads. Stacks are
folded as [`knee profile`](profile.md) folds them: the program, its functions, those of the kernel with `_[k]` behind. A
function is the kernel's by its address, or by its object: `[kernel.kallsyms]`, a module. `class` is the one that `knee
profile` gives the same stack. `samples` counts samples, whatever their periods.

The samples of one event are imported: samples of cycles and of context switches added up would count nothing. By
default it is one that measures time (a clock, cycles) if the files have one, and of several the one with most samples. Samples without a function (of an event recorded without `-g` and without
addresses) have no row.

`knee report imp` draws the folder, `knee report imp --against other` lays it beside another import or a profile, and
`--function NAME` says who calls a function. Memory grows with the number of different stacks, up to 64 MiB.",
    examples: &[
        "knee import perf before.txt --out before",
        "knee import perf stacks.txt.gz --out imp --event cycles",
        "knee report after --against before --function ipt_do_table",
    ],
    tables: &[TableKind {
        name: Stacks::NAME,
        short: "stacks",
        rows: "one per different call stack, with its samples",
        columns: Columns::Own(|| Stacks::COLUMNS.to_vec()),
    }],
    options: &[Opt {
        name: "event",
        takes: Takes::Text("NAME"),
        default: "",
        help: "Event whose samples are imported, such as cpu-clock; by default one that measures time.",
    }],
    unit: "lines",
    row: "call stack",
    expected: "what `perf script` prints of `perf record -g`",
    told: "{rows:stack} of {samples:sample} from {lines:line}",
    counts: More::COUNTS,
    sample: Sample::File("tests/data/perf/perf-6.1.txt"),
    looks: |begin| {
        let mut samples = 0;
        first_lines(begin).any(|line| {
            let head = std::str::from_utf8(line).ok().and_then(head);
            samples += usize::from(head.is_some());
            head.is_some_and(|head| head.alone.is_some())
                || samples > 0 && std::str::from_utf8(line).is_ok_and(|line| function(line).is_some())
        })
    },
    build: |given| {
        let event = given.text("event").map(|event| base(event).to_owned());
        Ok(Box::new(Parser::new(event, given.anonymiser.clone())))
    },
};

pub type Report = super::Report<More>;

counts! {
    /// What only output of perf tells.
    More {
        samples: u64, "samples in the rows";
        idle_samples: u64, "samples of idle processors, which have no row";
        without_stack: u64, "samples without a function, which have no row",
            doubt: "{count} samples have no function: record with perf record -g.",
            alone: "{count} samples have no function (perf record -g records them)";
        other_events: BTreeMap<String, u64>, "samples of other events than the one imported, by event",
            doubt: "samples of other events were left out (--event takes another one): {list}.",
            alone: "the samples are of other events: {words}";
    }
}

/// What a file is read with.
pub struct Parser {
    /// Event whose samples count; `None`: not chosen yet.
    event: Option<String>,
    anonymiser: Anonymiser,
    report: Report,
    events: BTreeMap<String, Found>,
    found_bytes: usize,
    /// The sample under way.
    sample: Option<Stacked>,
}

/// What the samples of an event say.
#[derive(Default)]
struct Found {
    stacks: HashMap<String, (&'static str, i64)>,
    samples: u64,
    idle: u64,
    without_stack: u64,
}

/// A sample whose functions are read.
#[derive(Default)]
struct Stacked {
    program: String,
    /// The innermost first.
    kernel: Vec<String>,
    user: Vec<String>,
    bytes: usize,
    event: String,
}

/// A sample's first line.
struct Head<'a> {
    program: &'a str,
    event: &'a str,
    /// The function that stands on the same line.
    alone: Option<Function<'a>>,
}

struct Function<'a> {
    name: &'a str,
    is_kernel: bool,
}

impl Parser {
    pub fn new(event: Option<String>, anonymiser: Anonymiser) -> Parser {
        Parser {
            event,
            anonymiser,
            report: Report::default(),
            events: BTreeMap::new(),
            found_bytes: 0,
            sample: None,
        }
    }

    fn begin(&mut self, head: &Head<'_>) {
        self.end();
        let mut sample = Stacked {
            program: head.program.to_owned(),
            event: head.event.to_owned(),
            ..Stacked::default()
        };
        if let Some(function) = &head.alone {
            sample.add(function);
        }
        self.sample = Some(sample);
    }

    /// Ends the sample under way.
    fn end(&mut self) {
        let Some(sample) = self.sample.take() else {
            return;
        };
        let is_it = self.event.as_ref().is_none_or(|name| *name == sample.event);
        let is_known = self.events.contains_key(&sample.event);
        if !is_it || !is_known && self.events.len() == EVENTS {
            let others = &mut self.report.more.other_events;
            if others.len() < EVENTS || others.contains_key(&sample.event) {
                *others.entry(sample.event).or_default() += 1;
            }
            return;
        }
        let found = self.events.entry(sample.event).or_default();
        if sample.kernel.is_empty() && sample.user.is_empty() {
            found.without_stack += 1;
            return;
        }
        let Some(class) = class_of(sample.kernel.iter().map(String::as_str)) else {
            found.idle += 1;
            return;
        };
        found.samples += 1;
        let stack = fold(&sample.program, &sample.user, &sample.kernel);
        match found.stacks.get_mut(&stack) {
            Some((_, samples)) => *samples += 1,
            None => {
                self.found_bytes += stack.len();
                found.stacks.insert(stack, (class, 1));
            }
        }
    }

    /// Chooses the event where none is asked for, and hands out its rows so far.
    fn rows(&mut self) -> Option<RecordBatch> {
        let events = std::mem::take(&mut self.events);
        self.found_bytes = 0;
        if self.event.is_none() {
            let rank = |name: &str, found: &Found| {
                let is_time = name.contains("clock") || name.contains("cycles");
                (is_time, found.samples + found.idle)
            };
            let ranked = events.iter().max_by_key(|(name, found)| rank(name, found));
            self.event = ranked.map(|(name, _)| name.clone());
        }
        let more = &mut self.report.more;
        let mut stacks = Vec::new();
        for (name, found) in events {
            if self.event.as_ref().is_some_and(|event| *event == name) {
                more.samples += found.samples;
                more.idle_samples += found.idle;
                more.without_stack += found.without_stack;
                stacks.extend(found.stacks);
            } else {
                *more.other_events.entry(name).or_default() +=
                    found.samples + found.idle + found.without_stack;
            }
        }
        stacks.sort_by(|(one, (_, a)), (other, (_, b))| b.cmp(a).then_with(|| one.cmp(other)));
        self.report.rows += stacks.len() as u64;
        let mut table = Stacks::default();
        for (stack, (class, samples)) in stacks {
            table.push(Stack {
                cell: 0,
                rep: 0,
                stack,
                samples,
                class,
            });
        }
        (table.rows() > 0).then(|| knee_store::arrow::record_batch(&Arc::new(table), |_| true))
    }

    fn not_understood(&mut self, line: &[u8]) {
        let shown = match self.anonymiser {
            Anonymiser::Keep => lines::beginning(line),
            _ => b"",
        };
        let shown = String::from_utf8_lossy(shown).trim().to_owned();
        self.report.not_understood(|| shown);
    }
}

impl Stacked {
    fn add(&mut self, function: &Function<'_>) {
        self.bytes += function.name.len();
        if self.bytes > STACK_BYTES {
            return;
        }
        let of = match function.is_kernel {
            true => &mut self.kernel,
            false => &mut self.user,
        };
        of.push(function.name.to_owned());
    }
}

impl Lines for Parser {
    fills!(Stacks);

    fn file(&mut self, path: &Path) {
        self.end();
        self.report.begin(path);
    }

    fn line(&mut self, line: &[u8]) -> Option<RecordBatch> {
        self.report.count();
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        if text.is_empty() {
            self.end();
        } else if text.starts_with('#') {
            // perf script --header.
        } else if let Some(head) = head(text) {
            self.begin(&head);
        } else if let Some(function) = function(text)
            && let Some(sample) = &mut self.sample
        {
            sample.add(&function);
        } else {
            self.not_understood(line);
            self.sample = None;
        }
        (self.found_bytes > HELD_BYTES)
            .then(|| self.rows())
            .flatten()
    }

    fn too_long(&mut self, beginning: &[u8]) {
        self.report.count();
        self.not_understood(beginning);
    }

    fn take(&mut self) -> Vec<RecordBatch> {
        self.end();
        self.rows().into_iter().collect()
    }
}

/// `COMM PID/TID [CPU] TIME: PERIOD EVENT: …`; the name of a program may have blanks in it.
fn head(line: &str) -> Option<Head<'_>> {
    let time = words(line).find(|(_, word)| is_time(word))?;
    let before = line[..time.0].trim_end();
    // The processor, and the flags of perf script -F +flags, have brackets or dots; the process is digits.
    let process = words(before).filter(|(_, word)| is_process(word)).last()?;
    let program = line[..process.0].trim();
    let mut behind = words(&line[time.0 + time.1.len()..]);
    let (mut at, mut event) = behind.next()?;
    if event.bytes().all(|byte| byte.is_ascii_digit()) {
        (at, event) = behind.next()?;
    }
    let rest = &line[time.0 + time.1.len() + at + event.len()..];
    let event = event.strip_suffix(':').filter(|event| !event.is_empty())?;
    if program.is_empty() {
        return None;
    }
    Some(Head {
        program,
        event: base(event),
        alone: function(rest),
    })
}

/// `ADDRESS NAME+OFFSET (OBJECT)`.
fn function(line: &str) -> Option<Function<'_>> {
    let line = line.strip_prefix([' ', '\t'])?.trim();
    let (address, rest) = line.split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let rest = rest.trim();
    let (name, object) = match rest.rfind(" (") {
        Some(at) => (&rest[..at], rest[at + 2..].strip_suffix(')')?),
        None => (rest, ""),
    };
    let name = match name.rsplit_once("+0x") {
        Some((name, offset)) if offset.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => name,
    };
    let is_module = object.starts_with('[') && !OF_PROGRAMS.contains(&object);
    let is_file = object.ends_with("/vmlinux") || object.contains(".ko");
    let is_kernel = address >= KERNEL_FROM && object != "[vsyscall]";
    (!name.is_empty()).then_some(Function {
        name,
        is_kernel: is_kernel || is_module || is_file,
    })
}

/// The words of a line and where each begins.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let begin = line.as_ptr() as usize;
    line.split_ascii_whitespace()
        .map(move |word| (word.as_ptr() as usize - begin, word))
}

/// `12345.678901:`
fn is_time(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    word.strip_suffix(':')
        .and_then(|word| word.split_once('.'))
        .is_some_and(|(seconds, fraction)| digits(seconds) && digits(fraction))
}

/// `123` or `123/124`; threads of the kernel that perf cannot name have -1.
fn is_process(word: &str) -> bool {
    let number = |text: &str| text.parse::<i32>().is_ok();
    match word.split_once('/') {
        Some((process, thread)) => number(process) && number(thread),
        None => number(word),
    }
}

/// An event without its modifiers, as in `cycles:u`; the two parts of a tracepoint's name stay.
fn base(event: &str) -> &str {
    const MODIFIERS: &str = "ukhGHIpPSDWeb";
    let event = event.trim_end_matches(':');
    match event.rsplit_once(':') {
        Some((name, modifiers)) if modifiers.chars().all(|one| MODIFIERS.contains(one)) => name,
        _ => event,
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::{Int32Type, Int64Type};
    use arrow_array::{ArrayAccessor as _, StringArray};

    use super::*;
    use crate::Import as _;

    /// Folded stacks with class and samples, and what was counted.
    fn read(event: Option<&str>, text: &str) -> (Vec<(String, String, i64)>, Report) {
        let mut parser = Parser::new(event.map(str::to_owned), Anonymiser::Keep);
        let whole = |_, filled: Option<_>| {
            assert!(filled.is_none(), "rows come at the end");
            Ok::<_, std::io::Error>(())
        };
        (parser.read_stream(Path::new("x"), text.as_bytes(), whole)).unwrap();
        let mut rows = Vec::new();
        for (_, batch) in parser.rest() {
            let column = |name: &str| batch.column_by_name(name).unwrap();
            let stacks = column("stack").as_string::<i32>();
            let classes = column("class").as_dictionary::<Int32Type>();
            let classes = classes.downcast_dict::<StringArray>().unwrap();
            let samples = column("samples").as_primitive::<Int64Type>();
            for row in 0..batch.num_rows() {
                let texts = (stacks.value(row).to_owned(), classes.value(row).to_owned());
                rows.push((texts.0, texts.1, samples.value(row)));
            }
        }
        let report = Lines::found(&parser).clone();
        (rows, report)
    }

    const TWO: &str = "\
tmux: server 12/34 [001] 5.000001:     250000 cpu-clock:pppH: 
\tffffffff81ffcf9c tcp_ack+0x6c ([kernel.kallsyms])
\tffffffffc0aa0010 bbr_main+0x10 ([tcp_bbr])
\t    7ff181785adf operator()(int) const+0x1f (/usr/lib/a b.so)
\t           1ab78 _start (/usr/bin/tmux)

";

    #[test]
    fn a_stack_runs_from_the_program_with_its_blanks_to_the_innermost_function() {
        let (rows, report) = read(None, &TWO.repeat(2));
        let stack = "tmux: server;_start;operator()(int) const;bbr_main_[k];tcp_ack_[k]";
        assert_eq!(rows, [(stack.into(), "TCP/IP".into(), 2)]);
        assert_eq!((report.not_understood, report.more.samples), (0, 2));
    }

    #[test]
    fn idle_processors_and_samples_without_a_function_have_no_row() {
        // Another host's event may have other modifiers.
        let idle = "swapper 0 [000] 5.1: 1 cpu-clock: \n\tffffffff821ed511 default_idle+0x7 ([kernel.kallsyms])\n\n";
        let bare = "a 7 [000] 5.2: 1 cpu-clock: \n\n";
        let (rows, report) = read(None, &format!("{TWO}{idle}{bare}"));
        assert_eq!(rows.len(), 1);
        assert_eq!(
            (report.more.idle_samples, report.more.without_stack),
            (1, 1)
        );
        assert_eq!(report.not_understood, 0);
    }

    #[test]
    fn without_call_chains_the_function_stands_on_the_line_of_the_event() {
        let line = "         python3 27853 47368.2:   101 cpu-clock:  ffffffff81ffcf9c ip_output+0x6c ([kernel.kallsyms])\n";
        let (rows, _) = read(None, line);
        assert_eq!(rows, [("python3;ip_output_[k]".into(), "TCP/IP".into(), 1)]);
    }

    #[test]
    fn the_event_that_measures_time_is_taken_unless_another_is_asked_for() {
        let other = TWO.replace("cpu-clock:pppH", "context-switches");
        let text = format!("{other}{other}{TWO}");
        let (rows, report) = read(None, &text);
        assert_eq!(rows[0].2, 1);
        assert_eq!(report.more.other_events["context-switches"], 2);
        assert_eq!(read(Some("context-switches"), &text).0[0].2, 2);
        assert_eq!(read(Some("cpu-clock"), &text).0[0].2, 1);
        assert!(read(Some("cpu"), &text).0.is_empty());
    }

    #[test]
    fn what_is_no_sample_is_not_understood_and_ends_the_one_before() {
        let (rows, report) = read(
            None,
            &format!("{}nonsense\n\tffffffff81ffcf9c f+0x1 (x)\n", TWO.trim_end()),
        );
        assert!(rows.is_empty());
        assert_eq!(report.not_understood, 2);
        let name = "e\u{1b}[2Jvil; x 3 [0] 5.1: 1 cycles: \n\t1 f\u{7}+0x1 (x)\n";
        assert_eq!(read(None, name).0[0].0, "e [2Jvil: x;f ");
    }
}

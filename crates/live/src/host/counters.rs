//! The counters of `bpf/trace_host.bpf.c`.

use std::fs;

use knee_collect::KernelError;
use knee_loader::programs;
use libbpf_rs::{MapCore, MapFlags};

use super::Instrument;
use crate::trace::Cost;
use crate::trace::attached::{Attached, Wanted, check_permitted, unreadable};

/// HOST_PLACES: the machine, and network namespaces that were asked for.
const PLACES: u32 = 8;
/// HOST_SIZES.
const SIZES: usize = 20;
/// HOST_SOFTIRQS.
const SOFTIRQS: usize = 10;
/// Their names, by Linux' `enum` in include/linux/interrupt.h.
pub const SOFTIRQ_NAMES: [&str; SOFTIRQS] = [
    "hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu",
];

/// Words of `struct trace_counters` before its histograms.
const COUNTS: usize = 15;

/// What the places of [`Counts::counts`] hold, in the order of `struct trace_counters`. An empty name: no counter by itself.
const NAMES: [&str; COUNTS] = [
    "pacing_timer_arms",
    "pacing_timer_fires",
    "",
    "qdisc_timer_fires",
    "data_skbs_sent",
    "data_segments_sent",
    "data_bytes_sent",
    "acks_sent",
    "skbs_received",
    "segments_received",
    "",
    "napi_polls",
    "napi_packets",
    "napi_budget_ends",
    "wakeups",
];
const PACING_FIRES: usize = 1;
const PACING_ENDS: usize = 2;
const UNREADABLE: usize = 10;

/// Which instrument counts it.
fn instrument_of(counter: &str) -> &'static str {
    match counter {
        "wakeups" => "wakeups",
        name if name.starts_with("napi") => "polls",
        name if name.contains("timer") => "timers",
        _ => "packets",
    }
}

/// The histograms, in the order of `struct trace_counters`, each with its instrument.
pub const HISTOGRAMS: [(&str, &str); 3] = [
    ("sent_bytes", "packets"),
    ("received_bytes", "packets"),
    ("packets_per_poll", "polls"),
];

/// Counters of one place so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    counts: [u64; COUNTS],
    histograms: [[u64; SIZES]; HISTOGRAMS.len()],
}

impl Counts {
    fn parse(bytes: &[u8]) -> Counts {
        let mut words = bytes
            .as_chunks()
            .0
            .iter()
            .map(|word| u64::from_ne_bytes(*word));
        let mut next = || words.next().unwrap_or(0);
        let mut found = Counts::default();
        found.counts.fill_with(&mut next);
        for histogram in &mut found.histograms {
            histogram.fill_with(&mut next);
        }
        found
    }

    fn each(&mut self) -> impl Iterator<Item = &mut u64> {
        self.counts
            .iter_mut()
            .chain(self.histograms.iter_mut().flatten())
    }

    fn add(&mut self, mut other: Counts) {
        for (mine, theirs) in self.each().zip(other.each()) {
            *mine += *theirs;
        }
    }

    fn subtract(&mut self, mut then: Counts) {
        for (mine, theirs) in self.each().zip(then.each()) {
            *mine = mine.saturating_sub(*theirs);
        }
    }

    /// Counters by name, of the instruments that were asked for.
    pub fn named(&self, has: impl Fn(&str) -> bool) -> Vec<(&'static str, i64)> {
        let mut found: Vec<(&str, i64)> = (NAMES.iter().zip(&self.counts))
            .filter(|(name, _)| !name.is_empty() && has(instrument_of(name)))
            .map(|(name, count)| (*name, *count as i64))
            .collect();
        if has("timers") {
            // The kernel reports the end of a timer also when it fires.
            let taken_back = self.counts[PACING_ENDS].saturating_sub(self.counts[PACING_FIRES]);
            found.push(("pacing_timer_cancels", taken_back as i64));
        }
        found
    }

    /// A histogram's filled places: least size, greatest size, how many.
    pub fn histogram(&self, which: usize) -> Vec<(i64, i64, i64)> {
        let places = self.histograms[which].iter().enumerate();
        places
            .filter(|&(_, &count)| count > 0)
            .map(|(place, &count)| (least(place), least(place + 1) - 1, count as i64))
            .collect()
    }
}

/// Place 0 holds 0, place n 2^(n-1) to 2^n - 1.
fn least(place: usize) -> i64 {
    match place {
        0 => 0,
        _ => 1 << (place - 1),
    }
}

/// Softirqs of one processor so far: time, and how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Softirqs {
    pub ns: [u64; SOFTIRQS],
    pub runs: [u64; SOFTIRQS],
}

impl Softirqs {
    /// From `struct trace_softirqs`.
    fn parse(bytes: &[u8]) -> Softirqs {
        let mut words = bytes
            .as_chunks()
            .0
            .iter()
            .map(|word| u64::from_ne_bytes(*word));
        let _since_ns = words.next();
        let mut next = || words.next().unwrap_or(0);
        let mut found = Softirqs::default();
        found.ns.fill_with(&mut next);
        found.runs.fill_with(&mut next);
        found
    }

    fn subtract(&mut self, then: &Softirqs) {
        for (mine, theirs) in self.ns.iter_mut().zip(then.ns) {
            *mine -= theirs;
        }
        for (mine, theirs) in self.runs.iter_mut().zip(then.runs) {
            *mine -= theirs;
        }
    }
}

/// All of it at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// By place.
    pub places: Vec<Counts>,
    /// By processor.
    pub softirqs: Vec<Softirqs>,
}

impl Snapshot {
    pub fn since(mut self, then: &Snapshot) -> Snapshot {
        for (now, then) in self.places.iter_mut().zip(&then.places) {
            now.subtract(then.clone());
        }
        for (now, then) in self.softirqs.iter_mut().zip(&then.softirqs) {
            now.subtract(then);
        }
        self
    }

    /// Packets whose headers could not be read.
    pub fn unreadable(&self) -> u64 {
        self.places
            .iter()
            .map(|place| place.counts[UNREADABLE])
            .sum()
    }
}

/// The programs that count, in the kernel while this lives.
pub struct Counters {
    attached: Attached,
}

impl Counters {
    /// Attaches those of these instruments. `listed_only`: namespaces that [`Counters::list`] did not name are left out;
    /// else they count for the machine.
    pub fn attach(chosen: &[&Instrument], listed_only: bool) -> Result<Counters, KernelError> {
        let has = |tracepoint: &str| {
            chosen
                .iter()
                .any(|one| one.tracepoints.contains(&tracepoint))
        };
        let every = super::INSTRUMENTS.iter().flat_map(|one| one.tracepoints);
        let left_out: Vec<&str> = every.copied().filter(|name| !has(name)).collect();
        let needed: Vec<&str> = (chosen.iter().flat_map(|one| one.tracepoints))
            .copied()
            .collect();
        // Who may not trace sees no addresses either, and the refusal would name the addresses as the cause.
        check_permitted()?;
        let attached = Attached::attach(&Wanted {
            name: "trace_host",
            bytes: programs::TRACE_HOST,
            filter: &filter(has("hrtimer_start"), listed_only)?,
            tracepoints: &needed,
            left_out: &left_out,
            since: "5.8",
        })?;
        Ok(Counters { attached })
    }

    /// Counts the events of a network namespace at a place of its own.
    pub fn list(&self, inode: u32, place: u32) -> Result<(), KernelError> {
        assert!(place < PLACES, "the map has {PLACES} places");
        (self.attached.map("hosts"))
            .update(&inode.to_ne_bytes(), &place.to_ne_bytes(), MapFlags::ANY)
            .map_err(unreadable)
    }

    pub fn snapshot(&self) -> Result<Snapshot, KernelError> {
        let places = (0..PLACES)
            .map(|place| {
                let mut sum = Counts::default();
                for values in self.of_processors("counters", place)? {
                    sum.add(Counts::parse(&values));
                }
                Ok(sum)
            })
            .collect::<Result<_, KernelError>>()?;
        let softirqs = self.of_processors("softirqs", 0)?;
        Ok(Snapshot {
            places,
            softirqs: softirqs.iter().map(|one| Softirqs::parse(one)).collect(),
        })
    }

    fn of_processors(&self, map: &str, key: u32) -> Result<Vec<Vec<u8>>, KernelError> {
        let found = (self.attached.map(map))
            .lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY)
            .map_err(unreadable)?;
        Ok(found.unwrap_or_default())
    }

    pub fn cost(&self) -> Cost {
        self.attached.cost()
    }
}

/// As `struct trace_filter` of bpf/trace_host.bpf.c has it.
fn filter(timers: bool, listed_only: bool) -> Result<Vec<u8>, KernelError> {
    let mut bytes = Vec::new();
    let symbols = match timers {
        true => fs::read_to_string("/proc/kallsyms").unwrap_or_default(),
        false => String::new(),
    };
    for name in ["tcp_pace_kick", "qdisc_watchdog"] {
        let address = match timers {
            true => address(&symbols, name)?,
            false => 0,
        };
        bytes.extend(address.to_ne_bytes());
    }
    bytes.extend(u32::from(listed_only).to_ne_bytes());
    bytes.extend([0; 4]);
    Ok(bytes)
}

/// Where a function of the kernel lies, by /proc/kallsyms.
fn address(symbols: &str, name: &str) -> Result<u64, KernelError> {
    let cannot = |why: String| KernelError::Trace {
        why: format!("instrument timers: {why}"),
        hint:
            "Let root see addresses (`sysctl kernel.kptr_restrict=1`), or leave the instrument out."
                .into(),
    };
    let line = symbols.lines().find(|line| {
        let mut words = line.split_whitespace();
        words.nth(2) == Some(name)
    });
    let Some(line) = line else {
        return Err(cannot(format!("/proc/kallsyms has no function {name}")));
    };
    let hex = line.split_whitespace().next().unwrap_or_default();
    match u64::from_str_radix(hex, 16) {
        Ok(address) if address > 0 => Ok(address),
        _ => Err(cannot(format!(
            "/proc/kallsyms hides the address of {name}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_function_is_that_of_its_whole_name() {
        let symbols = "ffff0001 t tcp_pace_kick_more\nffff0002 T tcp_pace_kick\nffff0003 t qdisc_watchdog\t[sch]\n";
        assert_eq!(address(symbols, "tcp_pace_kick").unwrap(), 0xffff_0002);
        assert_eq!(address(symbols, "qdisc_watchdog").unwrap(), 0xffff_0003);
    }

    #[test]
    fn hidden_and_absent_addresses_are_refused_with_a_way_out() {
        let hidden = address("0000000000000000 T tcp_pace_kick\n", "tcp_pace_kick").unwrap_err();
        assert!(hidden.to_string().contains("hides the address"));
        assert!(hidden.to_string().contains("kptr_restrict"));
        let absent = address("", "tcp_pace_kick").unwrap_err();
        assert!(absent.to_string().contains("has no function tcp_pace_kick"));
    }

    #[test]
    fn counters_have_the_names_of_the_table_and_come_of_the_instruments_asked_for() {
        let words: Vec<u8> = (1..=75u64).flat_map(u64::to_ne_bytes).collect();
        let counts = Counts::parse(&words);
        let all = counts.named(|_| true);
        let known = |name: &str| knee_tables::COUNTERS.iter().any(|one| one.name == name);
        assert!(all.iter().all(|(name, _)| known(name)));
        assert!(all.contains(&("pacing_timer_cancels", 1)));
        let timers = counts.named(|name| name == "timers");
        let names: Vec<&str> = timers.iter().map(|(name, _)| *name).collect();
        let expected = [
            "pacing_timer_arms",
            "pacing_timer_fires",
            "qdisc_timer_fires",
            "pacing_timer_cancels",
        ];
        assert_eq!(names, expected);
        let polls = counts.named(|name| name == "polls");
        assert_eq!(polls[0], ("napi_polls", 12));
    }

    #[test]
    fn a_histogram_holds_each_size_between_the_ends_of_its_place() {
        let mut counts = Counts::default();
        counts.histograms[0][0] = 7;
        counts.histograms[0][11] = 9;
        assert_eq!(counts.histogram(0), [(0, 0, 7), (1024, 2047, 9)]);
        assert_eq!(counts.histogram(1), []);
    }

    #[test]
    fn an_interval_is_the_difference_of_its_ends() {
        let words: Vec<u8> = (0..21u64).flat_map(u64::to_ne_bytes).collect();
        let softirqs = vec![Softirqs::parse(&words)];
        let mut then = Snapshot {
            places: vec![Counts::default()],
            softirqs: softirqs.clone(),
        };
        then.softirqs[0].ns[3] = 1;
        let mut now = Snapshot {
            places: vec![Counts::default()],
            softirqs,
        };
        now.places[0].counts[UNREADABLE] = 5;
        let found = now.since(&then);
        assert_eq!(found.unreadable(), 5);
        assert_eq!((found.softirqs[0].ns[3], found.softirqs[0].ns[4]), (3, 0));
    }
}

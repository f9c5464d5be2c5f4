//! A flow of BBR alone on a path, and what its samples tell. For the tests of the three versions.
//!
//! A case that disturbs a phase runs twice: once to learn when the phase comes, then with the disturbance from that
//! time on. Until then both runs are the same, byte by byte.

use std::io;

use knee_sim::Output;

use super::{LARGE_BUFFERS, PAYLOAD_SHARE, cell_with_files, rows_of, run_cell};

/// The path, where a case asks for no other.
pub const RATE: f64 = 50e6;
pub const RTT_MS: i64 = 40;
/// Segments of 1500 bytes: 50 Mbit/s x 40 ms.
pub const BDP: i64 = 167;

/// PROBE_RTT of BBR 2 and 3 too late to disturb.
pub const NO_PROBE_RTT: &[(&str, u32)] = &[("probe_rtt_interval", 3_600_000)];

/// A response per round trip, of a third of the BDP: the application is the limit.
pub const APP_LIMITED: &str =
    "workload = \"request-response\"\nresponse = \"40kB\"\ndepth = 2\nrequests = \"unlimited\"";

pub struct Case<'a> {
    pub algorithm: &'static str,
    pub seconds: u32,
    /// Mbit/s, and the end in ms: steps of the bottleneck's rate. The last one lasts.
    pub rates: Vec<(u32, i64)>,
    pub buffer: &'a str,
    /// Packets that are lost, counted from 1 as they come to the queue.
    pub lost: Vec<i64>,
    /// Further keys of `[path]`; below, of `[[flow]]`.
    pub path: &'a str,
    /// `[sender]` and `[receiver]`.
    pub hosts: &'a str,
    pub flow: &'a str,
    pub params: &'a [(&'a str, u32)],
}

impl Case<'_> {
    pub fn of(algorithm: &'static str) -> Self {
        Case {
            algorithm,
            seconds: 10,
            rates: vec![(50, i64::MAX)],
            buffer: "1000packets",
            lost: Vec::new(),
            path: "",
            hosts: LARGE_BUFFERS,
            flow: "",
            params: &[],
        }
    }

    pub fn run(&self) -> Output {
        self.repetition(0)
    }

    pub fn repetition(&self, rep: u32) -> Output {
        let rate = match &self.rates[..] {
            [(mbit, _)] => format!("{mbit}Mbit/s"),
            steps => {
                let end_ms = i64::from(self.seconds) * 1000;
                let step = |&(mbit, until): &(u32, i64)| format!("{mbit}x{}", until.min(end_ms));
                let steps: Vec<String> = steps.iter().map(step).collect();
                format!("trace {}.up", steps.join("-"))
            }
        };
        let loss = match &self.lost[..] {
            [] => String::new(),
            lost => {
                let numbers: Vec<String> = lost.iter().map(i64::to_string).collect();
                format!("loss = \"trace {}.txt\"", numbers.join("-"))
            }
        };
        let mut cell = cell_with_files(
            &format!(
                "duration = \"{}s\"\nwarmup = \"2s\"\nsample_interval = \"1ms\"\n[path]\nrate = \"{rate}\"\n\
                 rtt = \"{RTT_MS}ms\"\nbuffer = \"{}\"\n{loss}\n{}\n{}\
                 [[flow]]\nalgorithm = \"{}\"\n{}\n",
                self.seconds, self.buffer, self.path, self.hosts, self.algorithm, self.flow
            ),
            file,
        );
        for &(name, value) in self.params {
            cell.flows[0].params.push((name.to_owned(), value));
        }
        run_cell(&cell, rep, false)
    }
}

/// What the file of a case's rates (`10x5000-100x9000.up`: 10 Mbit/s until 5 s, ...) or losses holds: its name tells.
fn file(name: &str) -> io::Result<String> {
    let number = |word: &str| word.parse::<u64>().map_err(io::Error::other);
    let mut text = String::new();
    if let Some(numbers) = name.strip_suffix(".txt") {
        for word in numbers.split('-') {
            text += &format!("{word}\n");
        }
    } else if let Some(steps) = name.strip_suffix(".up") {
        // Of 1504 bytes; the remainder of one is carried on, in bits.
        let (mut at_ms, mut bits) = (0, 0);
        for step in steps.split('-') {
            let (mbit, until_ms) = step.split_once('x').ok_or(io::ErrorKind::InvalidInput)?;
            let (mbit, until_ms) = (number(mbit)?, number(until_ms)?);
            while at_ms < until_ms {
                at_ms += 1;
                bits += mbit * 1000;
                while bits >= 1504 * 8 {
                    bits -= 1504 * 8;
                    text += &format!("{at_ms}\n");
                }
            }
        }
    }
    Ok(text)
}

/// A stretch of one phase, from its first sample to its last.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    pub name: &'static str,
    pub start_ms: i64,
    pub end_ms: i64,
}

impl Phase {
    pub fn length_ms(&self) -> i64 {
        self.end_ms - self.start_ms
    }
}

pub fn phases(output: &Output) -> Vec<Phase> {
    let s = &output.samples;
    let mut found: Vec<Phase> = Vec::new();
    for row in rows_of(s, 0).filter(|&row| !s.cc_phase[row].is_empty()) {
        let (name, at_ms) = (s.cc_phase[row], s.t_ns[row] / 1_000_000);
        match found.last_mut() {
            Some(last) if last.name == name => last.end_ms = at_ms,
            _ => found.push(Phase {
                name,
                start_ms: at_ms,
                end_ms: at_ms,
            }),
        }
    }
    found
}

/// Index of the first `name` that begins at `from_ms` or later.
#[track_caller]
pub fn index_of(phases: &[Phase], name: &str, from_ms: i64) -> usize {
    phases
        .iter()
        .position(|phase| phase.name == name && phase.start_ms >= from_ms)
        .unwrap_or_else(|| panic!("no {name} from {from_ms} ms on: {phases:?}"))
}

#[track_caller]
pub fn first(phases: &[Phase], name: &str) -> Phase {
    phases[index_of(phases, name, 0)]
}

pub fn names(phases: &[Phase]) -> Vec<&'static str> {
    phases.iter().map(|phase| phase.name).collect()
}

/// Rows of the flow from `from_ms` to `to_ms`.
pub fn rows_between(output: &Output, from_ms: i64, to_ms: i64) -> impl Iterator<Item = usize> + '_ {
    let s = &output.samples;
    let within = move |&row: &usize| (from_ms..=to_ms).contains(&(s.t_ns[row] / 1_000_000));
    rows_of(s, 0).filter(within)
}

/// The last row at `at_ms` or before.
#[track_caller]
pub fn row_at(output: &Output, at_ms: i64) -> usize {
    rows_between(output, 0, at_ms)
        .last()
        .expect("the flow has begun")
}

/// The bandwidth that it reckons with, over the link's.
#[track_caller]
pub fn bw_at(output: &Output, at_ms: i64, rate_bits_per_sec: f64) -> f64 {
    let bw = output
        .samples
        .bbr_bw_bits_per_sec
        .get(row_at(output, at_ms));
    bw.expect("it has a model") as f64 / (rate_bits_per_sec * PAYLOAD_SHARE)
}

/// Packet-timed rounds that end between the two times.
pub fn rounds(output: &Output, from_ms: i64, to_ms: i64) -> i64 {
    let s = &output.samples;
    let mut ends_at =
        s.delivered.get(row_at(output, from_ms)).unwrap() + s.inflight[row_at(output, from_ms)];
    let mut rounds = 0;
    for row in rows_between(output, from_ms, to_ms) {
        if s.delivered.get(row).unwrap() >= ends_at {
            rounds += 1;
            ends_at = s.delivered.get(row).unwrap() + s.inflight[row];
        }
    }
    rounds
}

/// When it first reckons with more than this share of the rate.
#[track_caller]
pub fn found_ms(output: &Output, from_ms: i64, share: f64, rate_bits_per_sec: f64) -> i64 {
    let s = &output.samples;
    let enough = Some((share * rate_bits_per_sec * PAYLOAD_SHARE) as i64);
    rows_between(output, from_ms, i64::MAX)
        .find(|&row| s.bbr_bw_bits_per_sec.get(row) > enough)
        .map(|row| s.t_ns[row] / 1_000_000)
        .unwrap_or_else(|| panic!("it never reckons with {share} of the rate"))
}

#[track_caller]
pub fn least(values: impl Iterator<Item = i64>) -> i64 {
    values.min().expect("sampled")
}

#[track_caller]
pub fn most(values: impl Iterator<Item = i64>) -> i64 {
    values.max().expect("sampled")
}

/// Packets that have come to the queue by then.
pub fn entered_by(output: &Output, at_ms: i64) -> i64 {
    let q = &output.queue;
    let row = q.t_ns.partition_point(|&t_ns| t_ns <= at_ms * 1_000_000) - 1;
    q.sent_pkts[row] + q.dropped_pkts[row] + q.lost_pkts[row] + q.queue_pkts[row]
}

/// Every `nth` of the `count` packets that come after `at_ms`.
pub fn each_nth_after(output: &Output, at_ms: i64, nth: i64, count: i64) -> Vec<i64> {
    let from = entered_by(output, at_ms);
    (1..=count / nth).map(|i| from + i * nth).collect()
}

/// Times of the events of this name, ms.
pub fn events(output: &Output, name: &str) -> Vec<i64> {
    let e = &output.events;
    (0..e.t_ns.len())
        .filter(|&row| e.event[row] == name)
        .map(|row| e.t_ns[row] / 1_000_000)
        .collect()
}

/// Share of the data packets that were sent again, between the two times.
pub fn retransmitted(output: &Output, from_ms: i64, to_ms: i64) -> f64 {
    let s = &output.samples;
    let (from, to) = (row_at(output, from_ms), row_at(output, to_ms));
    let sent = s.data_segs_out.get(to).unwrap() - s.data_segs_out.get(from).unwrap();
    (s.total_retrans[to] - s.total_retrans[from]) as f64 / sent as f64
}

/// Payload delivered between the two times over what the link carries.
pub fn used(output: &Output, from_ms: i64, to_ms: i64, rate_bits_per_sec: f64) -> f64 {
    let s = &output.samples;
    let bytes = s.bytes_acked.get(row_at(output, to_ms)).unwrap()
        - s.bytes_acked.get(row_at(output, from_ms)).unwrap();
    let seconds = (to_ms - from_ms) as f64 / 1e3;
    bytes as f64 * 8.0 / seconds / (rate_bits_per_sec * PAYLOAD_SHARE)
}

/// The first interval of PROBE_RTT, within the seconds, finds a flow in STARTUP that its application
/// keeps there: it goes on with STARTUP.
#[track_caller]
pub fn assert_startup_goes_on_after_probe_rtt(algorithm: &'static str, seconds: u32) {
    let output = Case {
        flow: APP_LIMITED,
        seconds,
        ..Case::of(algorithm)
    }
    .run();
    assert_eq!(
        names(&phases(&output))[..3],
        ["Startup", "ProbeRtt", "Startup"]
    );
}

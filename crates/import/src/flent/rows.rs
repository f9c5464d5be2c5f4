//! A test's rows of `flent_tests`, `flent_points` and `flent_samples`.

use knee_store::Anonymiser;
use knee_tables::Batch;
use knee_tables::column::set;
use serde_json::{Map, Value};

use super::super::Filled;
use super::super::fill::{add_row, capped, host, name, put_away, words};
use super::super::json::{Part, ns, scaled};
use super::tables::{FlentPoints, FlentSamples, FlentTests};

/// What else was measured, of every station or class.
const MORE_BYTES: usize = 64 << 10;
const METADATA_BYTES: usize = 16 << 20;
/// Of a batch.
const METADATA_HELD_BYTES: usize = 64 << 20;
/// What ss tells, in flent's units; `flent/runners.py`, SsRunner.
const MS_US: f64 = 1e3;
const MBIT: f64 = 1e6;

/// A test being read.
pub struct Test<'a> {
    pub file: &'a str,
    pub version: i64,
    pub t0_ns: Option<i64>,
    pub metadata: &'a Part<'a>,
}

pub struct Rows {
    anonymiser: Anonymiser,
    tests: FlentTests,
    points: FlentPoints,
    samples: FlentSamples,
    full: Vec<Filled>,
    metadata_held: usize,
}

impl Rows {
    pub fn new(anonymiser: Anonymiser) -> Rows {
        Rows {
            anonymiser,
            tests: FlentTests::default(),
            points: FlentPoints::default(),
            samples: FlentSamples::default(),
            full: Vec::new(),
            metadata_held: 0,
        }
    }

    /// Batches that are full.
    pub fn take_full(&mut self) -> Vec<Filled> {
        std::mem::take(&mut self.full)
    }

    /// All others.
    pub fn rest(&mut self) -> Vec<Filled> {
        put_away(&mut self.tests, &mut self.full);
        put_away(&mut self.points, &mut self.full);
        put_away(&mut self.samples, &mut self.full);
        self.take_full()
    }

    /// A series of `results` at the times of `x_values`; tells how many rows.
    pub fn points(&mut self, test: &Test<'_>, times: &[Option<f64>], series: &Part<'_>) -> u64 {
        let values = series.value().as_array().map_or(&[][..], Vec::as_slice);
        if values.len() != times.len() {
            let text = format!(
                "results.{}: {} values; x_values has {}",
                capped(series.key(), 60),
                values.len(),
                times.len()
            );
            series.odd().add(None, text);
        }
        let mut rows = 0;
        for (value, t) in values.iter().zip(times) {
            let Some(value) = value.as_f64() else {
                if !value.is_null() {
                    series.unexpected("numbers and null");
                    break;
                }
                continue;
            };
            let row = add_row(&mut self.points, &mut self.full);
            let to = &mut self.points;
            name(&mut to.file, row, Some(test.file));
            name(&mut to.series, row, Some(series.key()));
            name(&mut to.units, row, test.units(series.key()));
            let t_ns = t.and_then(ns);
            set(&mut to.t_ns, row, t_ns);
            let t_unix_ns = t_ns.zip(test.t0_ns).and_then(|(t, t0)| t0.checked_add(t));
            set(&mut to.t_unix_ns, row, t_unix_ns);
            to.value.set(row, value);
            rows += 1;
        }
        rows
    }

    /// A series of `raw_values`; tells how many rows.
    pub fn samples(&mut self, test: &Test<'_>, series: &Part<'_>) -> u64 {
        let mut rows = 0;
        for sample in series.elements() {
            let row = add_row(&mut self.samples, &mut self.full);
            let to = &mut self.samples;
            name(&mut to.file, row, Some(test.file));
            name(&mut to.series, row, Some(series.key()));
            name(&mut to.units, row, test.units(series.key()));
            let t_unix_ns = sample.float("t").and_then(ns);
            let t_ns = t_unix_ns
                .zip(test.t0_ns)
                .and_then(|(t, t0)| t.checked_sub(t0));
            set(&mut to.t_unix_ns, row, t_unix_ns);
            set(&mut to.t_ns, row, t_ns);
            let duration_s = sample.float("dur");
            let value = sample.float("val");
            let value = test.in_units(series.key(), value, duration_s.is_some());
            set(&mut to.value, row, value);
            set(&mut to.duration_us, row, duration_s.map(|s| s * 1e6));
            set(&mut to.seq, row, sample.int("seq"));
            set(&mut to.snd_cwnd, row, sample.int("tcp_cwnd"));
            let times = |key| sample.float(key).and_then(|ms| scaled(ms, MS_US));
            set(&mut to.srtt_us, row, times("tcp_rtt"));
            set(&mut to.rttvar_us, row, times("tcp_rtt_var"));
            set(&mut to.bbr_min_rtt_us, row, times("tcp_bbr_mrtt"));
            let rates = |key| sample.float(key).and_then(|rate| scaled(rate, MBIT));
            set(
                &mut to.pacing_rate_bits_per_sec,
                row,
                rates("tcp_pacing_rate"),
            );
            set(
                &mut to.delivery_rate_bits_per_sec,
                row,
                rates("tcp_delivery_rate"),
            );
            set(&mut to.bbr_bw_bits_per_sec, row, rates("tcp_bbr_bw"));
            set(
                &mut to.bbr_pacing_gain,
                row,
                sample.float("tcp_bbr_pacing_gain"),
            );
            set(
                &mut to.bbr_cwnd_gain,
                row,
                sample.float("tcp_bbr_cwnd_gain"),
            );
            // Stations are called by their addresses.
            if matches!(self.anonymiser, Anonymiser::Keep)
                && let Some(more) = more(&sample)
            {
                to.more.set(row, &more);
            }
            rows += 1;
        }
        rows
    }

    pub fn test(&mut self, test: &Test<'_>, [points, samples]: [u64; 2]) {
        if self.tests.is_full() || self.metadata_held > METADATA_HELD_BYTES {
            put_away(&mut self.tests, &mut self.full);
            self.metadata_held = 0;
        }
        let metadata = test.metadata;
        let to = &mut self.tests;
        let row = to.add_row();
        name(&mut to.file, row, Some(test.file));
        name(&mut to.name, row, metadata.text("NAME"));
        let hide = &self.anonymiser;
        words(&mut to.title, row, metadata.text("TITLE"), hide);
        words(&mut to.note, row, metadata.text("NOTE"), hide);
        host(&mut to.host, row, metadata.text("HOST"), hide);
        host(&mut to.local_host, row, metadata.text("LOCAL_HOST"), hide);
        set(&mut to.t_unix_ns, row, test.t0_ns);
        let seconds = |key| metadata.float(key).and_then(ns);
        set(&mut to.duration_ns, row, seconds("TOTAL_LENGTH"));
        set(&mut to.load_ns, row, seconds("LENGTH"));
        set(&mut to.step_ns, row, seconds("STEP_SIZE"));
        set(&mut to.ip_version, row, metadata.int("IP_VERSION"));
        name(&mut to.kernel, row, metadata.text("KERNEL_RELEASE"));
        name(&mut to.batch, row, metadata.text("BATCH_UUID"));
        name(&mut to.version, row, metadata.text("FLENT_VERSION"));
        to.format_version.set(row, test.version);
        set(&mut to.points, row, i64::try_from(points).ok());
        set(&mut to.samples, row, i64::try_from(samples).ok());
        if matches!(self.anonymiser, Anonymiser::Keep) && metadata.value().is_object() {
            let json = metadata.value().to_string();
            if json.len() <= METADATA_BYTES {
                self.metadata_held += json.len();
                to.metadata.set(row, &json);
            } else {
                metadata
                    .odd()
                    .add(None, "metadata: longer than 16 MiB".into());
            }
        }
    }
}

impl<'a> Test<'a> {
    fn units(&self, series: &str) -> Option<&'a str> {
        let about = self.metadata.value().get("SERIES_META")?.get(series)?;
        about.get("UNITS")?.as_str()
    }

    /// Before format 4 some samples were not in the units that the series says.
    fn in_units(&self, series: &str, value: Option<f64>, is_mean: bool) -> Option<f64> {
        let value = value?;
        if self.version >= 4 {
            return Some(value);
        }
        match series {
            // Transactions per second of netperf UDP_RR.
            _ if series.contains("UDP") && is_mean => (value != 0.0).then(|| 1000.0 / value),
            "HTTP latency" => Some(value * 1000.0),
            _ => Some(value),
        }
    }
}

/// What no column has.
fn more(sample: &Part<'_>) -> Option<String> {
    const COLUMNS: [&str; 13] = [
        "t",
        "val",
        "dur",
        "seq",
        "tcp_cwnd",
        "tcp_rtt",
        "tcp_rtt_var",
        "tcp_pacing_rate",
        "tcp_delivery_rate",
        "tcp_bbr_bw",
        "tcp_bbr_mrtt",
        "tcp_bbr_pacing_gain",
        "tcp_bbr_cwnd_gain",
    ];
    let members = sample.value().as_object()?.iter();
    let others: Map<_, _> = members
        .filter(|(key, value)| !COLUMNS.contains(&key.as_str()) && !value.is_null())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if others.is_empty() {
        return None;
    }
    let json = Value::from(others).to_string();
    if json.len() > MORE_BYTES {
        sample
            .odd()
            .add(None, "raw_values: a sample longer than 64 KiB".into());
        return None;
    }
    Some(json)
}

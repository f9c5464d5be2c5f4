//! `flent_tests`, `flent_points` and `flent_samples`: what flent measured.

use knee_tables::{Name, Samples, Text, table};

table! {
    /// A row per test.
    "flent_tests" FlentTests {
        file: Option<Name>, "", "tcpknee", "file that it was read from, as it was named";
        name: Option<Name>, "", "NAME", "flent's name of the test, as in rrul";
        title: Option<Text>, "", "TITLE", "as given (-t)";
        note: Option<Text>, "", "NOTE", "as given (--note)";
        t_unix_ns: Option<i64>, "ns", "T0", "wall time of its beginning, since 1970-01-01 UTC; without a zone: the whole hours from UTC that the samples suggest";
        duration_ns: Option<i64>, "ns", "TOTAL_LENGTH", "length, with the delay before and after the load";
        load_ns: Option<i64>, "ns", "LENGTH", "length of the load (-l)";
        step_ns: Option<i64>, "ns", "STEP_SIZE", "between two measurements, and two points (-s)";
        host: Option<Text>, "", "HOST", "host of the far end (-H); ? where it is a name and addresses are anonymised";
        local_host: Option<Text>, "", "LOCAL_HOST", "host of this end; ? as above";
        ip_version: Option<i64>, "", "IP_VERSION", "4 or 6";
        kernel: Option<Name>, "", "KERNEL_RELEASE", "kernel of this end";
        batch: Option<Name>, "", "BATCH_UUID", "what tests of one batch have in common";
        version: Option<Name>, "", "FLENT_VERSION", "flent's";
        format_version: Option<i64>, "", "version", "of the file's format, 1 to 4";
        points: Option<i64>, "", "tcpknee", "rows of flent_points";
        samples: Option<i64>, "", "tcpknee", "rows of flent_samples";
        metadata: Option<Text>, "", "metadata", "all that flent noted, as JSON: commands, sysctls, qdiscs and devices of all hosts; null where addresses are anonymised";
    }
}

table! {
    /// A row per point that flent would draw: its series at equal steps. A step
    /// without a value has none.
    "flent_points" FlentPoints {
        file: Option<Name>, "", "tcpknee", "file that it was read from, as it was named";
        series: Option<Name>, "", "results", "flent's name of the series, as in TCP upload::1::tcp_rtt";
        units: Option<Name>, "", "SERIES_META UNITS", "of the values, as flent writes them; null: not told";
        t_ns: Option<i64>, "ns", "x_values", "since the test began";
        t_unix_ns: Option<i64>, "ns", "T0 + x_values", "wall time, since 1970-01-01 UTC";
        value: Option<f64>, "", "results", "interpolated from the samples, in the series' units";
    }
}

table! {
    /// A row per measurement, at the time at which it was taken. Columns shared
    /// with `samples` of a run have its names, units and meanings.
    "flent_samples" FlentSamples {
        file: Option<Name>, "", "tcpknee", "file that it was read from, as it was named";
        series: Option<Name>, "", "raw_values", "flent's name of what measured, as in TCP upload::1";
        units: Option<Name>, "", "SERIES_META UNITS", "of value, as flent writes them; null: not told";
        t_ns: Option<i64>, "ns", "t - T0", "since the test began";
        t_unix_ns: Option<i64>, "ns", "t", "wall time, since 1970-01-01 UTC";
        value: Option<f64>, "", "val", "what was measured, in the series' units; null: tcp_info alone";
        duration_us: Option<f64>, "us", "dur", "time that the value is a mean over";
        seq: Option<i64>, "", "seq", "number of the packet";
        snd_cwnd: Option<i64> = like Samples;
        srtt_us: Option<i64> = like Samples;
        rttvar_us: Option<i64> = like Samples;
        pacing_rate_bits_per_sec: Option<i64> = like Samples;
        delivery_rate_bits_per_sec: Option<i64> = like Samples;
        bbr_bw_bits_per_sec: Option<i64> = like Samples;
        bbr_min_rtt_us: Option<i64> = like Samples;
        bbr_pacing_gain: Option<f64> = like Samples;
        bbr_cwnd_gain: Option<f64> = like Samples;
        more: Option<Text>, "", "raw_values", "what else was measured at that time, as a JSON object: of qdiscs, processors and Wi-Fi stations; counters are since boot before format 4";
    }
}

//! `flent_tests`, `flent_points` and `flent_samples`: what flent measured.

use knee_store::column::{Names, Numbers, Texts};
use knee_store::table::observed;
use knee_tables::{Samples, Table as _};

observed! {
    /// A row per test.
    "flent_tests" FlentTests {
        file: Names = own("", "tcpknee", "file that it was read from, as it was named");
        name: Names = own("", "NAME", "flent's name of the test, as in rrul");
        title: Texts = own("", "TITLE", "as given (-t)");
        note: Texts = own("", "NOTE", "as given (--note)");
        t_unix_ns: Numbers<i64> = own("ns", "T0", "wall time of its beginning, since 1970-01-01 UTC; without a zone: the whole hours from UTC that the samples suggest");
        duration_ns: Numbers<i64> = own("ns", "TOTAL_LENGTH", "length, with the delay before and after the load");
        load_ns: Numbers<i64> = own("ns", "LENGTH", "length of the load (-l)");
        step_ns: Numbers<i64> = own("ns", "STEP_SIZE", "between two measurements, and two points (-s)");
        host: Texts = own("", "HOST", "host of the far end (-H); ? where it is a name and addresses are anonymised");
        local_host: Texts = own("", "LOCAL_HOST", "host of this end; ? as above");
        ip_version: Numbers<i64> = own("", "IP_VERSION", "4 or 6");
        kernel: Names = own("", "KERNEL_RELEASE", "kernel of this end");
        batch: Names = own("", "BATCH_UUID", "what tests of one batch have in common");
        version: Names = own("", "FLENT_VERSION", "flent's");
        format_version: Numbers<i64> = own("", "version", "of the file's format, 1 to 4");
        points: Numbers<i64> = own("", "tcpknee", "rows of flent_points");
        samples: Numbers<i64> = own("", "tcpknee", "rows of flent_samples");
        metadata: Texts = own("", "metadata", "all that flent noted, as JSON: commands, sysctls, qdiscs and devices of all hosts; null where addresses are anonymised");
    }
}

observed! {
    /// A row per point that flent would draw: its series at equal steps. A step
    /// without a value has none.
    "flent_points" FlentPoints {
        file: Names = own("", "tcpknee", "file that it was read from, as it was named");
        series: Names = own("", "results", "flent's name of the series, as in TCP upload::1::tcp_rtt");
        units: Names = own("", "SERIES_META UNITS", "of the values, as flent writes them; null: not told");
        t_ns: Numbers<i64> = own("ns", "x_values", "since the test began");
        t_unix_ns: Numbers<i64> = own("ns", "T0 + x_values", "wall time, since 1970-01-01 UTC");
        value: Numbers<f64> = own("", "results", "interpolated from the samples, in the series' units");
    }
}

observed! {
    /// A row per measurement, at the time at which it was taken. Columns shared
    /// with `samples` of a run have its names, units and meanings.
    "flent_samples" FlentSamples {
        file: Names = own("", "tcpknee", "file that it was read from, as it was named");
        series: Names = own("", "raw_values", "flent's name of what measured, as in TCP upload::1");
        units: Names = own("", "SERIES_META UNITS", "of value, as flent writes them; null: not told");
        t_ns: Numbers<i64> = own("ns", "t - T0", "since the test began");
        t_unix_ns: Numbers<i64> = own("ns", "t", "wall time, since 1970-01-01 UTC");
        value: Numbers<f64> = own("", "val", "what was measured, in the series' units; null: tcp_info alone");
        duration_us: Numbers<f64> = own("us", "dur", "time that the value is a mean over");
        seq: Numbers<i64> = own("", "seq", "number of the packet");
        snd_cwnd: Numbers<i64> = like(Samples::COLUMNS);
        srtt_us: Numbers<i64> = like(Samples::COLUMNS);
        rttvar_us: Numbers<i64> = like(Samples::COLUMNS);
        pacing_rate_bits_per_sec: Numbers<i64> = like(Samples::COLUMNS);
        delivery_rate_bits_per_sec: Numbers<i64> = like(Samples::COLUMNS);
        bbr_bw_bits_per_sec: Numbers<i64> = like(Samples::COLUMNS);
        bbr_min_rtt_us: Numbers<i64> = like(Samples::COLUMNS);
        bbr_pacing_gain: Numbers<f64> = like(Samples::COLUMNS);
        bbr_cwnd_gain: Numbers<f64> = like(Samples::COLUMNS);
        more: Texts = own("", "raw_values", "what else was measured at that time, as a JSON object: of qdiscs, processors and Wi-Fi stations; counters are since boot before format 4");
    }
}

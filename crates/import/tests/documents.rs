//! Output of iperf3 and files of flent become rows. The files in `data/iperf3`
//! were written by iperf 3.1, 3.12, 3.18 and 3.21 on a loopback device; only the
//! name of the host and of its kernel are others.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use knee_import::{Filled, Import as _, flent, iperf3};
use knee_store::Anonymiser;
use proptest::prelude::*;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/iperf3")
        .join(name)
}

fn iperf3(path: &Path) -> (iperf3::Importer, Vec<Filled>) {
    let mut importer = iperf3::Importer::new(Anonymiser::Keep);
    let mut rows = Vec::new();
    importer
        .read(path, |_, filled| -> io::Result<()> {
            rows.extend(filled);
            Ok(())
        })
        .unwrap();
    rows.extend(importer.rest());
    (importer, rows)
}

fn table<'a>(rows: &'a [Filled], name: &str) -> &'a RecordBatch {
    let mut found = rows.iter().filter(|(table, _)| *table == name);
    let (_, batch) = found.next().unwrap();
    assert!(found.next().is_none(), "a short test is one batch");
    batch
}

fn ints(batch: &RecordBatch, column: &str) -> Vec<Option<i64>> {
    let array = batch.column_by_name(column).unwrap();
    array.as_primitive::<Int64Type>().iter().collect()
}

fn floats(batch: &RecordBatch, column: &str) -> Vec<Option<f64>> {
    let array = batch.column_by_name(column).unwrap();
    array.as_primitive::<Float64Type>().iter().collect()
}

fn flags(batch: &RecordBatch, column: &str) -> Vec<Option<bool>> {
    let array = batch.column_by_name(column).unwrap();
    array.as_boolean().iter().collect()
}

#[test]
fn iperf_3_1_does_not_tell_who_sends_and_the_direction_does() {
    let (importer, rows) = iperf3(&data("v3.1-tcp.json"));
    assert_eq!(importer.report().not_understood, 0);
    let intervals = table(&rows, "iperf3_intervals");
    assert_eq!(flags(intervals, "sender"), [Some(true); 2]);
    assert_eq!(floats(intervals, "goodput_bits_per_sec"), [None; 2]);
    assert!(ints(intervals, "srtt_us").iter().all(Option::is_some));
    assert_eq!(ints(intervals, "pmtu_bytes"), [None; 2], "3.1 has none");

    let (_, rows) = iperf3(&data("v3.1-reverse-udp.json"));
    let intervals = table(&rows, "iperf3_intervals");
    assert_eq!(flags(intervals, "sender"), [Some(false); 2]);
    assert_eq!(floats(intervals, "written_bits_per_sec"), [None; 2]);
    assert!(ints(intervals, "lost_packets").iter().all(Option::is_some));
}

#[test]
fn omitted_seconds_lie_before_zero_and_no_interval_overlaps_another() {
    let (_, rows) = iperf3(&data("v3.12-reverse-omit.json"));
    let intervals = table(&rows, "iperf3_intervals");
    let (start, end) = (ints(intervals, "start_ns"), ints(intervals, "end_ns"));
    // The client's four, then the server's own output of the same test.
    assert_eq!(start[0], Some(-1_000_000_000));
    for at in 0..3 {
        assert!(start[at] < end[at] && (end[at].unwrap() - start[at + 1].unwrap()) < 1_000_000);
    }
    assert_eq!(
        flags(intervals, "omitted")[..4],
        [Some(true), Some(true), Some(false), Some(false)]
    );
    assert_eq!(flags(intervals, "sender")[4..], [Some(true); 2]);
}

#[test]
fn what_an_end_was_not_told_is_null_and_not_zero() {
    let (importer, rows) = iperf3(&data("v3.12-bidir-server.json"));
    assert_eq!(importer.report().not_understood, 0);
    let streams = table(&rows, "iperf3_streams");
    assert_eq!(flags(streams, "sender"), [Some(false), Some(true)]);
    assert_eq!(ints(streams, "bytes_written"), [None, Some(2_621_440)]);
    assert_eq!(ints(streams, "bytes_read"), [Some(2_621_440), None]);
    assert_eq!(flags(streams, "bidir"), [Some(true); 2]);
    let algorithm = streams.column_by_name("algorithm").unwrap();
    assert!(algorithm.is_null(0) && algorithm.is_valid(1));
}

#[test]
fn a_stream_of_events_is_read_as_the_object_that_repeats_it() {
    let full = fs::read_to_string(data("v3.21-full.json")).unwrap();
    let (importer, rows) = iperf3(&data("v3.21-full.json"));
    assert_eq!(importer.report().not_understood, 0);
    assert_eq!(importer.report().units, 2, "the client's and the server's");
    let folder = tempfile::tempdir().unwrap();
    let object = folder.path().join("object.json");
    fs::write(&object, &full[full.find("\n{\n").unwrap()..]).unwrap();
    let (_, of_object) = iperf3(&object);
    for name in ["iperf3_intervals", "iperf3_streams"] {
        let (events, object) = (table(&rows, name), table(&of_object, name));
        assert_eq!(events.num_rows(), object.num_rows());
        let columns = 1..events.num_columns(); // all but the file's name
        for column in columns {
            assert_eq!(events.column(column), object.column(column));
        }
    }
}

#[test]
fn a_stream_without_an_end_has_its_intervals_and_no_sums() {
    let (importer, rows) = iperf3(&data("v3.18-killed.json"));
    assert_eq!(importer.report().more.documents_without_end, 1);
    assert_eq!(importer.report().not_understood, 0);
    assert_eq!(table(&rows, "iperf3_intervals").num_rows(), 2);
    let streams = table(&rows, "iperf3_streams");
    assert_eq!(ints(streams, "bytes_written"), [None]);
}

#[test]
fn a_line_cut_off_loses_itself_alone() {
    let text = fs::read_to_string(data("v3.18-stream.json")).unwrap();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines[1].truncate(200);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.json");
    fs::write(&path, lines.join("\n")).unwrap();
    let (importer, rows) = iperf3(&path);
    assert_eq!(table(&rows, "iperf3_intervals").num_rows(), 2, "of four");
    assert_eq!(table(&rows, "iperf3_streams").num_rows(), 2);
    let report = importer.report();
    assert_eq!((report.units, report.not_understood), (1, 1));
    let (_, line, text) = &report.first[0];
    assert_eq!(*line, Some(2));
    assert!(text.contains("not JSON"), "{text}");
}

#[test]
fn a_value_longer_than_any_of_iperf3_is_refused_before_it_is_held() {
    let folder = tempfile::tempdir().unwrap();
    for (name, beginning) in [
        ("a", "{\"start\":\""),
        ("b", "{\"event\":\"start\",\"x\":\""),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, format!("{beginning}{}", "x".repeat(20 << 20))).unwrap();
        let (importer, rows) = iperf3(&path);
        assert!(rows.is_empty());
        let (_, _, text) = &importer.report().first[0];
        assert!(text.contains("longer than"), "{text}");
        assert!(importer.counts().bytes < 18 << 20);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Truncated, and with bytes of it changed.
    #[test]
    fn damaged_files_never_panic(
        which in 0..3usize,
        cut in 0.0..1.0f64,
        changes in proptest::collection::vec((0.0..1.0f64, any::<u8>()), 0..4),
    ) {
        let flent = r#"{"version":4,"metadata":{"NAME":"rrul","T0":"2026-08-21T12:00:00.5Z",
            "SERIES_META":{"a":{"UNITS":"ms"}}},"x_values":[0,0.2],"results":{"a":[1.5,null]},
            "raw_values":{"a":[{"t":1787313600.5,"val":1e3,"dur":0.2,"tcp_rtt":NaN,"n":{"b":1}}]}}"#;
        let mut text = match which {
            0 => fs::read(data("v3.12-omit.json")).unwrap(),
            1 => fs::read(data("v3.18-stream.json")).unwrap(),
            _ => flent.into(),
        };
        for (at, byte) in changes {
            let at = (at * text.len() as f64) as usize;
            text[at] = byte;
        }
        text.truncate((cut * 1.2 * text.len() as f64) as usize);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, &text).unwrap();
        // Bytes that gzip begins with may come about: then it cannot be read.
        let _ = iperf3::Importer::new(Anonymiser::Keep).read(&path, |_, _| io::Result::Ok(()));
        let _ = flent::Importer::new(Anonymiser::Keep).read(&path, |_, _| io::Result::Ok(()));
    }
}

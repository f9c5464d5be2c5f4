//! Segments outlive their writer.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use knee_store::folder::Folder;
use knee_store::schema;
use knee_store::segment::{Options, Recovered, Writer, keep, recover, segments, unfinished};
use knee_tables::{Batch, Sockets, Table};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

fn batch(from: i64, rows: i64) -> arrow_array::RecordBatch {
    let mut sockets = Sockets::default();
    for value in from..from + rows {
        let row = sockets.add_row();
        sockets.t_unix_ns.set(row, value);
        sockets
            .remote_addr
            .set(row, &format!("192.0.2.{}", value % 256));
        sockets
            .algorithm
            .set(row, if value % 2 == 0 { "bbr" } else { "cubic" });
        sockets.r#final.set(row, value % 3 == 0);
    }
    knee_store::take(&mut sockets)
}

fn options() -> Options {
    Options {
        group_age: Duration::ZERO,
        sync: false,
        ..Options::default()
    }
}

fn writer(dir: &Path, options: Options) -> Writer {
    Writer::create(dir, Sockets::NAME, schema::<Sockets>(), options).unwrap()
}

fn held(dir: &Path) -> Folder {
    Folder::open(dir).unwrap()
}

/// Times of the rows of a whole file, which is read in full.
fn rows(path: &Path) -> Vec<i64> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    times(builder.build().unwrap())
}

fn times(batches: ParquetRecordBatchReader) -> Vec<i64> {
    let mut found = Vec::new();
    for batch in batches {
        let batch = batch.unwrap();
        let times = batch.column_by_name("t_unix_ns").unwrap();
        let times = times
            .as_any()
            .downcast_ref::<arrow_array::Int64Array>()
            .unwrap();
        found.extend(times.values());
    }
    found
}

#[test]
fn a_finished_segment_holds_every_row_and_the_columns_descriptions() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), options());
    writer.write(&batch(0, 10)).unwrap();
    writer.commit().unwrap();
    writer.write(&batch(10, 5)).unwrap();
    let paths = writer.finish().unwrap();
    assert_eq!(paths, [dir.path().join("sockets-000001.parquet")]);
    assert_eq!(rows(&paths[0]), (0..15).collect::<Vec<_>>());
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(&paths[0]).unwrap()).unwrap();
    let srtt = builder.schema().field_with_name("srtt_us").unwrap().clone();
    assert_eq!(srtt.metadata()["unit"], "us");
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        1,
        "nothing else is left"
    );
}

/// A folder that need not reach a disk, where the system has one: thousands of
/// recoveries each wait for theirs.
fn memory_dir() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// A table of one column: files short enough to be cut at every byte.
fn narrow(from: i64, rows: i64) -> arrow_array::RecordBatch {
    let values = arrow_array::Int64Array::from_iter_values(from..from + rows);
    arrow_array::RecordBatch::try_from_iter([("t_unix_ns", Arc::new(values) as _)]).unwrap()
}

#[test]
fn a_writer_killed_at_any_byte_leaves_every_row_group_that_was_complete() {
    let dir = tempfile::tempdir().unwrap();
    let schema = narrow(0, 1).schema();
    let mut writer = Writer::create(dir.path(), "sockets", schema, options()).unwrap();
    let part = dir.path().join("sockets-000001.parquet.part");
    let groups = dir.path().join("sockets-000001.parquet.groups");
    // (bytes of the part, bytes of groups, rows) after each commit.
    let mut complete = vec![(0, 0, 0)];
    for sample in 0..3 {
        writer.write(&narrow(sample * 7, 7)).unwrap();
        writer.commit().unwrap();
        let size = |path: &Path| fs::metadata(path).unwrap().len();
        complete.push((size(&part), size(&groups), (sample + 1) * 7));
    }
    drop(writer);
    let (part, groups) = (fs::read(part).unwrap(), fs::read(groups).unwrap());
    let expected = |part_bytes: usize, group_bytes: usize| {
        let held = |(part, groups, _): &&(u64, u64, i64)| {
            *part <= part_bytes as u64 && *groups <= group_bytes as u64
        };
        complete.iter().rev().find(held).unwrap().2
    };
    let check = |part_bytes: usize, group_bytes: usize| {
        let dir = memory_dir();
        let name = dir.path().join("sockets-000001.parquet");
        fs::write(name.with_extension("parquet.part"), &part[..part_bytes]).unwrap();
        fs::write(
            name.with_extension("parquet.groups"),
            &groups[..group_bytes],
        )
        .unwrap();
        recover(&held(dir.path())).unwrap();
        let found = if name.exists() {
            rows(&name)
        } else {
            Vec::new()
        };
        let wanted = expected(part_bytes, group_bytes);
        assert_eq!(
            found,
            (0..wanted).collect::<Vec<_>>(),
            "cut at {part_bytes} and {group_bytes}"
        );
    };
    // The part is written first, so while it is short groups ends at an earlier
    // commit; reality is one of the two loops, the third is a lost write.
    for group_bytes in 0..=groups.len() {
        check(part.len(), group_bytes);
    }
    for part_bytes in 0..=part.len() {
        check(part_bytes, groups.len());
    }
}

#[test]
fn a_damaged_record_ends_the_list_of_groups() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), options());
    for sample in 0..2 {
        writer.write(&batch(sample * 7, 7)).unwrap();
        writer.commit().unwrap();
    }
    drop(writer);
    let groups = dir.path().join("sockets-000001.parquet.groups");
    let mut bytes = fs::read(&groups).unwrap();
    let last = bytes.len() - 100;
    bytes[last] ^= 1;
    fs::write(&groups, bytes).unwrap();
    let found = recover(&held(dir.path())).unwrap();
    let path = dir.path().join("sockets-000001.parquet");
    assert_eq!(
        found[0].1,
        Recovered::Whole {
            path: path.clone(),
            rows: 7
        }
    );
    assert_eq!(rows(&path), (0..7).collect::<Vec<_>>());
}

/// What a reader gets of the parts of a folder, as whole files.
fn seen(dir: &Path) -> Vec<Vec<i64>> {
    let parts = unfinished(dir).unwrap();
    let whole = |content: knee_store::segment::Content| {
        let mut bytes = vec![0; content.end as usize];
        content.file.read_exact_at(&mut bytes, 0).unwrap();
        bytes.extend(&content.footer);
        let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).unwrap();
        times(builder.build().unwrap())
    };
    parts
        .into_iter()
        .map(|part| whole(part.content.unwrap().unwrap()))
        .collect()
}

#[test]
fn a_reader_sees_the_complete_row_groups_of_a_part_while_it_is_written_and_after() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(
        dir.path(),
        Options {
            even_empty: true,
            ..options()
        },
    );
    writer.commit().unwrap();
    assert_eq!(
        seen(dir.path()),
        [Vec::<i64>::new()],
        "the columns are told before there are rows"
    );
    writer.write(&batch(0, 3)).unwrap();
    writer.commit().unwrap();
    writer.write(&batch(3, 3)).unwrap();
    assert_eq!(seen(dir.path()), [[0, 1, 2]]);
    writer.commit().unwrap();
    drop(writer);
    let files = |dir: &Path| -> Vec<_> {
        let entries = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = entries
            .map(|path| (fs::read(&path).unwrap(), path))
            .collect();
        files.sort();
        files
    };
    let before = files(dir.path());
    assert_eq!(seen(dir.path()), [[0, 1, 2, 3, 4, 5]]);
    assert_eq!(files(dir.path()), before, "reading changes nothing");
}

#[test]
fn a_table_without_rows_has_one_segment_however_often_it_is_begun() {
    let dir = tempfile::tempdir().unwrap();
    let even_empty = || Options {
        even_empty: true,
        ..options()
    };
    let path = dir.path().join("sockets-000001.parquet");
    assert_eq!(
        writer(dir.path(), even_empty()).finish().unwrap(),
        std::slice::from_ref(&path)
    );
    assert_eq!(
        writer(dir.path(), even_empty()).finish().unwrap(),
        Vec::<std::path::PathBuf>::new()
    );
    writer(dir.path(), even_empty()).commit().unwrap();
    assert_eq!(recover(&held(dir.path())).unwrap()[0].1, Recovered::Empty);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    assert_eq!(rows(&path), Vec::<i64>::new());
}

#[test]
fn a_part_that_is_no_file_of_ours_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("victim");
    fs::write(&victim, [7; 4096]).unwrap();
    let mut writer = writer(dir.path(), options());
    writer.write(&batch(0, 3)).unwrap();
    writer.commit().unwrap();
    drop(writer);
    let part = dir.path().join("sockets-000001.parquet.part");
    for link in [
        |from: &Path, to: &Path| std::os::unix::fs::symlink(from, to),
        |from: &Path, to: &Path| fs::hard_link(from, to),
    ] {
        fs::remove_file(&part).unwrap();
        link(&victim, &part).unwrap();
        let found = recover(&held(dir.path())).unwrap();
        assert!(matches!(&found[0].1, Recovered::Foreign(_)), "{found:?}");
        assert_eq!(fs::read(&victim).unwrap(), [7; 4096]);
    }
}

#[test]
fn the_part_of_a_living_writer_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), options());
    writer.write(&batch(0, 3)).unwrap();
    assert_eq!(recover(&held(dir.path())).unwrap()[0].1, Recovered::InUse);
    assert_eq!(rows(&writer.finish().unwrap()[0]), [0, 1, 2]);
}

#[test]
fn a_later_writer_goes_on_with_the_next_number() {
    let dir = tempfile::tempdir().unwrap();
    for number in 1..=3 {
        let mut writer = writer(dir.path(), options());
        writer.write(&batch(0, 1)).unwrap();
        let name = format!("sockets-{number:06}.parquet");
        assert_eq!(writer.finish().unwrap(), [dir.path().join(name)]);
    }
}

#[test]
fn the_segments_of_each_table_are_numbered_from_one() {
    let dir = tempfile::tempdir().unwrap();
    for table in ["sockets", "cpu", "tcp-sockets", "sockets"] {
        let schema = schema::<Sockets>();
        let mut writer = Writer::create(dir.path(), table, schema, options()).unwrap();
        writer.write(&batch(0, 5)).unwrap();
        writer.finish().unwrap();
    }
    let mut names: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "cpu-000001.parquet",
            "sockets-000001.parquet",
            "sockets-000002.parquet",
            "tcp-sockets-000001.parquet",
        ]
    );
}

#[test]
fn segments_rotate_by_size_and_the_oldest_go_when_the_bound_is_reached() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(
        dir.path(),
        Options {
            segment_bytes: 1,
            ..options()
        },
    );
    for sample in 0..5 {
        writer.write(&batch(sample, 1)).unwrap();
        writer.commit().unwrap();
    }
    assert_eq!(writer.finish().unwrap().len(), 5);
    fs::write(dir.path().join("notes.parquet"), "not a segment").unwrap();
    let folder = held(dir.path());
    let held = segments(&folder).unwrap();
    assert_eq!(held.len(), 5);
    let bound = held[3].bytes + held[4].bytes;
    assert_eq!(keep(&folder, bound).unwrap(), held[..3]);
    assert_eq!(segments(&folder).unwrap(), held[3..]);
    assert!(dir.path().join("notes.parquet").exists());
}

#[test]
fn a_full_disk_stops_the_writer_with_what_was_committed_whole() {
    let dir = tempfile::tempdir().unwrap();
    let size = nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS);
    let mounted = size.is_ok() && {
        use nix::mount::{MsFlags, mount};
        let private = mount(
            None::<&str>,
            "/",
            None::<&str>,
            MsFlags::MS_REC | MsFlags::MS_PRIVATE,
            None::<&str>,
        );
        private.is_ok()
            && mount(
                Some("tmpfs"),
                dir.path(),
                Some("tmpfs"),
                MsFlags::empty(),
                Some("size=1m"),
            )
            .is_ok()
    };
    if !mounted {
        eprintln!("skipped: a small file system needs root");
        return;
    }
    let mut writer = writer(dir.path(), options());
    let mut committed = 0;
    let error = loop {
        if let Err(error) = writer
            .write(&batch(committed, 100))
            .and_then(|()| writer.commit())
        {
            break error;
        }
        committed += 100;
    };
    assert!(error.to_string().contains("no space left"), "{error}");
    drop(writer);
    recover(&held(dir.path())).unwrap();
    let path = dir.path().join("sockets-000001.parquet");
    assert!(committed > 100);
    assert_eq!(rows(&path), (0..committed).collect::<Vec<_>>());
}

/// A dictionary of texts that do not repeat costs time and saves nothing.
#[test]
fn columns_of_distinct_texts_have_no_dictionary_and_the_same_rows() {
    let dir = tempfile::tempdir().unwrap();
    let distinct = Options {
        distinct: vec!["remote_addr".to_owned()],
        ..options()
    };
    let mut writer = writer(dir.path(), distinct);
    writer.write(&batch(0, 300)).unwrap();
    let [path]: [_; 1] = writer.finish().unwrap().try_into().unwrap();
    assert_eq!(rows(&path), (0..300).collect::<Vec<_>>());
    let file = File::open(&path).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let has_dictionary = |name: &str| {
        let columns = builder.metadata().row_group(0).columns();
        let column = columns
            .iter()
            .find(|column| column.column_path().string() == name);
        column.unwrap().dictionary_page_offset().is_some()
    };
    assert!(!has_dictionary("remote_addr"));
    assert!(has_dictionary("algorithm"));
    let read: Vec<_> = builder.build().unwrap().map(Result::unwrap).collect();
    assert_eq!(
        read[0].column_by_name("remote_addr"),
        batch(0, 300).column_by_name("remote_addr")
    );
}

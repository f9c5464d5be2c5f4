//! Parts of tables, and the tables that are made of them.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use knee_store::folder::Folder;
use knee_store::parts::{Error, Part, compose};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

const GROUP_ROWS: usize = 1 << 17;

/// Rows of a table with a column of each kind that tables have, `flow` counting from `from` on.
fn rows(from: usize, count: usize) -> RecordBatch {
    let words = ["open", "loss", "undo", "closed", "tlp"];
    let number = || from..from + count;
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "flow",
            Arc::new(Int32Array::from_iter_values(number().map(|n| n as i32))),
        ),
        (
            "share",
            Arc::new(Float64Array::from_iter(
                number().map(|n| (n % 7 != 0).then_some(n as f64 / 3.0)),
            )),
        ),
        (
            "name",
            Arc::new(StringArray::from_iter_values(
                number().map(|n| format!("flow {}", n / 50)),
            )),
        ),
        (
            "event",
            Arc::new(
                number()
                    .map(|n| words[n * n % words.len()])
                    .collect::<DictionaryArray<Int32Type>>(),
            ),
        ),
    ];
    let meaning = HashMap::from([("unit".to_owned(), "us".to_owned())]);
    let field = |(name, values): &(&str, ArrayRef)| {
        let nullable = values.data_type() == &DataType::Float64;
        Field::new(*name, values.data_type().clone(), nullable).with_metadata(meaning.clone())
    };
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let arrays = columns.into_iter().map(|(_, values)| values).collect();
    RecordBatch::try_new(Arc::new(schema), arrays).expect("columns of one length")
}

/// A part whose table `flows` has these batches; its file.
fn part(folder: &Path, name: &str, batches: &[RecordBatch]) -> PathBuf {
    let mut part = Part::new(&Folder::make(folder).unwrap(), name, "flows");
    for batch in batches {
        part.write("flows", batch).unwrap();
    }
    part.keep(name).unwrap();
    folder.join(format!("{name}.flows.parquet"))
}

fn composed(
    folder: &Path,
    parts: &[PathBuf],
    order: Option<&str>,
) -> (PathBuf, Vec<Option<String>>) {
    let path = folder.join("flows.parquet");
    let file = File::create(&path).unwrap();
    let notes = compose(parts, order, file, &path).unwrap_or_else(|error| panic!("{error}"));
    (path, notes)
}

/// The numbers in the column `flow`, and how many rows each row group has.
fn read(path: &Path) -> (Vec<i32>, Vec<usize>) {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let groups = builder.metadata().row_groups().iter();
    let groups = groups.map(|group| group.num_rows() as usize).collect();
    let mut numbers = Vec::new();
    for batch in builder.build().unwrap() {
        let batch = batch.unwrap();
        let column = batch
            .column(0)
            .as_any()
            .downcast_ref::<Int32Array>()
            .unwrap();
        numbers.extend(column.values().iter().copied());
    }
    (numbers, groups)
}

/// All its rows.
fn table(path: &Path) -> Vec<RecordBatch> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let batches = builder.build().unwrap();
    batches.collect::<Result<_, _>>().unwrap()
}

#[test]
fn the_bytes_of_a_part_do_not_depend_on_how_its_rows_came() {
    let dir = tempfile::tempdir().unwrap();
    let count = GROUP_ROWS + 20_000;
    let whole = part(dir.path(), "whole", &[rows(0, count)]);
    for sizes in [
        vec![1, 1022, 1, 1, 1023, 5000],
        vec![100_003],
        vec![16_384, 700],
    ] {
        let (mut from, mut batches) = (0, Vec::new());
        for size in sizes.iter().cycle() {
            if from == count {
                break;
            }
            let size = (*size).min(count - from);
            batches.push(rows(from, size));
            from += size;
        }
        let other = part(dir.path(), "whole2", &batches);
        let [one, two] = [&whole, &other].map(|path| std::fs::read(path).unwrap());
        // Behind the rows a file has the names of its parts, and one of these is a byte longer.
        let until = one.len() - 20_000;
        assert!(one[..until] == two[..until], "{sizes:?}");
        assert_eq!(read(&whole), read(&other), "{sizes:?}");
    }
}

#[test]
fn large_row_groups_are_copied_and_small_ones_put_together() {
    let dir = tempfile::tempdir().unwrap();
    let sizes = [10, 20, GROUP_ROWS + 30, 16_384, 16_383, 16_383];
    let (mut from, mut parts) = (0, Vec::new());
    for (number, size) in sizes.into_iter().enumerate() {
        parts.push(part(dir.path(), &format!("p{number}"), &[rows(from, size)]));
        from += size;
    }
    let (path, notes) = composed(dir.path(), &parts, None);
    let (numbers, groups) = read(&path);
    assert!(numbers.into_iter().eq(0..from as i32));
    assert_eq!(groups, [30, GROUP_ROWS, 30, 16_384, 2 * 16_383]);
    assert_eq!(notes[5].as_deref(), Some("p5"));
}

#[test]
fn a_composed_table_has_the_bytes_of_one_that_was_written_at_once() {
    let dir = tempfile::tempdir().unwrap();
    for count in [0, 1, 1024, 3000, 40_000] {
        let whole = part(dir.path(), "whole", &[rows(0, count)]);
        let (once, _) = composed(dir.path(), &[whole], None);
        let once = std::fs::read(once).unwrap();
        let halves = [rows(0, count / 2), rows(count / 2, count - count / 2)];
        if halves.iter().any(|half| half.num_rows() >= 16_384) {
            continue;
        }
        let halves = [("a", &halves[0]), ("b", &halves[1])];
        let halves = halves.map(|(name, half)| part(dir.path(), name, std::slice::from_ref(half)));
        let (twice, _) = composed(dir.path(), &halves, None);
        assert!(once == std::fs::read(twice).unwrap(), "{count} rows");
    }
}

#[test]
fn columns_keep_their_metadata_and_tables_have_no_note() {
    let dir = tempfile::tempdir().unwrap();
    let one = part(dir.path(), "one", &[rows(0, 10)]);
    let (path, _) = composed(dir.path(), &[one], None);
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    assert_eq!(*builder.schema(), rows(0, 0).schema());
}

#[test]
fn rows_of_a_part_that_came_out_of_order_are_put_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let count = 2 * GROUP_ROWS + 100;
    // Every eighth comes after the others, as connections that end late do.
    let late = rows(0, count);
    let is_late = |n: &u32| n.is_multiple_of(8);
    let order: Vec<u32> = (0..count as u32)
        .filter(|n| !is_late(n))
        .chain((0..count as u32).filter(is_late))
        .collect();
    let mixed = order.chunks(10_000).map(|some| {
        let positions = arrow_array::UInt32Array::from(some.to_vec());
        let columns = late.columns().iter();
        let columns =
            columns.map(|column| arrow_select::take::take(column, &positions, None).unwrap());
        RecordBatch::try_new(late.schema(), columns.collect()).unwrap()
    });
    let mixed = part(dir.path(), "mixed", &mixed.collect::<Vec<_>>());
    let (path, _) = composed(dir.path(), &[mixed], Some("flow"));
    let sorted = table(&path);
    let whole = part(dir.path(), "whole", &[rows(0, count)]);
    let (path, _) = composed(dir.path(), &[whole], Some("flow"));
    let (numbers, _) = read(&path);
    assert!(numbers.into_iter().eq(0..count as i32));
    assert!(sorted == table(&path));
}

#[test]
fn a_part_that_is_not_kept_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let names = || Folder::make(dir.path()).unwrap().names().unwrap();
    let mut part = Part::new(&Folder::make(dir.path()).unwrap(), "p", "flows");
    part.write("flows", &rows(0, 10)).unwrap();
    part.write("events", &rows(0, 10)).unwrap();
    let under_way = names();
    assert_eq!(under_way.len(), 2);
    assert!(
        under_way.iter().all(|name| name.ends_with(".tmp")),
        "{under_way:?}"
    );
    drop(part);
    assert_eq!(names(), [""; 0]);
}

#[test]
fn what_is_no_part_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let one = part(dir.path(), "one", &[rows(0, 10)]);
    let cut = dir.path().join("cut.flows.parquet");
    let bytes = std::fs::read(&one).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let other = rows(0, 10).project(&[0, 1]).unwrap();
    let other = part(dir.path(), "other", &[other]);
    let gone = dir.path().join("gone.flows.parquet");
    for bad in [cut, other, gone] {
        let path = dir.path().join("flows.parquet");
        let file = File::create(&path).unwrap();
        let error = compose(&[one.clone(), bad.clone()], None, file, &path).unwrap_err();
        assert!(matches!(error, Error::Read { .. }), "{error}");
        let name = bad.display().to_string();
        assert!(
            error
                .to_string()
                .starts_with(&format!("{name}: cannot be read: ")),
            "{error}"
        );
    }
}

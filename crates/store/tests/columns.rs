//! Rows that are filled at once are those that are set one by one.

use knee_store::take;
use knee_tables::{Assignments, Batch, ROWS};

fn one_by_one(rows: usize) -> Assignments {
    let mut table = Assignments::default();
    for at in 0..rows {
        let row = table.add_row();
        table.host.set(row, "edge1");
        table.seed.set(row, 7);
        table.arm.set(row, ["new", "old"][at % 2]);
    }
    table
}

fn at_once(table: &mut Assignments, rows: usize) {
    table.host.fill(rows, "edge1");
    table.seed.fill(rows, 7);
    let keys = ["new", "old"].map(|name| table.arm.key(name));
    for at in 0..rows {
        let row = table.add_row();
        table.arm.set_key(row, keys[at % 2]);
    }
}

#[test]
fn a_batch_that_is_filled_at_once_equals_one_set_row_by_row() {
    let mut filled = Assignments::default();
    // The same table again and again: nothing of one batch is left in the next.
    for rows in [ROWS, 0, 1, 7, 8, 9, 64, 1000, ROWS - 1, ROWS] {
        at_once(&mut filled, rows);
        assert_eq!(
            take(&mut filled),
            take(&mut one_by_one(rows)),
            "{rows} rows"
        );
    }
}

#[test]
fn a_column_that_is_not_filled_stays_without_values() {
    let mut table = Assignments::default();
    at_once(&mut table, 5);
    let batch = take(&mut table);
    let nulls = |name: &str| batch.column_by_name(name).map(|column| column.null_count());
    assert_eq!(nulls("host"), Some(0));
    assert_eq!(nulls("boot_id"), Some(5));
}

#[test]
#[should_panic(expected = "no more rows")]
fn more_rows_than_a_batch_has_are_refused() {
    Assignments::default().seed.fill(ROWS + 1, 7);
}

//! Tables that must match a file of tests/golden to the letter.

/// Asserts it. With `KNEE_WRITE_GOLDEN` the file is written anew first.
pub fn assert_golden(table: &str, name: &str, test: &str) {
    let file = format!("{}/../../tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var("KNEE_WRITE_GOLDEN").is_ok() {
        std::fs::write(&file, table).expect("the golden table can be written");
    }
    let golden = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        table == golden,
        "results differ from tests/golden/{name}:\n{golden}\nnow:\n{table}\n\
         If that is meant: KNEE_WRITE_GOLDEN=1 cargo test -p {} --test {test}",
        env!("CARGO_PKG_NAME"),
    );
}

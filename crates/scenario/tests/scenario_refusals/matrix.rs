//! Lists of values, and the cells that they make.

use super::refused;
use crate::common::{self, edited, read};

#[test]
fn lists_that_make_no_axis_are_refused() {
    refused(&[
        (
            r#"rtt = "100ms""#,
            "rtt = []",
            r#"s.toml:5: path.rtt: got an empty list; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from 0s to 60s, or a list of such values. Leave the key out to have its default."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = ["1ms", "1ms"]"#,
            r#"s.toml:5: path.rtt: got "1ms" twice in a list; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from 0s to 60s, or a list of such values. Remove one; `repeat` repeats a cell."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = ["10ms", "0.01s"]"#,
            r#"s.toml:5: path.rtt: got "0.01s" beside "10ms", which is the same; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from 0s to 60s, or a list of such values. Remove one; `repeat` repeats a cell."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = ["1ms", 2]"#,
            r#"s.toml:5: path.rtt: got the bare number 2; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from 0s to 60s. Write it with its unit, in quotes."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = [["1ms"]]"#,
            r#"s.toml:5: path.rtt: got a list within a list; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from 0s to 60s, or a list of such values. Write one flat list."#,
        ),
        (
            r#"rtt = "100ms""#,
            r#"rtt = [
  "1ms",
  "61s",
]"#,
            r#"s.toml:7: path.rtt: got "61s"; expected a length of time such as "100ms" (ns, us, ms, s, min, h) from 0s to 60s."#,
        ),
        (
            r#"duration = "10s""#,
            r#"duration = "10s"
repeat = [1, 2]"#,
            "s.toml:2: repeat: got a list; expected a whole number from 1 to 10000. This key cannot be an axis of the matrix.",
        ),
        (
            r#"duration = "10s""#,
            r#"duration = "10s"
title = ["a", "b"]"#,
            "s.toml:2: title: got a list; expected text on one line, in quotes. This key cannot be an axis of the matrix.",
        ),
        (
            r#"algorithm = "cubic""#,
            r#"algorithm = "cubic"
name = ["a", "b"]"#,
            r#"s.toml:9: flow.0.name: got a list; expected a name of letters, digits and "_" that begins with a letter, in quotes. This key cannot be an axis of the matrix."#,
        ),
        (
            r#"duration = "10s""#,
            r#"duration = ["1s", "2s"]
warmup = "1s""#,
            r#"s.toml:2: warmup: got "1s"; expected less than the duration, "1s". Shorten the warm-up, or lengthen the run."#,
        ),
    ]);
}

#[test]
fn a_matrix_too_large_is_refused_with_its_size() {
    let list: Vec<String> = (1..=400).map(|n| n.to_string()).collect();
    let axis = |table: &str| format!("[{table}]\ninitcwnd = [{}]\n", list.join(", "));
    let text = common::GOOD.to_string() + &axis("receiver") + &axis("sender");
    assert_eq!(
        read(&text).unwrap_err().to_string(),
        "s.toml:12: sender.initcwnd: the matrix has 160000 cells; expected at most 100000. \
         Shorten the lists, or split the file."
    );
}

#[test]
fn the_last_cell_of_a_matrix_is_checked_like_the_first() {
    let error = read(&edited(
        "rtt = \"100ms\"",
        "rtt = [\"100ms\", \"2ms\"]\nbuffer = \"0.1bdp\"",
    ))
    .unwrap_err();
    assert_eq!(error.list[0].line, 6);
    assert!(
        error
            .to_string()
            .contains("1250B of path.rate 50Mbit/s and path.rtt 2ms"),
        "{error}"
    );
}

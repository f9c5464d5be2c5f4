//! Text that is not TOML, and files that a scenario names.

use crate::common::{self, edited, read};

/// The words are the TOML library's; the line and the frame are ours.
#[test]
fn what_is_not_toml_is_refused_at_its_line() {
    let rows = [
        (r#"duration = "10s""#, "duration = 10s", 1),
        (r#"duration = "10s""#, r#"duration = "10s"#, 1),
        (r#"duration = "10s""#, r#"duration "10s""#, 1),
        (
            r#"duration = "10s""#,
            r#"duration = "10s"
duration = "10s""#,
            2,
        ),
        ("[path]", "[path", 3),
        (r#"rtt = "100ms""#, "rtt = 99999999999999999999", 5),
        (
            "[path]",
            r#"[path]
[path]"#,
            4,
        ),
        (r#"duration = "10s""#, r#"duration = "10s" "20s""#, 1),
    ];
    for (from, to, line) in rows {
        let error = read(&edited(from, to)).expect_err(to).to_string();
        assert!(
            error.starts_with(&format!("s.toml:{line}: not valid TOML: ")),
            "{to:?}: {error}"
        );
        assert!(
            error.ends_with("Correct this line; https://toml.io describes the format."),
            "{error}"
        );
    }
}

#[test]
fn what_was_composed_elsewhere_is_named_in_its_errors() {
    let error =
        knee_scenario::parse("duration = 3", "<command line>", &common::names()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("<command line>:1: duration: got the bare number 3; "),
        "{error}"
    );
}

#[test]
fn files_that_cannot_be_used_are_refused_with_their_own_line() {
    let refusal = |file: &str, loss: &str| {
        let text = format!(
            "duration = \"3s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"10ms\"\nloss = \"{loss}\"\n[[flow]]\nalgorithm = \"cubic\"\n"
        );
        let error = knee_scenario::parse(&text, file, &common::names());
        error.expect_err("the file is no good").to_string()
    };
    assert_eq!(
        refusal("lab/s.toml", "trace bad.txt"),
        "lab/s.toml:5: path.loss: lab/bad.txt:2: got \"x\" behind 18; expected the number of a packet from 1 to 100000000; numbers rise."
    );
    assert!(
        refusal("s.toml", "trace none.txt")
            .starts_with("s.toml:5: path.loss: none.txt: cannot be read: ")
    );
    assert_eq!(
        refusal("s.toml", "gilbert 90% burst 5"),
        "s.toml:5: path.loss: got \"gilbert 90% burst 5\"; expected a loss of at most 83.3333333333% when bursts are 5 packets long, because a packet that is not lost lies between two bursts."
    );
}

//! Files that errors may not quote: whoever wrote the scenario named them, and they may be another's secret.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use knee_scenario::{Names, keys, parse};
use knee_units::files::{Found, ReadFile};

use crate::common::names;

/// What no error may hold.
const SECRETS: [&str; 2] = ["hunter2", "7654321"];

/// Each is no good, to every reader or to one of them.
const CONTENTS: [&str; 21] = [
    "hunter2:*:20228:0:99999:7:::\n",
    "hunter2 7654321\n",
    "7654321\n",
    "7654321\n5\n",
    "5\nhunter2\n",
    "100 0.5\nhunter2 0.7\n",
    "7654321 0.5\n5 1\n",
    "10 7654321\n",
    "[costs\nhunter2",
    "[hunter2]\n",
    "[costs]\nhunter2 = 1\n",
    "[costs]\nwakeup_ns = { ns = \"hunter2\", low = 7654321 }\n",
    "hunter2,path.rtt\n1Mbit/s,10ms\n",
    "path.hunter2\n10ms\n",
    "path.rtt\n10ms,hunter2\n",
    "path.rtt\nhunter2\n",
    "path.ack_loss\ntrace hunter2\n",
    "flow.0.algorithm\nhunter2\n",
    "flow.0.bbr1.hunter2\n7654321\n",
    "flow.0.bbr1.drain_gain\n7654321\n",
    "flow.0.sizes\npareto shape 1.2 from 7654321B to 5B\n",
];

/// A scenario in which that key has that value: as good as it can be without knowing what the key is.
fn scenario(key: &str, value: &str) -> String {
    let (table, name) = key.split_once('.').unwrap_or(("", key));
    let set = format!("{name} = \"{value}\"\n");
    let of = |wanted: &str| if table == wanted { set.as_str() } else { "" };
    let mut text = format!(
        "{}duration = \"1s\"\n[path]\n{}[sender]\n{}[receiver]\n{}[[flow]]\nalgorithm = \"bbr1\"\nworkload = \"web\"\nload = \"1Mbit/s\"\n{}",
        of(""),
        of("path"),
        of("sender"),
        of("receiver"),
        of("flow"),
    );
    for list in ["sample", "zip", "expect", "published"] {
        if table == list {
            text += &format!("[[{list}]]\n{set}");
        }
    }
    text
}

/// What is said of the scenario where each file that it names holds that, and how many it named.
fn said(text: &str, content: &'static str, may_be_quoted: bool) -> (String, usize) {
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = reads.clone();
    let read = move |_: &str| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(Found {
            text: content.into(),
            may_be_quoted,
        })
    };
    let names = Names {
        read_file: Some(ReadFile::new(read)),
        ..names()
    };
    let said = parse(text, "s.toml", &names).map_or_else(|error| error.to_string(), |_| "".into());
    (said, reads.load(Ordering::Relaxed))
}

#[test]
fn no_key_that_names_a_file_makes_an_error_quote_it_where_it_may_not() {
    let (mut naming, mut quoting) = (BTreeSet::new(), BTreeSet::new());
    for key in keys() {
        for form in ["trace", "cdf", "file", ""] {
            let text = scenario(&key.path, format!("{form} named.txt").trim());
            for content in CONTENTS {
                let (error, reads) = said(&text, content, false);
                if reads == 0 {
                    break;
                }
                naming.insert(key.path.clone());
                for secret in SECRETS {
                    assert!(!error.contains(secret), "{}: {error}", key.path);
                }
                let (error, _) = said(&text, content, true);
                if SECRETS.iter().any(|secret| error.contains(secret)) {
                    quoting.insert(key.path.clone());
                }
            }
        }
    }
    // The search reaches each reader, and finds the words of each in its errors where they may stand there.
    for key in [
        "path.rate",
        "path.loss",
        "flow.sizes",
        "sender.costs",
        "sample.file",
    ] {
        assert!(naming.contains(key), "{key}: {naming:?}");
    }
    assert_eq!(quoting, naming);
}

#[test]
fn line_and_what_was_expected_are_said_of_what_is_not_shown() {
    for (key, value, content, expected) in [
        (
            "path.rate",
            "trace a/b.up",
            "5\nhunter2\n",
            "path.rate: a/b.up:2: got something which is not shown here, as the file lies outside of the scenario's folder; expected whole milliseconds up to 86400000, which never fall.",
        ),
        (
            "sample.file",
            "p.csv",
            "path.rtt,path.hunter2\n10ms,1\nhunter2,2\n",
            "sample.0: p.csv: column 2, which is not shown here, as the file lies outside of the scenario's folder: unknown key; known here: ",
        ),
        (
            "sample.file",
            "p.csv",
            "path.rtt\n10ms\nhunter2\n",
            "sample.0: p.csv: row 2: path.rtt: got something which is not shown here, as the file lies outside of the scenario's folder; expected a length of time such as",
        ),
    ] {
        let (error, _) = said(&scenario(key, value), content, false);
        assert!(error.contains(expected), "{error}");
    }
}

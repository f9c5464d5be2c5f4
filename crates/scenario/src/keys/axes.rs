//! The keys of `[[zip]]` and `[[sample]]`.

use crate::key::Default::{Required, Value, Words};
use crate::key::{Key, fixed, key, kind};

use crate::axes::MAX_CELLS;

pub(super) static ZIP: &[Key] = &[fixed(key(
    "keys",
    &kind::Keys,
    Required("[\"path.rate\", \"path.rtt\"]"),
    "axes that vary together: the first values of all lists make one step, the second ones the next. The lists have the same length and stand at their keys; a key is written as in messages, flow.0.algorithm for that of the first flow",
    "tcpknee",
))];

pub(super) static SAMPLE: &[Key] = &[
    fixed(key(
        "file",
        kind::LINE,
        Words("none; the table's other keys have distributions"),
        "a table of paths, CSV or Parquet, beside the scenario: each column is named by a key and has its values, each row is a path",
        "tcpknee",
    )),
    fixed(key(
        "rows",
        kind::ROWS,
        Words("all"),
        "the rows of file that count",
        "tcpknee",
    )),
    fixed(key(
        "count",
        &kind::Count {
            min: 1,
            max: MAX_CELLS,
        },
        Words("all rows; required without file"),
        "how many paths: rows of file that are chosen at random, none twice, or draws from the distributions",
        "tcpknee",
    )),
    fixed(key(
        "seed",
        &kind::Count {
            min: 0,
            max: i64::MAX as u64,
        },
        Value("1"),
        "where these draws start; the scenario's own seed does not change them",
        "tcpknee",
    )),
];

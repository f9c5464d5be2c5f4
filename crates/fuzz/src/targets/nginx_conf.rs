//! `log_format` directives of nginx configurations: the first line names the
//! format, the rest is the file.

use knee_import::nginx::{Format, log_format};

use super::sample;
use crate::Target;

pub const TARGET: Target = Target {
    name: "nginx_conf",
    about: "log_format directives of nginx configurations",
    seeds: &seeds,
    words: &[
        "log_format ",
        "main",
        "escape=json",
        "escape=none",
        "escape=",
        ";",
        "{",
        "}",
        "'",
        "\"",
        "\\\"",
        "\\'",
        "\\n",
        "\\\\",
        "#",
        "${status}",
        "$",
        "$status ",
        "http {",
        "\n",
    ],
    check: &check,
};

fn seeds() -> Vec<Vec<u8>> {
    let conf = sample("crates/import/tests/data/nginx/nginx.conf");
    ["structured", "transport", "none"]
        .map(|name| [name.as_bytes(), b"\n", &conf].concat())
        .to_vec()
}

fn check(input: &[u8]) -> usize {
    let text = String::from_utf8_lossy(input);
    let (name, conf) = text.split_once('\n').unwrap_or((&text, ""));
    match log_format(conf, name) {
        Ok((format, escape)) => {
            assert!(format.len() <= conf.len(), "words are cut out of the file");
            if let Ok(compiled) = Format::compile(&format, escape) {
                assert_eq!(compiled.escape(), escape);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    // A word has a header of its own, and a line may be all words; a compiled
    // literal has what makes it quick to find.
    (1 << 20) + 512 * input.len()
}

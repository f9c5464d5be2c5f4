//! Damaged scenario files: each is refused, a paragraph for each mistake, or is still a
//! scenario. None makes the parser panic.

use crate::common::refusal::assert_is_a_paragraph_for_each_mistake;
use crate::common::{FILE, GOOD, read};
use knee_units::rng::Stream;
use proptest::prelude::*;

/// A file that uses every kind of value and table.
const RICH: &str = r#"title = "Everything"
claim = "loss-1.5"
duration = "30s"
warmup = "5s"
repeat = 3
seed = 7
sample_interval = "10ms"

[path]
rate = ["50Mbit/s", "1Gbit/s"]
rtt = "100ms"
loss = ["0%", "1.5%", "periodic 0.1%"]
ack_loss = "0.1%"
buffer = "2bdp"
queue = "fifo"
mtu = "1500B"
overhead = "14B"

[sender]
tcp_wmem_max = "4MiB"
pacing = "fq"
initcwnd = 10
tcp_slow_start_after_idle = false

[receiver]
tcp_rmem_max = "6MiB"
gro = true
rx_coalesce = "20us"
noise = "20us"

[[flow]]
algorithm = ["cubic", "bbr1"]
bbr1.drain_gain = 1.2
workload = "transfer"
bytes = "10MB"
count = 4
stagger = "100ms"

[[flow]]
name = "ask"
algorithm = "reno"
workload = "request-response"
request = "44B"
response = "5kB"
depth = 4
requests = "unlimited"
max_pacing_rate = "10Mbit/s"
rtt = "20ms"

[[expect]]
assert = "bbr1.goodput / cubic.goodput >= 2"

[[published]]
value = "cubic.goodput"
figure = "611Mbit/s"
source = "article, 10 Gbit/s"
"#;

/// Whatever the text, the parser answers; the refusals' texts are returned.
fn answer(text: &str) -> Option<String> {
    let error = read(text).err()?.to_string();
    assert_is_a_paragraph_for_each_mistake(&error, FILE, text);
    Some(error)
}

/// A number below `n` from the stream.
fn below(rng: &mut Stream, n: usize) -> usize {
    (rng.next_u64() % n as u64) as usize
}

/// Damages that no reading of the file survives.
fn broken(rng: &mut Stream) -> String {
    let lines: Vec<&str> = RICH.lines().collect();
    let settings: Vec<usize> = (0..lines.len())
        .filter(|i| lines[*i].contains(" = "))
        .collect();
    let at = settings[below(rng, settings.len())];
    let (key, value) = lines[at]
        .split_once(" = ")
        .expect("a setting has an equals sign");
    let is_number = value.starts_with(|c: char| c.is_ascii_digit());
    let line = match below(rng, 13) {
        0 => format!("{key}x = {value}"),
        1 => format!("{key} = "),
        2 => format!("{key} {value}"),
        3 => format!("{key} = {value} {value}"),
        4 => format!("{key} = {{ {key} = {value} }}"),
        5 => format!("{key} = 2026-11-21T00:00:00Z"),
        6 => format!("{key} = {}{}", "[".repeat(5_000), "]".repeat(5_000)),
        7 => format!("{key} = {}", "9".repeat(400)),
        8 => format!("{key} = nan"),
        9 => format!("{key} = []"),
        10 => format!(
            "{key} = \"-1{}\"",
            value.trim_matches(|c: char| !c.is_alphabetic())
        ),
        11 if is_number => format!("{key} = \"{value}\""),
        11 => format!(
            "{key} = {}",
            value.trim_matches('"').trim_matches(['[', ']'])
        ),
        _ => format!("{}\n{}", lines[at], lines[at]),
    };
    let mut damaged: Vec<String> = lines.iter().map(|line| line.to_string()).collect();
    damaged[at] = line;
    damaged.join("\n")
}

#[test]
fn a_thousand_broken_files_are_each_refused_in_one_paragraph() {
    let mut rng = Stream::new(1, "malformed");
    let refusals: Vec<String> = (0..1_000)
        .filter_map(|_| answer(&broken(&mut rng)))
        .collect();
    // Now and then a damage leaves the value as it may be: a title "-1…", say.
    assert!(refusals.len() >= 950, "only {} refusals", refusals.len());
    let different: std::collections::HashSet<&String> = refusals.iter().collect();
    assert!(
        different.len() >= 200,
        "only {} different refusals",
        different.len()
    );
}

#[test]
fn every_truncation_is_answered() {
    let refused = (0..RICH.len())
        .filter(|end| answer(&RICH[..*end]).is_some())
        .count();
    // All but those that end behind a complete second [[flow]] are refused.
    assert!(refused > RICH.len() / 2, "{refused} of {}", RICH.len());
}

#[test]
fn every_deleted_doubled_or_changed_character_is_answered() {
    for (at, c) in RICH.char_indices() {
        let (before, after) = (&RICH[..at], &RICH[at + c.len_utf8()..]);
        for instead in ["", "\"", "\n", "0", "-", "\u{0}", "é", "[", "\\"] {
            answer(&format!("{before}{instead}{after}"));
        }
    }
}

#[test]
fn every_two_values_swapped_are_answered() {
    let lines: Vec<&str> = RICH.lines().collect();
    let settings: Vec<usize> = (0..lines.len())
        .filter(|i| lines[*i].contains(" = "))
        .collect();
    let mut refused = 0;
    for (i, a) in settings.iter().enumerate() {
        for b in &settings[i + 1..] {
            let split = |at: usize| {
                lines[at]
                    .split_once(" = ")
                    .expect("a setting has an equals sign")
            };
            let ((key_a, value_a), (key_b, value_b)) = (split(*a), split(*b));
            let mut swapped: Vec<String> = lines.iter().map(|line| line.to_string()).collect();
            swapped[*a] = format!("{key_a} = {value_b}");
            swapped[*b] = format!("{key_b} = {value_a}");
            refused += usize::from(answer(&swapped.join("\n")).is_some());
        }
    }
    assert!(
        refused >= 500,
        "{refused} swaps of units and kinds were refused"
    );
}

#[test]
fn deep_nesting_and_empty_files_are_refused() {
    let deep = [
        String::new(),
        "\u{feff}".into(),
        "\0".into(),
        "[".repeat(100_000),
        format!("a = {}", "{a=".repeat(50_000)),
        format!("{} = 1", vec!["a"; 50_000].join(".")),
        format!("[{}]", vec!["path"; 50_000].join(".")),
        format!("title = \"{}\"\n{GOOD}", "x".repeat(1_000_000)),
        format!("{GOOD}[{}]\n", "y".repeat(1_000_000)),
    ];
    for text in deep {
        assert!(answer(&text).is_some(), "{:.40}", text);
    }
}

#[test]
fn name_of_a_file_that_is_no_line_or_a_page_is_refused_in_one_paragraph() {
    for name in ["a\\nb", "\\u001b[31mred", &"x".repeat(10_000)] {
        let path = format!("[path]\nloss = \"trace {name}\"");
        let refused = answer(&GOOD.replace("[path]", &path)).unwrap();
        assert!(refused.contains("cannot be read"), "{refused}");
    }
}

#[test]
fn the_undamaged_file_is_read() {
    assert_eq!(read(RICH).unwrap().n_cells(), 12);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_damage_is_answered(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..4, "\\PC{0,6}|[0-9\"\\[\\]=.\n#]{1,4}"), 1..6)
    ) {
        let mut chars: Vec<char> = RICH.chars().collect();
        for (at, kind, text) in edits {
            let at = at.index(chars.len().max(1)).min(chars.len());
            match kind {
                0 => drop(chars.splice(at..at, text.chars())),
                1 => drop(chars.drain(at..(at + text.len()).min(chars.len()))),
                2 => chars.truncate(at),
                _ => drop(chars.splice(at..(at + 1).min(chars.len()), text.chars())),
            }
        }
        answer(&chars.into_iter().collect::<String>());
    }

    #[test]
    fn any_text_as_any_value_is_answered(key in prop::sample::select(vec![
        "rate", "rtt", "loss", "buffer", "mtu", "queue",
    ]), value in "\\PC{0,30}|[0-9]{0,40}[.]?[0-9]{0,40}(ns|us|ms|s|h|B|kB|GiB|bit/s|Tbit/s|%|bdp|packets)?") {
        let value = value.replace(['\\', '"'], "");
        let lines: Vec<String> = RICH
            .lines()
            .map(|line| match line.split_once(" = ") {
                Some((name, _)) if name == key => format!("{name} = \"{value}\""),
                _ => line.to_string(),
            })
            .collect();
        answer(&lines.join("\n"));
    }
}

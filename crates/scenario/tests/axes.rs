//! Axes of several keys: `[[zip]]`, whose lists vary together, and `[[sample]]`, whose rows are paths.

use crate::common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{FILE, edited, names};
use knee_scenario::{Cell, Names, Scenario, ScenarioErrors, parse, read_cell};
use knee_units::files::ReadFile;

const PATHS: &str = "path.rate,path.rtt,path.loss\n\
                     10Mbit/s,20ms,0%\n\
                     1Gbit/s,150ms,0.5%\n\
                     25.5Mbit/s,43.2ms,\"gilbert 1% burst 5\"\n";

/// The least that a scenario must say beside a sample of rates and RTTs.
const BARE: &str = "duration = \"10s\"\n\n[[flow]]\nalgorithm = [\"cubic\", \"bbr1\"]\n\n";

fn with_files(files: &[(&str, &str)]) -> Names {
    let own = |(path, text): &(&str, &str)| (path.to_string(), text.to_string());
    let files: BTreeMap<String, String> = files.iter().map(own).collect();
    Names {
        read_file: Some(ReadFile::of(files)),
        ..names()
    }
}

fn read(text: &str) -> Result<Scenario, ScenarioErrors> {
    parse(text, FILE, &with_files(&[("paths.csv", PATHS)]))
}

fn sampled(sample: &str) -> Result<Scenario, ScenarioErrors> {
    read(&format!("{BARE}[[sample]]\n{sample}\n"))
}

fn refusal(result: Result<Scenario, ScenarioErrors>) -> String {
    let errors = result.expect_err("it is refused");
    common::refusal::assert_is_a_paragraph_for_each_mistake(
        &errors.to_string(),
        FILE,
        &"\n".repeat(40),
    );
    errors.to_string()
}

fn axes(cell: &Cell) -> Vec<(&str, &str)> {
    let axes = cell.axes.iter();
    axes.map(|(key, value)| (&**key, &**value)).collect()
}

fn rtts_ms(scenario: &Scenario) -> Vec<f64> {
    let cells = scenario.cells();
    cells.map(|cell| cell.path.rtt.0 as f64 / 1e6).collect()
}

fn zipped(rates: &str, rtts: &str, zip: &str) -> Result<Scenario, ScenarioErrors> {
    let text = edited("rate = \"50Mbit/s\"", &format!("rate = {rates}"));
    let text = text.replace("rtt = \"100ms\"", &format!("rtt = {rtts}"));
    read(&format!("{text}\n[[zip]]\n{zip}\n"))
}

const ZIP: &str = "keys = [\"path.rate\", \"path.rtt\"]";

#[test]
fn lists_of_a_zip_vary_together_and_other_axes_multiply_them() {
    let text = edited(
        "rate = \"50Mbit/s\"",
        "rate = [\"1Mbit/s\", \"2Mbit/s\", \"2Mbit/s\"]",
    )
    .replace(
        "rtt = \"100ms\"",
        "loss = [\"0%\", \"1%\"]\nrtt = [\"40ms\", \"20ms\", \"30ms\"]",
    );
    let scenario = read(&format!("{text}\n[[zip]]\n{ZIP}\n")).unwrap();
    let cells: Vec<Cell> = scenario.cells().collect();
    assert_eq!(cells.len(), 6);
    let third = [
        ("path.rate", "2Mbit/s"),
        ("path.rtt", "20ms"),
        ("path.loss", "0%"),
    ];
    assert_eq!(axes(&cells[2]), third);
    let last = [
        ("path.rate", "2Mbit/s"),
        ("path.rtt", "30ms"),
        ("path.loss", "1%"),
    ];
    assert_eq!(axes(&cells[5]), last);
    assert_eq!(cells[5].path.rtt.0, 30_000_000);
}

#[test]
fn a_zip_takes_parameters_and_keys_of_flows() {
    let text = edited(
        "algorithm = \"cubic\"",
        "algorithm = [\"reno\", \"bbr1\"]\ncount = [1, 4]\nbbr1.drain_gain = 0.5",
    );
    let zip = "[[zip]]\nkeys = [\"flow.0.algorithm\", \"flow.0.count\"]\n";
    let scenario = read(&format!("{text}\n{zip}")).unwrap();
    assert_eq!(scenario.n_cells(), 2);
    assert_eq!(scenario.cell(1).unwrap().flows[0].count, 4);
}

#[test]
fn a_zip_that_cannot_be_is_refused_with_its_line() {
    let (rates, rtts) = ("[\"1Mbit/s\", \"2Mbit/s\"]", "[\"40ms\", \"20ms\"]");
    for (result, said) in [
        (
            zipped(rates, "[\"40ms\", \"20ms\", \"30ms\"]", ZIP),
            "s.toml:11: zip.0.keys: got path.rate with 2 and path.rtt with 3; expected lists with as many values as each \
             other. Add what is missing.",
        ),
        (
            zipped(rates, "\"40ms\"", ZIP),
            "s.toml:11: zip.0.keys: got path.rtt, which has no list; expected keys with lists. Write a list where the key stands.",
        ),
        (
            zipped(rates, rtts, "keys = [\"path.rate\", \"path.rt\"]"),
            "s.toml:11: zip.0.keys: unknown axis \"path.rt\"; known: path.rate, path.rtt. Did you mean \"path.rtt\"?",
        ),
        (
            zipped(rates, rtts, "keys = [\"path.rate\", \"path.rate\"]"),
            "s.toml:11: zip.0.keys: got path.rate twice; expected each key once. Remove one.",
        ),
        (
            zipped(rates, rtts, &format!("{ZIP}\n[[zip]]\n{ZIP}")),
            "s.toml:13: zip.1.keys: got path.rate twice; expected each key once. Remove one.\n\
             s.toml:13: zip.1.keys: got path.rtt twice; expected each key once. Remove one.",
        ),
        (
            zipped("[\"1Mbit/s\", \"1Mbit/s\"]", "[\"40ms\", \"40ms\"]", ZIP),
            "s.toml:11: zip.0.keys: got \"1Mbit/s, 40ms\" twice; expected steps that differ. Remove one; `repeat` repeats a cell.",
        ),
        (
            zipped(rates, rtts, "keys = [\"path.rate\"]"),
            "s.toml:11: zip.0.keys: got \"path.rate\"; expected a list of two keys or more whose values are lists, such as \
             [\"path.rate\", \"path.rtt\"].",
        ),
        (
            zipped(rates, rtts, ""),
            "s.toml:10: zip.0.keys: missing; expected a list of two keys or more whose values are lists, such as \
             [\"path.rate\", \"path.rtt\"]. Add keys = [\"path.rate\", \"path.rtt\"].",
        ),
        (
            zipped(rates, rtts, &format!("{ZIP}\nkey = 1")),
            "s.toml:12: zip.0.key: unknown key; known here: keys. Did you mean \"keys\"?",
        ),
    ] {
        assert_eq!(refusal(result), said);
    }
}

#[test]
fn a_key_of_a_zip_whose_values_are_no_good_is_told_once() {
    let said = refusal(zipped(
        "[\"1Mbps\", \"2Mbit/s\"]",
        "[\"10ms\", \"20ms\"]",
        ZIP,
    ));
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("s.toml:4: path.rate: "), "{said}");
}

#[test]
fn rows_of_a_table_are_paths_and_other_axes_multiply_them() {
    let scenario = sampled("file = \"paths.csv\"").unwrap();
    assert_eq!(scenario.n_cells(), 6);
    let fourth = scenario.cell(3).unwrap();
    let said = [
        ("flow.0.algorithm", "bbr1"),
        ("sample.0.row", "1"),
        ("path.rate", "10Mbit/s"),
        ("path.rtt", "20ms"),
        ("path.loss", "0%"),
    ];
    assert_eq!(axes(&fourth), said);
    let last = scenario.cell(5).unwrap();
    assert_eq!(last.path.rate.unwrap().bits_per_sec(), 25_500_000);
    assert_eq!(last.path.loss.to_string(), "gilbert 1% burst 5");
    assert_eq!(axes(&last)[1], ("sample.0.row", "3"));
}

#[test]
fn rows_are_taken_from_a_range_or_chosen_by_a_seed() {
    let rows = |sample: &str| -> Vec<String> {
        let scenario = sampled(&format!("file = \"paths.csv\"\n{sample}")).unwrap();
        let cells = scenario.cells().take(scenario.n_cells() / 2);
        cells.map(|cell| axes(&cell)[1].1.to_string()).collect()
    };
    assert_eq!(rows("rows = \"2..3\""), ["2", "3"]);
    assert_eq!(rows("rows = \"2\""), ["2"]);
    assert_eq!(rows("count = 2\nseed = 5"), rows("count = 2\nseed = 5"));
    assert_eq!(rows("count = 3"), ["1", "2", "3"]);
    assert_eq!(rows("rows = \"2..3\"\ncount = 2"), ["2", "3"]);
    // Each of three rows is chosen by some of so many seeds.
    let chosen: Vec<_> = (0..40)
        .map(|seed| rows(&format!("count = 1\nseed = {seed}")))
        .collect();
    for row in ["1", "2", "3"] {
        assert!(chosen.iter().any(|rows| rows == &[row]), "{row}");
    }
}

#[test]
fn the_rows_of_a_smaller_choice_are_among_those_of_a_larger_one() {
    let table: String = (1..=300).map(|ms| format!("{ms}ms\n")).collect();
    let table = format!("path.rtt\n{table}");
    let chosen = |count: usize| {
        let text = format!(
            "duration = \"10s\"\n[path]\nrate = \"9Mbit/s\"\n[[flow]]\nalgorithm = \"reno\"\n[[sample]]\nfile = \"t.csv\"\ncount = {count}\n"
        );
        rtts_ms(&parse(&text, FILE, &with_files(&[("t.csv", &table)])).unwrap())
    };
    let (few, many) = (chosen(20), chosen(100));
    assert_eq!((few.len(), many.len()), (20, 100));
    assert!(many.is_sorted_by(|a, b| a < b), "none twice, in order");
    assert!(few.iter().all(|ms| many.contains(ms)));
    assert!(few != many[..20], "and they are no beginning of the table");
}

#[test]
fn draws_are_those_of_the_seed_and_of_no_other_key() {
    let both = "path.rate = \"loguniform 1Mbit/s to 1Gbit/s\"\npath.rtt = \"lognormal median 50ms sigma 0.8\"";
    let of = |seed: u32| rtts_ms(&sampled(&format!("count = 50\nseed = {seed}\n{both}")).unwrap());
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
    let other = "path.loss = \"uniform 0% to 2%\"\n";
    let beside = sampled(&format!("count = 50\nseed = 1\n{other}{both}")).unwrap();
    assert_eq!(rtts_ms(&beside), of(1));
    // The scenario's own seed is another one.
    let text = format!("seed = 77\n{BARE}[[sample]]\ncount = 50\nseed = 1\n{both}\n");
    assert_eq!(rtts_ms(&read(&text).unwrap()), of(1));
}

/// Draws of one key of the path, in the unit of `value`.
fn drawn(n: usize, law: &str, value: impl Fn(&Cell) -> f64) -> Vec<f64> {
    let text = format!(
        "duration = \"10s\"\n[path]\nbuffer = \"9packets\"\n[[flow]]\nalgorithm = \"reno\"\n[[sample]]\ncount = {n}\npath.rate = \"uniform 10Mbit/s to 20Mbit/s\"\npath.rtt = \"uniform 1ms to 2ms\"\n"
    );
    let (key, _) = law.split_once(" = ").unwrap();
    let lines = text.lines().filter(|line| !line.starts_with(key));
    let text = format!("{}\n{law}\n", lines.collect::<Vec<_>>().join("\n"));
    let scenario = read(&text).unwrap_or_else(|error| panic!("{error}"));
    let mut drawn: Vec<f64> = scenario.cells().map(|cell| value(&cell)).collect();
    drawn.sort_by(f64::total_cmp);
    drawn
}

#[test]
fn draws_have_the_quantiles_of_their_distribution() {
    const N: usize = 4_000;
    let rtt = |cell: &Cell| cell.path.rtt.0 as f64 / 1e6;
    let rate = |cell: &Cell| cell.path.rate.unwrap().bits_per_sec() as f64 / 1e6;
    // The share of draws below a true quantile q is binomial: its deviation is sqrt(q (1 - q) / n); four of them.
    let holds = |drawn: &[f64], q: f64, expected: f64| {
        let below = drawn.iter().filter(|x| **x < expected).count() as f64 / N as f64;
        let allowed = 4.0 * (q * (1.0 - q) / N as f64).sqrt();
        assert!((below - q).abs() < allowed, "{q}: {below} of {expected}");
    };
    let lognormal = drawn(N, "path.rtt = \"lognormal median 50ms sigma 0.8\"", rtt);
    holds(&lognormal, 0.5, 50.0);
    holds(&lognormal, 0.8413, 50.0 * 0.8f64.exp());
    holds(&lognormal, 0.1587, 50.0 * (-0.8f64).exp());
    let uniform = drawn(N, "path.rate = \"uniform 10Mbit/s to 1Gbit/s\"", rate);
    holds(&uniform, 0.5, 505.0);
    holds(&uniform, 0.25, 257.5);
    let log = drawn(N, "path.rate = \"loguniform 1Mbit/s to 1Gbit/s\"", rate);
    holds(&log, 0.5, 1000f64.sqrt());
    holds(&log, 1.0 / 3.0, 10.0);
    let cut = drawn(
        N,
        "path.rtt = \"lognormal median 50ms sigma 2 from 40ms to 60ms\"",
        rtt,
    );
    assert!(
        cut[0] >= 40.0 && cut[N - 1] <= 60.0,
        "{} {}",
        cut[0],
        cut[N - 1]
    );
    let counts = drawn(N, "flow.0.count = \"uniform 1 to 4\"", |cell| {
        cell.flows[0].count.into()
    });
    for (below, q) in [(1.5, 0.25), (2.5, 0.5), (3.5, 0.75)] {
        holds(&counts, q, below);
    }
}

#[test]
fn draws_are_values_that_a_file_could_have() {
    let scenario = sampled("count = 20\npath.rate = \"uniform 1Mbit/s to 1Gbit/s\"\npath.rtt = \"uniform 1ms to 90ms\"\npath.buffer = \"uniform 0.5bdp to 2bdp\"\npath.loss = \"uniform 0% to 1%\"").unwrap();
    for cell in scenario.cells() {
        for (key, value) in axes(&cell)
            .into_iter()
            .filter(|(key, _)| key.starts_with("path."))
        {
            let digits: String = value.chars().filter(char::is_ascii_digit).collect();
            assert!(digits.trim_matches('0').len() <= 4, "{key} = {value}");
        }
    }
}

#[test]
fn a_sample_that_cannot_be_is_refused_with_its_line() {
    let files = [
        ("empty.csv", "path.rate,path.rtt\n"),
        ("short.csv", "path.rate,path.rtt\n1Mbit/s,1ms\n2Mbit/s\n"),
        ("unknown.csv", "path.rate,path.rt\n1Mbit/s,1ms\n"),
        (
            "elsewhere.csv",
            "path.rate,path.rtt,flow.3.count\n1Mbit/s,90ms,1\n",
        ),
        (
            "twice.csv",
            "path.rate,path.rtt,path.rtt\n1Mbit/s,90ms,1ms\n",
        ),
        (
            "bad.csv",
            "path.rate,path.rtt\n1Mbit/s,90ms\n2Mbit/s,30\n,4ms\n",
        ),
        (
            "small.csv",
            "path.rate,path.rtt\n1Mbit/s,1ms\n50Mbit/s,50ms\n",
        ),
        ("fixed.csv", "path.rate,path.rtt,repeat\n1Mbit/s,100ms,3\n"),
    ];
    let draws = "path.rate = \"uniform 1Mbit/s to 2Mbit/s\"\n";
    let both = format!("{draws}path.rtt = \"uniform 10ms to 20ms\"\n");
    for (sample, said) in [
        (
            "file = \"none.csv\"".to_string(),
            "s.toml:7: sample.0.file: none.csv: cannot be read: it did not travel with the scenario. Names are relative to the scenario's folder.",
        ),
        (
            "file = \"empty.csv\"".into(),
            "s.toml:7: sample.0.file: empty.csv: got no row; expected a line of keys such as path.rate,path.rtt, and a line of values for each path.",
        ),
        (
            "file = \"short.csv\"".into(),
            "s.toml:7: sample.0.file: short.csv:3: got \"2Mbit/s\"; expected 2 values, as the header has names.",
        ),
        (
            "file = \"elsewhere.csv\"".into(),
            "s.toml:7: sample.0: elsewhere.csv: flow.3.count: got a key of no table; expected a key of a table that the file has, such as path.rtt or flow.0.algorithm. Tables of a list are counted from 0.",
        ),
        (
            "file = \"twice.csv\"".into(),
            "s.toml:7: sample.0: twice.csv: path.rtt: got a key that has one; expected one column or distribution for each key. Remove one.",
        ),
        (
            "file = \"fixed.csv\"".into(),
            "s.toml:7: sample.0: fixed.csv: repeat: got a key that cannot be an axis; expected keys that may be lists. Remove it here.",
        ),
        (
            "file = \"bad.csv\"".into(),
            "s.toml:7: sample.0: bad.csv: row 3: path.rate: got \"\"; expected a rate such as \"50Mbit/s\" (bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s) or \"unlimited\".\n\
             s.toml:7: sample.0: bad.csv: row 2: path.rtt: got the bare number 30; expected a length of time such as \"100ms\" (ns, us, ms, s, min, h) from 0s to 60s. Write it with its unit, in quotes.",
        ),
        (
            "file = \"small.csv\"".into(),
            "s.toml:7: sample.0: small.csv: row 1: path.buffer: got the default of 1bdp, which is 125B of path.rate 1Mbit/s and path.rtt 1ms; expected room for at least one packet of 1500B (path.mtu + path.overhead). \"1packet\" is the least.",
        ),
        (
            "file = \"paths.csv\"\nrows = \"2..9\"".into(),
            "s.toml:8: sample.0.rows: got \"2..9\"; expected rows up to 3, the last of the table.",
        ),
        (
            "file = \"paths.csv\"\ncount = 4".into(),
            "s.toml:8: sample.0.count: got 4; expected at most 3, the rows that there are. None is chosen twice.",
        ),
        (
            both.clone(),
            "s.toml:6: sample.0.count: missing; expected a whole number from 1 to 100000. Add count = 500, or another number of draws.",
        ),
        (
            format!("count = 5\nrows = \"1..2\"\n{both}"),
            "s.toml:8: sample.0.rows: got \"1..2\"; expected it beside file, whose rows it means. Remove it, or name a file.",
        ),
        (
            format!("count = 5\n{draws}path.rtt = \"uniform 1Mbit/s to 2Mbit/s\""),
            "s.toml:9: path.rtt: got \"1Mbit/s\", whose unit \"Mbit/s\" is unknown here; expected a length of time such as \"100ms\" (ns, us, ms, s, min, h).",
        ),
        (
            format!("count = 5\n{draws}path.rtt = \"uniform 2ms to 1ms\""),
            "s.toml:9: sample.0.path.rtt: got \"uniform 2ms to 1ms\"; expected the first bound below the second.",
        ),
        (
            format!(
                "count = 5\n{draws}path.rtt = \"lognormal median 50ms sigma 0.1 from 1s to 2s\""
            ),
            "s.toml:9: sample.0.path.rtt: got \"lognormal median 50ms sigma 0.1 from 1s to 2s\"; expected bounds with a hundredth of the distribution or more.",
        ),
        (
            format!("count = 5\n{draws}path.rtt = \"loguniform 1ms to 2s to 3s\""),
            "s.toml:9: sample.0.path.rtt: got \"loguniform 1ms to 2s to 3s\"; expected a distribution: \"uniform 10ms to 200ms\", \"loguniform 1Mbit/s to 1Gbit/s\", \"lognormal median 50ms sigma 0.8\", which may end in \"from 5ms to 1s\".",
        ),
        (
            format!("count = 5\n{draws}path.rtt = [\"1ms\", \"2ms\"]"),
            "s.toml:9: sample.0.path.rtt: got a list; expected a distribution: \"uniform 10ms to 200ms\", \"loguniform 1Mbit/s to 1Gbit/s\", \"lognormal median 50ms sigma 0.8\", which may end in \"from 5ms to 1s\".",
        ),
    ] {
        let text = format!("{BARE}[[sample]]\n{sample}\n");
        let mut known = files.to_vec();
        known.push(("paths.csv", PATHS));
        assert_eq!(refusal(parse(&text, FILE, &with_files(&known))), said);
    }
    let text = format!("{BARE}[[sample]]\nfile = \"unknown.csv\"\n");
    let said = refusal(parse(&text, FILE, &with_files(&files)));
    let first = "s.toml:7: sample.0: unknown.csv: path.rt: unknown key; known here: rate, rtt, ";
    assert!(
        said.starts_with(first) && said.ends_with("Did you mean \"rtt\"?"),
        "{said}"
    );
}

#[test]
fn a_sample_without_anything_is_refused_and_what_it_would_set_is_not_missing() {
    let said = refusal(sampled(""));
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.starts_with("s.toml:6: sample.0.file: missing; "),
        "{said}"
    );
}

#[test]
fn a_key_stands_in_its_table_or_in_a_sample() {
    let text = format!("{BARE}[path]\nrtt = \"9ms\"\n[[sample]]\nfile = \"paths.csv\"\n");
    let said = "s.toml:9: sample.0: paths.csv: path.rtt: got a key that [path] sets as well; expected one place for each key. Remove one of them.";
    assert_eq!(refusal(read(&text)), said);
}

#[test]
fn a_sample_sets_parameters_and_a_zip_none_of_its_keys() {
    let table =
        "flow.0.bbr1.drain_gain,path.queue,path.codel.target\n0.25,codel,7ms\n0.5,fifo,9ms\n";
    let text = edited("\"cubic\"", "[\"cubic\", \"bbr1\"]");
    let text = format!("{text}\n[[sample]]\nfile = \"t.csv\"\n");
    let scenario = parse(&text, FILE, &with_files(&[("t.csv", table)])).unwrap();
    assert_eq!(scenario.n_cells(), 4);
    let last = scenario.cell(2).unwrap();
    assert_eq!(last.flows[0].params, [("drain_gain".to_string(), 64)]);
    assert_eq!(last.path.queue, "codel");
    let zip = format!("{text}\n[[zip]]\nkeys = [\"flow.0.algorithm\", \"path.queue\"]\n");
    let said = refusal(parse(&zip, FILE, &with_files(&[("t.csv", table)])));
    assert!(
        said.contains("got path.queue, which a [[sample]] sets; expected keys with lists."),
        "{said}"
    );
}

/// 5,000 paths, and how often their table was read.
fn many() -> (Scenario, Arc<AtomicUsize>) {
    let row = |i: u32| {
        format!(
            "{}kbit/s,{}us,0.{:03}%\n",
            1_000 + i,
            20_000 + 7 * i,
            i % 1_000
        )
    };
    let table: String = (0..5_000).map(row).collect();
    let table = format!("path.rate,path.rtt,path.loss\n{table}");
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = reads.clone();
    let read_file = ReadFile::of_texts(move |path| {
        assert_eq!(path, "lab/many.csv");
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(table.clone())
    });
    let names = Names {
        read_file: Some(read_file),
        ..names()
    };
    let text = format!("{BARE}[[sample]]\nfile = \"many.csv\"\n");
    (parse(&text, "lab/many.toml", &names).unwrap(), reads)
}

#[test]
fn a_cell_of_thousands_of_paths_is_resolved_alone_and_their_table_read_once() {
    let (scenario, reads) = many();
    assert_eq!(scenario.n_cells(), 10_000);
    let alone = |index| format!("{:?}", scenario.cell(index).unwrap());
    for (index, cell) in scenario.cells().enumerate().step_by(997) {
        assert_eq!(format!("{cell:?}"), alone(index));
    }
    let last = scenario.cell(9_999).unwrap();
    assert_eq!(last.path.rtt.0, 20_000_000 + 7_000 * 4_999);
    assert_eq!(reads.load(Ordering::Relaxed), 1);
    assert_eq!(
        scenario.files().into_keys().collect::<Vec<_>>(),
        ["lab/many.csv"]
    );
}

#[test]
fn a_sampled_cell_travels_without_the_table() {
    let (scenario, _) = many();
    let cell = scenario.cell(7_777).unwrap();
    let written = scenario.write_cell(7_777).unwrap();
    assert!(written.len() < 1_000, "{written}");
    let there = read_cell(&written, "cell.json", &names()).unwrap();
    assert_eq!(there.hash(), cell.hash());
    assert_eq!(axes(&there), axes(&cell));
}

#[test]
fn a_scenario_travels_with_its_table() {
    let (scenario, _) = many();
    let text = format!("{BARE}[[sample]]\nfile = \"many.csv\"\n");
    let names = Names {
        read_file: Some(ReadFile::of(scenario.files())),
        ..names()
    };
    let there = parse(&text, "lab/many.toml", &names).unwrap();
    let hash = |scenario: &Scenario| scenario.cell(4_321).unwrap().hash();
    assert_eq!(hash(&there), hash(&scenario));
}

#[test]
fn too_many_rows_are_refused_before_any_is_read() {
    let two = "count = 1000\npath.rate = \"uniform 1Mbit/s to 2Mbit/s\"\n\n[[sample]]\ncount = 101\npath.rtt = \"uniform 1ms to 2ms\"";
    let said = "s.toml:10: sample.1: the matrix has 101000 cells; expected at most 100000. Shorten the lists, or split the file.";
    assert_eq!(refusal(sampled(two)), said);
}

#[test]
fn samples_and_lists_multiply_each_other() {
    let two = "count = 10\npath.rate = \"uniform 1Mbit/s to 2Mbit/s\"\n\n[[sample]]\ncount = 7\npath.rtt = \"uniform 20ms to 90ms\"";
    let scenario = sampled(two).unwrap();
    assert_eq!(scenario.n_cells(), 2 * 10 * 7);
    let second = scenario.cell(1).unwrap();
    let [_, rate, _, rtt, _] = axes(&second)[..] else {
        panic!("{:?}", second.axes);
    };
    assert_eq!((rate, rtt), (("sample.0.row", "1"), ("sample.1.row", "2")));
}

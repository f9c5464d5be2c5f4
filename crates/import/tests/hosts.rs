//! Importers of what a host's tools print: mpstat, tc, netperf, memtier_benchmark.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_schema::DataType;
use knee_import::{AnyImport, Report, Value, find};
use knee_store::Anonymiser;
use serde_json::json;
use std::path::Path;

struct Found {
    batches: Vec<RecordBatch>,
    report: Report<Vec<Value>>,
    counts: Vec<&'static str>,
}

fn import(name: &str, file: &str, text: &str) -> Found {
    let kind = find(name).unwrap();
    let given = kind
        .given(Anonymiser::Keep, &serde_json::Map::new())
        .unwrap();
    let mut importer: Box<dyn AnyImport> = (kind.build)(&given).unwrap();
    let mut batches = Vec::new();
    importer
        .read_input(Path::new(file), &mut text.as_bytes(), &mut |_, filled| {
            batches.extend(filled.map(|(_, batch)| batch));
            Ok(())
        })
        .unwrap();
    batches.extend(importer.rest().into_iter().map(|(_, batch)| batch));
    Found {
        batches,
        report: importer.found(),
        counts: kind.counts.iter().map(|count| count.name).collect(),
    }
}

fn data(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

impl Found {
    /// A column as JSON values, over all batches.
    fn column(&self, name: &str) -> Vec<serde_json::Value> {
        let mut found = Vec::new();
        for batch in &self.batches {
            let column = batch.column_by_name(name).unwrap();
            found.extend((0..column.len()).map(|row| match column.data_type() {
                _ if column.is_null(row) => json!(null),
                DataType::Int32 => json!(column.as_primitive::<Int32Type>().value(row)),
                DataType::Int64 => json!(column.as_primitive::<Int64Type>().value(row)),
                DataType::Float64 => json!(column.as_primitive::<Float64Type>().value(row)),
                _ => {
                    let names = column.as_dictionary::<Int32Type>();
                    let names = names.downcast_dict::<arrow_array::StringArray>().unwrap();
                    json!(arrow_array::ArrayAccessor::value(&names, row))
                }
            }));
        }
        found
    }

    fn count(&self, name: &str) -> u64 {
        let at = self.counts.iter().position(|count| *count == name).unwrap();
        match self.report.more[at] {
            Value::Number(number) => number,
            Value::Words(_) => panic!("{name} is of words"),
        }
    }
}

const NOON: i64 = 1_787_313_600_000_000_000; // 2026-08-21 12:00:00 UTC
const SECOND: i64 = 1_000_000_000;

/// Two processors, two intervals of five seconds.
const MPSTAT: &str = "\
Linux 6.18.44 (edge1) \t08/21/26 \t_x86_64_\t(2 CPU)

11:59:58     CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle
12:00:03     all    5.00    0.00    2.00    0.00    0.00    1.00    0.00    1.00    0.00   91.00
12:00:03       0   10.00    0.00    4.00    0.00    0.00    2.00    0.00    2.00    0.00   82.00
12:00:03       1    0.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00  100.00

12:00:03     CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle
12:00:08     all   50.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00   50.00
12:00:08       0  100.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00
12:00:08       1    0.00    0.00    0.00    0.00    0.00   40.00    0.00    0.00    0.00   60.00

Average:     CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle
Average:     all   27.50    0.00    1.00    0.00    0.00    0.50    0.00    0.50    0.00   70.50
";

#[test]
fn shares_of_mpstat_become_time_as_the_kernel_counts_it() {
    let found = import("mpstat", "mpstat.txt", MPSTAT);
    assert_eq!(found.report.not_understood, 0, "{:?}", found.report.first);
    assert_eq!(found.column("cpu"), [0, 0, 1, 1, 0, 1]);
    // Guests are within the time of programs.
    assert_eq!(found.column("user_us"), [0, 600_000, 0, 0, 5_600_000, 0]);
    assert_eq!(
        found.column("softirq_us"),
        [0, 100_000, 0, 0, 100_000, 2_000_000]
    );
    assert_eq!(found.column("idle_us")[5], 8_000_000);
    let times = found.column("t_unix_ns");
    assert_eq!(times[..2], [NOON - 2 * SECOND, NOON + 3 * SECOND]);
    assert_eq!(times[5], NOON + 8 * SECOND);
    assert_eq!(found.column("host")[0], "edge1");
    assert_eq!((found.count("intervals"), found.count("sums")), (2, 2));
}

#[test]
fn a_clock_of_twelve_hours_and_a_midnight_are_understood() {
    let late = MPSTAT
        .replace("11:59:58", "11:59:58 PM")
        .replace("12:00:03 ", "12:00:03 AM ")
        .replace("12:00:08 ", "12:00:08 AM ");
    let found = import("mpstat", "x", &late);
    assert_eq!(found.report.not_understood, 0, "{:?}", found.report.first);
    let times = found.column("t_unix_ns");
    assert_eq!(
        times[1].as_i64().unwrap() - times[0].as_i64().unwrap(),
        5 * SECOND
    );
    assert_eq!(found.column("user_us")[4], 5_600_000);
}

#[test]
fn json_of_mpstat_gives_what_its_text_gives_but_for_the_first_beginning() {
    let found = import("mpstat", "x.json", &data("mpstat/json-12.6.json"));
    assert_eq!(found.report.not_understood, 0, "{:?}", found.report.first);
    assert_eq!(found.column("cpu"), [0, 0, 1, 1, 0, 1]);
    assert_eq!(
        found.column("system_us"),
        [0, 121_200, 0, 51_000, 151_200, 183_700]
    );
    assert_eq!(
        (found.count("intervals"), found.count("without_length")),
        (2, 0)
    );
    let cut = data("mpstat/json-12.6.json");
    let cut = import("mpstat", "x.json", &cut[..cut.len() - 10]);
    assert_eq!((cut.report.rows, cut.report.not_understood), (0, 1));
}

#[test]
fn a_clock_that_goes_back_more_often_than_a_number_holds_is_not_understood() {
    let (late, early) = ("12:00:08", "11:59:58");
    let heading = |time| format!("{time} CPU %usr %idle\n");
    let text = format!("{}{}", heading(late), heading(early)).repeat(106_753);
    let found = import("mpstat", "x", &text);
    assert!((1..10).contains(&found.report.not_understood));
    let report = |time| format!("{{\"timestamp\":\"{time}\"}},\n");
    let reports = format!("{}{}", report(late), report(early)).repeat(106_753);
    let text = format!("{{\"sysstat\":{{\"hosts\":[{{\"statistics\":[\n{reports}{{}}]}}]}}}}\n");
    let found = import("mpstat", "x", &text);
    assert_eq!(found.report.not_understood, 1);
    assert_eq!(found.report.first[0].2, "its clock goes back too often");
}

#[test]
fn a_document_of_more_than_8_mib_is_refused_with_a_sentence_and_the_next_is_read() {
    let much = format!("\"x\": \"{}\",\n", "y".repeat(1_000)).repeat(8_500);
    for (name, begin, rest) in [
        ("mpstat", "{", data("mpstat/json-12.6.json")),
        ("tc", "[{", data("tc/qdisc.txt")),
        ("memtier", "{", data("programs/memtier.txt")),
    ] {
        let end = if begin == "{" { "}" } else { "}]" };
        let text = format!("{begin}\n{much}\"z\": 1\n{end}\n{rest}");
        let found = import(name, "x", &text);
        assert_eq!(found.report.not_understood, 1, "{name}");
        let said = &found.report.first[0].2;
        assert!(
            said.starts_with("a JSON document of more than 8 MiB; expected 8 MiB at most"),
            "{said}"
        );
        assert!(found.report.rows > 0, "{name}");
    }
}

#[test]
fn a_share_that_cannot_be_is_not_understood_and_all_alone_has_no_row() {
    let found = import(
        "mpstat",
        "x",
        &MPSTAT.replace("100.00    0.00    0.00", "170.00    0.00    0.00"),
    );
    assert_eq!(found.report.not_understood, 1);
    let sums: String = MPSTAT
        .lines()
        .filter(|line| !line.contains("  0 ") && !line.contains("  1 "))
        .map(|line| format!("{line}\n"))
        .collect();
    let found = import("mpstat", "x", &sums);
    assert_eq!((found.report.rows, found.count("sums")), (0, 2));
}

#[test]
fn tc_text_gives_counters_and_those_of_fq_in_both_of_its_forms() {
    let found = import("tc", "x", &data("tc/qdisc.txt"));
    assert_eq!(found.report.not_understood, 0, "{:?}", found.report.first);
    let kinds = ["noqueue", "mq", "fq", "fq_codel", "ingress", "fq", "htb"];
    assert_eq!(found.column("kind"), kinds);
    assert_eq!(
        found.column("parent")[1..5],
        [
            json!("root"),
            json!("1:17"),
            json!("root"),
            json!("ingress")
        ]
    );
    assert_eq!(found.column("backlog_bytes")[1..4], [499_933, 0, 12 << 10]);
    assert_eq!(found.column("drops"), [0, 122, 0, 2, 0, 5, 0]);
    let of_fq = |name: &str| {
        let column = found.column(name);
        [column[2].clone(), column[5].clone()]
    };
    assert_eq!(of_fq("fq_flows"), [2047, 12]);
    assert_eq!(of_fq("fq_throttled_flows"), [1, 1]);
    assert_eq!(of_fq("fq_throttled"), [43_782, 437]);
    assert_eq!(of_fq("fq_unthrottle_latency_ns"), [2716, 8920]);
    assert_eq!(of_fq("fq_time_next_delayed_flow_ns"), [1234, 21_700]);
    assert_eq!(of_fq("fq_allocation_errors"), [json!(null), json!(1)]);
    assert_eq!(found.column("fq_codel_ecn_mark")[3], 3);
    assert_eq!(found.column("fq_codel_old_flows")[3], 2);
    assert_eq!(found.column("t_unix_ns")[4..6], [NOON, NOON + 5 * SECOND]);
}

#[test]
fn tc_json_is_one_list_on_a_line_or_on_many() {
    let found = import("tc", "tc-20260821T120000.json", &data("tc/qdisc.json"));
    assert_eq!(found.report.not_understood, 0, "{:?}", found.report.first);
    assert_eq!(found.column("kind"), ["noqueue", "fq", "pfifo_fast"]);
    assert_eq!(found.column("fq_throttled")[1], 437);
    assert_eq!(found.column("fq_throttled_flows")[1], json!(null));
    assert_eq!(found.column("qlen_pkts")[1], 1);
    assert_eq!(found.column("t_unix_ns")[2], NOON);
}

#[test]
fn queues_without_counters_have_no_row() {
    let found = import(
        "tc",
        "x",
        "qdisc noqueue 0: dev lo root refcnt 2 \nqdisc mq 0: dev eth0 root \n",
    );
    assert_eq!((found.report.rows, found.count("without_counters")), (0, 2));
    let found = import("tc", "x", " Sent 1 bytes\nqdisc fq nonsense\nhello\n");
    assert_eq!(found.report.not_understood, 3);
}

#[test]
fn each_test_of_netperf_is_a_row() {
    let found = import("netperf", "x", &data("programs/netperf.txt"));
    assert_eq!(found.report.not_understood, 0, "{:?}", found.report.first);
    let kinds = [
        "TCP_RR",
        "TCP_RR",
        "TCP_STREAM",
        "UDP_STREAM",
        "OMNI",
        "TCP_RR",
        "TCP_RR",
    ];
    assert_eq!(found.column("kind"), kinds);
    let rates = found.column("requests_per_sec");
    assert_eq!(rates[..2], [6537.3, 6591.45]);
    assert_eq!(rates[5..], [41_234.56, 41_234.56]);
    let goodputs = found.column("goodput_bits_per_sec");
    assert_eq!(goodputs[2..5], [272.8e6, 403.2e6, 29_492.4e6]);
    assert_eq!(
        found.column("local_cpu_share")[..2],
        [json!(null), json!(0.0086)]
    );
    assert_eq!(found.column("write_bytes")[2..5], [1024, 1024, 16_384]);
    assert_eq!(found.column("request_bytes")[..2], [32, 70_000]);
    assert_eq!(found.column("latency_us_p99")[5..], [61.0, 61.0]);
    assert_eq!(found.column("duration_us")[2], 60_000_000);
}

#[test]
fn netperf_without_headings_is_told_by_its_columns_and_other_lines_are_not_understood() {
    let text = "16384  131072 1        1       10.00    41234.56\n16384  131072\n131072  16384  16384    10.00    9388.50\n";
    let found = import("netperf", "x", text);
    assert_eq!((found.report.rows, found.report.not_understood), (2, 0));
    assert_eq!(found.column("goodput_bits_per_sec")[1], 9388.5e6);
    let found = import(
        "netperf",
        "x",
        "establish control: are you sure there is a netserver listening?\n1 2 3\nTHROUGHPUT=5\n",
    );
    assert_eq!((found.report.rows, found.report.not_understood), (0, 2));
    assert_eq!(found.count("without_unit"), 1);
}

#[test]
fn memtier_json_and_its_table_are_one_row() {
    let found = import("memtier", "x", &data("programs/memtier.txt"));
    assert_eq!(found.report.not_understood, 0, "{:?}", found.report.first);
    assert_eq!(found.column("requests_per_sec"), [100_100.254, 120_100.25]);
    assert_eq!(found.column("connections"), [40, 80]);
    assert_eq!(found.column("latency_us_p95"), [json!(551.0), json!(null)]);
    assert_eq!(found.column("duration_us"), [10_004_000, 10_000_000]);
    assert_eq!(found.count("tests_again"), 1);
}

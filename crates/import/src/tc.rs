//! Output of `tc -s qdisc`, as rows of `qdisc`.
//!
//! A queue is a line that begins with `qdisc` and indented lines of counters behind it; with `-j` all queues are one JSON
//! list. A line with a date, see [`time`], begins a dump of that time. Source: `tc_qdisc.c`, `q_fq.c` and `q_fq_codel.c` of
//! iproute2 3.10 to 6.17.

use std::collections::VecDeque;
use std::path::Path;

use arrow_array::RecordBatch;
use knee_store::Anonymiser;
use knee_tables::column::set;
use knee_tables::{Batch, Numbers, Qdisc, Table};
use serde_json::{Map, Value};

use super::counts::counts;
use super::fill::name;
use super::gathered::{Came, Gathered, TOO_LONG};
use super::kind::{HOST, ZONE, first_lines, holds};
use super::lines::{self, Lines, fills};
use super::{Columns, Kind, More as _, Sample, TableKind, time};

pub static KIND: Kind = Kind {
    name: "tc",
    summary: "Dumps of tc -s qdisc, as text or JSON.",
    about: "Import dumps of tc -s qdisc: a row of the table `qdisc` for each queue, as `knee record` writes them.\n\n\
        tc -s qdisc and tc -s -j qdisc of any iproute2 since 3.10, several dumps in one file; plain, gzip or zstd. The time \
        of a dump is that of a line that `date` printed before it, or of the file's name.",
    page: "\
`while sleep 5; do date -u; tc -s qdisc; done > qdisc.txt` makes dumps that are a series: counters are since the queue was
made, as the kernel's are. Counters of fq and fq_codel have columns; what other queues print below their counters, and
options, are left out, and so are classes (`tc -s class`). Without `-s` there are no counters, and nothing is imported.

JSON of fq has two members called `throttled`: the second counts how often flows had to wait (`fq_throttled`), and how
many wait is unknown (`fq_throttled_flows` is null). tc rounds a backlog of more than a KiB in text, and fq's times.",
    examples: &[
        "knee import tc qdisc.txt --out rec --host edge1",
        "knee sql 'select interface, kind, max(drops), max(fq_throttled) from qdisc group by all' rec",
    ],
    tables: &[TableKind {
        name: Qdisc::NAME,
        short: "qdisc",
        rows: "one per queue of a dump",
        columns: Columns::Recorded(|| Qdisc::COLUMNS.to_vec()),
    }],
    options: &[HOST, ZONE],
    unit: "lines",
    row: "queue with its counters",
    expected: "what `tc -s qdisc` prints",
    told: "{rows:row} from {lines:line}",
    counts: More::COUNTS,
    sample: Sample::File("tests/data/tc/qdisc.txt"),
    looks: |begin| {
        let mut lines = first_lines(begin);
        lines.any(|line| line.starts_with(b"qdisc ") && line.contains(&b':'))
            || holds(begin, b"\"kind\":") && holds(begin, b"\"overlimits\":")
    },
    build: |given| {
        Ok(Box::new(Parser {
            zone_s: time::zone_option(given)?,
            host: given.text("host").map(str::to_owned),
            keeps: matches!(given.anonymiser, Anonymiser::Keep),
            ..Parser::default()
        }))
    },
};

pub type Report = super::Report<More>;

counts! {
    /// What only dumps of tc tell.
    More {
        without_counters: u64, "queues without counters, which have no row",
            doubt: "{count} queues have no counters: tc -s prints them.",
            alone: "{count} queues have no counters (tc -s qdisc prints them)";
        rows_without_time: u64, "queues whose dump says no time",
            doubt: "{count} rows have no time: neither a line before their dump nor the file's name says one.";
        lines_left_out: u64, "lines of counters that only other queues than fq and fq_codel have, and of classes and filters";
    }
}

/// Rows of dumps.
#[derive(Default)]
pub struct Parser {
    zone_s: Option<i32>,
    host: Option<String>,
    /// May lines be shown?
    keeps: bool,
    report: Report,
    table: Qdisc,
    full: VecDeque<RecordBatch>,
    json: Gathered,
    json_at: u64,
    t_unix_ns: Option<i64>,
    current: Current,
}

/// What indented lines belong to.
#[derive(Default, PartialEq, Eq)]
enum Current {
    #[default]
    Nothing,
    /// A class or filter, which is left out.
    Other,
    /// A queue whose counters are to come.
    Queue(Queue),
    /// A queue with counters: its row.
    Row(usize),
}

/// The first line of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Queue {
    kind: String,
    handle: String,
    parent: String,
    interface: Option<String>,
}

/// Columns of fq by the word that tc prints. `throttled` is two of them.
type Column = fn(&mut Qdisc) -> &mut Numbers<i64>;
const FQ: &[(&str, Column)] = &[
    ("flows", |to| &mut to.fq_flows),
    ("inactive", |to| &mut to.fq_inactive_flows),
    ("throttled", |to| &mut to.fq_throttled),
    ("next packet delay", |to| {
        &mut to.fq_time_next_delayed_flow_ns
    }),
    ("next_packet_delay", |to| {
        &mut to.fq_time_next_delayed_flow_ns
    }),
    ("gc", |to| &mut to.fq_gc_flows),
    ("highprio", |to| &mut to.fq_highprio_packets),
    ("retrans", |to| &mut to.fq_tcp_retrans),
    ("latency", |to| &mut to.fq_unthrottle_latency_ns),
    ("ce_mark", |to| &mut to.fq_ce_mark),
    ("flows_plimit", |to| &mut to.fq_flows_plimit),
    ("flows plimit", |to| &mut to.fq_flows_plimit),
    ("too long pkts", |to| &mut to.fq_pkts_too_long),
    ("pkts_too_long", |to| &mut to.fq_pkts_too_long),
    ("alloc errors", |to| &mut to.fq_allocation_errors),
    ("alloc_errors", |to| &mut to.fq_allocation_errors),
    ("horizon_drops", |to| &mut to.fq_horizon_drops),
    ("horizon_caps", |to| &mut to.fq_horizon_caps),
    ("fastpath", |to| &mut to.fq_fastpath_packets),
];
const FQ_CODEL: &[(&str, Column)] = &[
    ("maxpacket", |to| &mut to.fq_codel_maxpacket_bytes),
    ("drop_overlimit", |to| &mut to.fq_codel_drop_overlimit),
    ("drop_overmemory", |to| &mut to.fq_codel_drop_overmemory),
    ("ecn_mark", |to| &mut to.fq_codel_ecn_mark),
    ("ce_mark", |to| &mut to.fq_codel_ce_mark),
    ("new_flow_count", |to| &mut to.fq_codel_new_flow_count),
    ("new_flows_len", |to| &mut to.fq_codel_new_flows),
    ("old_flows_len", |to| &mut to.fq_codel_old_flows),
    ("memory_used", |to| &mut to.fq_codel_memory_bytes),
];

fn own(kind: &str) -> &'static [(&'static str, Column)] {
    match kind {
        "fq" => FQ,
        "fq_codel" => FQ_CODEL,
        _ => &[],
    }
}

impl Parser {
    fn text(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_indented = line.starts_with([' ', '\t']);
        match (words.first().copied(), is_indented) {
            (None, _) => Some(()),
            (Some("qdisc"), _) => {
                self.leave();
                self.current = Current::Queue(queue(&words)?);
                Some(())
            }
            (Some("class" | "filter"), false) => {
                self.leave();
                self.current = Current::Other;
                self.report.more.lines_left_out += 1;
                Some(())
            }
            (Some(_), true) => self.counters(&words, line),
            (Some(_), false) => {
                self.leave();
                self.current = Current::Nothing;
                self.t_unix_ns = Some(time::line(line, self.zone_s)?);
                Some(())
            }
        }
    }

    /// A queue without counters has no row.
    fn leave(&mut self) {
        self.report.more.without_counters += u64::from(matches!(self.current, Current::Queue(_)));
    }

    fn counters(&mut self, words: &[&str], line: &str) -> Option<()> {
        match &self.current {
            Current::Nothing => None,
            Current::Other => {
                self.report.more.lines_left_out += 1;
                Some(())
            }
            Current::Queue(queue) => {
                let queue = queue.clone();
                let sent = sent(words)?;
                let row = self.row(&queue);
                let to = &mut self.table;
                let [bytes, packets, drops, overlimits, requeues] = sent;
                to.bytes.set(row, bytes);
                to.packets.set(row, packets);
                to.drops.set(row, drops);
                to.overlimits.set(row, overlimits);
                to.requeues.set(row, requeues);
                self.current = Current::Row(row);
                Some(())
            }
            &Current::Row(row) => {
                if let Some(at) = words.iter().position(|word| *word == "backlog") {
                    let [bytes, packets] = [words.get(at + 1)?, words.get(at + 2)?];
                    self.table.backlog_bytes.set(row, size(bytes)?);
                    let packets = packets.strip_suffix('p')?.parse().ok()?;
                    self.table.qlen_pkts.set(row, packets);
                    return Some(());
                }
                let own = own(self.table.kind.get(row).unwrap_or_default());
                if own.is_empty() {
                    self.report.more.lines_left_out += 1;
                }
                for (word, value) in pairs(line) {
                    let Some((_, column)) = own.iter().find(|(known, _)| *known == word) else {
                        continue;
                    };
                    // The first of the two stands on the line of flows.
                    let is_flows = word == "throttled" && words.contains(&"flows");
                    let column = match is_flows {
                        true => &mut self.table.fq_throttled_flows,
                        false => column(&mut self.table),
                    };
                    set(column, row, amount(&value));
                }
                Some(())
            }
        }
    }

    fn row(&mut self, queue: &Queue) -> usize {
        if self.table.is_full() {
            self.full.push_back(knee_store::take(&mut self.table));
        }
        let row = self.table.add_row();
        let to = &mut self.table;
        set(&mut to.t_unix_ns, row, self.t_unix_ns);
        self.report.more.rows_without_time += u64::from(self.t_unix_ns.is_none());
        name(&mut to.host, row, self.host.as_deref());
        name(&mut to.interface, row, queue.interface.as_deref());
        name(&mut to.kind, row, Some(&queue.kind));
        name(&mut to.handle, row, Some(&queue.handle));
        name(&mut to.parent, row, Some(&queue.parent));
        self.report.rows += 1;
        row
    }

    fn document(&mut self, text: &[u8]) -> Result<(), String> {
        let whole: Vec<Map<String, Value>> =
            serde_json::from_slice(text).map_err(|_| "no JSON list of queues".to_owned())?;
        for object in whole.iter().filter(|object| !object.is_empty()) {
            let text = |key: &str| object.get(key).and_then(Value::as_str);
            let kind = text("kind").ok_or("an object without a kind is no queue")?;
            let queue = Queue {
                kind: kind.to_owned(),
                handle: text("handle").unwrap_or_default().to_owned(),
                parent: match (text("parent"), object.contains_key("ingress")) {
                    (Some(parent), _) => parent_of(parent),
                    (None, true) => "ingress".to_owned(),
                    (None, false) => "root".to_owned(),
                },
                interface: text("dev").map(str::to_owned),
            };
            let number = |key: &str| object.get(key).and_then(Value::as_i64);
            let Some(bytes) = number("bytes") else {
                self.report.more.without_counters += 1;
                continue;
            };
            let row = self.row(&queue);
            let to = &mut self.table;
            to.bytes.set(row, bytes);
            set(&mut to.packets, row, number("packets"));
            set(&mut to.drops, row, number("drops"));
            set(&mut to.overlimits, row, number("overlimits"));
            set(&mut to.requeues, row, number("requeues"));
            set(&mut to.backlog_bytes, row, number("backlog"));
            set(&mut to.qlen_pkts, row, number("qlen"));
            for (key, column) in own(kind) {
                set(column(to), row, number(key));
            }
        }
        Ok(())
    }

    fn not_understood(&mut self, unit: u64, shown: impl FnOnce() -> String) {
        let keeps = self.keeps;
        self.report.not_understood_at(unit, || match keeps {
            true => shown(),
            false => String::new(),
        });
    }

    fn end_file(&mut self) {
        if self.json.end() {
            self.not_understood(self.json_at, || {
                "the list that begins here has no end".into()
            });
        }
        self.json_at = 0;
        self.leave();
        self.current = Current::Nothing;
    }
}

impl Lines for Parser {
    fills!(Qdisc);

    fn file(&mut self, path: &Path) {
        self.end_file();
        self.report.begin(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.t_unix_ns = time::name(&name, self.zone_s);
    }

    fn line(&mut self, line: &[u8]) -> Option<RecordBatch> {
        self.report.count();
        match self.json.line(line, b"[") {
            Came::Within => {
                if self.json_at == 0 {
                    self.json_at = self.report.unit;
                }
            }
            Came::Whole(text) => {
                self.json_at = 0;
                self.leave();
                self.current = Current::Nothing;
                if let Err(why) = self.document(&text) {
                    self.not_understood(self.report.unit, || why);
                }
            }
            Came::TooLong => {
                self.json_at = 0;
                self.report.not_understood(|| TOO_LONG.to_owned());
            }
            Came::Outside => {
                let text = String::from_utf8_lossy(line);
                if self.text(text.trim_end()).is_none() {
                    self.current = Current::Nothing;
                    let shown = String::from_utf8_lossy(lines::beginning(line));
                    self.not_understood(self.report.unit, || shown.trim().to_owned());
                }
            }
        }
        self.full.pop_front()
    }

    fn too_long(&mut self, beginning: &[u8]) {
        self.report.count();
        let shown = String::from_utf8_lossy(beginning).trim().to_owned();
        self.not_understood(self.report.unit, || shown);
    }

    fn take(&mut self) -> Vec<RecordBatch> {
        self.end_file();
        if self.table.rows() > 0 {
            self.full.push_back(knee_store::take(&mut self.table));
        }
        std::mem::take(&mut self.full).into()
    }
}

/// `qdisc KIND HANDLE: [dev DEVICE] root|parent CLASS …`
fn queue(words: &[&str]) -> Option<Queue> {
    let &[_, kind, handle, ref rest @ ..] = words else {
        return None;
    };
    let behind = |word: &str| {
        let at = rest.iter().position(|known| *known == word)?;
        rest.get(at + 1).map(|next| (*next).to_owned())
    };
    handle.ends_with(':').then(|| Queue {
        kind: kind.to_owned(),
        handle: handle.to_owned(),
        parent: match behind("parent") {
            Some(parent) => parent_of(&parent),
            None if rest.contains(&"ingress") => "ingress".to_owned(),
            None => "root".to_owned(),
        },
        interface: behind("dev"),
    })
}

/// As the recorder calls it.
fn parent_of(parent: &str) -> String {
    match parent {
        "ffff:fff1" => "ingress".to_owned(),
        other => other.to_owned(),
    }
}

/// `Sent 1 bytes 2 pkt (dropped 3, overlimits 4 requeues 5)`
fn sent(words: &[&str]) -> Option<[i64; 5]> {
    let names = [
        "Sent",
        "",
        "bytes",
        "",
        "pkt",
        "dropped",
        "",
        "overlimits",
        "",
        "requeues",
        "",
    ];
    let is_so = words.len() == 11
        && names
            .iter()
            .zip(words)
            .all(|(name, word)| name.is_empty() || word.trim_start_matches('(').starts_with(name));
    let number = |at: usize| words[at].trim_end_matches([',', ')']).parse().ok();
    is_so.then_some(())?;
    Some([number(1)?, number(3)?, number(6)?, number(8)?, number(10)?])
}

/// Names and values of a line of counters: `gc 3 latency 8.9us` of today, `3 gc, 2716 ns latency` of 3.10 to 4.x.
fn pairs(line: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for clause in line.split([',', '(', ')']) {
        let (mut name, mut value) = (Vec::new(), None);
        let is_value = |word: &str| word.as_bytes()[0].is_ascii_digit();
        let comes_first = clause.split_ascii_whitespace().next().is_some_and(is_value);
        for word in clause.split_ascii_whitespace() {
            if is_value(word) {
                if comes_first || name.is_empty() {
                    value = Some(word.to_owned());
                } else {
                    found.push((std::mem::take(&mut name).join(" "), word.to_owned()));
                }
            } else if word != "ns" {
                name.push(word);
            }
        }
        if let Some(value) = value {
            found.push((name.join(" "), value));
        }
    }
    found
}

/// A number, or a time in nanoseconds.
fn amount(text: &str) -> Option<i64> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let factor = match &text[at..] {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    super::json::scaled(text[..at].parse().ok()?, factor)
}

/// `499933b`, `12Kb`: bytes.
fn size(text: &str) -> Option<i64> {
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let factor = match &text[at..] {
        "b" => 1.0,
        "Kb" => 1024.0,
        "Mb" => 1024.0 * 1024.0,
        "Gb" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    super::json::scaled(text[..at].parse().ok()?, factor)
}

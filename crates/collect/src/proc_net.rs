//! Counters of `/proc/net`: `snmp`, `netstat`, `sockstat`, `sockstat6`, `softnet_stat`, which the recorder takes; a
//! snapshot has those of `snmp6` and of some tables' files below `stat` besides.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};

use serde::Serialize;

use super::files::Files;

/// A counter: its name is `group` and `name` with a dot between, or `name` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter<'a> {
    pub group: &'a str,
    pub name: &'a str,
    pub cpu: Option<i32>,
    pub value: i64,
}

/// Takes a file's counters.
type Parse = fn(&str, &mut dyn FnMut(Counter<'_>));

/// The files and how each is read.
pub const FILES: &[(&str, Parse)] = &[
    ("snmp", titled),
    ("netstat", titled),
    ("sockstat", paired),
    ("sockstat6", paired),
    ("softnet_stat", softnet),
];

/// Reads the file of the calling thread's network namespace into `text` and hands
/// out its counters.
///
/// # Errors
/// The file cannot be read.
pub fn read(
    file: &str,
    parse: Parse,
    text: &mut String,
    take: &mut dyn FnMut(Counter<'_>),
) -> io::Result<()> {
    text.clear();
    File::open(format!("/proc/thread-self/net/{file}"))?.read_to_string(text)?;
    parse(text, take);
    Ok(())
}

/// A line of names and one of values, both begin with the group.
fn titled(text: &str, take: &mut dyn FnMut(Counter<'_>)) {
    let mut lines = text.lines();
    while let (Some(titles), Some(values)) = (lines.next(), lines.next()) {
        let (Some((group, titles)), Some((same, values))) =
            (titles.split_once(':'), values.split_once(':'))
        else {
            continue;
        };
        if group != same {
            continue;
        }
        for (name, value) in titles.split_whitespace().zip(values.split_whitespace()) {
            if let Ok(value) = value.parse() {
                take(Counter {
                    group,
                    name,
                    cpu: None,
                    value,
                });
            }
        }
    }
}

/// Lines of a group, names and values in turn.
fn paired(text: &str, take: &mut dyn FnMut(Counter<'_>)) {
    for line in text.lines() {
        let Some((group, rest)) = line.split_once(':') else {
            continue;
        };
        let mut words = rest.split_whitespace();
        while let (Some(name), Some(value)) = (words.next(), words.next()) {
            if let Ok(value) = value.parse() {
                take(Counter {
                    group,
                    name,
                    cpu: None,
                    value,
                });
            }
        }
    }
}

/// A line per processor, hexadecimal; columns without a name here are always 0.
/// Source: Linux 6.18, net/core/net-procfs.c, softnet_seq_show().
fn softnet(text: &str, take: &mut dyn FnMut(Counter<'_>)) {
    const NAMES: &[(usize, &str)] = &[
        (0, "processed"),
        (1, "dropped"),
        (2, "time_squeeze"),
        (9, "received_rps"),
        (10, "flow_limit_count"),
        (11, "backlog_len"),
        (13, "input_qlen"),
        (14, "process_qlen"),
    ];
    const CPU: usize = 12;
    for (line_number, line) in text.lines().enumerate() {
        let value = |at: usize| {
            let word = line.split_whitespace().nth(at)?;
            i64::from_str_radix(word, 16).ok()
        };
        // Kernels before 5.10 do not say which one; then all are there in order.
        let cpu = value(CPU).unwrap_or(line_number as i64) as i32;
        for &(at, name) in NAMES {
            if let Some(value) = value(at) {
                take(Counter {
                    group: "",
                    name,
                    cpu: Some(cpu),
                    value,
                });
            }
        }
    }
}

/// A counter of a snapshot.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Count {
    /// `Tcp.RetransSegs`, `arp_cache.entries`.
    pub name: String,
    pub value: i64,
}

/// What a processor received.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Softnet {
    pub cpu: i32,
    pub processed: i64,
    pub dropped: i64,
    pub squeezed: i64,
    pub received_rps: i64,
    pub flow_limit_count: i64,
}

/// Reads the counters of a snapshot.
pub fn counts(files: &mut Files) -> (Vec<Count>, Vec<Softnet>) {
    /// A line of names, and one of hexadecimal numbers for each processor.
    const BY_CPU: &[&str] = &["arp_cache", "ndisc_cache", "nf_conntrack"];
    let net = files.roots.proc.join("net");
    let (mut counts, mut softnet) = (Vec::new(), Vec::new());
    let mut take = |counter: Counter<'_>| match counter.cpu {
        Some(cpu) => add(&mut softnet, cpu, counter),
        None => counts.push(Count {
            name: format!("{}.{}", counter.group, counter.name),
            value: counter.value,
        }),
    };
    for &(file, parse) in FILES {
        parse(
            &files.text(net.join(file), "").unwrap_or_default(),
            &mut take,
        );
    }
    of_ipv6(
        &files.text(net.join("snmp6"), "").unwrap_or_default(),
        &mut take,
    );
    for &file in BY_CPU {
        let what = format!("/proc/net/stat/{file}");
        let text = files.text(net.join("stat").join(file), &what);
        by_cpu(file, &text.unwrap_or_default(), &mut take);
    }
    if counts.is_empty() {
        let why = format!("{}/snmp is not there", net.display());
        files.miss("counters", why, "a mounted /proc");
    }
    (counts, softnet)
}

fn add(rows: &mut Vec<Softnet>, cpu: i32, counter: Counter<'_>) {
    if rows.last().is_none_or(|row| row.cpu != cpu) {
        rows.push(Softnet {
            cpu,
            ..Softnet::default()
        });
    }
    let row = rows.last_mut().expect("pushed above");
    let place = match counter.name {
        "processed" => &mut row.processed,
        "dropped" => &mut row.dropped,
        "time_squeeze" => &mut row.squeezed,
        "received_rps" => &mut row.received_rps,
        "flow_limit_count" => &mut row.flow_limit_count,
        _ => return,
    };
    *place = counter.value;
}

/// `Ip6OutRequests  774`: a line for each; those of IPv6 itself are taken.
fn of_ipv6(text: &str, take: &mut dyn FnMut(Counter<'_>)) {
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if let [name, value] = words[..]
            && let (Some(name), Ok(value)) = (name.strip_prefix("Ip6"), value.parse())
        {
            take(Counter {
                group: "Ip6",
                name,
                cpu: None,
                value,
            });
        }
    }
}

/// The sums over the processors; each line repeats how many entries there are.
fn by_cpu(file: &str, text: &str, take: &mut dyn FnMut(Counter<'_>)) {
    let mut lines = text.lines();
    let titles: Vec<_> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let mut sums: BTreeMap<&str, i64> = BTreeMap::new();
    for line in lines {
        for (&name, word) in titles.iter().zip(line.split_whitespace()) {
            let value = i64::from_str_radix(word, 16).unwrap_or(0);
            let sum = sums.entry(name).or_default();
            *sum = if name == "entries" {
                value
            } else {
                *sum + value
            };
        }
    }
    for (name, value) in sums {
        take(Counter {
            group: file,
            name,
            cpu: None,
            value,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(parse: Parse, text: &str) -> Vec<(String, Option<i32>, i64)> {
        let mut found = Vec::new();
        parse(text, &mut |counter| {
            let name = format!("{}.{}", counter.group, counter.name);
            found.push((name, counter.cpu, counter.value));
        });
        found
    }

    #[test]
    fn values_of_snmp_go_with_the_titles_above_them() {
        let text =
            "Tcp: RtoAlgorithm MaxConn RetransSegs\nTcp: 1 -1 77\nUdp: InDatagrams\nUdp: 5\n";
        let expected = [
            ("Tcp.RtoAlgorithm".to_owned(), None, 1),
            ("Tcp.MaxConn".to_owned(), None, -1),
            ("Tcp.RetransSegs".to_owned(), None, 77),
            ("Udp.InDatagrams".to_owned(), None, 5),
        ];
        assert_eq!(all(titled, text), expected);
    }

    #[test]
    fn title_without_its_line_of_values_gives_nothing() {
        assert_eq!(all(titled, "TcpExt: SyncookiesSent\n"), []);
        assert_eq!(all(titled, "TcpExt: A\nIpExt: 3\n"), []);
    }

    #[test]
    fn sockstat_has_names_and_values_in_turn() {
        let text = "sockets: used 290\nTCP: inuse 35 orphan 0 tw 2 alloc 40 mem 3\n";
        let found = all(paired, text);
        assert_eq!(found[0], ("sockets.used".to_owned(), None, 290));
        assert_eq!(found[3], ("TCP.tw".to_owned(), None, 2));
    }

    #[test]
    fn softnet_is_hexadecimal_and_says_which_processor() {
        let new = "00000010 00000002 00000003 0 0 0 0 0 0 00000004 00000005 00000006 00000007 00000008 00000009\n";
        let found = all(softnet, new);
        assert_eq!(found[0], (".processed".to_owned(), Some(7), 16));
        assert_eq!(found[7], (".process_qlen".to_owned(), Some(7), 9));
        let old = "0000000a 0 0 0 0 0 0 0 0 00000004\n0000000b 0 0 0 0 0 0 0 0 0\n";
        let found = all(softnet, old);
        assert_eq!(found[0], (".processed".to_owned(), Some(0), 10));
        assert_eq!(found[4], (".processed".to_owned(), Some(1), 11));
    }

    #[test]
    fn every_file_of_this_host_has_counters() {
        for &(file, parse) in FILES {
            let mut count = 0;
            let read = read(file, parse, &mut String::new(), &mut |_| count += 1);
            // A host without IPv6 has no sockstat6.
            assert!(count > 0 || read.is_err() && file == "sockstat6", "{file}");
        }
    }
}

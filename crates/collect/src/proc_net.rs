//! Counters of `/proc/net`: `snmp`, `netstat`, `sockstat`, `sockstat6`, `softnet_stat`.

use std::fs::File;
use std::io::{self, Read};

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

//! How keys and cells describe themselves.

use crate::common::{GOOD, edited, names, read};
use knee_scenario::{describe, keys};

#[test]
fn a_cell_describes_itself_in_bytes_packets_and_bdp() {
    let text = edited(
        "rtt = \"100ms\"",
        "rtt = \"100ms\"\nbuffer = \"0.5bdp\"\nloss = \"periodic 0.1%\"\noverhead = \"14B\"",
    );
    let facts = describe(&read(&text).unwrap().cell(0).unwrap(), &names());
    let value = |key: &str| {
        let found: Vec<&str> = facts
            .iter()
            .filter(|(k, ..)| k == key)
            .map(|(_, v, _)| v.as_str())
            .collect();
        assert_eq!(found.len(), 1, "{key} is described once");
        found[0]
    };
    assert_eq!(value("path.bdp_bytes"), "625000");
    assert_eq!(value("path.bdp_pkts"), "413"); // 412.8
    assert_eq!(value("path.buffer_bytes"), "312500");
    assert_eq!(value("path.buffer_pkts"), "206");
    assert_eq!(value("path.buffer_bdp"), "0.50");
    assert_eq!(value("path.buffer_drain"), "50.000ms");
    assert_eq!(value("path.loss"), "periodic 0.1%");
    assert_eq!(value("receiver.algorithm"), "cubic");
    assert!(
        facts
            .iter()
            .all(|(key, value, doc)| !key.is_empty() && !value.is_empty() && !doc.is_empty())
    );
}

/// What `describe` says of settings can be written into a file and means the same.
#[test]
fn described_settings_parse_back() {
    let facts = describe(&read(GOOD).unwrap().cell(0).unwrap(), &names());
    let derived = ["_bytes", "_pkts", "_bdp", "_drain"];
    let mut text = String::new();
    let mut flow = String::new();
    for (key, value, _) in facts {
        if derived.iter().any(|end| key.ends_with(end))
            && key != "sender.tcp_limit_output_bytes"
            && key != "receiver.tcp_limit_output_bytes"
        {
            continue;
        }
        let bare = value.parse::<f64>().is_ok() || value == "true" || value == "false";
        // A mask is text, also where all its digits are decimal.
        let bare = bare && !key.ends_with(".rps_cpus") && !key.ends_with("_bitmap");
        let value = if bare { value } else { format!("\"{value}\"") };
        match key.strip_prefix("flow.0.") {
            Some(key) => flow += &format!("{key} = {value}\n"),
            None => text += &format!("{key} = {value}\n"),
        }
    }
    let again = read(&format!("{text}[[flow]]\n{flow}")).unwrap();
    assert_eq!(
        describe(&again.cell(0).unwrap(), &names()),
        describe(&read(GOOD).unwrap().cell(0).unwrap(), &names())
    );
}

#[test]
fn parameters_are_described_as_they_are_written() {
    let text = edited(
        "rtt = \"100ms\"",
        "rtt = \"100ms\"\nqueue = \"fq_codel\"\nfq_codel.target = \"10ms\"\nack_rate = \"1Mbit/s\"\nack_queue = \"codel\"",
    );
    let text = format!("{text}bbr1.drain_gain = 0.5\n").replace("\"cubic\"", "\"bbr1\"");
    let facts = describe(&read(&text).unwrap().cell(0).unwrap(), &names());
    let fact = |key: &str| facts.iter().find(|(k, ..)| k == key).expect(key);
    assert_eq!(fact("path.fq_codel.target").1, "10ms");
    assert_eq!(fact("path.fq_codel.interval").1, "100ms"); // its default
    assert_eq!(fact("path.ack_codel.target").1, "5ms");
    assert_eq!(fact("flow.0.bbr1.drain_gain").1, "0.5");
    assert_eq!(fact("flow.0.bbr1.probe_rtt_time").1, "200ms");
}

#[test]
fn every_key_is_documented_with_default_forms_and_source() {
    let keys = keys();
    for key in &keys {
        for words in [&key.default, &key.forms, &key.doc, &key.source] {
            assert!(!words.is_empty(), "{} lacks words", key.path);
        }
    }
    let mut paths: Vec<&str> = keys.iter().map(|key| key.path.as_str()).collect();
    let n = paths.len();
    paths.sort_unstable();
    paths.dedup();
    assert_eq!(paths.len(), n, "no key is listed twice");
}

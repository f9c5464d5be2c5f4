//! Two hosts that are joined directly, with no path between them.

use crate::common::{edited, read};

/// `GOOD` with a path on which nothing is between the hosts, and one passage of it edited.
fn direct(from: &str, to: &str) -> String {
    let path = "rate = \"unlimited\"\nrtt = \"0s\"\nbackend = \"veth\"";
    let rate = edited("rate = \"50Mbit/s\"\n", "");
    let file = rate.replace("rtt = \"100ms\"", path);
    assert!(file.contains(from), "{file}");
    file.replacen(from, to, 1)
}

#[test]
fn what_acts_on_packets_is_refused_where_two_hosts_are_joined_directly() {
    read(&direct("veth", "veth")).unwrap();
    let after = "backend = \"veth\"";
    for (from, to, key, got, expected) in [
        (
            "\"unlimited\"",
            "\"1Gbit/s\"\nbuffer = \"9packets\"".to_owned(),
            "path.rate",
            "\"1Gbit/s\"",
            "\"unlimited\"",
        ),
        (
            "\"0s\"",
            "\"1us\"".to_owned(),
            "path.rtt",
            "\"1us\"",
            "\"0s\"",
        ),
        (
            after,
            format!("{after}\nloss = \"1%\""),
            "path.loss",
            "\"1%\"",
            "\"0%\"",
        ),
        (
            after,
            format!("{after}\nack_loss = \"1%\""),
            "path.ack_loss",
            "\"1%\"",
            "\"0%\"",
        ),
        (
            after,
            format!("{after}\nbuffer = \"9packets\""),
            "path.buffer",
            "\"9packets\"",
            "\"unlimited\"",
        ),
        (
            after,
            format!("{after}\nqueue = \"codel\""),
            "path.queue",
            "\"codel\"",
            "\"fifo\"",
        ),
        (
            after,
            format!("{after}\npolicer_rate = \"9Mbit/s\""),
            "path.policer_rate",
            "\"9Mbit/s\"",
            "\"unlimited\"",
        ),
        (
            after,
            format!("{after}\nrtt_change = \"1s to 1ms\""),
            "path.rtt_change",
            "\"1s to 1ms\"",
            "no change",
        ),
        (
            after,
            format!("{after}\nack_rate = \"9Mbit/s\""),
            "path.ack_rate",
            "\"9Mbit/s\"",
            "\"unlimited\"",
        ),
        (
            after,
            format!("{after}\noverhead = \"38B\""),
            "path.overhead",
            "\"38B\"",
            "\"0B\"",
        ),
        (
            after,
            format!("{after}\njitter = \"1ms\""),
            "path.jitter",
            "\"1ms\"",
            "none",
        ),
        (
            "algorithm = \"cubic\"",
            "algorithm = \"cubic\"\nrtt = \"1ms\"".to_owned(),
            "flow.0.rtt",
            "\"1ms\"",
            "none",
        ),
    ] {
        let error = read(&direct(from, &to)).unwrap_err().to_string();
        let said = format!(
            "{key}: got {got}; expected {expected}, because path.backend = \"veth\" joins the two hosts directly, with nothing between that emulates a path. Or leave path.backend out."
        );
        assert!(error.ends_with(&said), "{error}\n{said}");
    }
}

#[test]
fn hosts_joined_directly_have_no_hops_between_them() {
    let file = "duration = \"9s\"\n[path]\nbackend = \"veth\"\n[[hop]]\nrate = \"unlimited\"\nrtt = \"0s\"\n[[flow]]\nalgorithm = \"cubic\"\n";
    assert_eq!(
        read(file).unwrap_err().to_string(),
        "s.toml:3: path.backend: got \"veth\"; expected a back end that has hops: \"auto\" or \"user\". Or give a [path] in the place of the [[hop]] tables."
    );
}

#[test]
fn both_sides_have_the_processors_of_the_senders_machine() {
    let costs = "duration = \"10s\"\nsender.costs = \"published\"\nsender.cpus = 2\nreceiver.costs = \"published\"\nreceiver.cpus = 8";
    let pinned = |cpu| format!("{costs}\nreceiver.app_cpus = \"{cpu}\"");
    read(&direct("duration = \"10s\"", &pinned(1))).unwrap();
    assert_eq!(
        read(&direct("duration = \"10s\"", &pinned(2)))
            .unwrap_err()
            .to_string(),
        "s.toml:6: receiver.app_cpus: got \"2\"; expected processors from 0 to 1, as the sender's hosts, where both sides \
         of a veth pair are, have 2. Or set sender.cpus."
    );
}

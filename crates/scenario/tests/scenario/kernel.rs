//! `kernel`: the rules and defaults of a release.

use crate::common::read;
use knee_scenario::{Cell, PacingTimer, RcvbufShare, Release, SendStamps};

const BODY: &str = "duration = \"5s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"20ms\"\n";
const FLOW: &str = "[[flow]]\nalgorithm = \"cubic\"\n";

fn cell(top: &str, hosts: &str) -> Cell {
    let text = format!("{top}\n{BODY}{hosts}\n{FLOW}");
    read(&text).unwrap().cell(0).unwrap()
}

fn refusal(top: &str) -> String {
    read(&format!("{top}\n{BODY}{FLOW}"))
        .unwrap_err()
        .to_string()
}

#[test]
fn a_release_has_its_own_defaults_at_both_hosts() {
    let old = cell("kernel = \"4.15\"", "");
    for host in [&old.sender, &old.receiver] {
        assert_eq!(host.send_stamps, SendStamps::Handover);
        assert_eq!(host.pacing_timer, PacingTimer::EveryPacket);
        assert_eq!(host.rcvbuf_share, RcvbufShare::Half);
        assert_eq!(host.tcp_rmem_bytes, [4_096, 87_380, 6 << 20]);
        assert_eq!((host.tcp_comp_sack_nr, host.tcp_tso_rtt_log), (0, 0));
        assert!(!host.grow_skb && host.tso_autosizing);
    }
    let new = cell("kernel = \"7.2\"", "");
    assert_eq!(new.sender.tcp_comp_sack_rtt_percent, 33);
    assert_eq!(new.receiver.tcp_rmem_bytes, [4_096, 131_072, 32 << 20]);
    let kernel = new.kernel.expect("it names one");
    assert_eq!(
        (kernel.name.as_str(), kernel.release),
        ("7.2", Release(7, 2))
    );
}

#[test]
fn what_the_file_sets_goes_before_the_release() {
    let cell = cell("kernel = \"4.15\"", "[sender]\nsend_stamps = \"departure\"");
    assert_eq!(cell.sender.send_stamps, SendStamps::Departure);
    assert_eq!(cell.receiver.send_stamps, SendStamps::Handover);
}

#[test]
fn without_a_kernel_a_cell_is_as_linux_6_18_is() {
    let [none, named] = ["", "kernel = \"6.18\""].map(|top| cell(top, ""));
    assert_eq!(none.hash(), named.hash());
    assert!(none.kernel.is_none());
}

#[test]
fn a_kernel_that_was_built_has_the_rules_of_its_release() {
    let [built, release] =
        ["patched", "6.12"].map(|name| cell(&format!("kernel = \"{name}\""), ""));
    assert_eq!(built.hash(), release.hash());
}

#[test]
fn kernels_are_an_axis() {
    let text = format!("kernel = [\"4.15\", \"5.10\"]\n{BODY}{FLOW}");
    let scenario = read(&text).unwrap();
    let found: Vec<_> = scenario
        .cells()
        .map(|cell| (cell.axes.clone(), cell.sender.tcp_limit_output_bytes))
        .collect();
    let axis = |name: &str| vec![("kernel".to_owned(), name.to_owned())];
    assert_eq!(found, [(axis("4.15"), 262_144), (axis("5.10"), 1 << 20)]);
}

#[test]
fn what_is_no_kernel_is_refused() {
    for name in [
        "\"2.6\"",
        "\"7.4\"",
        "\"6.12.1\"",
        "\"unknown\"",
        "\"\"",
        "\"6.12; rm\"",
    ] {
        let said = refusal(&format!("kernel = {name}"));
        assert!(
            said.contains("expected a release of Linux such as \"6.12\", from 3.10 to 7.2"),
            "{said}"
        );
    }
    let said = refusal("kernel = 6.10");
    assert!(said.contains("Write it in quotes."), "{said}");
}

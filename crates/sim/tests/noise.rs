//! Hosts that are late: what they delay, and what they leave as it is.

use crate::common::{run, run_captured};
use knee_sim::Output;

/// CUBIC with a link to itself.
fn scenario(sender: &str, receiver: &str) -> String {
    format!(
        "duration = \"10s\"\nwarmup = \"4s\"\n[path]\nrate = \"20Mbit/s\"\nrtt = \"40ms\"\nbuffer = \"unlimited\"\n\
         [sender]\n{sender}\n[receiver]\n{receiver}\n[[flow]]\nalgorithm = \"cubic\"\n"
    )
}

fn is_same(a: &Output, b: &Output) -> bool {
    format!("{:?}{:?}{:?}", a.flows, a.samples, a.capture)
        == format!("{:?}{:?}{:?}", b.flows, b.samples, b.capture)
}

#[test]
fn noise_of_0s_changes_nothing() {
    let silent = run_captured(&scenario("", ""));
    let zero = run_captured(&scenario("noise = \"0s\"", "noise = \"0s\""));
    assert!(is_same(&silent, &zero));
    let noisy = run_captured(&scenario("noise = \"1us\"", ""));
    assert!(!is_same(&silent, &noisy));
}

#[test]
fn noise_draws_from_streams_of_its_own() {
    // Two hosts' noises and the losses: none moves the others' draws.
    let lost = |noise: &str| {
        let text = scenario(noise, noise).replace("[path]\n", "[path]\nloss = \"1%\"\n");
        let capture = run_captured(&text).capture;
        let mut left = capture.iter().filter(|packet| packet.outbound);
        // The first packet that is sent twice was the first lost.
        let mut highest = 0;
        let again = left.position(|packet| {
            let again = packet.payload_bytes > 0 && packet.seq < highest;
            highest = highest.max(packet.seq + u64::from(packet.payload_bytes));
            again
        });
        (highest, again.is_some())
    };
    let (silent, noisy) = (lost(""), lost("noise = \"10us\""));
    assert!(silent.1 && noisy.1);
    // What was sent until it was found differs by what the noise let go meanwhile.
    assert!(
        silent.0.abs_diff(noisy.0) < 20 * 1_448,
        "{silent:?} {noisy:?}"
    );
}

#[test]
fn noise_keeps_the_order_of_packets() {
    // So large that each draw would overtake many others.
    let output = run_captured(&scenario("noise = \"5ms\"", "noise = \"5ms\""));
    let mut highest = 0;
    for packet in output
        .capture
        .iter()
        .filter(|p| p.outbound && p.payload_bytes > 0)
    {
        assert!(packet.seq >= highest, "{} after {highest}", packet.seq);
        highest = packet.seq + u64::from(packet.payload_bytes);
    }
    assert_eq!(output.flows.total_retrans[0], 0);
    let account = &output.accounts[0];
    assert_eq!(
        account.sent_bytes,
        account.arrived_bytes + account.dropped_bytes + account.under_way_bytes
    );
}

/// An exponential of mean m in order: a packet alone is late by m in the mean.
#[test]
fn noise_delays_a_lone_packet_by_its_mean_at_each_host() {
    let rtt_ms = |sender: &str, receiver: &str| {
        let output = run(&format!(
            "duration = \"200s\"\n[path]\nrate = \"unlimited\"\nrtt = \"10ms\"\n[sender]\n{sender}\n\
             [receiver]\nquickack = true\n{receiver}\n[[flow]]\nalgorithm = \"cubic\"\n\
             workload = \"request-response\"\n"
        ));
        1e3 / output.flows.requests_per_sec.get(0).expect("it asks")
    };
    let silent = rtt_ms("", "");
    for (sender, receiver, late) in [
        ("noise = \"1ms\"", "", 1.0),
        ("", "noise = \"2ms\"", 2.0),
        ("noise = \"1ms\"", "noise = \"2ms\"", 3.0),
    ] {
        let more = rtt_ms(sender, receiver) - silent;
        // 15,000 draws: the mean is known to 1 %, and a delay that ACKs share adds some.
        assert!((more / late - 1.0).abs() < 0.05, "{more}, expected {late}");
    }
}

#[test]
fn noise_leaves_a_full_link_full() {
    let goodput = |noise: &str| run(&scenario(noise, noise)).flows.goodput_bits_per_sec[0];
    let (silent, noisy) = (goodput(""), goodput("noise = \"50us\""));
    assert!((noisy / silent - 1.0).abs() < 0.002, "{noisy} of {silent}");
}

#[test]
fn noise_is_the_same_for_the_same_seed_and_another_for_another() {
    let text = scenario("noise = \"30us\"", "noise = \"30us\"");
    assert!(is_same(&run_captured(&text), &run_captured(&text)));
    let other = format!("seed = 2\n{text}");
    assert!(!is_same(&run_captured(&text), &run_captured(&other)));
}

#[test]
fn noise_reaches_what_fq_paces_too() {
    let text = scenario("pacing = \"fq\"\nnoise = \"200us\"", "");
    let output = run_captured(&text);
    let silent = run_captured(&scenario("pacing = \"fq\"", ""));
    assert!(!is_same(&output, &silent));
    assert_eq!(output.flows.total_retrans[0], silent.flows.total_retrans[0]);
}

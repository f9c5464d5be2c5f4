//! Packet captures, pcap and pcapng.
//!
//! Besides that nothing panics: each packet is counted as one thing, and each
//! connection and each ACK that is counted is a row.

use std::io;
use std::path::Path;

use knee_import::pcap::{Analyser, Options};
use knee_import::{Filled, Import as _};

use super::{BATCH_BYTES, choice, sample};
use crate::Target;

pub const TARGET: Target = Target {
    name: "pcap",
    about: "packet captures, pcap and pcapng",
    seeds: &seeds,
    words: &[
        "\n\r\r\n",
        "\x01\0\0\0",
        "\x02\0\0\0",
        "\x03\0\0\0",
        "\x05\0\0\0",
        "\x06\0\0\0",
        "\x09\0\x01\0\x06\0\0\0",
        "\x0e\0\x08\0",
        "\x01\x01\x05\x0a",
        "\x08\x0a",
        "\x08\0E\0",
    ],
    check: &check,
};

fn seeds() -> Vec<Vec<u8>> {
    ["capture.pcap", "capture.pcapng", "capture-any.pcap"]
        .map(|name| sample(&format!("crates/import/tests/data/pcap/{name}")))
        .to_vec()
}

fn check(input: &[u8]) -> usize {
    let choice = choice(input);
    let mut analyser = Analyser::new(Options {
        every_ns: (choice % 2 == 1).then_some(1_000_000),
        // Bounds that an input of this size reaches.
        connections_max: if choice % 4 < 2 { 2 } else { 1 << 16 },
        entries_max: if choice % 8 < 4 { 8 } else { 1 << 21 },
        ..Options::default()
    });
    let mut rows = [0, 0];
    let mut count = |(table, batch): Filled| {
        rows[usize::from(table == "capture_connections")] += batch.num_rows() as u64;
    };
    let outcome = analyser.read_stream(Path::new("capture"), input, |_, filled| {
        filled.into_iter().for_each(&mut count);
        Ok::<(), io::Error>(())
    });
    analyser.rest().into_iter().for_each(&mut count);
    let report = analyser.report();
    let kinds = report.more.tcp_packets
        + report.more.other_packets
        + report.more.fragments
        + report.more.unknown_links.values().sum::<u64>()
        + report.not_understood;
    // What cannot be read on with is not understood, and may be no packet.
    assert!(
        kinds == report.units || kinds == report.units + 1,
        "{report:?}"
    );
    assert!(report.units * 16 <= input.len() as u64);
    assert!(report.more.captured_again <= report.more.tcp_packets);
    assert!(report.first.len() as u64 <= report.not_understood.min(5));
    assert_eq!(rows, [report.more.ack_rows, report.more.connections]);
    if outcome.is_err() {
        assert_eq!(report.units, 0, "only a file that is no capture is refused");
    }
    // A connection holds both sides' state, and a packet an entry or two.
    BATCH_BYTES + 1024 * input.len()
}

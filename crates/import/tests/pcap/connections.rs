//! What a capture of a scripted connection says of it.

use knee_import::pcap::Options;
use knee_store::{Anonymiser, anonymise::Key};

use crate::captures::*;

/// The handshake of a capture at the client, RTT 20 ms, then `rest`.
fn at_client(rest: &[Seg]) -> Vec<Seg> {
    [handshake([0, 20_000, 20_010]), rest.to_vec()].concat()
}

#[test]
fn rtt_is_of_the_newest_segment_that_an_ack_acknowledges() {
    let found = import(&at_client(&[
        data(100_000, 0, MSS),
        data(101_000, MSS, MSS),
        data(102_000, 2 * MSS, MSS),
        ack(121_500, 2 * MSS),
        ack(122_000, 3 * MSS),
    ]));
    assert_eq!(found.ack("rtt_us"), [Some(20_500), Some(20_000)]);
    assert_eq!(found.ack("inflight_bytes"), [Some(MSS.into()), Some(0)]);
    assert_eq!(found.ack("bytes_acked"), [Some(2896), Some(4344)]);
    assert_eq!(found.connection("rtt_us_min"), [Some(20_000)]);
    assert_eq!(found.connection("handshake_rtt_us"), [Some(20_010)]);
    assert_eq!(found.connection("inflight_bytes_max"), [Some(4344)]);
    // 4344 bytes in 22 ms.
    assert_eq!(found.connection("goodput_bits_per_sec"), [Some(1_579_636)]);
}

#[test]
fn ack_of_what_was_sent_again_gives_no_rtt() {
    let found = import(&at_client(&[
        data(100_000, 0, MSS),
        data(100_100, MSS, MSS),
        data(300_000, 0, MSS),
        ack(320_000, 2 * MSS),
        data(330_000, 2 * MSS, MSS),
        ack(350_000, 3 * MSS),
    ]));
    assert_eq!(found.ack("rtt_us"), [None, Some(20_000)]);
    assert_eq!(found.connection("total_retrans"), [Some(1)]);
    assert_eq!(found.connection("bytes_retrans"), [Some(MSS.into())]);
    assert_eq!(found.connection("retransmit_pct"), [Some(25)]);
    assert_eq!(found.connection("rtt_samples"), [Some(1)]);
}

#[test]
fn timestamps_give_the_rtt_also_of_what_was_sent_again() {
    let found = import(&at_client(&[
        stamped(data(100_000, 0, MSS), 100, 1),
        stamped(data(300_000, 0, MSS), 300, 1),
        stamped(ack(321_000, MSS), 9, 300),
        stamped(ack(322_000, MSS), 10, 300),
    ]));
    assert_eq!(found.ack("rtt_us")[0], None);
    assert_eq!(found.ack("rtt_ts_us")[0], Some(21_000));
    assert_eq!(found.connection("rtt_ts_us_min"), [Some(21_000)]);
}

#[test]
fn sacked_bytes_are_not_in_flight_and_give_an_rtt() {
    let found = import(&at_client(&[
        data(100_000, 0, MSS),
        data(101_000, MSS, MSS),
        data(102_000, 2 * MSS, MSS),
        sack(121_000, 0, &[(MSS, 2 * MSS)]),
        sack(122_500, 0, &[(MSS, 3 * MSS)]),
        data(123_000, 0, MSS),
        ack(143_000, 3 * MSS),
    ]));
    let mss = i64::from(MSS);
    assert_eq!(found.ack("rtt_us"), [Some(20_000), Some(20_500), None]);
    assert_eq!(found.ack("inflight_bytes"), [2 * mss, mss, 0].map(Some));
    assert_eq!(found.ack("sacked_bytes"), [mss, 2 * mss, 0].map(Some));
    assert_eq!(
        found.ack("delivered_bytes"),
        [mss, 2 * mss, 3 * mss].map(Some)
    );
    assert_eq!(found.ack("dup_acks"), [1, 2, 2].map(Some));
    assert_eq!(found.connection("spurious_retrans"), [Some(0)]);
}

#[test]
fn dsack_tells_which_retransmissions_were_for_nothing() {
    let found = import(&at_client(&[
        data(100_000, 0, MSS),
        data(100_100, MSS, MSS),
        data(300_000, 0, MSS),
        data(300_100, MSS, MSS),
        ack(310_000, 2 * MSS),
        // RFC 2883: the first block is below the ACK.
        sack(320_000, 2 * MSS, &[(0, MSS)]),
        // Twice on the way, but sent once.
        data(330_000, 2 * MSS, MSS),
        ack(350_000, 3 * MSS),
        sack(350_100, 3 * MSS, &[(2 * MSS, 3 * MSS)]),
    ]));
    assert_eq!(found.connection("total_retrans"), [Some(2)]);
    assert_eq!(found.connection("spurious_retrans"), [Some(1)]);
    assert_eq!(found.connection("dsack_dups"), [Some(2)]);
}

#[test]
fn dsack_within_a_sack_block_is_not_taken_for_news() {
    let found = import(&at_client(&[
        data(100_000, 0, MSS),
        data(100_100, MSS, MSS),
        data(100_200, 2 * MSS, MSS),
        sack(120_000, 0, &[(MSS, 3 * MSS)]),
        data(121_000, MSS, MSS),
        sack(141_000, 0, &[(MSS, 2 * MSS), (MSS, 3 * MSS)]),
    ]));
    assert_eq!(found.connection("spurious_retrans"), [Some(1)]);
    let inflight = found.ack("inflight_bytes");
    assert_eq!(inflight.last().unwrap(), &Some(MSS.into()));
}

#[test]
fn window_is_scaled_as_the_handshake_says_and_unknown_without_it() {
    let rest = [data(100_000, 0, MSS), ack(120_000, MSS)];
    let whole = import(&at_client(&rest));
    assert_eq!(whole.ack("snd_wnd_bytes"), [Some(1000 << 7)]);
    assert_eq!(whole.connection("snd_wscale"), [Some(7)]);
    let cut = import(&rest);
    assert_eq!(cut.ack("snd_wnd_bytes"), [None]);
    assert_eq!(cut.connection("mss_bytes"), [None]);
    assert_eq!(cut.ack("rtt_us"), [Some(20_000)]);
}

#[test]
fn ecn_marks_and_closed_windows_are_counted() {
    let found = import(&at_client(&[
        Seg {
            ecn: 3,
            ..data(100_000, 0, MSS)
        },
        Seg {
            flags: "AE",
            ..ack(120_000, MSS)
        },
        Seg {
            window: 0,
            ..ack(121_000, MSS)
        },
    ]));
    assert_eq!(found.connection("ce_packets"), [Some(1)]);
    assert_eq!(found.connection("ece_acks"), [Some(1)]);
    assert_eq!(found.connection("zero_windows"), [Some(1)]);
    assert_eq!(found.ack("snd_wnd_bytes"), [Some(128_000), Some(0)]);
}

#[test]
fn keepalive_is_no_retransmission() {
    let found = import(&at_client(&[
        data(100_000, 0, MSS),
        ack(120_000, MSS),
        data(75_000_000, MSS - 1, 1),
        data(76_000_000, MSS - 1, 0),
    ]));
    assert_eq!(found.connection("total_retrans"), [Some(0)]);
    assert_eq!(found.connection("bytes_sent"), [Some(MSS.into())]);
}

#[test]
fn hole_filled_at_once_is_reordering_and_after_a_round_trip_a_retransmission() {
    let script = |filled_us| {
        at_client(&[
            data(100_000, MSS, MSS),
            data(filled_us, 0, MSS),
            ack(filled_us + 20_000, 2 * MSS),
        ])
    };
    let soon = import(&script(100_500));
    assert_eq!(soon.connection("out_of_order"), [Some(1)]);
    assert_eq!(soon.connection("total_retrans"), [Some(0)]);
    assert_eq!(soon.ack("rtt_us"), [Some(20_000)]);
    let late = import(&script(125_000));
    assert_eq!(late.connection("out_of_order"), [Some(0)]);
    assert_eq!(late.connection("total_retrans"), [Some(1)]);
    assert_eq!(late.ack("rtt_us"), [None]);
}

#[test]
fn what_the_capture_dropped_is_told_and_what_it_has_late_is_not() {
    let dropped = import(&at_client(&[
        data(100_000, 0, MSS),
        data(100_200, 2 * MSS, MSS),
        ack(120_000, 3 * MSS),
    ]));
    assert_eq!(dropped.connection("bytes_not_captured"), [Some(MSS.into())]);
    assert_eq!(dropped.report.more.bytes_not_captured, u64::from(MSS));
    // Interfaces with several queues: the ACK is captured before its data.
    let late = import(&at_client(&[
        data(100_000, 0, MSS),
        ack(120_000, 2 * MSS),
        data(120_001, MSS, MSS),
    ]));
    assert_eq!(late.connection("bytes_not_captured"), [Some(0)]);
    assert_eq!(late.connection("total_retrans"), [Some(0)]);
    assert_eq!(late.connection("out_of_order"), [Some(1)]);
}

#[test]
fn packet_that_offload_was_to_cut_counts_as_its_pieces() {
    let mut large = packet(&data(100_000, 0, 10 * MSS));
    // As Linux captures what is longer than the field: of no length.
    large[2..4].copy_from_slice(&[0, 0]);
    let mut packets: Vec<_> = (handshake([0, 20_000, 20_010]).iter())
        .map(|seg| (seg.t_us, packet(seg)))
        .collect();
    packets.push((100_000, large));
    let rest = [
        ack(120_000, 4 * MSS),
        sack(121_000, 4 * MSS, &[(5 * MSS, 10 * MSS)]),
        data(122_000, 4 * MSS, MSS),
        ack(142_000, 10 * MSS),
    ];
    packets.extend(rest.iter().map(|seg| (seg.t_us, packet(seg))));
    let found = import_bytes(Options::default(), &pcap(101, false, false, &packets));
    assert_eq!(found.connection("data_segs_out"), [Some(11)]);
    assert_eq!(found.connection("total_retrans"), [Some(1)]);
    assert_eq!(found.ack("rtt_us"), [Some(20_000), Some(21_000), None]);
    let mss = i64::from(MSS);
    assert_eq!(found.ack("inflight_bytes"), [6 * mss, mss, 0].map(Some));
}

#[test]
fn place_of_the_capture_follows_from_the_handshake() {
    let vantage = |times_us| {
        let rest = [data(100_000, 0, MSS), ack(120_000, MSS)];
        let found = import(&[handshake(times_us), rest.to_vec()].concat());
        (found.texts("vantage").remove(0), found.report)
    };
    assert_eq!(vantage([0, 20_000, 20_010]).0.as_deref(), Some("sender"));
    let (place, report) = vantage([0, 10, 20_010]);
    assert_eq!(
        (place.as_deref(), report.more.at_receiver),
        (Some("receiver"), 1)
    );
    let (place, report) = vantage([0, 8_000, 20_000]);
    assert_eq!(
        (place.as_deref(), report.more.in_the_middle),
        (Some("middle"), 1)
    );
    assert_eq!(vantage([0, 80, 120]).0, None, "hosts, not paths");
}

#[test]
fn place_of_the_capture_follows_from_timestamps_without_a_handshake() {
    // At the receiver: its ACKs leave at once, the sender answers after a round trip.
    let mut script = Vec::new();
    for round in 0..5u32 {
        let t_us = u64::from(round) * 20_000;
        script.push(stamped(
            data(t_us, round * MSS, MSS),
            100 + round,
            500 + round,
        ));
        script.push(stamped(
            ack(t_us + 30, (round + 1) * MSS),
            501 + round,
            100 + round,
        ));
    }
    let found = import(&script);
    assert_eq!(found.texts("vantage"), [Some("receiver".into())]);
    assert_eq!(found.connection("local_leg_us"), [Some(19_970)]);
    assert_eq!(found.connection("remote_leg_us"), [Some(30)]);
}

#[test]
fn both_directions_are_analysed_and_the_one_with_more_data_is_local() {
    let reply = |t_us, seq, len| Seg {
        from_client: false,
        ack: 100,
        ..data(t_us, seq, len)
    };
    let found = import(&at_client(&[
        data(100_000, 0, 100),
        reply(120_000, 0, MSS),
        reply(120_100, MSS, MSS),
        Seg {
            ack: 2 * MSS,
            ..data(120_200, 100, 0)
        },
    ]));
    assert_eq!(found.connection("local_port"), [Some(443)]);
    assert_eq!(found.texts("opened_by"), [Some("remote".into())]);
    assert_eq!(found.texts("vantage"), [Some("receiver".into())]);
    assert_eq!(found.connection("bytes_acked"), [Some(2 * i64::from(MSS))]);
    assert_eq!(found.connection("bytes_received"), [Some(100)]);
    assert_eq!(found.ack("rtt_us"), [Some(20_000)], "of the request");
    assert_eq!(found.connection("rtt_us_max"), [Some(100)], "of the reply");
}

#[test]
fn connections_end_by_fin_or_rst_and_ports_come_again() {
    let fin = |seg: Seg| Seg { flags: "FA", ..seg };
    let closed = [
        data(100_000, 0, 10),
        fin(data(100_001, 10, 0)),
        fin(ack(120_000, 11)),
        Seg {
            ack: 1,
            ..data(120_001, 11, 0)
        },
    ];
    let again: Vec<Seg> = (handshake([200_000, 220_000, 220_010]).into_iter())
        .map(|seg| Seg {
            seq: if seg.from_client && seg.flags == "S" {
                77
            } else {
                seg.seq
            },
            ..seg
        })
        .collect();
    let reset = Seg {
        flags: "R",
        ..ack(230_000, 0)
    };
    let found = import(&[at_client(&closed), again, vec![reset]].concat());
    assert_eq!(
        found.texts("ended"),
        [Some("fin".into()), Some("rst".into())]
    );
    assert_eq!(
        found.connection("bytes_acked"),
        [Some(10), Some(0)],
        "a FIN is no byte"
    );
    assert_eq!(found.connection("connection"), [Some(0), Some(1)]);
}

#[test]
fn intervals_have_the_mean_and_the_extremes_of_their_acks() {
    let script = at_client(&[
        data(100_000, 0, MSS),
        data(101_000, MSS, MSS),
        ack(120_000, MSS),
        ack(123_000, 2 * MSS),
        data(350_000, 2 * MSS, MSS),
        ack(370_000, 3 * MSS),
    ]);
    let options = Options {
        every_ns: Some(100_000_000),
        ..Options::default()
    };
    let found = import_bytes(options, &capture(&script));
    assert_eq!(
        found.ack("t_unix_ns"),
        [Some(100_000_000), Some(300_000_000)]
    );
    assert_eq!(found.ack("rtt_us"), [Some(21_000), Some(20_000)]);
    assert_eq!(found.ack("rtt_us_min"), [Some(20_000), Some(20_000)]);
    assert_eq!(found.ack("rtt_us_max"), [Some(22_000), Some(20_000)]);
    assert_eq!(found.ack("rtt_samples"), [Some(2), Some(1)]);
    assert_eq!(
        found.ack("bytes_sent"),
        [Some(2896), Some(4344)],
        "as the interval ended"
    );
}

#[test]
fn anonymised_addresses_are_not_in_the_rows() {
    let options = Options {
        anonymiser: Anonymiser::Hash(Key::from_text("key")),
        ..Options::default()
    };
    let script = at_client(&[data(100_000, 0, MSS), ack(120_000, MSS)]);
    let found = import_bytes(options, &capture(&script));
    for name in ["local_addr", "remote_addr"] {
        let address = found.texts(name).remove(0).unwrap();
        assert!(address.starts_with('h') && address.len() == 17, "{address}");
    }
}

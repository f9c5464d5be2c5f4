//! Rows against the kernel's own units.

use knee_collect::testing::diag;
use knee_tables::Sample;

use super::*;
use crate::sample::sample;

const ID: Id = Id {
    cell: 0,
    rep: 0,
    t_ns: 5,
    flow: 0,
};

#[test]
fn rates_are_in_bits_and_unlimited_is_null() {
    let mut bytes = vec![0; 280];
    bytes[104..112].copy_from_slice(&125_000u64.to_ne_bytes());
    bytes[112..120].copy_from_slice(&u64::MAX.to_ne_bytes());
    bytes[160..168].copy_from_slice(&1_000u64.to_ne_bytes());
    let (row, more) = sample(ID, &diag(&bytes), &TcpInfo(&bytes), 0, None);
    assert_eq!(row.pacing_rate_bits_per_sec, Some(1_000_000));
    assert_eq!(row.delivery_rate_bits_per_sec, Some(8_000));
    assert_eq!(more.max_pacing_rate_bits_per_sec, None);
}

#[test]
fn least_rtt_that_was_never_measured_is_zero_as_in_the_simulator() {
    let mut bytes = vec![0; 280];
    bytes[148..152].copy_from_slice(&u32::MAX.to_ne_bytes());
    let (row, _) = sample(ID, &diag(&bytes), &TcpInfo(&bytes), 0, None);
    assert_eq!(row.min_rtt_us, Some(0));
}

/// `tcp_info` grew with the kernel: what is beyond the length that it returned is null, and what is within it is not.
/// Where each field ends: include/uapi/linux/tcp.h.
#[test]
fn what_the_kernel_did_not_tell_is_null_whatever_its_age() {
    type Field = fn(&Sample) -> Option<i64>;
    let ends: [(&str, usize, Field); 16] = [
        ("bytes_acked", 128, |row| row.bytes_acked),
        ("notsent_bytes", 148, |row| row.notsent_bytes),
        ("min_rtt_us", 152, |row| row.min_rtt_us),
        ("data_segs_out", 160, |row| row.data_segs_out),
        ("delivery_rate", 168, |row| row.delivery_rate_bits_per_sec),
        ("busy_us", 176, |row| row.busy_us),
        ("rwnd_limited_us", 184, |row| row.rwnd_limited_us),
        ("sndbuf_limited_us", 192, |row| row.sndbuf_limited_us),
        ("delivered", 196, |row| row.delivered),
        ("delivered_ce", 200, |row| row.delivered_ce),
        ("bytes_sent", 208, |row| row.bytes_sent),
        ("bytes_retrans", 216, |row| row.bytes_retrans),
        ("dsack_dups", 220, |row| row.dsack_dups),
        ("reord_seen", 224, |row| row.reord_seen),
        ("snd_wnd_bytes", 232, |row| row.snd_wnd_bytes),
        ("pacing_rate", 112, |row| row.pacing_rate_bits_per_sec),
    ];
    for told in (104..=280).step_by(4) {
        let bytes = vec![1; told];
        let (row, more) = sample(ID, &diag(&bytes), &TcpInfo(&bytes), 0, None);
        for (name, end, value) in ends {
            assert_eq!(value(&row).is_some(), told >= end, "{name}, {told} bytes");
        }
        assert_eq!(row.delivery_rate_app_limited, told >= 168, "{told} bytes");
        assert_eq!(more.rehash.is_some(), told >= 240, "{told} bytes");
        assert_eq!(more.total_rto.is_some(), told >= 242, "{told} bytes");
        assert_eq!(
            (row.sndbuf_bytes, row.rcvbuf_bytes),
            (None, None),
            "no SO_MEMINFO"
        );
    }
}

#[test]
fn an_opening_at_which_no_sample_was_taken_has_no_window() {
    let opening = event(ID, "open", &TcpInfo(&[]));
    assert_eq!((opening.snd_cwnd, opening.snd_ssthresh), (None, None));
    let end = event(ID, "closed", &TcpInfo(&[1; 104]));
    assert_eq!(end.snd_cwnd, Some(0x0101_0101));
}

/// What became of the one flow of a second without a sample, whose last `tcp_info` was this.
fn flow_of(bytes: &[u8], backend: &str) -> knee_tables::Flow {
    let text = "duration = \"1s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"10ms\"\n[[flow]]\nalgorithm = \"reno\"\n";
    let cell = crate::testing::cell(text);
    let flows = knee_traffic::flows(&cell, 0);
    let shared = knee_traffic::Shared::new(flows.len()).unwrap();
    let mut book = Book::new(&cell, 0, &flows, shared, Vec::new());
    book.tracks[0].last = bytes.to_vec();
    let reports = Reports {
        link: None,
        sender: &[],
        receiver: &[],
        start_ns: 0,
        ended_ns: 1_000_000_000,
    };
    flow_row(&book, 0, &reports, &LinkFlows::new(&[]), backend)
}

#[test]
fn a_flows_counts_that_the_kernel_did_not_tell_are_null() {
    let values = |row: &knee_tables::Flow| {
        [
            row.bytes_acked,
            row.data_segs_out,
            row.app_limited_us,
            row.rwnd_limited_us,
            row.sndbuf_limited_us,
            row.bytes_sent,
            row.bytes_retrans,
        ]
    };
    for (told, known) in [(104, 0), (128, 1), (160, 2), (192, 5), (208, 6), (280, 7)] {
        let row = flow_of(&vec![1; told], OUR_LINK);
        let found = values(&row).map(|value| value.is_some());
        assert_eq!(
            found.iter().filter(|&&is| is).count(),
            known,
            "{told}: {found:?}"
        );
        assert!(found.is_sorted_by(|a, b| a >= b), "{told}: {found:?}");
        assert_eq!(row.retransmit_pct.is_some(), told >= 160, "{told}");
        assert_eq!(row.throughput_bits_per_sec.is_some(), told >= 208, "{told}");
    }
    let unopened = flow_of(&[], OUR_LINK);
    assert_eq!(
        values(&unopened)[..2],
        [Some(0), Some(0)],
        "nothing was sent, and that is known"
    );
}

#[test]
fn what_a_flow_lost_is_null_where_the_kernels_own_emulation_lost_it() {
    let lost = |backend| {
        let row = flow_of(&[1; 280], backend);
        (row.path_lost_pkts, row.queue_dropped_pkts)
    };
    assert_eq!(lost("netem"), (None, None));
    assert_eq!(lost(OUR_LINK), (Some(0), Some(0)));
}

#[test]
fn timeout_is_told_without_its_doublings() {
    let mut bytes = vec![0; 280];
    bytes[4] = 2;
    bytes[8..12].copy_from_slice(&800_000u32.to_ne_bytes());
    let (row, _) = sample(ID, &diag(&bytes), &TcpInfo(&bytes), 0, None);
    assert_eq!((row.rto_us, row.backoff), (200_000, 2));
}

//! Pacing: who does it, in what bursts, and up to which rate.

use super::{MSS_BYTES, Round, bbr, round};
use crate::common::Conn;
use knee_cc::{Op, PacingStatus};

#[test]
fn bbr1_leaves_pacing_to_fq_where_fq_paces() {
    let mut c = Conn::new("bbr1", &[]);
    c.stack.pacing_status = PacingStatus::Fq as u32;
    c.op(Op::Init);
    assert_eq!(c.stack.pacing_status, PacingStatus::Fq as u32);
}

#[test]
fn bbr1_sends_single_segments_below_1200_kbit_per_sec() {
    let mut c = bbr(&[]);
    for (rate, segments) in [(149_999, 1), (150_000, 2), (1 << 40, 2)] {
        c.stack.pacing_rate = rate;
        assert_eq!(c.op(Op::MinTsoSegs), segments, "{rate} B/s");
    }
    assert_eq!(c.op(Op::SndbufExpand), 3);
}

#[test]
fn bbr1_obeys_the_pacing_limit_of_the_socket() {
    let mut c = bbr(&[]);
    c.stack.max_pacing_rate = 1_000_000;
    c.op(Op::Init);
    for _ in 0..10 {
        round(&mut c, Round::default());
        assert!(c.stack.pacing_rate <= 1_000_000);
    }
}

/// Linux 4.13 to 4.18: 52 B of headers in the rate of 1448 B, and no margin of 1 %; fq counts headers, too.
#[test]
fn bbr1_that_counts_headers_is_faster_where_no_fq_does() {
    let rate_of = |counts, status: PacingStatus| {
        let mut c = bbr(&[("pace_headers", counts)]);
        c.stack.pacing_status = status as u32;
        for _ in 0..20 {
            round(&mut c, Round::default());
        }
        c.stack.pacing_rate as f64
    };
    let mss = f64::from(MSS_BYTES);
    let ratio = rate_of(1, PacingStatus::Needed) / rate_of(0, PacingStatus::Needed);
    assert!(
        (ratio - (mss + 52.0) / (mss * 0.99)).abs() < 1e-3,
        "{ratio}"
    );
    assert_eq!(rate_of(1, PacingStatus::Fq), rate_of(0, PacingStatus::Fq));
}

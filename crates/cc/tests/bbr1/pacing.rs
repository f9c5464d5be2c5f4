//! Pacing: who does it, in what bursts, and up to which rate.

use super::{Round, bbr, round};
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

//! What BBR tells of its model.

use super::{BDP, PACKETS_PER_MS, RTT_US, Round, bbr, round};
use crate::common::{Conn, MSS_BYTES};

#[test]
fn bbr1_tells_nothing_of_the_path_before_the_first_ack() {
    let info = Conn::new("bbr1", &[]).info().unwrap();
    assert_eq!(info.bw_bytes_per_sec, None);
    assert_eq!(info.min_rtt_us, None);
    assert_eq!(info.phase, "Startup");
}

#[test]
fn bbr1_tells_the_bandwidth_without_margin_and_the_gains_of_each_phase() {
    let mut c = bbr(&[]);
    round(&mut c, Round::default());
    let info = c.info().unwrap();
    let bw = f64::from(PACKETS_PER_MS) * 1000.0 * f64::from(MSS_BYTES);
    // 2^-24 segments/us is the grain of bw.
    assert!((info.bw_bytes_per_sec.unwrap() as f64 / bw - 1.0).abs() < 1e-4);
    assert_eq!(info.min_rtt_us, Some(RTT_US));
    let gains = |c: &Conn| {
        let info = c.info().unwrap();
        (info.phase, info.pacing_gain * 256.0, info.cwnd_gain * 256.0)
    };
    assert_eq!(gains(&c), ("Startup", 739.0, 739.0));

    // The plateau is seen, the queue not yet drained.
    let queue = Round {
        in_flight: 3 * BDP,
        ..Round::default()
    };
    for _ in 0..3 {
        round(&mut c, queue);
    }
    assert_eq!(gains(&c), ("Drain", 88.0, 739.0));
    round(&mut c, Round::default());
    let (phase, pacing_gain, cwnd_gain) = gains(&c);
    assert_eq!((phase, cwnd_gain), ("ProbeBw", 512.0));
    assert!([192.0, 256.0, 320.0].contains(&pacing_gain));

    let rounds_in_10_s = 10_000_000 / RTT_US + 1;
    let late = Round {
        rtt_us: RTT_US + 1000,
        ..Round::default()
    };
    for _ in 0..rounds_in_10_s {
        round(&mut c, late);
    }
    assert_eq!(gains(&c), ("ProbeRtt", 256.0, 256.0));
}

#[test]
fn algorithms_without_a_model_of_the_path_tell_nothing() {
    assert_eq!(Conn::new("reno", &[]).info(), None);
    assert_eq!(Conn::new("cubic", &[]).info(), None);
}

//! What BBR versions 2 and 3 do that no flow of the simulator shows.

use knee_cc::{CcIn, CcOut, Instance, Op, find};

/// The kernel calls cong_control() for the SYN-ACK before it calls init(). Source: google/bbr v3, net/ipv4/tcp_bbr.c,
/// bbr_bound_cwnd_for_inflight_model().
#[test]
fn bbr_bounds_no_window_before_init() {
    for name in ["bbr2", "bbr3"] {
        let mut bbr = Instance::new(find(name).unwrap(), &[]).unwrap();
        let input = CcIn {
            hz: 1000,
            snd_cwnd: 100,
            snd_cwnd_clamp: u32::MAX,
            mss_bytes: 1448,
            max_pacing_rate: u64::MAX,
            rs_delivered: -1,
            rs_rtt_us: -1,
            ..CcIn::default()
        };
        let mut out = CcOut {
            snd_cwnd: input.snd_cwnd,
            ..CcOut::default()
        };
        bbr.call(Op::CongControl, &input, &mut out);
        assert_eq!(out.snd_cwnd, 100, "{name}");
    }
}

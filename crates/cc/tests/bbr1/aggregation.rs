//! Aggregated ACKs.

use super::{BDP, in_smooth_probe_bw, lump, round, smooth};

#[test]
fn bbr1_adds_the_excess_of_aggregated_acks_for_five_to_ten_rounds() {
    let mut c = in_smooth_probe_bw(&[]);
    let before = c.cwnd();
    // ACKs compressed: 200 packets come at once, and nothing for as long as they would have taken.
    lump(&mut c, 1, 200);
    lump(&mut c, 24_000, 40);
    let windows: Vec<_> = (0..15)
        .map(|_| {
            round(&mut c, smooth());
            c.cwnd()
        })
        .collect();
    let grown = windows.iter().max().unwrap() - before;
    assert!((190..=215).contains(&grown), "grew by {grown}");
    let lasted = windows.iter().filter(|&&w| w > before + 100).count();
    assert!(
        (5..=10).contains(&lasted),
        "lasted {lasted} rounds: {windows:?}"
    );
}

#[test]
fn bbr1_without_ack_aggregation_adds_nothing_for_aggregated_acks() {
    let mut c = in_smooth_probe_bw(&[("ack_aggregation", 0)]);
    lump(&mut c, 1, 200);
    lump(&mut c, 24_000, 40);
    // Two BDP, three bursts of 7 to 12 segments, 1 to be even and 2 while probing: no extra_acked (41 when smooth).
    for _ in 0..15 {
        round(&mut c, smooth());
        let (least, most) = (2 * BDP + 3 * 7, 2 * BDP + 3 * 12 + 1 + 2);
        assert!((least..=most).contains(&c.cwnd()), "{}", c.cwnd());
    }
}

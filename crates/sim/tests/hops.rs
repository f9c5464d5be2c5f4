//! Paths of several hops: what follows from the hops alone, and the parking lot.

use crate::common;

use crate::common::{assert_within, run};
use knee_sim::Output;
use knee_tables::Table;

fn queue_rows(output: &Output, hop: i32) -> impl Iterator<Item = usize> + '_ {
    (0..output.queue.rows()).filter(move |&row| output.queue.hop[row] == hop)
}

#[test]
fn path_written_as_one_hop_is_the_same_path() {
    let text = |header: &str| {
        format!(
            "duration = \"5s\"\n{header}\nrate = \"20Mbit/s\"\nrtt = \"40ms\"\nloss = \"1%\"\n\
             jitter = \"1ms\"\nack_rate = \"1Mbit/s\"\n[[flow]]\nalgorithm = \"cubic\"\ncount = 2\n"
        )
    };
    let (path, hop) = (run(&text("[path]")), run(&text("[[hop]]")));
    for output in [&path, &hop] {
        assert!(output.samples.rows() > 100);
    }
    assert_eq!(format!("{:?}", path.samples), format!("{:?}", hop.samples));
    assert_eq!(format!("{:?}", path.queue), format!("{:?}", hop.queue));
}

#[test]
fn queue_stands_before_the_narrower_hop_and_nowhere_else() {
    let output = run("duration = \"20s\"\nwarmup = \"5s\"\n\
         [[hop]]\nrate = \"50Mbit/s\"\nrtt = \"10ms\"\n\
         [[hop]]\nrate = \"10Mbit/s\"\nrtt = \"30ms\"\n\
         [[hop]]\nrate = \"50Mbit/s\"\nrtt = \"20ms\"\n\
         [[flow]]\nalgorithm = \"cubic\"\n");
    assert_within(
        "share of the narrower hop's rate",
        common::utilisation(&output, 10e6),
        0.95,
        1.0,
    );
    let most_bytes = |hop| {
        let waiting = queue_rows(&output, hop).map(|row| output.queue.queue_bytes_max[row]);
        waiting.max().expect("every hop is sampled")
    };
    // Behind the narrower hop packets come at its pace; before the first they
    // come in the sender's bursts.
    assert!(most_bytes(1) > 60_000, "{} B before hop 2", most_bytes(1));
    assert_eq!(
        most_bytes(2),
        0,
        "packets come 1.2 ms apart and take 0.24 ms"
    );
    // 60 ms without queues, and a packet's 1.2 + 2 × 0.24 ms on the links.
    let min_rtt_us = output.flows.min_rtt_us.get(0).expect("measured");
    assert_within("least RTT, ms", min_rtt_us as f64 / 1e3, 60.0, 62.0);
}

#[test]
fn flow_takes_the_delay_of_its_own_hops_and_no_other() {
    let output = run("duration = \"3s\"\n\
         [[hop]]\nrate = \"unlimited\"\nrtt = \"10ms\"\n\
         [[hop]]\nrate = \"unlimited\"\nrtt = \"20ms\"\n\
         [[hop]]\nrate = \"unlimited\"\nrtt = \"40ms\"\n\
         [sender]\ntcp_wmem_max = \"64KiB\"\n\
         [[flow]]\nalgorithm = \"reno\"\n\
         [[flow]]\nalgorithm = \"reno\"\nhops = \"1\"\n\
         [[flow]]\nalgorithm = \"reno\"\nhops = \"2..3\"\n\
         [[flow]]\nalgorithm = \"reno\"\nhops = \"2..3\"\nrtt = \"100ms\"\n");
    let rtts: Vec<i64> = output.flows.min_rtt_us.iter().flatten().collect();
    assert_eq!(rtts, [70_000, 10_000, 60_000, 100_000]);
}

#[test]
fn loss_of_every_hop_adds_up() {
    // Nothing limits, so the shares lost are those of independent draws.
    let output = run("duration = \"60s\"\n\
         [[hop]]\nrate = \"10Mbit/s\"\nrtt = \"10ms\"\nloss = \"1%\"\n\
         [[hop]]\nrate = \"unlimited\"\nrtt = \"10ms\"\nloss = \"2%\"\n\
         [[flow]]\nalgorithm = \"bbr1\"\n");
    let lost = |hop| {
        let last = queue_rows(&output, hop).last().expect("sampled at the end");
        let queue = &output.queue;
        queue.lost_pkts[last] as f64 / (queue.lost_pkts[last] + queue.sent_pkts[last]) as f64
    };
    // 45,000 packets: two standard deviations are 0.1 and 0.13 %.
    assert_within("lost at hop 1", lost(0), 0.009, 0.011);
    assert_within("lost at hop 2", lost(1), 0.0187, 0.0213);
    let last: Vec<usize> = (0..2)
        .map(|hop| queue_rows(&output, hop).last().expect("sampled"))
        .collect();
    let lost_pkts: i64 = last.iter().map(|&row| output.queue.lost_pkts[row]).sum();
    assert_eq!(output.flows.path_lost_pkts.get(0).unwrap(), lost_pkts);
}

/// The parking lot: a long flow over every hop, and a short one over each.
fn parking_lot(queue: &str, algorithm: &str, n_hops: usize) -> Output {
    let hops = format!("[[hop]]\nrate = \"10Mbit/s\"\nrtt = \"20ms\"\n{queue}\n").repeat(n_hops);
    let flows: String = (1..=n_hops)
        .map(|hop| format!("[[flow]]\nalgorithm = \"{algorithm}\"\nname = \"short_{hop}\"\nhops = \"{hop}\"\nrtt = \"{}ms\"\n", 20 * n_hops))
        .collect();
    run(&format!(
        "duration = \"300s\"\nwarmup = \"60s\"\n{hops}\
         [[flow]]\nalgorithm = \"{algorithm}\"\nname = \"long\"\n{flows}"
    ))
}

#[test]
fn fair_queues_give_the_long_flow_half_of_each_hop() {
    // Max-min fairness, which a fair queue at each hop brings about: two flows
    // share every hop. Source: Demers, Keshav, Shenker, SIGCOMM 1989.
    let output = parking_lot("queue = \"fq\"\nbuffer = \"4bdp\"", "cubic", 3);
    let goodput = &output.flows.goodput_bits_per_sec;
    let share = goodput[0] / (10e6 * common::PAYLOAD_SHARE);
    assert_within("the long flow's share of a hop", share, 0.45, 0.52);
}

#[test]
fn reno_shares_a_parking_lot_between_proportional_and_potential_delay_fairness() {
    // At equal RTTs a long flow over n hops has 1 / sqrt(n) of a short flow's rate
    // when rates go with 1 / sqrt(loss) (Mathis et al., CCR 27(3) 1997; minimum
    // potential delay: Massoulié, Roberts, INFOCOM 1999), and 1 / n when they are
    // proportionally fair (Kelly et al., JORS 49(3) 1998). Reno between the two:
    // losses of the long flow come in bunches, which the root formula leaves out.
    let output = parking_lot("queue = \"red\"", "reno", 3);
    let goodput = &output.flows.goodput_bits_per_sec;
    let short = goodput[1..].iter().sum::<f64>() / 3.0;
    let (least, most) = (1.0 / 3.0, 1.0 / 3f64.sqrt());
    assert_within("long over short", goodput[0] / short, least, most);
    for (hop, short) in goodput[1..].iter().enumerate() {
        let used = (goodput[0] + short) / (10e6 * common::PAYLOAD_SHARE);
        assert_within(&format!("use of hop {}", hop + 1), used, 0.85, 1.0);
    }
}

#[test]
fn another_hop_leaves_the_draws_of_the_first_as_they_are() {
    let text = |more: &str| {
        format!(
            "duration = \"10s\"\n[[hop]]\nrate = \"unlimited\"\nrtt = \"40ms\"\nloss = \"3%\"\n{more}\
             [sender]\ntcp_wmem_max = \"32KiB\"\n[[flow]]\nalgorithm = \"reno\"\nhops = \"1\"\n"
        )
    };
    let one = run(&text(""));
    let two = run(&text(
        "[[hop]]\nrate = \"unlimited\"\nrtt = \"5ms\"\nloss = \"50%\"\n",
    ));
    assert!(one.flows.path_lost_pkts.get(0).unwrap() > 10);
    assert_eq!(one.flows.path_lost_pkts, two.flows.path_lost_pkts);
    assert_eq!(format!("{:?}", one.samples), format!("{:?}", two.samples));
}

//! The queues under the simulator's TCP: what each is there for.

use crate::common::{assert_within, run, utilisation};
use knee_path::queue::QUEUES;
use knee_sim::Output;

const RATE_BITS_PER_SEC: f64 = 50e6;

/// Four cubic flows for 30 s, the first 10 s left out, before a buffer of 8 BDP.
fn four_cubic(queue: &str) -> Output {
    run(&format!(
        r#"
        duration = "30s"
        warmup = "10s"
        sample_interval = "10ms"
        [path]
        rate = "50Mbit/s"
        rtt = "40ms"
        buffer = "8bdp"
        queue = "{queue}"
        [[flow]]
        algorithm = "cubic"
        count = 4
        "#
    ))
}

/// Mean of what the queue held at the samples after the start, as time on the link.
fn mean_queue_ms(output: &Output) -> f64 {
    let queue = &output.queue;
    let rows: Vec<usize> = (0..queue.t_ns.len())
        .filter(|&row| queue.t_ns[row] >= 10_000_000_000)
        .collect();
    let bytes: i64 = rows.iter().map(|&row| queue.queue_bytes[row]).sum();
    bytes as f64 / rows.len() as f64 * 8e3 / RATE_BITS_PER_SEC
}

#[test]
fn every_queue_keeps_the_link_busy() {
    for kind in QUEUES {
        let share = utilisation(&four_cubic(kind.name), RATE_BITS_PER_SEC);
        // What was lost before the steady part may reach the reader in it.
        assert_within(&format!("utilisation with {}", kind.name), share, 0.9, 1.01);
    }
}

#[test]
fn codel_and_pie_hold_the_queue_near_their_targets_and_a_fifo_does_not() {
    let fifo = mean_queue_ms(&four_cubic("fifo"));
    assert_within("mean queue of fifo, ms", fifo, 150.0, 320.0);
    for (queue, least, most) in [
        ("codel", 1.0, 10.0),
        ("fq_codel", 1.0, 15.0),
        ("pie", 8.0, 22.0),
        ("fq_pie", 8.0, 22.0),
    ] {
        let ms = mean_queue_ms(&four_cubic(queue));
        assert_within(&format!("mean queue of {queue}, ms"), ms, least, most);
    }
}

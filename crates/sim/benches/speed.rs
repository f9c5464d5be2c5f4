//! Data packets simulated per second on one core, everything on: by algorithm,
//! and by queue at the bottleneck.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use knee_path::queue::QUEUES;

mod common;

/// `flows` flows of one host on 1 Gbit/s x 20 ms with a buffer of 1 BDP for 10
/// simulated seconds, sampled every 10 ms.
fn text(algorithm: &str, flows: u32, queue: &str) -> String {
    format!(
        r#"
        title = "speed"
        duration = "10s"
        [path]
        rate = "1Gbit/s"
        rtt = "20ms"
        buffer = "1bdp"
        queue = "{queue}"
        [[flow]]
        algorithm = "{algorithm}"
        count = {flows}
        "#
    )
}

fn measure(c: &mut Criterion, name: &str, rows: impl Iterator<Item = (&'static str, String)>) {
    let mut group = c.benchmark_group(name);
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(5));
    for (row, text) in rows {
        let cell = common::cell(&text);
        // Elements are data packets that entered the path.
        group.throughput(Throughput::Elements(common::run(&cell).data_packets));
        group.bench_function(BenchmarkId::from_parameter(row), |b| {
            b.iter(|| black_box(common::run(&cell)));
        });
    }
    group.finish();
}

fn algorithms(c: &mut Criterion) {
    let rows = ["cubic", "reno", "bbr1", "bbr2", "bbr3", "prague"];
    measure(
        c,
        "one flow, 1 Gbit/s x 20 ms x 1 BDP, 10 s",
        rows.into_iter().map(|name| (name, text(name, 1, "fifo"))),
    );
}

fn queues(c: &mut Criterion) {
    measure(
        c,
        "ten cubic flows of a host, 1 Gbit/s x 20 ms x 1 BDP, 10 s",
        QUEUES
            .iter()
            .map(|kind| (kind.name, text("cubic", 10, kind.name))),
    );
}

criterion_group!(benches, algorithms, queues);
criterion_main!(benches);

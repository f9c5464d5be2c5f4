//! Data packets simulated per second on one core: one flow, everything on.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use knee_model::scenario::Cell;

mod common;

/// One flow on 1 Gbit/s x 20 ms with a buffer of 1 BDP for 10 simulated
/// seconds, sampled every 10 ms.
fn cell(algorithm: &str) -> Cell {
    common::cell(&format!(
        r#"
        title = "one flow"
        duration = "10s"
        [path]
        rate = "1Gbit/s"
        rtt = "20ms"
        buffer = "1bdp"
        [[flow]]
        algorithm = "{algorithm}"
        "#
    ))
}

fn one_flow(c: &mut Criterion) {
    let mut group = c.benchmark_group("one flow, 1 Gbit/s x 20 ms x 1 BDP, 10 s");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(5));
    for algorithm in ["cubic", "reno", "bbr1"] {
        let cell = cell(algorithm);
        // Elements are data packets that entered the path.
        group.throughput(Throughput::Elements(common::run(&cell).data_packets));
        group.bench_function(BenchmarkId::from_parameter(algorithm), |b| {
            b.iter(|| black_box(common::run(&cell)));
        });
    }
    group.finish();
}

criterion_group!(benches, one_flow);
criterion_main!(benches);

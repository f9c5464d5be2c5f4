//! Data packets simulated per second on one core: one flow, everything on.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

mod common;

fn one_flow(c: &mut Criterion) {
    let mut group = c.benchmark_group("one flow, 1 Gbit/s x 20 ms x 1 BDP, 10 s");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(5));
    for algorithm in ["cubic", "reno", "bbr1"] {
        let cell = common::one_flow(algorithm);
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

//! Data packets simulated per second on one core, everything on: on the cells
//! of `cells/`, by algorithm, and by queue at the bottleneck.

use std::fs;
use std::hint::black_box;
use std::path::Path;
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

fn measure(c: &mut Criterion, name: &str, rows: impl Iterator<Item = (impl Into<String>, String)>) {
    let mut group = c.benchmark_group(name);
    group
        .sample_size(10)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(5));
    for (row, text) in rows {
        let row: String = row.into();
        let cell = common::cell(&text);
        // Elements are data packets that entered the path.
        group.throughput(Throughput::Elements(common::run(&cell).data_packets));
        group.bench_function(BenchmarkId::from_parameter(row), |b| {
            b.iter(|| black_box(common::run(&cell)));
        });
    }
    group.finish();
}

/// Each scenario of the folder, by the name of its file: what tools/bench_command.py
/// runs with the whole command, and where tools/instructions.py counts.
fn cells(c: &mut Criterion) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/cells");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("a file of it").path())
        .collect();
    files.sort();
    let rows = files.iter().map(|file| {
        let name = file.file_stem().expect("a file has a name");
        let text = fs::read_to_string(file).expect("a scenario is text");
        (name.to_string_lossy(), text)
    });
    measure(c, "cubic, cells of crates/sim/benches/cells", rows);
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

criterion_group!(benches, cells, algorithms, queues);
criterion_main!(benches);
